"""Deliberate idle slots in a real Spark: the driver keeps the time, and forgets it without the service."""

from __future__ import annotations

import itertools

import pytest

from decima.systems.spark.schedulers import Decision
from tests.services import running, sessions_of
from tests.spark.real_spark import (
    BUG,
    OUTAGE,
    decisions_of,
    plugin_driver,
    slow_sum,
    start_queries,
    tasks_of,
    wait_until,
)
from tests.spark.toy_service import toy_service

pytestmark = pytest.mark.spark

DELAY_MS = 1500.0
# Longer than anybody waits for a query here.
ENDLESS_MS = 1e9


def test_slots_are_kept_and_dropped_with_the_service(tmp_path):
    delays = {"delay_ms": DELAY_MS, "delayed_query": "a"}
    with toy_service(cap=2, **delays) as toy, plugin_driver(tmp_path, toy.address) as driver:
        # Nothing else runs, and nothing but the end of a slot could start its stages.
        assert start_queries(driver, {"a": slow_sum(driver, 4, 0.1)}).wait() == {"a": 6}
        both = {"a": slow_sum(driver, 2, 0.1), "b": slow_sum(driver, 8, 0.3)}
        assert start_queries(driver, both).wait() == {"a": 1, "b": 28}
        assert not driver.lines(OUTAGE)

        toy.delay_ms, toy.delayed_query = ENDLESS_MS, "c"
        running = start_queries(driver, {"c": slow_sum(driver, 2, 0.0)})
        wait_until(lambda: any(job == "c" for job, _, _ in toy.decisions))
        toy.stop()
        assert running.wait(120.0) == {"c": 1}
        assert len(driver.lines(OUTAGE)) == 1
        assert not driver.lines(BUG)

    tasks = tasks_of(tmp_path)
    delays = [line for line in decisions_of(tmp_path) if "delay_ms" in line]
    assert {(line["job"], line["delay_ms"]) for line in delays} == {("a", DELAY_MS), ("c", ENDLESS_MS)}
    assert all(line["bound"] == 0 for line in delays)
    slots = [(line["stage"], line["time_ms"], DELAY_MS) for line in delays if line["job"] == "a"]
    assert len({stage for stage, *_ in slots}) == len(slots) >= 4
    for stage, begin_ms, delay_ms in slots:
        started = [task.launched for task in tasks if task.stage == stage]
        # The line is written a moment after the slot has begun.
        assert min(started) >= begin_ms + delay_ms - 100
    # Meanwhile the executors serve others.
    second = max(begin_ms for _, begin_ms, _ in slots)
    assert any(task.query == "b" and task.launched < second + DELAY_MS for task in tasks)


class OneAtATime:
    """Waits for the next event while any task runs, and notes how long the running ones have run."""

    name = "one at a time"

    def __init__(self):
        self.ages_ms = []

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
