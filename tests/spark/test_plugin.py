"""The Spark plugin in a real Spark: short, part of every run of the tests."""

from __future__ import annotations

import itertools
import time

import pytest

from decima.connect.service.scheduler_pb2 import OpenRequest
from decima.systems.spark.schedulers import Decision
from decima.systems.spark.schedulers.interface import RUNNING
from tests.services import process, running, sessions_of, until
from tests.spark.real_spark import (
    BUG,
    OUTAGE,
    RECOVERY,
    decisions_of,
    finished_tasks,
    metrics_of,
    most_at_once,
    plugin_driver,
    slow_sum,
    start_queries,
    tasks_of,
)
from tests.spark.toy_service import toy_service

pytestmark = pytest.mark.spark

TASKS = 8
TASK_S = 0.4
DELAY_MS = 1500.0
# Longer than anybody waits for a query here.
ENDLESS_MS = 1e9


def test_limits_and_slots_hold_and_spark_outlives_the_service(tmp_path):
    expected = TASKS * (TASKS - 1) // 2
    delays = {"delay_ms": DELAY_MS, "delayed_query": "slots"}
    conf = {"spark.decima.cluster.moving.delay": "4200ms"}
    with toy_service(cap=2, **delays) as toy, plugin_driver(tmp_path, toy.address, conf=conf) as driver:
        # Nothing else runs, and nothing but the end of a slot could start its stages.
        assert start_queries(driver, {"slots": slow_sum(driver, 4, 0.1)}).wait() == {"slots": 6}
        both = {"slots": slow_sum(driver, 2, 0.1), "beside": slow_sum(driver, 8, 0.3)}
        assert start_queries(driver, both).wait() == {"slots": 1, "beside": 28}

        assert OpenRequest.FromString(toy.opened[-1]).moving_delay_ms == 4200.0

        toy.cap = 1
        both = {"a": slow_sum(driver, TASKS, TASK_S), "b": slow_sum(driver, TASKS, TASK_S)}
        assert start_queries(driver, both).wait() == {"a": expected, "b": expected}
        limited_until = 1000 * time.time()

        toy.delay_ms, toy.delayed_query = ENDLESS_MS, "endless"
        endless = start_queries(driver, {"endless": slow_sum(driver, 2, 0.0)})
        until(lambda: any(job == "endless" for job, _, _ in toy.decisions))
        again = {"c": slow_sum(driver, TASKS, TASK_S), "d": slow_sum(driver, TASKS, TASK_S)}
        running = start_queries(driver, again)
        until(lambda: finished_tasks(driver) >= 2)
        toy.stop()
        assert running.wait() == {"c": expected, "d": expected}
        assert endless.wait(120.0) == {"endless": 1}
        assert len(driver.lines(OUTAGE)) == 1
        assert not driver.lines(RECOVERY)

        with process("--port", toy.port, "--scheduler", "fair"):
            # The first decision after the service is back proves it, so there must be one to take.
            until(lambda: start_queries(driver, {"e": slow_sum(driver, 2, 0.0)}).wait() and driver.lines(RECOVERY))
            assert start_queries(driver, {"f": slow_sum(driver, TASKS, 0.0)}).wait() == {"f": expected}
        assert len(driver.lines(OUTAGE)) == 1
        assert not driver.lines(BUG)

    tasks = tasks_of(tmp_path)
    for name in "ab":
        assert most_at_once([task for task in tasks if task.query == name]) == 1
    # Not because there was nothing else to run on: both queries ran side by side.
    assert most_at_once([task for task in tasks if task.launched < limited_until]) == 2
    # In fallback one job may use all executors.
    assert max(most_at_once([task for task in tasks if task.query == name]) for name in "cd") == 2

    decisions = [line for line in decisions_of(tmp_path) if "delay_ms" not in line]
    assert {(line["job"], line["limit"]) for line in decisions if line["scheduler"] == "toy"} >= {("a", 1), ("b", 1)}
    assert all(line["held"] <= line["limit"] and line["bound"] >= 1 for line in decisions)
    assert {line["job"] for line in decisions if line["scheduler"] == "fair"} >= {"f"}
    assert metrics_of(tmp_path)["outages"] == 1
    require_slots(tasks, [line for line in decisions_of(tmp_path) if "delay_ms" in line])


def require_slots(tasks, delays):
    """Every stage of the delayed query began after its slot, in which the executors served others."""
    assert {(line["job"], line["delay_ms"]) for line in delays} == {("slots", DELAY_MS), ("endless", ENDLESS_MS)}
    assert all(line["bound"] == 0 for line in delays)
    slots = [(line["stage"], line["time_ms"]) for line in delays if line["job"] == "slots"]
    assert len({stage for stage, _ in slots}) == len(slots) >= 4
    for stage, begin_ms in slots:
        started = [task.launched for task in tasks if task.stage == stage]
        # The line is written a moment after the slot has begun.
        assert min(started) >= begin_ms + DELAY_MS - 100
    second = max(begin_ms for _, begin_ms in slots)
    assert any(task.query == "beside" and task.launched < second + DELAY_MS for task in tasks)


# Executors of a real Spark that idle until the next event; slots of stages are in `test_plugin.py`.


class OneAtATime:
    """Waits for the next event while any task runs, and notes how long the running ones have run."""

    name = "one at a time"

    def __init__(self):
        self.ages_ms = []

    reads = frozenset({RUNNING})

    def reset(self, rng):
        pass

    def decide(self, observation):
        state = observation.state
        if state.heap_size == 0:
            return observation.grant(observation.frontier[0], 1)
        self.ages_ms += (state.now_ms - state.executor_start_ms[: state.heap_size]).tolist()
        return Decision.idle()


def test_executors_that_wait_for_the_next_event(tmp_path):
    scheduler = OneAtATime()
    sessions = sessions_of("fifo")
    sessions.offering._makers["one"] = lambda: scheduler
    sessions.offering.default = "one"
    with running(sessions) as service, plugin_driver(tmp_path, service.target) as driver:
        queries = {"a": slow_sum(driver, 4, 0.3), "b": slow_sum(driver, 4, 0.3)}
        assert start_queries(driver, queries).wait() == {"a": 6, "b": 6}
        assert not driver.lines(BUG)
    tasks = sorted(tasks_of(tmp_path), key=lambda task: task.launched)
    assert len(tasks) > 8
    # A task is counted as ended a moment after Spark's clock for it.
    assert all(second.launched >= first.finished - 50 for first, second in itertools.pairwise(tasks))
    assert len(scheduler.ages_ms) > 5
    assert all(-50 <= age_ms < 60_000 for age_ms in scheduler.ages_ms)
