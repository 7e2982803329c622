"""Stages that wait, for a slot by the linear rule or for the driver, on cases small enough to follow by hand."""

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, RecordError
from decima.evaluation.tuning import tune
from decima.systems.spark.capacity import AfterDriver
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import Decision, make_scheduler
from decima.systems.spark.settings import Settings, cluster_settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload.sources import parse_jobs
from tests.toy_jobs import job, one_stage, stage, workload

# A long job runs, another one waits, and a short one is about to come.
LONG_AND_SHORT = workload(one_stage(1, 20.0), one_stage(1, 20.0), one_stage(1, 2.0, at_s=1.0))


def completions(jobs, executors, **parameters):
    """Completion of each job in seconds."""
    result = decima.simulate(jobs, "idle_rule", executors, mode="simplified", parameters=parameters)
    return (result.completion_ms / 1000.0).tolist()


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("hold", [0, 1])
@pytest.mark.parametrize("arrivals", ["batch", "poisson"])
def test_without_weights_it_is_capped_srw(mode, hold, arrivals):
    jobs = parse_jobs(f"embedded:n=8,arrivals={arrivals}").workload(3)
    ours = decima.simulate(jobs, make_scheduler("idle_rule", hold=hold), 10, mode=mode)
    plain = decima.simulate(jobs, "capped_srw", 10, mode=mode)
    assert ours.completion_ms.tobytes() == plain.completion_ms.tobytes()
    assert ours.num_decisions == plain.num_decisions


@pytest.mark.parametrize(("base", "end_s"), [(0.5, 15.0), (0.44, 14.0), (0.04, 10.0), (-1.0, 10.0), (3.0, 20.0)])
def test_a_slot_is_a_number_of_tenths_of_the_stage(base, end_s):
    assert completions(workload(one_stage(1, 10.0)), 1, base=base) == [end_s]


def test_slots_can_be_for_whole_jobs_only():
    """Two stages of 10 s, slots of half a stage: before both, or before the first task of the job."""
    chain = workload(job(stage("a", 1, 10.0), stage("b", 1, 10.0, 0)))
    assert completions(chain, 1, base=0.5) == [30.0]
    assert completions(chain, 1, base=0.5, first=1) == [25.0]


def test_an_executor_is_kept_for_short_jobs_while_a_long_one_runs():
    weights = {"hold": 1, "remaining": 5.0, "length": 2.0}
    assert completions(LONG_AND_SHORT, 2) == [20.0, 20.0, 22.0]
    # The second long job waits for the first; the short one finds an executor.
    assert completions(LONG_AND_SHORT, 2, **weights) == [20.0, 40.0, 3.0]


def test_waiting_ends_when_a_running_task_is_nearly_over():
    """At 0 s all 20 s of the first job remain; at 3 s, when the short job ends, 17."""
    weights = {"hold": 1, "soon": 5.0, "base": -4.2, "length": 0.2}
    assert completions(LONG_AND_SHORT, 2, **weights, ages=1) == [20.0, 23.0, 3.0]
    assert completions(LONG_AND_SHORT, 2, **weights, ages=0) == [20.0, 40.0, 3.0]


def test_nobody_waits_for_an_arrival_that_may_never_come():
    assert completions(workload(one_stage(2, 10.0)), 1, hold=1, base=5.0) == [20.0]


def test_waiting_stages_count():
    """Before the first of three stages two others wait for four executors, then one; its slot is that part of it."""
    jobs = workload(one_stage(1, 10.0), one_stage(1, 10.0), one_stage(1, 10.0))
    result = decima.simulate(jobs, "idle_rule", 4, mode="simplified", parameters={"waiting": 0.4}, log=True)
    assert result.log.delays()["end_s"].to_list() == [2.0, 1.0]


def test_the_time_since_a_smaller_job_arrived_counts():
    """At 5 s the job of 20 s is offered; the one of 1 s came 4 s ago, a fifth of its length."""
    jobs = workload(one_stage(1, 4.0), one_stage(1, 1.0, at_s=1.0), one_stage(1, 20.0, at_s=2.0))
    parameters = {"since": 2.0, "base": -0.19}
    result = decima.simulate(jobs, "idle_rule", 1, mode="simplified", parameters=parameters, log=True)
    assert result.log.delays()[["job", "start_s", "end_s"]].to_numpy().tolist() == [[2, 5.0, 9.0]]


def test_tuning_fits_the_weights_and_what_it_finds_is_no_worse_than_not_to_idle():
    train = [parse_jobs("rare_long:n=60").workload(seed) for seed in range(4)]
    fixed = {"preset": "stream", "hold": 1} | dict.fromkeys(("c0", "c1", "power", "release"), 1.0)
    found = tune("idle_rule", train, Settings.simplified(executors=2), fixed=fixed, budget=24, workers=1)
    assert set(found.tuned) == {"base", "remaining", "busy", "soon", "waiting", "length", "since"}
    assert found.train["tuned"].mean() <= found.train["default"].mean()


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
