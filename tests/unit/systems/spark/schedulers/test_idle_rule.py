"""The linear rule for deliberate idle slots, on cases small enough to follow by hand (mode ``simplified``)."""

import pytest

import decima
from decima.evaluation.tuning import tune
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
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


def test_the_number_of_parts_can_be_chosen():
    assert completions(workload(one_stage(1, 10.0)), 1, base=0.44, steps=2) == [15.0]


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
