"""What holds for every run: conservation of executors, work conservation, repeatability.

That schedules are valid is checked from their files, in ``tests/reliability/test_schedules.py``.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decima.core.objectives import get_objective, list_objectives
from decima.evaluation.run import score_matrix
from decima.systems.spark import state as loop
from decima.systems.spark.result import outcome_of
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from tests.differential.side_by_side import core_outcome, core_run, new_state
from tests.drivers import IN_CORE, ClassChooser, Delaying, Greedy, Idler, Through, Watching
from tests.random_clusters import CLASSES, SWITCHES, clusters, of_kind, random_settings, random_workload, workloads
from tests.state_checks import check_classes, check_commitments, check_counters, check_nobody_idles, check_places

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=25)
# These idle executors by their own rule although a stage can run; to entry_srw, coming may cost more than it gains.
IDLE_BY_RULE = {"released_fair", "released_fifo", "entry_srw"}
NEVER_IDLE = sorted(set(IN_CORE) - IDLE_BY_RULE)


def run(workload, cluster, scheduler, seed=0):
    """Everything that a run leaves behind; the heuristics of the released code may end in a deadlock."""
    return core_run(workload, cluster, make_scheduler(scheduler), seed)


def check_nothing_left(state):
    """At the end of a run nothing waits, is promised or on its way."""
    assert check_commitments(state) == 0
    assert state.heap_size == state.num_active == state.num_frontier == state.num_runnable_open == 0
    assert state.num_jobs_unsaturated == state.num_selected == state.num_source == state.num_timers == 0
    assert state.pool_size[-1] == state.num_executors == sum(state.pool_size)
    for field in ("stage_executors", "job_attached", "job_moving", "job_commit", "job_outgoing"):
        assert not getattr(state, field).any(), field
    if state.num_classes > 1:
        for name in ("stage_class_executors", "job_class_kept", "job_class_unexhausted"):
            assert not getattr(state, name).any(), name


#: Kind of cluster -> (workload, cluster, who decides) of a drawn workload and cluster.
KINDS = {
    "plain": lambda workload, cluster, seed: (workload, cluster, "random"),
    "slots": lambda workload, cluster, seed: (
        workload, cluster.replace(job_bound=seed % 2 == 0), Delaying("random", 0.6, seed),
    ),
    "classes": lambda workload, cluster, seed: (
        *of_kind(CLASSES, workload, cluster, np.random.default_rng(seed)), ClassChooser(seed),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(workloads(), clusters(switches=SWITCHES), SEEDS)
def test_counts_agree_with_counting_afresh_at_every_decision(kind, workload, cluster, seed):
    workload, cluster, scheduler = KINDS[kind](workload, cluster, seed)
    times = [0.0]

    def look(observation):
        assert observation.time_ms >= times[-1]
        times.append(observation.time_ms)
        state = observation.state
        check_counters(state)
        check_commitments(state)
        if kind == "classes":
            check_classes(state)
        for job in observation.jobs:
            assert 0 <= job.allocation <= state.num_executors

    state = new_state(workload, cluster)
    run_state(state, Watching(scheduler, look), seed)
    check_places(state)
    check_nothing_left(state)


# ---- work conservation ----------------------------------------------------------------------------------------------


def stranded(state):
    """Executors idle in a pool that is neither offered now nor about to be, although a stage could take them."""
    if state.num_runnable_open == 0:
        return []
    offered = {state.num_stages + pool for pool in range(state.num_jobs + 1) if state.pool_marked[pool]}
    offered.add(state.source)
    return [
        executor
        for executor in range(state.num_executors)
        if state.executor_pool[executor] >= 0 and state.num_stages + state.executor_pool[executor] not in offered
    ]


@pytest.mark.parametrize("name", NEVER_IDLE)
@FEW
@given(workloads(), clusters(modes=("paper",), runnable_only=True), SEEDS)
def test_no_executor_idles_while_a_stage_can_run(name, workload, cluster, seed):
    def look(observation):
        assert stranded(observation.state) == []

    run_state(new_state(workload, cluster), Watching(name, look), seed)


@pytest.mark.parametrize("name", NEVER_IDLE)
@FEW
@given(workloads(), clusters(modes=("paper",)), SEEDS)
def test_executors_that_idle_while_a_stage_can_run_wait_for_a_stage_of_their_job(name, workload, cluster, seed):
    """The frontier of mode paper has stages that cannot run yet; executors given to one are reserved for its job."""

    def look(observation):
        assert observation.state.executor_reserved[stranded(observation.state)].all()

    run_state(new_state(workload, cluster), Watching(name, look), seed)


@pytest.mark.parametrize(
    ("kind", "schedulers"),
    [
        ("plain", ("random", "fair", Greedy())),
        ("slots", (Delaying(Greedy(), 0.6),)),
        ("classes", ("random", "fair", "capped_srw")),
    ],
)
@given(workloads(), clusters(modes=("paper",), moving_delay_ms=0.0, commit_ahead=False, runnable_only=True), SEEDS)
def test_work_conservation_seen_from_the_log(kind, schedulers, workload, cluster, seed):
    """Nobody idles beside a stage that could start: that is not withheld, and that fits."""
    if kind == "classes":
        workload, cluster = of_kind(CLASSES, workload, cluster, np.random.default_rng(seed))
    for scheduler in schedulers:
        state = new_state(workload, cluster)
        run_state(state, make_scheduler(scheduler), seed)
        check_nobody_idles(state)


@given(workloads(), clusters(modes=("paper",), switches=("commit_ahead", "runnable_only", "keep_warm")), SEEDS)
def test_a_policy_that_never_idles_is_never_stuck(workload, cluster, seed):
    for scheduler in (Greedy(), Through("random")):
        assert None not in run(workload, cluster, scheduler, seed).completion_ms


# ---- repeatability --------------------------------------------------------------------------------------------------


@FEW
@given(workloads(), clusters(switches=SWITCHES), st.lists(st.sampled_from(NEVER_IDLE), min_size=2, max_size=4))
def test_a_used_state_gives_the_same_as_a_fresh_one(workload, cluster, names):
    used = new_state(workload, cluster)
    for seed, name in enumerate(names):
        again = core_outcome(used, partial(run_state, used, make_scheduler(name), seed))
        assert again == run(workload, cluster, name, seed)


def test_scores_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(2)
    jobs = [random_workload(rng, max_jobs=6, max_tasks=20) for _ in range(12)]
    cluster = Settings.paper(executors=5)

    def schedulers():
        compiled = [make_scheduler("fair"), make_scheduler("random"), make_scheduler("weighted_fair", alpha=0.5)]
        return [*compiled, Idler(0.0)]

    for metric in map(get_objective, list_objectives()):
        one, two, five = (
            score_matrix(jobs, schedulers(), cluster, metric=metric, workers=threads) for threads in (1, 2, 5)
        )
        assert one.shape == (4, 12)
        assert one.tolist() == two.tolist() == five.tolist()
        for row, scheduler in enumerate(schedulers()):
            for column, workload in enumerate(jobs):
                state = loop.new_state(workload, cluster)
                run_state(state, scheduler, column)
                assert metric.score(outcome_of(state)) == one[row, column]


def test_logs_change_nothing():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        workload, cluster = random_workload(rng), random_settings(rng)
        with_log, without = new_state(workload, cluster), loop.new_state(workload, cluster)
        for state in (with_log, without):
            run_state(state, make_scheduler("random"), seed)
        assert np.array_equal(with_log.job_finish_ms, without.job_finish_ms, equal_nan=True)
        assert (with_log.num_decisions, with_log.busy_ms) == (without.num_decisions, without.busy_ms)
        assert without.num_tasks_logged == without.num_decisions_logged == 0
