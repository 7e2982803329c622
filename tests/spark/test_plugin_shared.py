"""Two applications on one standalone master, between which the real service moves executors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from decima.connect.cluster.standalone import StandaloneCluster
from tests.services import process
from tests.spark.real_spark import events_of

pytestmark = pytest.mark.spark_slow

EXECUTORS = 2


def start_application(cluster: StandaloneCluster, folder: Path, service: str, stages: int) -> subprocess.Popen:
    """A driver of its own with one query; its last line of output is the result."""
    folder.mkdir()
    arguments = [str(folder), service, cluster.url, str(cluster.folder), str(stages), str(EXECUTORS)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.shared_application", *arguments], stdout=subprocess.PIPE, text=True
    )


def executors_over_time(folder: Path) -> list[tuple[int, int, int]]:
    """(milliseconds, change, executors registered then)."""
    count, changes = 0, []
    for event in events_of(folder):
        step = {"SparkListenerExecutorAdded": 1, "SparkListenerExecutorRemoved": -1}.get(event["Event"], 0)
        if step:
            count += step
            changes.append((event["Timestamp"], step, count))
    return changes


def test_executors_move_between_applications(tmp_path):
    with (
        process("--port", 0, "--scheduler", "fair") as service,
        StandaloneCluster(executors=EXECUTORS, memory_mb=700, shuffle_service=True) as cluster,
    ):
        long = start_application(cluster, tmp_path / "long", service.target, stages=10)
        short = start_application(cluster, tmp_path / "short", service.target, stages=4)
        results = [started.communicate(timeout=500)[0].splitlines()[-1] for started in (long, short)]
    assert results == ["6", "6"]
    changes = {name: executors_over_time(tmp_path / name) for name in ("long", "short")}
    for name in changes:
        log = (tmp_path / name / "driver.log").read_text()
        assert "released executors" in log
        assert "Spark schedules by itself" not in log
    have, given_back, both, moved = {"long": 0, "short": 0}, {"long": 0, "short": 0}, False, 0
    for _, name, step, count in sorted((at, who, *step) for who in have for at, *step in changes[who]):
        other = "short" if name == "long" else "long"
        if step < 0:
            given_back[name] += 1
        elif given_back[other]:
            given_back[other] -= 1
            moved += 1
        have[name] = count
        both |= min(have.values()) > 0
    # Both had executors while the other one had, and some served first one and then the other.
    assert both
    assert moved > 0
