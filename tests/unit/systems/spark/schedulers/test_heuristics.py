"""What each heuristic does, on cases small enough to follow by hand.

Mode `simplified`: an executor is at work the moment it is assigned, and every task takes its nominal time.
"""

import numpy as np
import pytest

import decima
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.toy_jobs import job, one_stage, stage, workload

# Rules of the published simulator, without the delays that would only blur the picture.
RELEASED = {"mode": "released", "durations": "mean", "moving_delay_ms": 0.0, "warmup_delay_ms": 0.0}


def run(scheduler, jobs, executors, settings=None, **parameters):
    settings = {"mode": "simplified"} if settings is None else settings
    return decima.simulate(jobs, scheduler, executors, parameters=parameters, log=True, **settings)


def completions(*arguments, **parameters):
    """Completion of each job in seconds."""
    return (run(*arguments, **parameters).completion_ms / 1000.0).tolist()


def grants(result, at_s=0.0):
    """(job, stage, executors) of the decisions at a time; None for idling."""
    rows = [row for row in result.log.decision_lists() if row[0] == 1000.0 * at_s]
    return [(row[4], row[5], row[7]) for row in rows]


def stage_finishes(result, index=0):
    return (result.stage_finish_ms[index] / 1000.0).tolist()


BOTH_RUNNABLE = {"mode": "simplified", "runnable_only": True}
EVEN = {"c1": 0.0, "power": 0.0, "stage_rule": 0}  # with power 0 all jobs weigh the same
GROWING = EVEN | {"c0": 1.0, "power": 1.0}

THREE = workload(one_stage(1, 9.0), one_stage(8, 1.0), one_stage(5, 2.0))
TWO_STAGES = workload(job(stage("a", 1, 2.0), stage("b", 1, 9.0, 0)), one_stage(1, 1.0, at_s=1.0))
# At 2 s the executor of job 1 is offered; d and, in the older job 0, b are runnable.
OFFERED = workload(job(stage("a", 1, 1.0), stage("b", 6, 1.0, 0)), job(stage("c", 1, 2.0), stage("d", 4, 1.0, 0)))
# Job 0 holds all four executors when a drains at 1 s; job 1 is there since 0.5 s.
LATE = workload(job(stage("a", 4, 1.0), stage("b", 4, 1.0, 0)), one_stage(8, 1.0, at_s=0.5))
# a (1 s) and b -> c (2 s + 5 s) meet in d; a comes first by index, the work lies below b
FORK = workload(job(stage("a", 1, 1.0), stage("b", 1, 2.0), stage("c", 1, 5.0, 1), stage("d", 1, 1.0, 0, 2)))
# Path of a: 4 tasks of 2 s = 8 s of work; path of b: 1 + 6 = 7 s of work, though it is the longer chain in time.
WORK = workload(job(stage("a", 4, 2.0), stage("b", 1, 1.0), stage("c", 1, 6.0, 1)))
# Once a is saturated, its child c (9 s) may be chosen ahead of b (1 s), which can run at once.
AHEAD = workload(job(stage("a", 1, 4.0), stage("b", 1, 1.0), stage("c", 1, 9.0, 0)))
TENS = workload(one_stage(10, 1.0), one_stage(10, 1.0))
THREE_TENS = workload(*TENS.jobs, one_stage(10, 1.0))
# Both executors go to job 0, one for a stage that has yet to become runnable.
HELD = workload(job(stage("a", 1, 1.0), stage("b", 4, 1.0, 0)), one_stage(9, 1.0))
POWERS = workload(one_stage(8, 1.0), one_stage(24, 1.0))  # 8 s and 24 s of work
SMALLER, LARGER = workload(one_stage(20, 1.0), one_stage(10, 1.0)), workload(one_stage(30, 1.0), one_stage(10, 1.0))


