"""The compiled core repeats the reference runs of the released simulator exactly: no tolerance anywhere."""

import pytest

from decima.systems.spark.loop import spawn_generators
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from tests.differential.reference_files import read_reference, reference_params, reference_workload
from tests.differential.side_by_side import new_state
from tests.drivers import Through

pytestmark = pytest.mark.differential

HEURISTICS = {"dynamic_partition": "released_fair", "spark_fifo": "released_fifo"}


def reference_state(reference):
    """Workload and a state with the settings of a reference run."""
    workload = reference_workload(reference)
    settings = Settings.released(
        executors=reference["executors"],
        durations="mean",
        moving_delay_ms=reference["moving_delay"],
        warmup_delay_ms=reference["warmup_delay"],
        level_rule=reference["key_rule"],
    )
    return workload, new_state(workload, settings)


def check(reference, workload, state):
    result = Result.of_state(state, workload, "replay", 0)
    decisions = result.log.decision_lists()
    for step, (got, expected) in enumerate(zip(decisions, reference["decisions"], strict=False)):
        assert got == expected, f"decision {step}"
    assert result.num_decisions == len(decisions) == reference["num_decisions"]
    assert result.completion_ms.tolist() == reference["completion_ms"]
    assert result.completion_order.tolist() == reference["completion_order"]
    assert [finish.tolist() for finish in result.stage_finish_ms] == reference["node_finish_ms"]
    assert result.num_events == reference["num_events"]
    assert result.makespan_ms == reference["makespan_ms"]
    assert result.avg_jct_ms == reference["avg_jct_ms"]
    assert result.busy_ms == pytest.approx(reference["busy_ms"], rel=1e-12)
    # The reward accumulates in steps of 100 s, the integral of active jobs event by event: rounding differs.
    assert -state.area_ms / 100_000.0 == pytest.approx(reference["total_reward"], rel=1e-12)
    if "tasks" in reference:
        expected = [[[start, start + took, place] for start, took, place in tasks] for tasks in reference["tasks"]]
        assert trace(result) == expected


def trace(result):
    """Tasks of a single job: per stage [start, finish, executor] in order of launch."""
    tasks = [[] for _ in result.stage_finish_ms[0]]
    log = result.log
    for stage, *task in zip(log.stage, log.start_ms, log.finish_ms, log.executor, strict=True):
        tasks[stage].append(task)
    return tasks


@pytest.mark.parametrize("path", reference_params())
def test_replay_of_logged_decisions_repeats_the_run(path):
    reference = read_reference(path)
    workload, state = reference_state(reference)
    rows = iter(reference["decisions"])
    state.start(*spawn_generators(0))
    while state.advance():
        *_, job, stage, limit, _ = next(rows)
        state.decide(-1 if job is None else int(state.job_first_stage[job]) + stage, limit)
    assert next(rows, None) is None
    check(reference, workload, state)


@pytest.mark.parametrize("through_python", [False, True], ids=["compiled", "decide"])
@pytest.mark.parametrize("path", reference_params(*HEURISTICS))
def test_released_heuristic_takes_the_logged_decisions(path, through_python):
    reference = read_reference(path)
    workload, state = reference_state(reference)
    name = HEURISTICS[reference["policy"]]
    run_state(state, Through(name) if through_python else make_scheduler(name), 0)
    check(reference, workload, state)
