"""Oracle and compiled core repeat the reference runs of the released simulator exactly: no tolerance anywhere.

Only sums that the core adds up in another order may differ by rounding.
"""

import pytest

from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from tests.differential.oracle_policies import DynamicPartition, Replay, SparkFifo
from tests.differential.reference_files import HEURISTICS, read_reference, reference_params, reference_workload
from tests.differential.side_by_side import core_outcome, new_state, oracle_for
from tests.drivers import Through

pytestmark = pytest.mark.differential

PLAIN = {"released_fair": DynamicPartition, "released_fifo": SparkFifo}
every_run = pytest.mark.parametrize("path", reference_params())
runs_of_heuristics = pytest.mark.parametrize("path", reference_params(*HEURISTICS))


def prepared(path):
    """A reference run, its workload and its settings."""
    reference = read_reference(path)
    settings = Settings.released(
        executors=reference["executors"],
        durations="mean",
        moving_delay_ms=reference["moving_delay"],
        warmup_delay_ms=reference["warmup_delay"],
        level_rule=reference["key_rule"],
    )
    return reference, reference_workload(reference), settings


def check(reference, outcome):
    for step, (got, expected) in enumerate(zip(outcome.decisions, reference["decisions"], strict=False)):
        assert got == expected, f"decision {step}"
    assert len(outcome.decisions) == len(reference["decisions"]) == reference["num_decisions"]
    assert outcome.completion_ms == reference["completion_ms"]
    assert outcome.completion_order == reference["completion_order"]
    assert outcome.stage_finish_ms == reference["node_finish_ms"]
    assert outcome.num_events == reference["num_events"]
    if "tasks" in reference:  # of the only job: per stage [start, duration, executor] in order of launch
        tasks = [[task[2:5] for task in outcome.tasks if task[1] == stage] for stage in range(len(reference["tasks"]))]
        assert tasks == [[(place, start, start + took) for start, took, place in row] for row in reference["tasks"]]


def check_oracle(reference, oracle, policy):
    check(reference, oracle.run(policy))
    assert oracle.busy_ms() == reference["busy_ms"]
    assert oracle.total_reward == reference["total_reward"]
    if "tasks" in reference:
        durations_ms = [[took for _, took, _ in row] for row in reference["tasks"]]
        assert [stage.durations_ms for stage in oracle.all_jobs[0].stages] == durations_ms


def check_core(reference, workload, state, run):
    check(reference, core_outcome(state, run))
    result = Result.of_state(state, workload, "replay", 0)
    assert result.num_decisions == reference["num_decisions"]
    assert result.makespan_ms == reference["makespan_ms"]
    assert result.avg_jct_ms == reference["avg_jct_ms"]
    assert result.busy_ms == pytest.approx(reference["busy_ms"], rel=1e-12)
    # The reward accumulates in steps of 100 s, the integral of active jobs event by event.
    assert -state.area_ms / 100_000.0 == pytest.approx(reference["total_reward"], rel=1e-12)


@every_run
def test_logged_decisions_in_the_oracle(path):
    reference, workload, settings = prepared(path)
    check_oracle(reference, oracle_for(workload, settings), Replay(reference["decisions"]))


@runs_of_heuristics
def test_released_heuristic_in_the_oracle_takes_the_logged_decisions(path):
    reference, workload, settings = prepared(path)
    policy = PLAIN[HEURISTICS[reference["policy"]]]()
    check_oracle(reference, oracle_for(workload, settings), policy)


@pytest.mark.parametrize("make", [make_scheduler, Through], ids=["compiled", "decide"])
@runs_of_heuristics
def test_released_heuristic_in_the_core_takes_the_logged_decisions(path, make):
    reference, workload, settings = prepared(path)
    state = new_state(workload, settings)
    scheduler = make(HEURISTICS[reference["policy"]])
    check_core(reference, workload, state, lambda: run_state(state, scheduler, 0))
