"""Two applications on one standalone master, between which the real service moves executors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from decima.spark.cluster import StandaloneCluster
from tests.services import process
from tests.spark.real_spark import tasks_of

pytestmark = pytest.mark.spark_slow

EXECUTORS = 2


def start_application(cluster: StandaloneCluster, folder: Path, service: str, stages: int) -> subprocess.Popen:
    """A driver of its own with one query; its last line of output is the result."""
    folder.mkdir()
    arguments = [str(folder), service, cluster.url, str(cluster.folder), str(stages), str(EXECUTORS)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.shared_application", *arguments], stdout=subprocess.PIPE, text=True
    )


def executors_over_time(folder: Path) -> list[tuple[int, int]]:
    """(milliseconds, executors registered) after every change."""
    (path,) = (folder / "events").iterdir()
    count, changes = 0, []
    for line in path.read_text().splitlines():
        event = json.loads(line)
        step = {"SparkListenerExecutorAdded": 1, "SparkListenerExecutorRemoved": -1}.get(event["Event"], 0)
        if step:
            count += step
            changes.append((event["Timestamp"], count))
    return changes


def test_executors_move_between_applications(tmp_path):
    with (
        process("--port", 0, "--scheduler", "fair") as service,
        StandaloneCluster(executors=EXECUTORS, memory_mb=700, shuffle_service=True) as cluster,
    ):
        long = start_application(cluster, tmp_path / "long", service.target, stages=14)
        short = start_application(cluster, tmp_path / "short", service.target, stages=4)
        results = [started.communicate(timeout=500)[0].splitlines()[-1] for started in (long, short)]
    assert results == ["6", "6"]
    for name in ("long", "short"):
        log = (tmp_path / name / "driver.log").read_text()
        assert "released executors" in log
        assert "Spark schedules by itself" not in log
    changes = {name: executors_over_time(tmp_path / name) for name in ("long", "short")}
    # Both had executors while the other one ran, and together never more than there are.
    merged = sorted((time, name, count) for name, steps in changes.items() for time, count in steps)
    have = {"long": 0, "short": 0}
    both = False
    for _, name, count in merged:
        have[name] = count
        both |= min(have.values()) > 0
    assert both
    # What the short one gave back served the long one afterwards.
    short_end = max(task.finished for task in tasks_of(tmp_path / "short"))
    late = {task.executor for task in tasks_of(tmp_path / "long") if task.launched > short_end}
    assert len(late) == EXECUTORS
