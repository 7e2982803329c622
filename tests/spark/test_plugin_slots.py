"""Executors of a real Spark that idle until the next event; slots of stages are in `test_plugin.py`."""

from __future__ import annotations

import itertools

import pytest

from decima.systems.spark.schedulers import Decision
from decima.systems.spark.schedulers.interface import RUNNING
from tests.services import running, sessions_of
from tests.spark.real_spark import BUG, plugin_driver, slow_sum, start_queries, tasks_of

pytestmark = pytest.mark.spark


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
