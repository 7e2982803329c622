"""Schedules small enough to work out by hand. Moving takes 2 s unless stated; times in seconds."""

import math

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.state import spawn_generators
from decima.workload import synthetic_poisson
from decima.workload.jobs import Job
from decima.workload.profile import JobProfile, Stage
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


# One executor of job 0 has nothing to do from 12 s to 62 s.
IDLE_IN_POOL = workload(
    job(stage("a", 2, 10.0), stage("b", 1, 50.0, 0), stage("c", 1, 10.0, 1)), one_stage(1, 10.0, at_s=20.0)
)


def test_idle_executors_are_offered_when_a_job_arrives_in_mode_paper():
    assert Steps(IDLE_IN_POOL, 2).finish().completion_ms.tolist() == [72_000.0, 32_000.0]
    released = Steps(IDLE_IN_POOL, 2, mode="released").finish()
    assert released.completion_ms.tolist() == [72_000.0, 74_000.0]


def test_executors_that_decided_to_wait_too_early_are_offered():
    # At 7,100 s most executors follow a decision to wait for a stage whose own parent became runnable after it; kept
    # reserved, they idled while 25 jobs piled up, and the average JCT was 192 s.
    jobs = synthetic_poisson(200, 45, 100_000)
    result = decima.simulate(jobs, "weighted_fair", seed=100_000, parameters={"alpha": -1.9, "sticky": 0})
    assert result.avg_jct_s < 30.0


def test_limits_count_executors_on_their_way():
    steps = Steps(workload(one_stage(9, 10.0), one_stage(1, 10.0, at_s=5.0)), 4)
    assert steps.choose(0, 0, 2) == (0.0, -1, 2)
    assert steps.idle() == (5.0, -1, 2)
    assert steps.choose(0, 0, 3) == (5.0, -1, 1)
    assert steps.state.logged_decisions[2].tolist() == [5000.0, -1, 2, 2, 0, 0, 3, 1, 0, -1]


@pytest.mark.parametrize(("limit_s", "tasks"), [(25.0, 2), (22.0, 2), (21.0, 1)])
def test_a_time_limit_ends_the_run_before_the_first_later_event(limit_s, tasks):
    steps = Steps(workload(one_stage(3, 10.0), one_stage(1, 1.0, at_s=40.0)), 1, time_limit_ms=1000.0 * limit_s)
    result = steps.finish()
    assert result.truncated
    assert result.end_ms == 1000.0 * limit_s
    assert result.num_events == {"task": tasks, "job": 0, "executor": 1}
    assert np.isnan(result.completion_ms).all()
    assert steps.state.area_ms == 1000.0 * limit_s  # one job in the system all the time


def test_mode_released_has_no_time_limit_as_published():
    jobs = workload(one_stage(3, 10.0))
    with pytest.raises(ConfigError, match=r"time_limit_ms is 5000\.0 but has no effect in mode released"):
        Steps(jobs, 1, mode="released", time_limit_ms=5000.0)
    cut = Steps(jobs, 1, mode="released", time_limit_ms=5000.0, time_limit_applies=True).finish()
    whole = Steps(jobs, 1, mode="released").finish()
    assert (cut.truncated, whole.truncated) == (True, False)
    assert whole.makespan_ms == 32_000.0


# ---- what a result says ----------------------------------------------------------------------------------------------

# One executor, 2 s to move: job 0 from 2 s to 5 s, job 1 from 7 s to 8 s, job 2, which comes at 6 s, from 10 s to 12 s.
JOBS = workload(one_stage(3, 1.0, name="x"), one_stage(1, 1.0, name="y"), one_stage(1, 2.0, at_s=6.0, name="z"))


def finished(**settings):
    return decima.simulate(JOBS, "fifo", executors=1, log=True, durations="mean", **settings)


def test_what_a_result_says():
    result = finished()
    assert result.completion_ms.tolist() == [5000.0, 8000.0, 12_000.0]
    assert result.completion_order.tolist() == [0, 1, 2]
    assert [times.tolist() for times in result.stage_finish_ms] == [[5000.0], [8000.0], [12_000.0]]
    assert result.jct_ms.tolist() == [5000.0, 8000.0, 6000.0]
    assert result.avg_jct_ms == 19_000.0 / 3
    assert result.avg_jct_s == 19_000.0 / 3 / 1000.0
    assert (result.makespan_ms, result.makespan_s, result.end_ms) == (12_000.0, 12.0, 12_000.0)
    assert result.num_events == {"task": 5, "job": 1, "executor": 3}
    assert result.busy_ms == 6000.0
    assert result.utilization == 0.5
    assert result.num_unfinished == 0
    assert not result.truncated
    assert (result.scheduler, result.seed, result.workload) == ("fifo", 0, JOBS)
    assert (result.settings.mode, result.settings.executors) == ("paper", 1)
    table = result.jobs
    assert table["name"].tolist() == ["x", "y", "z"]
    assert table["arrival_s"].tolist() == [0.0, 0.0, 6.0]
    assert table["completion_s"].tolist() == [5.0, 8.0, 12.0]
    assert table["jct_s"].tolist() == [5.0, 8.0, 6.0]
    assert table["tasks"].tolist() == [3, 1, 1]


def test_a_run_cut_short_counts_finished_jobs_only():
    result = finished(time_limit_ms=9000.0)
    assert result.truncated
    assert result.end_ms == 9000.0
    assert result.num_unfinished == 1
    assert result.completion_order.tolist() == [0, 1]
    assert result.avg_jct_ms == 6500.0
    assert math.isnan(result.completion_ms[2])
    assert math.isnan(result.stage_finish_ms[2][0])
    assert math.isnan(result.makespan_ms)
    assert result.jobs["jct_s"].isna().tolist() == [False, False, True]


def test_a_run_cut_before_anything_finished():
    result = finished(time_limit_ms=1.0)
    assert math.isnan(result.avg_jct_s)
    assert math.isnan(result.makespan_s)
    assert result.utilization == 0.0
    assert len(result.log.job) == 0


def test_log_of_tasks():
    log = finished().log
    assert log.job.tolist() == [0, 0, 0, 1, 2]
    assert log.stage.tolist() == [0] * 5
    assert log.executor.tolist() == [0] * 5
    assert log.start_ms.tolist() == [2000.0, 3000.0, 4000.0, 7000.0, 10_000.0]
    assert log.finish_ms.tolist() == [3000.0, 4000.0, 5000.0, 8000.0, 12_000.0]
    table = log.tasks()
    assert table["wave"].tolist() == ["fresh", "rest", "rest", "fresh", "fresh"]
    assert table["start_s"].tolist() == [2.0, 3.0, 4.0, 7.0, 10.0]
    assert list(table) == ["job", "stage", "executor", "wave", "start_s", "finish_s"]


def test_log_of_decisions():
    log = finished().log
    assert log.decision_lists() == [
        [0.0, None, 1, 2, 0, 0, 1, 1],
        [5000.0, 0, 1, 1, 1, 0, 1, 1],
        [8000.0, 1, 1, 1, 2, 0, 1, 1],
        [12_000.0, 2, 1, 0, None, None, 1, 1],
    ]


def test_seeds():
    one, two = spawn_generators(3), spawn_generators(np.int64(3))
    assert [rng.random() for rng in one] == [rng.random() for rng in two]
    first, second = spawn_generators(0)
    assert first.random() != second.random()
    for seed in (-1, 1.5, "0", True, None):
        with pytest.raises(ConfigError, match="seed must be a whole number of at least 0, got"):
            spawn_generators(seed)
