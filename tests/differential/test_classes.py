"""Several classes of executors: the compiled core against the plain-Python loop, and what must hold."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload
from tests.differential.side_by_side import assert_same, check_same, check_same_driven, core_run
from tests.drivers import IN_CORE, ClassChooser, Delaying, Through, careless_choice
from tests.random_clusters import SWITCHES, clusters, random_settings, random_workload, workloads

pytestmark = pytest.mark.differential

FEW = settings(max_examples=15)
SEEDS = st.integers(0, 2**32 - 1)
# Four classes of two resources, of which no two are ordered alike.
SIZES = ((0.25, 1.0), (0.5, 2.0), (0.75, 1.0), (1.0, 2.0))
COMPILED = st.sampled_from(["random", "fair", "weighted_fair", "fifo", "capped_srw"])


def asking(workload, rng):
    """The same jobs; stages ask for memory and CPUs that fit the largest class at least."""
    jobs = []
    for job in workload.jobs:
        stages = len(job.profile.stages)
        memory, cpu = rng.choice([0.2, 0.25, 0.4, 0.7, 1.0], stages), rng.choice([1.0, 1.0, 2.0], stages)
        requests = np.stack([memory, cpu], axis=1)
        jobs.append(replace(job, requests=requests if rng.random() < 0.9 else None))
    return Workload(tuple(jobs), workload.label, workload.universe)


def classes(rng):
    """Some executors of each size."""
    return tuple((memory, int(rng.integers(1, 5)), cpu) for memory, cpu in SIZES)


def in_classes(cluster, rng):
    """The same rules with executors of four classes."""
    return cluster.replace(classes=classes(rng))


@FEW
@given(workloads(), clusters(switches=SWITCHES), COMPILED, SEEDS)
def test_schedulers_of_one_class_take_the_best_fit(workload, cluster, name, seed):
    rng = np.random.default_rng(seed)
    scheduler = Delaying(name) if seed % 3 == 0 else make_scheduler(name)
    check_same(asking(workload, rng), in_classes(cluster, rng), scheduler)


@FEW
@given(workloads(), clusters(switches=SWITCHES), SEEDS)
def test_schedulers_that_choose_classes(workload, cluster, seed):
    rng = np.random.default_rng(seed)
    core = check_same(asking(workload, rng), in_classes(cluster, rng), ClassChooser(seed))
    assert core.error != "invalid"


@pytest.mark.parametrize("block", range(2))
def test_raw_decisions(block):
    """Also refused ones, slots, and runs that end in a deadlock; both sides end alike."""
    ends = Counter()
    for seed in range(9000 + 60 * block, 9060 + 60 * block):
        rng = np.random.default_rng(seed)
        workload = asking(random_workload(rng), rng)
        cluster = in_classes(random_settings(rng), rng)
        choose = careless_choice(seed, 0.005, delayed=0.1, classes=len(SIZES))
        ends[check_same_driven(workload, cluster, choose, seed).error or "done"] += 1
    assert {"done", "invalid"} <= set(ends), ends


@pytest.mark.parametrize("name", sorted(set(IN_CORE) - {"released_fair", "released_fifo"}))
def test_rules_are_never_stuck(name):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        workload = asking(random_workload(rng), rng)
        cluster = Settings.paper(classes=classes(rng))
        inside, outside = (core_run(workload, cluster, each) for each in (make_scheduler(name), Through(name)))
        assert inside.error == ""
        assert None not in inside.completion_ms
        assert inside.tasks == outside.tasks


@FEW
@given(workloads(), clusters(switches=SWITCHES), COMPILED, SEEDS)
def test_one_class_is_no_classes(workload, cluster, name, seed):
    asked = asking(workload, np.random.default_rng(seed))
    one = core_run(asked, cluster.replace(classes=((1.0, cluster.executors, 2.0),)), make_scheduler(name), seed)
    assert_same(one, core_run(workload, cluster, make_scheduler(name), seed))


@FEW
@given(
    workloads(),
    clusters(modes=("simplified",), switches=("inflation", "keep_warm", "job_limit"), durations="mean"),
    SEEDS,
)
def test_a_class_split_in_two_changes_nothing_but_names(workload, cluster, seed):
    """Two classes that every stage fits are as one.

    That holds where executors of one job are alike: promises to executors that still work, waves and start-up tell them
    apart.
    """
    cluster = cluster.replace(executors=cluster.executors + 1, commit_ahead=False, first_wave=False)
    half = cluster.executors // 2
    split = cluster.replace(classes=((1.0, half), (2.0, cluster.executors - half)))
    for name in ("fair", "capped_srw", "weighted_fair"):
        whole, parts = (core_run(workload, each, make_scheduler(name), seed) for each in (cluster, split))
        assert parts.completion_ms == whole.completion_ms
        one, other = (sorted((*task[:2], *task[3:5]) for task in each.tasks) for each in (whole, parts))
        assert one == other
