"""Rollouts, and tasks of training: elastic clusters, and the score that selects weights."""

import dataclasses
import os

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError, TrainingError
from decima.core.objectives import OBJECTIVES, Objective, register_objective
from decima.learning.rollout import VALIDATION_SEED, RolloutJob, Rollouts, Teacher, rollout_seeds
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.run import TaskValidation
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.policy.task import Task
from decima.systems.spark.settings import Settings
from tests.unit.learning.small import NETWORK, STREAM, TASK, assert_same_records

WEIGHTS = NETWORK.initial_weights(0)


def jobs(task, teacher=None):
    length_s = 60.0 if task.streaming else None
    sequences = task.training_sequences(5, 0, 2, length_s)
    return [RolloutJob(sequences[k % 2], seed, teacher) for k, seed in enumerate(rollout_seeds(5, 0, 5))]


def collect(kind, workers, task, work):
    backend = Rollouts(Episodes(task), kind, workers)
    try:
        return backend.collect(NETWORK, WEIGHTS, work), backend.collect(NETWORK, 0.5 * WEIGHTS, work)
    finally:
        backend.close()


def test_threads_and_processes_give_the_same_records():
    work = jobs(STREAM, Teacher("capped_srw", (("c0", 2.0),), 0.5))
    threads, threads_again = collect("threads", 2, STREAM, work)
    processes, processes_again = collect("processes", 2, STREAM, work)
    assert_same_records(threads, processes)
    assert_same_records(threads_again, processes_again)


def test_a_worker_that_dies_is_one_error():
    backend = Rollouts(Episodes(TASK), "processes", 1)
    assert backend.collect(NETWORK, WEIGHTS, []) == []
    backend._workers._pool.submit(os._exit, 3)
    with pytest.raises(TrainingError, match="a worker process died"):
        backend.collect(NETWORK, WEIGHTS, jobs(TASK))
    backend.close()


CLUSTER = Settings(
    executors=8, executor_cores=2, dynamic=True, min_executors=1, idle_timeout_ms=3000.0, loss_rate=3.0,
    straggler_share=0.1,
)  # fmt: skip
CHANGING = Task.on(CLUSTER, source="embedded", jobs=5)


def test_the_task_has_the_cluster_and_so_has_its_card():
    assert CHANGING.cluster == CLUSTER
    assert Task.from_dict(CHANGING.as_dict()).cluster == CLUSTER
    with pytest.raises(ConfigError, match="unknown objective 'executor_hours'"):
        Task.on(CLUSTER, source="embedded", objective="executor_hours")
    with pytest.raises(ConfigError, match="speculation and losses of executors needs shuffle_service"):
        Task.on(CLUSTER.replace(speculation=True), source="embedded")
    assert Task.on(CLUSTER.replace(speculation=True, shuffle_service=True), source="embedded").cluster.speculation


def runs(task, count):
    policy = LearnedScheduler(NETWORK, WEIGHTS)
    for index, sequence in enumerate(task.validation_sequences(count)):
        yield decima.simulate(task.workload(sequence), policy, seed=VALIDATION_SEED + index, cluster=task.cluster)


@pytest.mark.parametrize(
    ("objective", "score"),
    [
        ("avg_jct", lambda run: run.avg_jct_s),
        ("makespan", lambda run: run.makespan_s),
        ("p90_jct", lambda run: np.quantile(run.jct_ms, 0.9) / 1000.0),
    ],
)
def test_weights_are_selected_by_the_score_of_the_objective(objective, score):
    task = dataclasses.replace(TASK, objective=objective)
    found = TaskValidation(task, NETWORK, 2, 0, threads=1).measure(WEIGHTS)
    assert found.score == pytest.approx(np.mean([score(run) for run in runs(task, 2)]), rel=1e-12)


def test_what_is_to_be_great_is_selected_so(monkeypatch):
    monkeypatch.setattr(OBJECTIVES, "_members", dict(OBJECTIVES._members))
    register_objective(Objective("done", "jobs done", "", lambda run: float(len(run.jct_ms)), lambda run: 0.0, "max"))
    validation = TaskValidation(dataclasses.replace(TASK, objective="done"), NETWORK, 1, 1, threads=1)
    monkeypatch.setattr(validation, "_mean", lambda schedulers: [float(k + 1) for k in range(len(schedulers))])
    assert validation.measure(WEIGHTS).mode == "sampled"
    assert not validation.lower_is_better
