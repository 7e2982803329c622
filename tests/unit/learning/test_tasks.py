"""Tasks of training: clusters whose executors come, go and fail, and the score that selects weights."""

import dataclasses

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.core.objectives import OBJECTIVES, Objective, register_objective
from decima.learning.rollout import VALIDATION_SEED
from decima.systems.spark.policy.run import DecimaRun, TaskValidation
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.policy.task import Task
from decima.systems.spark.settings import Settings
from tests.unit.learning.small import NETWORK, TASK, assert_exact, quick_recipe

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


@pytest.mark.tensorflow
def test_resumed_runs_are_exact_with_any_number_of_workers(tmp_path, monkeypatch):
    recipe = quick_recipe(teacher=None, teacher_iterations=0, validate_every=100)
    assert_exact(DecimaRun(CHANGING, recipe, NETWORK, 1), tmp_path, monkeypatch)


WEIGHTS = NETWORK.initial_weights(0)


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
