"""Schedules small enough to work out by hand. Moving takes 2 s unless stated; times in seconds."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.workload import synthetic_poisson
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from tests.state_checks import check_commitments
from tests.stepping import Steps
from tests.toy_jobs import job, one_stage, stage, workload

FRESH, FIRST, REST = 0, 1, 2


def waves(name, tasks, fresh_s, first_s, rest_s, *parents):
    """A stage whose tasks take a time that depends on the wave only."""
    lists = [() if took is None else (1000.0 * took,) for took in (fresh_s, first_s, rest_s)]
    return Stage(name, tasks, parents, (5,), *((np.array(values),) for values in lists))


def one_job(*stages):
    return workload(Job(JobProfile("job", stages, "test")))


# ---- waves and delays -----------------------------------------------------------------------------------------------


def test_executors_move_to_a_job_and_run_its_tasks_in_waves():
    steps = Steps(one_job(waves("a", 3, 5, 4, 3), waves("b", 1, 5, 4, 3, 0)), 2)
    assert steps.offer == (0.0, -1, 2)
    assert steps.choose(0, 0, 2) == (7.0, 0, 2)  # one executor runs the third task, the other is free
    assert steps.idle() == (10.0, 0, 2)
    steps.finish()
    assert steps.tasks() == [
        (0, 0, 0, 2.0, 7.0, FRESH),
        (0, 0, 1, 2.0, 7.0, FRESH),
        (0, 0, 0, 7.0, 10.0, REST),
        (0, 1, 1, 10.0, 14.0, FIRST),  # the one that has idled longest
    ]


def test_two_jobs_share_an_executor_that_has_to_move():
    steps = Steps(workload(one_stage(1, 10.0), one_stage(2, 10.0)), 1)
    assert steps.choose(0, 0, 1) == (12.0, 0, 1)
    assert steps.choose(1, 0, 1) == (34.0, 1, 1)
    assert steps.frontier == []
    assert steps.idle() is None
    assert steps.tasks() == [(0, 0, 0, 2.0, 12.0, FRESH), (1, 0, 0, 14.0, 24.0, FRESH), (1, 0, 0, 24.0, 34.0, REST)]
    result = steps.result()
    assert result.completion_ms.tolist() == [12_000.0, 34_000.0]
    assert result.num_events == {"task": 3, "job": 0, "executor": 2}


def test_warmup_is_added_where_no_fresh_duration_was_measured():
    steps = Steps(one_job(waves("a", 2, None, 4, 3)), 1, warmup_delay_ms=1500.0)
    assert steps.finish().completion_ms.tolist() == [2000.0 + 4000.0 + 1500.0 + 3000.0]


@pytest.mark.parametrize(
    ("switched_off", "expected_s"),
    [
        ({}, [2 + 5, 3 + 4, 3]),
        ({"first_wave": False}, [2 + 5, 3 + 3, 3]),
        ({"startup": False}, [4, 3 + 4, 3]),
        ({"startup": False, "first_wave": False}, [3, 3 + 3, 3]),
    ],
)
def test_effects_switched_off(switched_off, expected_s):
    # One executor: fresh and rest tasks of a, first and rest ... of b, rest of b.
    steps = Steps(one_job(waves("a", 2, 5, 4, 3), waves("b", 2, 5, 4, 3, 0)), 1, **switched_off)
    assert steps.finish().makespan_s == sum(expected_s)


def test_simplified_mode_has_no_delays_at_all():
    steps = Steps(one_job(waves("a", 2, 5, 4, 3), waves("b", 2, 5, 4, 3, 0)), 2, mode="simplified")
    assert steps.finish().makespan_s == 6.0


def test_durations_depend_on_the_executors_of_the_job():
    # 1 s at one executor, 3 s at three: two executors take 2 s, and the first to arrive is alone for a moment.
    levels = (np.array([1000.0]), np.array([3000.0]))
    profile = JobProfile("job", (Stage("a", 4, (), (1, 3), levels, levels, levels),), "test")
    steps = Steps(workload(Job(profile)), 2)
    steps.finish()
    assert [(task[2], task[4] - task[3]) for task in steps.tasks()] == [(0, 1.0), (1, 2.0), (0, 2.0), (1, 2.0)]


TWO_STAGES = one_job(waves("a", 2, 5, 4, 3), waves("b", 2, 9, 8, 7, 0))


@pytest.mark.parametrize(("mode", "wave", "took"), [("paper", FIRST, 8.0), ("released", FRESH, 9.0)])
def test_an_executor_that_idled_in_its_job_is_warm_in_mode_paper_only(mode, wave, took):
    steps = Steps(TWO_STAGES, 2, mode=mode)
    assert steps.choose(0, 0, 2) == (7.0, 0, 2)  # a is drained, its second task still runs
    # Both go to b: the first has to wait for it, the second enables it and is there at once.
    assert steps.choose(0, 1, 2) == (7.0, 0, 1)
    steps.finish()
    assert steps.tasks()[2:] == [(0, 1, 1, 7.0, 15.0, FIRST), (0, 1, 0, 7.0, 7.0 + took, wave)]


# ---- offers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commit_ahead", "offered"), [(True, 2), (False, 1)])
def test_a_drained_stage_offers_its_running_executors_too(commit_ahead, offered):
    steps = Steps(one_job(stage("a", 2, 10.0), stage("b", 1, 1.0, 0)), 2, commit_ahead=commit_ahead)
    assert steps.choose(0, 0, 2) == (12.0, 0, offered)
    assert steps.frontier == [(0, 1)]


@pytest.mark.parametrize(("runnable_only", "frontier"), [(False, [(0, 1)]), (True, [])])
def test_stages_with_saturated_parents_can_be_chosen_ahead(runnable_only, frontier):
    jobs = one_job(stage("a", 2, 10.0), stage("b", 1, 1.0, 0), stage("c", 1, 1.0, 1))
    steps = Steps(jobs, 3, runnable_only=runnable_only)
    assert steps.frontier == [(0, 0)]
    steps.choose(0, 0, 2)
    assert steps.frontier == frontier


def test_an_arrival_wins_ties_and_is_served_first():
    steps = Steps(workload(one_stage(1, 10.0), one_stage(1, 1.0, at_s=12.0)), 2)
    steps.choose(0, 0, 1)
    assert steps.idle() == (12.0, -1, 1)  # the executor in the null pool, before the task of job 0 is known to end
    assert steps.state.num_active == 2
    assert steps.choose(1, 0, 1) == (12.0, 0, 1)


def test_the_last_executor_of_a_job_is_offered_without_a_job_but_names_it():
    steps = Steps(workload(one_stage(1, 10.0), one_stage(5, 10.0)), 1)
    assert steps.choose(0, 0, 1) == (12.0, 0, 1)
    assert steps.state.num_active == 1
    assert steps.state.executor_job[0] == -1
    assert steps.state.completion_order[0] == 0


# One executor of job 0 has nothing to do from 12 s to 62 s.
IDLE_IN_POOL = workload(
    job(stage("a", 2, 10.0), stage("b", 1, 50.0, 0), stage("c", 1, 10.0, 1)), one_stage(1, 10.0, at_s=20.0)
)


def test_idle_executors_are_offered_when_a_job_arrives_in_mode_paper():
    assert Steps(IDLE_IN_POOL, 2).finish().completion_ms.tolist() == [72_000.0, 32_000.0]
    released = Steps(IDLE_IN_POOL, 2, mode="released").finish()
    assert released.completion_ms.tolist() == [72_000.0, 74_000.0]


def test_a_decision_to_idle_holds_until_the_next_call():
    steps = Steps(IDLE_IN_POOL, 2)
    steps.choose(0, 0, 2)
    while steps.offer[0] < 20.0:
        steps.choose(0, 1, 2) if (0, 1) in steps.frontier else steps.idle()
    assert steps.offer == (20.0, 0, 1)
    assert steps.idle() == (62.0, 0, 2)


def test_an_executor_that_waits_for_a_stage_of_its_job_is_reserved():
    steps = Steps(IDLE_IN_POOL, 2)
    steps.choose(0, 0, 2)
    assert steps.idle() == (12.0, 0, 2)  # a has finished, b can run
    assert steps.choose(0, 1, 2) == (12.0, 0, 1)
    # Given to c, which cannot run before 62 s, it is not offered when job 1 arrives at 20 s.
    assert steps.choose(0, 2, 2) == (62.0, 0, 2)
    assert steps.finish().completion_ms.tolist() == [72_000.0, 74_000.0]


def test_executors_that_decided_to_wait_too_early_are_offered():
    # At 7,100 s most executors follow a decision to wait for a stage whose own parent became runnable after it; kept
    # reserved, they idled while 25 jobs piled up, and the average JCT was 192 s.
    jobs = synthetic_poisson(200, 45, 100_000)
    result = decima.simulate(jobs, "weighted_fair", seed=100_000, parameters={"alpha": -1.9, "sticky": 0})
    assert result.avg_jct_s < 30.0


def test_a_stage_can_be_chosen_again_when_nothing_else_is_left():
    jobs = workload(one_stage(9, 10.0), one_stage(1, 10.0))
    steps = Steps(jobs, 4)
    assert steps.choose(0, 0, 1) == (0.0, -1, 3)
    assert steps.frontier == [(1, 0)]
    assert steps.choose(1, 0, 3) == (0.0, -1, 2)
    assert steps.frontier == [(0, 0)]
    assert steps.choose(0, 0, 3)[0] == 12.0
    released = Steps(jobs, 4, mode="released")
    released.choose(0, 0, 1)
    released.choose(1, 0, 1)
    assert released.offer == (0.0, -1, 2)
    assert released.frontier == []


def test_an_executor_that_finds_its_stage_drained_is_offered_in_mode_paper():
    # The executor of job 0 sets out at 8 s for the last task of a, which the other one takes meanwhile.
    jobs = workload(one_stage(3, 1.0), job(stage("a", 4, 1.0), stage("b", 3, 100.0)))
    for mode, limit in (("paper", 2), ("released", 1)):
        steps = Steps(jobs, 2, mode=mode, moving_delay_ms=5000.0)
        steps.choose(0, 0, 1)
        steps.choose(1, 0, 1)
        assert steps.offer == (8.0, 0, 1)
        assert steps.choose(1, 0, limit) == (9.0, 1, 1)
        after = steps.choose(1, 1, limit)
        if mode == "paper":
            assert after == (13.0, 1, 1)
            assert steps.frontier == [(1, 1)]
        else:  # the first runnable stage of its job, without a question
            assert after[0] > 100.0
            assert (1, 1, 0, 13.0, 113.0, FRESH) in steps.tasks()


def test_an_executor_under_way_to_a_job_that_ends_becomes_nobodys():
    steps = Steps(workload(one_stage(3, 1.0), one_stage(4, 1.0)), 2, moving_delay_ms=5000.0)
    steps.choose(0, 0, 1)
    steps.choose(1, 0, 1)
    assert steps.choose(1, 0, 2) == (9.0, 1, 1)
    assert steps.idle() is None
    result = steps.result()
    assert result.makespan_ms == 9000.0
    assert result.num_events == {"task": 7, "job": 0, "executor": 3}
    assert steps.state.now_ms == 13_000.0  # its arrival is the last event
    assert result.end_ms == 9000.0
    assert steps.state.executor_job.tolist() == [-1, -1]


def test_promises_to_a_job_that_ends_are_forgotten():
    # Two executors run the three tasks of job 0, the third one job 1, until 14 s.
    steps = Steps(workload(one_stage(3, 10.0), one_stage(12, 1.0)), 3)
    steps.choose(0, 0, 2)
    assert steps.choose(1, 0, 1) == (12.0, 0, 2)
    # Both are promised to job 1: one leaves at once, the other would at 22 s, when its task ends.
    assert steps.choose(1, 0, 3) == (14.0, 1, 1)
    assert check_commitments(steps.state) == 0
    assert steps.idle() == (22.0, 0, 1)


# ---- the limit of a decision ----------------------------------------------------------------------------------------


def test_limits_count_executors_on_their_way():
    steps = Steps(workload(one_stage(9, 10.0), one_stage(1, 10.0, at_s=5.0)), 4)
    assert steps.choose(0, 0, 2) == (0.0, -1, 2)
    assert steps.idle() == (5.0, -1, 2)
    assert steps.choose(0, 0, 3) == (5.0, -1, 1)
    assert steps.state.logged_decisions[2].tolist() == [5000.0, -1, 2, 2, 0, 0, 3, 1, 0, -1]


def test_limits_are_numbers_of_offered_executors_in_mode_released():
    steps = Steps(workload(one_stage(9, 10.0), one_stage(9, 10.0)), 4, mode="released")
    assert steps.choose(0, 0, 1) == (0.0, -1, 3)
    assert steps.choose(1, 0, 3)[0] == 32.0
    assert [row[6:] for row in steps.result().log.decision_lists()] == [[1, 1], [3, 3]]


def test_limits_do_not_count_executors_that_are_offered_or_promised_elsewhere():
    steps = Steps(workload(job(stage("a", 2, 10.0), stage("b", 8, 10.0, 0)), one_stage(8, 1.0)), 2)
    assert steps.choose(0, 0, 2) == (12.0, 0, 2)
    assert steps.choose(1, 0, 1) == (12.0, 0, 1)  # one executor promised to job 1
    assert steps.choose(0, 1, 1)[0] == 22.0  # a limit of one lets job 0 keep the other
    assert [row[7] for row in steps.result().log.decision_lists()] == [2, 1, 1]


# ---- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit_s", "tasks"), [(25.0, 2), (22.0, 2), (21.0, 1)])
def test_a_time_limit_ends_the_run_before_the_first_later_event(limit_s, tasks):
    steps = Steps(workload(one_stage(3, 10.0), one_stage(1, 1.0, at_s=40.0)), 1, time_limit_ms=1000.0 * limit_s)
    result = steps.finish()
    assert result.truncated
    assert result.end_ms == 1000.0 * limit_s
    assert result.num_events == {"task": tasks, "job": 0, "executor": 1}
    assert np.isnan(result.completion_ms).all()
    assert steps.state.area_ms == 1000.0 * limit_s  # one job in the system all the time


def test_an_event_at_the_time_limit_still_happens():
    result = Steps(workload(one_stage(3, 10.0)), 1, time_limit_ms=32_000.0).finish()
    assert not result.truncated
    assert result.completion_ms.tolist() == [32_000.0]


def test_a_limit_after_the_last_job_cuts_nothing():
    steps = Steps(workload(one_stage(3, 1.0), one_stage(4, 1.0)), 2, moving_delay_ms=5000.0, time_limit_ms=10_000.0)
    steps.choose(0, 0, 1)
    steps.choose(1, 0, 1)
    steps.choose(1, 0, 2)  # still under way when the limit comes
    result = steps.finish()
    assert not result.truncated
    assert (result.end_ms, result.num_events["executor"]) == (9000.0, 2)


def test_mode_released_has_no_time_limit_as_published():
    jobs = workload(one_stage(3, 10.0))
    with pytest.raises(ConfigError, match=r"time_limit_ms is 5000\.0 but has no effect in mode released"):
        Steps(jobs, 1, mode="released", time_limit_ms=5000.0)
    cut = Steps(jobs, 1, mode="released", time_limit_ms=5000.0, time_limit_applies=True).finish()
    whole = Steps(jobs, 1, mode="released").finish()
    assert (cut.truncated, whole.truncated) == (True, False)
    assert whole.makespan_ms == 32_000.0


def test_time_without_jobs_adds_nothing_to_the_area():
    steps = Steps(workload(one_stage(1, 1.0), one_stage(1, 1.0, at_s=50.0)), 1)
    result = steps.finish()
    assert result.jct_ms.tolist() == [3000.0, 3000.0]
    assert steps.state.area_ms == 6000.0


def test_an_arrival_at_zero_may_be_an_event():
    jobs = Workload((Job(one_stage(1, 1.0).profile, 0.0, False),), "test")
    steps = Steps(jobs, 2)
    assert steps.offer == (0.0, -1, 2)
    assert steps.frontier == []
    assert steps.idle() == (0.0, -1, 2)
    assert steps.finish().num_events == {"task": 1, "job": 1, "executor": 1}