# Completion of each job in seconds.
@pytest.mark.parametrize(
    ("jobs", "scheduler", "executors", "settings", "parameters", "expected"),
    [
        # First come, first served, whatever the size, by time of arrival and not by place in the workload.
        (workload(one_stage(4, 10.0), one_stage(1, 1.0), one_stage(2, 1.0)), "fifo", 2, None, {}, [20.0, 21.0, 22.0]),
        (
            workload(one_stage(2, 1.0, at_s=3.0), one_stage(2, 1.0, at_s=2.0), one_stage(2, 2.0)),
            *("fifo", 1, None, {}, [8.0, 6.0, 4.0]),
        ),
        # It hands on what the first job cannot use; executors stay with their job unless told otherwise.
        (workload(one_stage(1, 5.0), one_stage(4, 1.0)), "fifo", 3, None, {}, [5.0, 2.0]),
        (OFFERED, "fifo", 2, BOTH_RUNNABLE, {"sticky": 1}, [7.0, 6.0]),
        (OFFERED, "fifo", 2, BOTH_RUNNABLE, {"sticky": 0}, [5.0, 7.0]),
        # The smallest total work first; a later shorter job overtakes.
        (THREE, "sjf_cp", 1, None, {}, [17.0, 8.0, 27.0]),
        (THREE, "fifo", 1, None, {}, [9.0, 17.0, 27.0]),
        (TWO_STAGES, "sjf_cp", 1, None, {}, [12.0, 3.0]),
        (TWO_STAGES, "sjf_cp", 1, None, {"sticky": 1}, [11.0, 12.0]),
        # Fair sharing hands out what a finished job leaves; its executors stay or give way.
        (workload(one_stage(2, 1.0), one_stage(10, 1.0)), "fair", 4, None, {}, [1.0, 3.0]),
        (THREE_TENS, "fair", 6, None, {}, [5.0, 5.0, 5.0]),
        (LATE, "fair", 4, None, {"sticky": 1}, [2.0, 4.0]),
        (LATE, "fair", 4, None, {"sticky": 0}, [3.0, 4.0]),
        # Job 0 holds 4 executors when its share falls to 2: above 1.5 shares, not above 2.
        (LATE, "capped_srw:plain", 4, None, EVEN | {"c0": 1.0, "release": 1.5}, [3.0, 4.0]),
        (LATE, "capped_srw:plain", 4, None, EVEN | {"c0": 1.0, "release": 2.0}, [2.0, 4.0]),
        # The published FIFO counts grants for as long as the job lives: job 1 waits for the end of job 0.
        (HELD, "released_fifo", 2, RELEASED, {}, [3.0, 8.0]),
    ],
)
def test_completions(jobs, scheduler, executors, settings, parameters, expected):
    assert completions(scheduler, jobs, executors, settings, **parameters) == expected


@pytest.mark.parametrize(
    ("jobs", "scheduler", "parameters", "expected"),
    [
        (FORK, "sjf_cp", {}, [8.0, 2.0, 7.0, 9.0]),
        (FORK, "fifo", {}, [1.0, 3.0, 8.0, 9.0]),
        (FORK, "fifo", {"stage_rule": 1}, [8.0, 2.0, 7.0, 9.0]),
        (FORK, "sjf_cp", {"stage_rule": 0}, [1.0, 3.0, 8.0, 9.0]),
        (WORK, "sjf_cp", {}, [8.0, 9.0, 15.0]),
    ],
)
def test_the_critical_path_is_followed_and_measured_in_work(jobs, scheduler, parameters, expected):
    assert stage_finishes(run(scheduler, jobs, 1, **parameters)) == expected


# (job, stage, executors) of the first decisions.
@pytest.mark.parametrize(
    ("jobs", "scheduler", "executors", "settings", "parameters", "expected"),
    [
        # Runnable stages come before the critical path only with rules 0 and 1.
        (AHEAD, "sjf_cp", 2, None, {"stage_rule": 1}, [(0, 0, 1), (0, 1, 1)]),
        (AHEAD, "sjf_cp", 2, None, {"stage_rule": 2}, [(0, 0, 1), (0, 2, 1)]),
        # Shares are rounded up. Job 0 takes one of its two executors: the share of job 1 grows.
        (THREE_TENS, "fair", 6, None, {}, [(0, 0, 2), (1, 0, 2), (2, 0, 2)]),
        (TENS, "fair", 5, None, {}, [(0, 0, 3), (1, 0, 2)]),
        (workload(one_stage(1, 3.0), one_stage(9, 1.0)), "fair", 4, None, {}, [(0, 0, 1), (1, 0, 3)]),
        # Weighted shares follow the power of the work.
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": -1.0}, [(0, 0, 6), (1, 0, 2)]),
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": -0.5}, [(0, 0, 6), (1, 0, 2)]),
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": 0.0}, [(0, 0, 4), (1, 0, 4)]),
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": 0.5}, [(0, 0, 3), (1, 0, 5)]),
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": 1.0}, [(0, 0, 2), (1, 0, 6)]),
        (POWERS, "weighted_fair:paper", 8, None, {"alpha": 2.0}, [(0, 0, 1), (1, 0, 7)]),
        # Job 0 is saturated by one executor, so job 1 has the rest for itself.
        (
            workload(one_stage(1, 9.0), one_stage(20, 1.0)),
            *("weighted_fair:paper", 8, None, {"alpha": -1.0}, [(0, 0, 1), (1, 0, 7)]),
        ),
        # The smallest work first, up to its cap, which grows with the work and by a constant.
        (SMALLER, "capped_srw:plain", 8, None, EVEN | {"c0": 1.0}, [(1, 0, 4), (0, 0, 4)]),
        (SMALLER, "capped_srw:plain", 8, None, EVEN | {"c0": 1.5}, [(1, 0, 6), (0, 0, 2)]),
        (SMALLER, "capped_srw:plain", 8, None, EVEN | {"c0": 2.0}, [(1, 0, 8)]),
        (LARGER, "capped_srw:plain", 8, None, GROWING, [(1, 0, 2), (0, 0, 6)]),
        (LARGER, "capped_srw:plain", 8, None, GROWING | {"c1": 1.0}, [(1, 0, 3), (0, 0, 5)]),
        # The published rule: below its share the first job, beyond all shares nobody.
        (TENS, "released_fair", 5, RELEASED, {}, [(0, 0, 3), (1, 0, 2)]),
        (workload(one_stage(1, 1.0)), "released_fair", 3, RELEASED, {}, [(0, 0, 1), (None, None, 2)]),
        (HELD, "released_fifo", 2, RELEASED, {}, [(0, 0, 1), (0, 1, 1)]),
    ],
)
def test_grants(jobs, scheduler, executors, settings, parameters, expected):
    assert grants(run(scheduler, jobs, executors, settings, **parameters)) == expected


