import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, WorkerError
from decima.core.extras import MissingExtraError
from decima.evaluation.pool import CandidatePool, RunPool
from decima.evaluation.tuning import tune
from decima.evaluation.workers import make_workers, map_threads
from decima.systems.heterogeneous.optimum.exact import PrioritySearch
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.heterogeneous_instances import draw_instance

CLUSTER = Settings(executors=6)
WORKLOADS = [synthetic_batch(3, seed=seed) for seed in range(3)]
LOCAL = pytest.mark.parametrize("backend", ["threads", "processes"])  # the third is tried in tests/on_ray


def divide(item):
    return 60 // item


def fall(item):
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def interrupt(item):
    if item == 1:
        os.kill(os.getppid(), signal.SIGINT)
    return item


# ---- what every backend keeps to ----------------------------------------------------------------------------------


@LOCAL
def test_results_come_in_order_and_exceptions_in_the_caller(backend):
    steps = []
    workers = make_workers(divide, backend, 2)
    try:
        assert workers.map([3, 1, 2, 5], steps.append) == [20, 60, 30, 12]
        assert steps == [20, 60, 30, 12]
        assert workers.map([]) == []
        with pytest.raises(ZeroDivisionError, match="by zero"):
            workers.map([1, 0, 2])
        assert workers.map([4]) == [15]  # and go on
        workers.close()
        assert workers.map([4]) == [15]
    finally:
        workers.close()


@LOCAL
def test_scores_are_equal_for_any_backend_and_number_of_workers(backend):
    schedulers = [make_scheduler("weighted_fair", alpha=0.5), make_scheduler("random"), Greedy()]
    expected = RunPool(WORKLOADS, CLUSTER, workers=1, backend="threads").measure(schedulers, ("avg_jct", "p90_jct"))
    with RunPool(WORKLOADS, CLUSTER, workers=2, backend=backend) as pool:
        for _ in range(2):  # states that have run before give the same
            found = pool.measure(schedulers, ("avg_jct", "p90_jct"))
            for column, values in expected.items():
                np.testing.assert_array_equal(found[column], values)


@LOCAL
def test_search_finds_the_same(backend):
    settings = CLUSTER.replace(durations="mean")
    expected = search_schedule(WORKLOADS[0], settings, 20, workers=1, backend="threads")
    found = search_schedule(WORKLOADS[0], settings, 20, workers=2, backend=backend)
    assert found.curve == expected.curve
    np.testing.assert_array_equal(found.order_factor, expected.order_factor)


@LOCAL
def test_comparison_and_tuning_give_the_same(backend):
    arguments = {"workers": 2, "backend": backend}
    compared = decima.compare(["fair", "random"], WORKLOADS, cluster=CLUSTER, **arguments)
    assert compared.scores.equals(decima.compare(["fair", "random"], WORKLOADS, cluster=CLUSTER).scores)
    tuned = tune("weighted_fair", WORKLOADS, CLUSTER, budget=6, **arguments)
    assert tuned.card() == tune("weighted_fair", WORKLOADS, CLUSTER, budget=6, workers=1).card()


@LOCAL
def test_plans_of_heterogeneous_executors_are_the_same(backend):
    instances = [draw_instance(seed) for seed in range(3)]
    schedulers = {"heft": "heft", "random": "random_deft", "search": PrioritySearch(20)}
    expected = decima.compare(schedulers, instances, seeds=[4, 5, 6], workers=1)
    found = decima.compare(schedulers, instances, seeds=[4, 5, 6], workers=2, backend=backend)
    assert found.scores.equals(expected.scores)


# ---- single ones --------------------------------------------------------------------------------------------------


class Greedy:
    """Runs where it was made, whatever the backend: it cannot be pickled."""

    name = "greedy"

    def __init__(self):
        self.decide = lambda observation: observation.grant(observation.frontier[0], observation.num_free_executors)

    def reset(self, rng):
        pass


def test_a_worker_that_is_killed_is_one_error_and_others_come():
    workers = make_workers(fall, "processes", 2)
    try:
        for _ in range(2):
            with pytest.raises(WorkerError, match="a worker process died, perhaps for want of memory"):
                workers.map([0, 0, 1, 0, 0, 0])
            assert workers.map([0, 2, 3]) == [0, 2, 3]
    finally:
        workers.close()


CALLER = """
import signal
from decima.evaluation.workers import make_workers
from tests.unit.evaluation.test_workers import interrupt

signal.signal(signal.SIGINT, signal.default_int_handler)
workers = make_workers(interrupt, "processes", 1)
try:
    workers.map([0, 1, 2, 3])
except KeyboardInterrupt:
    workers.close()
    print("interrupted")
"""


def test_ctrl_c_reaches_the_caller():
    """The caller is another process: a signal that comes late must not end that of the tests."""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", CALLER], cwd=root, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_ray_is_used_where_its_address_is_set(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    assert make_workers(divide, workers=1).map([6]) == [10]
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    for backend in (None, "ray"):
        with pytest.raises(MissingExtraError, match=r"ray is not installed, .*: pip install '.\[ray\]'"):
            make_workers(divide, backend)
    assert make_workers(divide, "threads", 1).map([6]) == [10]


def test_candidates_do_not_see_arrays_of_others():
    pool = CandidatePool(WORKLOADS[0], CLUSTER.replace(durations="mean"), workers=1)
    scheduler = [make_scheduler("priority")]
    plain = pool.scores(scheduler)
    assert pool.scores(scheduler, {"job_rank": np.array([[0.0, 2.0, 1.0]])}) != plain
    assert pool.scores(scheduler) == plain


@pytest.mark.parametrize(
    ("kind", "workers", "message"),
    [("threads", 0, "workers must be"), ("threads", 1.5, "workers must be"), ("cloud", 1, "backend must be one of")],
)
def test_bad_input(kind, workers, message):
    with pytest.raises(ConfigError, match=message):
        make_workers(divide, kind, workers)


def test_threads():
    assert map_threads(divide, [6, 5], 2) == [10, 12]
    with pytest.raises(ZeroDivisionError):
        map_threads(divide, [1, 0, 2], 2)
