"""Stages that wait for the driver: runs followed by hand, and a plain-Python scheduler that does the same."""

import numpy as np
import pytest

from decima.core.errors import ConfigError, RecordError
from decima.systems.spark.loop import new_state
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.schedulers.driver_time import AfterDriver
from decima.systems.spark.settings import Settings, cluster_settings
from decima.systems.spark.system import run_state
from tests.toy_jobs import job, stage, workload


def run(jobs, scheduler, executors, seed=0):
    settings = cluster_settings(executors)
    state = new_state(jobs, settings, log_tasks=True, log_decisions=True)
    run_state(state, scheduler, seed)
    return Result.of_state(state, jobs, scheduler.name, seed)


CHAIN = workload(job(stage("a", 2, 1.0), stage("b", 1, 2.0, 0)))


def test_a_stage_begins_when_the_driver_is_done():
    # a: 0.5 s of the driver, two tasks of 1 s at once; b: 0.25 s of the driver, one task of 2 s.
    result = run(CHAIN, AfterDriver(make_scheduler("fifo"), [500.0, 250.0]), 2)
    assert result.log.start_ms.tolist() == [500.0, 500.0, 1750.0]
    assert result.makespan_ms == 3750.0


def test_driver_time_takes_no_executor():
    # The second job runs while the driver prepares b, and b begins 0.25 s after a although no slot was offered then.
    jobs = workload(CHAIN.jobs[0], job(stage("c", 1, 0.2), at_s=0.0, name="other"))
    result = run(jobs, AfterDriver(make_scheduler("fifo"), [0.0, 250.0, 0.0]), 1)
    assert result.log.start_ms.tolist() == [0.0, 1000.0, 2000.0, 2250.0]
    assert result.log.job.tolist() == [0, 0, 1, 0]


def test_what_has_passed_before_a_slot_is_free_is_not_waited_for_again():
    # The driver is done with c at 0.5 s; the only slot is free at 2 s.
    jobs = workload(job(stage("a", 2, 1.0)), job(stage("c", 1, 1.0), name="other"))
    result = run(jobs, AfterDriver(make_scheduler("fifo"), [0.0, 500.0]), 1)
    assert result.log.start_ms.tolist() == [0.0, 1000.0, 2000.0]


def test_without_driver_time_nothing_changes():
    jobs = workload(CHAIN.jobs[0], job(stage("c", 5, 0.3), at_s=0.5, name="other"))
    for name in ("fifo", "fair", "weighted_fair", "capped_srw"):
        plain = run(jobs, make_scheduler(name), 2)
        wrapped = run(jobs, AfterDriver(make_scheduler(name), np.zeros(3)), 2)
        assert plain.log.start_ms.tolist() == wrapped.log.start_ms.tolist()
        assert plain.log.executor.tolist() == wrapped.log.executor.tolist()
        assert np.array_equal(plain.log.decisions, wrapped.log.decisions)


class InPython:
    """The same wrapper on views, around first come first served."""

    name = "in_python"

    def __init__(self, driver_ms):
        self.driver_ms = driver_ms

    def reset(self, rng):
        self.waited = set()

    def decide(self, observation):
        state = observation.state
        frontier = [number for number in range(state.num_stages) if state.stage_in_frontier[number]]
        for number in frontier:
            of = state.stage_job[number]
            profile = state.tables.workload.jobs[of].profile
            first = state.job_first_stage[of]
            ends = [state.stage_finish_ms[first + parent] for parent in profile.stages[number - first].parents]
            left = max([state.job_arrival_ms[of], *ends]) + self.driver_ms[number] - state.now_ms
            begun = state.stage_next[number] + state.stage_commit[number] + state.stage_moving[number]
            if left > 0.0 and number not in self.waited and not begun:
                self.waited.add(number)
                return Decision(number, 1, left)
        number = min(frontier)
        return Decision(number, state.num_executors)


def random_jobs(rng):
    jobs = []
    for number in range(int(rng.integers(1, 4))):
        stages = []
        for index in range(int(rng.integers(1, 5))):
            parents = [each for each in range(index) if rng.random() < 0.5]
            stages.append(stage(f"s{index}", int(rng.integers(1, 6)), float(rng.integers(1, 20)) / 8.0, *parents))
        jobs.append(job(*stages, at_s=float(rng.integers(0, 8)), name=f"job{number}"))
    return workload(*jobs)


@pytest.mark.parametrize("seed", range(40))
def test_random_jobs_keep_to_the_driver(seed):
    rng = np.random.default_rng(seed)
    jobs = random_jobs(rng)
    driver = rng.integers(0, 12, int(jobs.first_stage[-1])) * 125.0
    few, many = int(rng.integers(1, 5)), 100  # with many, every task has an executor of its own
    fair = AfterDriver(make_scheduler("fair"), driver)
    for scheduler, executors in ((fair, few), (InPython(driver), few), (fair, many)):
        result = run(jobs, scheduler, executors)
        number = jobs.first_stage[result.log.job] + result.log.stage
        for index, each in enumerate(jobs.jobs):
            for position, part in enumerate(each.profile.stages):
                starts = result.log.start_ms[number == jobs.first_stage[index] + position]
                ends = [result.stage_finish_ms[index][parent] for parent in part.parents]
                assert len(starts) == part.num_tasks
                ready = max([each.arrival_ms, *ends]) + driver[jobs.first_stage[index] + position]
                assert starts.min() >= ready - 1e-6
                if executors == many:
                    assert starts.min() == pytest.approx(ready)


@pytest.mark.parametrize("seed", range(20))
def test_one_job_runs_as_the_plain_python_scheduler_has_it(seed):
    rng = np.random.default_rng(100 + seed)
    jobs = workload(random_jobs(rng).jobs[0])
    driver = rng.integers(0, 12, int(jobs.first_stage[-1])) * 125.0
    many = jobs.jobs[0].profile.num_tasks
    compiled = run(jobs, AfterDriver(make_scheduler("fifo"), driver), many)
    plain = run(jobs, InPython(driver), many)
    assert np.array_equal(compiled.stage_finish_ms[0], plain.stage_finish_ms[0])


def test_refusals():
    fair = make_scheduler("fair")
    with pytest.raises(ConfigError, match="driver times must be numbers of ms from 0"):
        AfterDriver(fair, [-1.0])
    with pytest.raises(ConfigError, match="in_python is not compiled"):
        AfterDriver(InPython([]), [0.0])
    state = new_state(CHAIN, cluster_settings(2))
    with pytest.raises(RecordError, match="stage_driver_ms"):
        AfterDriver(fair, [0.0]).bind(state)
    state = new_state(CHAIN, Settings(executors=2))
    with pytest.raises(ConfigError, match="runnable stages only"):
        AfterDriver(fair, [0.0, 0.0]).bind(state)
