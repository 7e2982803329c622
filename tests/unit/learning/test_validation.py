import dataclasses

import numpy as np
import pytest

import decima
from decima.core.objectives import OBJECTIVES, Objective, register_objective
from decima.learning.rollout import VALIDATION_SEED
from decima.systems.spark.policy.run import TaskValidation
from decima.systems.spark.policy.scheduler import LearnedScheduler
from tests.unit.learning.small import NETWORK, TASK

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