def test_naive_weighted_fair_is_alpha_1_and_fair_alpha_0():
    jobs = decima.workload.synthetic_batch(6, seed=3)
    for name, alpha in (("naive_weighted_fair", 1.0), ("fair", 0.0)):
        named = decima.simulate(jobs, name, 10)
        weighted = decima.simulate(jobs, "weighted_fair:paper", 10, parameters={"alpha": alpha})
        np.testing.assert_array_equal(named.completion_ms, weighted.completion_ms)


@pytest.mark.parametrize(("leftover", "rest"), [(0, [(None, None, 3)]), (1, [(1, 1, 2), (1, 2, 1)]), (2, [(1, 1, 3)])])
def test_leftover_executors_idle_or_are_handed_out(leftover, rest):
    # Shares 6 and 2. Job 0 can use two executors at first; then job 1 has its share, and three are left.
    small = job(stage("a", 1, 1.0), stage("b", 1, 3.0), stage("c", 9, 1.0, 0, 1))
    jobs = workload(small, job(stage("d", 20, 1.0), stage("e", 20, 1.0), stage("f", 20, 1.0)))
    result = run("weighted_fair:paper", jobs, 7, BOTH_RUNNABLE, alpha=-1.0, leftover=leftover)
    assert grants(result) == [(0, 0, 1), (0, 1, 1), (1, 0, 2), *rest]


def test_capped_srw_looks_at_remaining_work():
    # At 5 s an executor comes free. Of the 10 s of job 0, 6 s remain; job 2, there since 1 s, has 7 s.
    jobs = workload(one_stage(10, 1.0), one_stage(1, 5.0), one_stage(7, 1.0, at_s=1.0))
    assert grants(run("capped_srw:plain", jobs, 2, c0=10.0, **EVEN), at_s=5.0)[0] == (0, 0, 1)
    assert grants(run("sjf_cp", jobs, 2), at_s=5.0)[0] == (2, 0, 1)


def test_released_fair_offered_executors_stay_with_their_job():
    # Share 2, yet job 0 keeps all four at 1 s: first a is offered, then the pool with the three that wait for b.
    result = run("released_fair", LATE, 4, RELEASED)
    assert grants(result, at_s=1.0) == [(0, 1, 4), (0, 1, 3)]
    assert (result.completion_ms / 1000.0).tolist() == [2.0, 4.0]


def test_random_chooses_stages_and_executors_evenly():
    jobs = workload(one_stage(9, 1.0), job(stage("a", 9, 1.0), stage("b", 9, 1.0)), one_stage(9, 1.0))
    rows = [
        decima.simulate(jobs, "random", 4, seed, mode="simplified", log=True).log.decision_lists()[0]
        for seed in range(600)
    ]
    stages = {}
    for row in rows:
        stages.setdefault((row[4], row[5]), []).append(row[7])
    assert sorted(stages) == [(0, 0), (1, 0), (1, 1), (2, 0)]
    # 600 draws of probability 1/4: five standard deviations are 53.
    assert all(abs(len(chosen) - 150) < 53 for chosen in stages.values())
    counts = np.bincount([row[7] for row in rows], minlength=5)[1:]
    assert (np.abs(counts - 150) < 53).all()


def test_priority_serves_jobs_by_given_priorities_up_to_given_caps():
    jobs = workload(one_stage(4, 1.0), one_stage(4, 1.0), one_stage(4, 1.0))
    settings = Settings.simplified(executors=4)
    state = new_state(jobs, settings)
    for priorities, caps, expected in (
        ([3, 1, 2], [0, 0, 0], [3.0, 1.0, 2.0]),
        ([1, 2, 3], [0, 0, 0], [1.0, 2.0, 3.0]),
        ([1, 2, 3], [2, 2, 4], [2.0, 2.0, 3.0]),
    ):
        rule_record(state).bind("job_rank", priorities)
        rule_record(state).bind("job_limit_cap", caps)
        run_state(state, make_scheduler("priority"), 0)
        assert (state.job_finish_ms / 1000.0).tolist() == expected
