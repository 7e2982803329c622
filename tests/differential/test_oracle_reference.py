"""The oracle repeats the reference runs of the released simulator exactly: no tolerance anywhere."""

import pytest

from tests.differential.oracle import OracleSimulator
from tests.differential.oracle_policies import DynamicPartition, Replay, SparkFifo
from tests.differential.reference_files import read_reference, reference_params, reference_workload

TOTALS = (
    "completion_order",
    "completion_ms",
    "node_finish_ms",
    "num_events",
    "makespan_ms",
    "avg_jct_ms",
    "busy_ms",
    "total_reward",
)
HEURISTICS = {"dynamic_partition": DynamicPartition, "spark_fifo": SparkFifo}


def check(reference, policy):
    oracle = OracleSimulator(
        reference_workload(reference),
        reference["executors"],
        moving_delay_ms=reference["moving_delay"],
        warmup_delay_ms=reference["warmup_delay"],
        key_rule=reference["key_rule"],
    )
    result = oracle.run(policy)
    for step, (got, expected) in enumerate(zip(result.decisions, reference["decisions"], strict=False)):
        assert got == expected, f"decision {step}"
    assert result.num_decisions == reference["num_decisions"] == len(reference["decisions"])
    for name in TOTALS:
        assert getattr(result, name) == reference[name], name
    if "tasks" in reference:
        assert trace(result, oracle) == reference["tasks"]


def trace(result, oracle):
    """Tasks of a single job in the form of the reference files: per stage [start, duration, executor]."""
    stages = oracle.all_jobs[0].stages
    tasks = [[] for _ in stages]
    for _, stage, executor, start_ms, _, _ in result.tasks:
        duration_ms = stages[stage].durations_ms[len(tasks[stage])]
        tasks[stage].append([start_ms, duration_ms, executor])
    return tasks


@pytest.mark.differential
@pytest.mark.parametrize("path", reference_params())
def test_replay_of_logged_decisions_repeats_the_run(path):
    reference = read_reference(path)
    check(reference, Replay(reference["decisions"]))


@pytest.mark.differential
@pytest.mark.parametrize("path", reference_params(*HEURISTICS))
def test_released_heuristic_takes_the_logged_decisions(path):
    reference = read_reference(path)
    check(reference, HEURISTICS[reference["policy"]]())
