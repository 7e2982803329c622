"""The plugin with other clusters than the usual one of the tests, each a real Spark of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from decima.connect.cluster.standalone import StandaloneCluster
from tests.services import process, until
from tests.spark.real_spark import (
    BUG,
    OUTAGE,
    events_of,
    finished_tasks,
    most_at_once,
    plugin_driver,
    sleep_sql,
    slow_sum,
    start_queries,
    tasks_of,
)
from tests.spark.toy_service import toy_service

pytestmark = pytest.mark.spark_slow


def executor_processes() -> list[psutil.Process]:
    """Executors that descend from this one."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in one.cmdline():
                found.append(one)
    return found


def test_a_killed_executor_loses_no_work(tmp_path):
    # Its shuffle files are gone too: the first stage runs again in part, within the limit.
    conf = {"spark.stage.maxConsecutiveAttempts": "10"}
    with toy_service(cap=1) as toy, plugin_driver(tmp_path, toy.address, conf=conf) as driver:

        def slow_end():
            numbers = driver.spark.range(0, 8, 1, 4).repartition(4)
            slept = numbers.selectExpr("id", sleep_sql(1.0))
            return sum(row[0] for row in slept.where("slept IS NOT NULL").collect())

        running = start_queries(driver, {"a": slow_end, "b": slow_end})
        until(lambda: len({stage for _, stage, _ in toy.decisions}) == 4)  # both are in their second stage
        executor_processes()[0].kill()
        assert running.wait() == {"a": 28, "b": 28}
        assert start_queries(driver, {"c": slow_sum(driver, 4, 0.1)}).wait() == {"c": 6}
        assert not driver.lines(OUTAGE)
        assert not driver.lines(BUG)
    tasks = tasks_of(tmp_path)
    assert any(task.failed for task in tasks)
    for name in "ab":
        assert most_at_once([task for task in tasks if task.query == name and not task.failed]) == 1


def test_slots_of_a_wide_executor_are_bound_one_by_one(tmp_path):
    with toy_service(cap=2) as toy, plugin_driver(tmp_path, toy.address, executors=1, cores=3) as driver:
        pair = {name: slow_sum(driver, 8, 0.3) for name in ("a", "b")}
        assert start_queries(driver, pair).wait() == {"a": 28, "b": 28}
    tasks = tasks_of(tmp_path)
    assert max(most_at_once([task for task in tasks if task.query == name]) for name in "ab") == 2
    assert most_at_once(tasks) == 3


def test_a_copy_that_cannot_start_keeps_no_executor(tmp_path):
    # Spark wants a speculative copy of the straggler, but never on the host where that runs, and there is one host.
    conf = {"spark.speculation": "true", "spark.speculation.quantile": "0.5", "spark.speculation.multiplier": "1.1"}
    with toy_service(cap=2) as toy, plugin_driver(tmp_path, toy.address, conf=conf) as driver:
        context = driver.spark.sparkContext

        def straggle(number):
            time.sleep(60.0 if number == 0 else 0.1)
            return number

        run = lambda: context.parallelize(range(6), 6).map(straggle).sum()  # noqa: E731
        straggling = start_queries(driver, {"a": run})
        until(lambda: finished_tasks(driver) == 5)
        assert start_queries(driver, {"b": slow_sum(driver, 4, 0.1)}).wait() == {"b": 6}
        assert straggling.threads["a"].is_alive()
        assert straggling.wait() == {"a": 15}
        assert not driver.lines(BUG)
        assert not driver.lines(OUTAGE)


# Two applications on one standalone master, between which the real service moves executors.


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
