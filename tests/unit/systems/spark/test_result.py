import math

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.state import spawn_generators
from tests.toy_jobs import one_stage, workload

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


def test_table_of_jobs():
    table = finished().jobs
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
