"""Small cases worked out by hand for the rules that the reference runs do not reach."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from tests.differential.oracle import OracleDeadlockError, OracleDecisionError, OracleSimulator
from tests.differential.oracle_durations import FIRST, FRESH, REST, DurationModel


def stage(name, tasks, duration_ms, *parents):
    """A stage whose tasks always take the same time."""
    wave = (np.array([float(duration_ms)]),)
    return Stage(name, tasks, parents, (5,), wave, wave, wave)


def workload(*jobs):
    """Jobs given as (arrival_ms, stages); a job at 0 is there from the start."""
    return Workload(tuple(Job(JobProfile("job", stages, "test"), at) for at, stages in jobs), "test")


# job 0 has nothing for one of two executors from 12 s to 62 s; job 1 comes at 20 s
IDLE_IN_POOL = workload(
    (0.0, (stage("a", 2, 10_000), stage("b", 1, 50_000, 0), stage("c", 1, 10_000, 1))),
    (20_000.0, (stage("d", 1, 10_000),)),
)


def greedy(oracle):
    """All offered executors to the first stage that can run at once; none waits for a stage."""
    for stage in oracle.frontier():
        if stage in stage.job.runnable:
            return stage.job.index, stage.index, oracle.num_source
    return None, None, oracle.num_source


def scripted(*decisions):
    rows = iter(decisions)
    return lambda oracle: next(rows)


def test_reoffer_gives_an_executor_idle_in_a_job_to_the_job_that_arrives():
    released = OracleSimulator(IDLE_IN_POOL, 2).run(greedy)
    assert released.completion_ms == [72_000.0, 74_000.0]
    paper = OracleSimulator(IDLE_IN_POOL, 2, reoffer=True).run(greedy)
    assert paper.completion_ms == [72_000.0, 32_000.0]
    # time, source job, executors offered, frontier (the last stage of job 0 can be chosen ahead)
    assert [row[:4] for row in paper.decisions if row[0] == 20_000.0] == [[20_000.0, 0, 1, 2]]


def test_reoffer_does_not_ask_twice_about_an_executor_left_idle():
    def refuse_once(oracle):
        return (None, None, oracle.num_source) if oracle.now_ms == 20_000.0 else greedy(oracle)

    result = OracleSimulator(IDLE_IN_POOL, 2, reoffer=True).run(refuse_once)
    assert [row[0] for row in result.decisions].count(20_000.0) == 1
    assert result.completion_ms == [72_000.0, 74_000.0]


def test_released_rules_deadlock_where_the_policy_parks_everybody():
    jobs = workload((0.0, (stage("a", 1, 10_000),)))
    with pytest.raises(OracleDeadlockError, match="1 unfinished jobs"):
        OracleSimulator(jobs, 2).run(scripted((None, None, 2)))


@pytest.mark.parametrize(("commit_ahead", "offered"), [(True, 2), (False, 1)])
def test_commit_ahead_decides_how_many_executors_a_drained_stage_offers(commit_ahead, offered):
    result = OracleSimulator(IDLE_IN_POOL, 2, commit_ahead=commit_ahead).run(greedy)
    # both executors finish at 12 s: the first when its stage has no task left, the second enables the child,
    # whereupon the pool with both is offered
    assert [row[2] for row in result.decisions if row[0] == 12_000.0] == [offered, 2, 1]


def test_job_limit_counts_executors_on_their_way():
    jobs = workload((0.0, (stage("a", 9, 10_000),)), (5_000.0, (stage("b", 1, 10_000),)))
    start = [(0, 0, 2), (None, None, 2)]
    oracle = OracleSimulator(jobs, 4, job_limit=True, time_limit_ms=6_000.0)
    result = oracle.run(scripted(*start, (0, 0, 3), (1, 0, 1)))
    assert [row[7] for row in result.decisions] == [2, 2, 1, 1]

    with pytest.raises(OracleDecisionError, match="0 executors"):
        OracleSimulator(jobs, 4, job_limit=True).run(scripted(*start, (0, 0, 2)))


def test_job_limit_lets_a_job_keep_executors_that_are_offered():
    jobs = workload((0.0, (stage("a", 2, 10_000), stage("b", 8, 10_000, 0))))
    oracle = OracleSimulator(jobs, 2, job_limit=True, time_limit_ms=13_000.0)
    result = oracle.run(scripted((0, 0, 2), (0, 1, 1), (None, None, 1), (0, 1, 2)))
    # time, source job, executors offered, frontier, job, stage, limit, used
    assert result.decisions[1:] == [
        [12_000.0, 0, 2, 1, 0, 1, 1, 1],
        [12_000.0, 0, 1, 0, None, None, 1, 1],
        [12_000.0, 0, 2, 1, 0, 1, 2, 2],
    ]


@pytest.mark.parametrize(("limit_ms", "tasks", "now_ms"), [(25_000.0, 2, 25_000.0), (22_000.0, 2, 22_000.0)])
def test_time_limit_ends_before_the_first_later_event(limit_ms, tasks, now_ms):
    jobs = workload((0.0, (stage("a", 3, 10_000),)))
    result = OracleSimulator(jobs, 1, time_limit_ms=limit_ms).run(greedy)
    assert result.truncated
    assert result.now_ms == now_ms
    assert result.num_events == {"task": tasks, "job": 0, "executor": 1}
    assert math.isnan(result.completion_ms[0])
    assert result.total_reward == -now_ms / 100_000.0


def test_time_limit_at_the_last_event_does_not_truncate():
    jobs = workload((0.0, (stage("a", 3, 10_000),)))
    result = OracleSimulator(jobs, 1, time_limit_ms=32_000.0).run(greedy)
    assert not result.truncated
    assert result.completion_ms == [32_000.0]


# profiled at 2, 5 and 10 executors; nothing fresh was measured at 5, no first wave at 10
PROFILE = Stage(
    "s",
    1,
    (),
    (2, 5, 10),
    fresh=([30.0], [], [50.0, 70.0]),
    first=([20.0], [24.0], []),
    rest=([1.0], [2.0, 4.0], [6.0, 8.0, 10.0]),
)


@pytest.mark.parametrize(
    ("rule", "executors", "wave", "expected_ms"),
    [
        ("left", 7, REST, 3.0),
        ("right", 7, REST, 8.0),
        ("left", 1, REST, 3.0),  # 2 is profiled, but no data point
        ("interpolate", 1, REST, 1.0),
        ("interpolate", 3, REST, 2 / 3 * 1.0 + 1 / 3 * 3.0),
        ("interpolate", 7, REST, 0.6 * 3.0 + 0.4 * 8.0),
        ("inverted", 7, REST, 0.4 * 3.0 + 0.6 * 8.0),
        ("left", 30, REST, 8.0),  # data point 20 is missing: the largest level
        ("interpolate", 30, REST, 8.0),
        ("left", 5, FRESH, 1024.0),  # first wave and warm-up
        ("left", 10, FIRST, 60.0),  # fresh, no warm-up
        ("interpolate", 7, FRESH, 0.6 * 1024.0 + 0.4 * 60.0),
    ],
)
def test_mean_durations(rule, executors, wave, expected_ms):
    model = DurationModel(rule, "mean", 1000.0, None)
    assert model.duration_ms(PROFILE, wave, executors) == pytest.approx(expected_ms, rel=1e-15)


def raws(*values):
    """A generator that has the given raw outputs only."""
    return SimpleNamespace(bit_generator=SimpleNamespace(random_raw=iter(values).__next__))


def test_mixed_level_takes_a_uniform_then_an_index():
    below, above = int(0.39 * 2**64), int(0.41 * 2**64)
    last_of_three, last_of_two = int(0.99 * 2**64), int(0.5 * 2**64)
    for rule, first, second, expected_ms in [
        ("interpolate", below, last_of_three, 10.0),
        ("interpolate", above, last_of_two, 4.0),
        ("inverted", above, last_of_three, 10.0),
        ("inverted", int(0.61 * 2**64), last_of_two, 4.0),
    ]:
        model = DurationModel(rule, "sampled", 1000.0, raws(first, second))
        assert model.duration_ms(PROFILE, REST, 7) == expected_ms, rule


def test_single_level_takes_an_index_only_even_of_one_entry():
    # both data points around 30 are missing, so there is one candidate
    for rule, executors, expected_ms in [("interpolate", 2, 1.0), ("left", 7, 2.0), ("inverted", 30, 6.0)]:
        rng = raws(0)
        assert DurationModel(rule, "sampled", 1000.0, rng).duration_ms(PROFILE, REST, executors) == expected_ms
        with pytest.raises(StopIteration):
            rng.bit_generator.random_raw()
