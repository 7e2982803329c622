"""Deliberate idle slots: the compiled core against the plain-Python loop with the same delays, and what must hold."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from tests.differential.side_by_side import assert_same, check_same, check_same_driven, core_run
from tests.drivers import Delaying, careless_choice
from tests.random_clusters import SWITCHES, clusters, random_settings, random_workload, workloads

pytestmark = pytest.mark.differential

SWITCHES = (*SWITCHES, "job_bound")
FEW = settings(max_examples=40)


def slot_cluster(rng, **fixed):
    """Random settings, half of them with executors that stay with their job."""
    return random_settings(rng, **({"job_bound": bool(rng.random() < 0.5)} | fixed))


@FEW
@given(workloads(), clusters(switches=SWITCHES), st.sampled_from(["random", "fair"]))
def test_schedulers_that_delay(workload, cluster, scheduler):
    check_same(workload, cluster, Delaying(scheduler))


@pytest.mark.parametrize("block", range(3))
def test_raw_decisions_with_delays(block):
    """Also refused ones and runs that end in a deadlock; both sides end alike."""
    ends, slots = Counter(), 0
    for seed in range(7000 + 60 * block, 7060 + 60 * block):
        rng = np.random.default_rng(seed)
        workload, cluster = random_workload(rng), slot_cluster(rng)
        core = check_same_driven(workload, cluster, careless_choice(seed, 0.005, delayed=0.3), seed)
        ends[core.error or "done"] += 1
        slots += core.slot_ends
    assert set(ends) == {"done", "deadlock", "invalid"}, ends
    assert slots > 100


@FEW
@given(workloads(), clusters(switches=SWITCHES), st.integers(0, 99))
def test_jobs_bound_to_their_executors(workload, cluster, seed):
    """With executors that stay with a job, no executor runs a task of another job before the first one has ended."""
    cluster = cluster.replace(job_bound=True)
    core = check_same(workload, cluster, Delaying("random", seed=seed), seed)
    last = {}
    for job, _, executor, start_ms, _, _ in core.tasks:
        before = last.get(executor, job)
        assert before == job or core.completion_ms[before] <= start_ms
        last[executor] = job


@FEW
@given(workloads(), clusters(switches=SWITCHES), st.sampled_from(["random", "fair"]), st.integers(0, 99))
def test_delays_of_0_change_nothing(workload, cluster, scheduler, seed):
    plain = core_run(workload, cluster, make_scheduler(scheduler), seed)
    zero = Delaying(scheduler, 0.0)
    assert_same(core_run(workload, cluster, zero, seed), plain)
    assert plain.slot_ends == 0


def test_a_time_limit_cuts_inside_a_slot():
    workload = random_workload(np.random.default_rng(5), kind="equal")
    for mode in ("paper", "released"):
        cluster = Settings.of_mode(mode, executors=3, time_limit_applies=True, time_limit_ms=500.0)
        core = check_same(workload, cluster, Delaying("fair", 1.0))
        assert (core.truncated, core.now_ms, core.tasks) == (True, 500.0, [])
