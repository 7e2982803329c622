import contextlib
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
from tests.on_ray.work import divide, fall

CLUSTER = Settings(executors=6)
WORKLOADS = [synthetic_batch(3, seed=seed) for seed in range(3)]
LOCAL = pytest.mark.parametrize("backend", ["threads", "processes"])  # the third is tried in tests/on_ray


def interrupt(item):
    if item == 1:
        os.kill(os.getppid(), signal.SIGINT)
    return item


# ---- what every backend keeps to ----------------------------------------------------------------------------------


def check_results(backend):
    """They come in order, and exceptions in the caller, after which there is more work, also where it was closed."""
    steps = []
    with contextlib.closing(make_workers(divide, backend, 2)) as workers:
        assert workers.map([3, 1, 2, 5], steps.append) == [20, 60, 30, 12]
        assert steps == [20, 60, 30, 12]
        assert workers.map([]) == []
        with pytest.raises(ZeroDivisionError, match="by zero"):
            workers.map([1, 0, 2])
        assert workers.map([4]) == [15]
        workers.close()
        assert workers.map([4]) == [15]


def pool(**how):
    schedulers = [make_scheduler("weighted_fair", alpha=0.5), make_scheduler("random"), Greedy()]
    with RunPool(WORKLOADS, CLUSTER, **how) as runs:
        first, again = (runs.measure(schedulers, ("avg_jct", "p90_jct")) for _ in range(2))
    # States that have run before give the same.
    assert all(np.array_equal(again[column], values) for column, values in first.items())
    return {column: values.tolist() for column, values in first.items()}


def search(**how):
    found = search_schedule(WORKLOADS[0], CLUSTER.replace(durations="mean"), 20, **how)
    return found.curve, found.order_factor.tolist()


def comparison(**how):
    return decima.compare(["fair", "random"], WORKLOADS, cluster=CLUSTER, **how).scores.to_csv()


def tuning(**how):
    return tune("weighted_fair", WORKLOADS, CLUSTER, budget=6, **how).card()


def plans(**how):
    schedulers = {"heft": "heft", "random": "random_deft", "search": PrioritySearch(20)}
    instances = [draw_instance(seed) for seed in range(3)]
    return decima.compare(schedulers, instances, seeds=[4, 5, 6], **how).scores.to_csv()


WORK = (pool, search, comparison, tuning, plans)


@LOCAL
def test_results_come_in_order_and_exceptions_in_the_caller(backend):
    check_results(backend)


@LOCAL
@pytest.mark.parametrize("work", WORK)
def test_every_backend_and_number_of_workers_gives_the_same(backend, work):
    assert work(workers=2, backend=backend) == work(workers=1, backend="threads")


# ---- single ones --------------------------------------------------------------------------------------------------


class Greedy:
    """Runs where it was made, whatever the backend: it cannot be pickled."""

    name = "greedy"

    def __init__(self):
        self.decide = lambda observation: observation.grant(observation.frontier[0], observation.num_free_executors)

    def reset(self, rng):
        pass


def test_a_worker_that_is_killed_is_one_error_and_others_come():
    with contextlib.closing(make_workers(fall, "processes", 2)) as workers:
        for _ in range(2):
            with pytest.raises(WorkerError, match="a worker process died, perhaps for want of memory"):
                workers.map([0, 0, 1, 0, 0, 0])
            assert workers.map([0, 2, 3]) == [0, 2, 3]


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
