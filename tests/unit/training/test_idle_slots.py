"""Training a policy that may idle: the gradient of the third head, exact runs, and that it learns."""

import numpy as np
import pytest

from decima.policy import architecture as architectures
from decima.policy.architecture import Architecture
from decima.policy.batch import GraphBatch
from decima.training.agent import DecimaAgent, recorded_log_prob, useful_decisions
from decima.training.budget import Progress
from decima.training.checkpoint import Checkpoint
from decima.training.gradient import Learner
from decima.training.loss import Loss
from decima.training.recipe import Recipe
from decima.training.rollout import RolloutJob, Rollouts
from decima.training.run import TrainingRun
from decima.training.task import Task, children_of, rollout_seeds
from tests.unit.training.small import quick_recipe, same_arrays, without_times

SMALL = {"embedding": 4, "hidden": (4,), "score_hidden": (4,), "max_executors": 8}
TIMER = Architecture.paper(delays=3, delay_context="embedding", **SMALL)
HOLD = Architecture.paper(delays=1, idle="hold", more_features=("running_age", "since_smaller"), **SMALL)
TASK = Task.of_jobs("two_class:n=8,load=0.8,executors=2", executors=2)


@pytest.fixture
def as_likely_as_not(monkeypatch):
    """Idling is as likely as not at first."""
    monkeypatch.setattr(architectures, "NO_DELAY_CHANCE", 0.5)


def records_of(architecture, weights, count=4):
    backend = Rollouts(TASK, "threads", 1)
    sequence = TASK.training_sequences(0, 0, 1)[0]
    found = backend.collect(architecture, weights, [RolloutJob(sequence, seed) for seed in rollout_seeds(0, 0, count)])
    backend.close()
    return found


@pytest.mark.usefixtures("as_likely_as_not")
@pytest.mark.parametrize("architecture", [TIMER, HOLD], ids=["timer", "hold"])
def test_gradient_is_the_slope_of_the_loss(architecture):
    weights = architecture.initial_weights(1)
    records = records_of(architecture, weights)
    batch = GraphBatch(records, *children_of(TASK)[:2])
    learner = Learner(architecture, weights, num_levels=children_of(TASK)[2])
    decisions = np.concatenate(useful_decisions(records))
    recorded = np.concatenate([recorded_log_prob(record, True) for record in records])[decisions]
    advantages = np.random.default_rng(0).normal(size=len(decisions))
    loss = Loss(True, 10.0, 0.3)
    found = learner.gradient(batch, decisions, advantages, recorded, loss)
    assert found.sums["log_prob"] == pytest.approx(float(recorded.sum()), rel=1e-5)
    assert found.sums["entropy_delay"] > 0.0
    parts = architecture.split(found.values)
    assert all(np.abs(parts[f"d/1/{kind}"]).max() > 0.0 for kind in ("kernel", "bias"))
    start = learner.state()
    direction = found.values / np.linalg.norm(found.values)

    def value(step):
        learner.restore(start | {"weights": weights + np.float32(step) * direction})
        return learner.gradient(batch, decisions, advantages, recorded, loss).sums["loss"]

    slope = (value(5e-4) - value(-5e-4)) / 1e-3
    learner.close()
    assert slope == pytest.approx(float(np.linalg.norm(found.values)), rel=0.02)


def test_a_free_slot_alone_makes_a_decision_useful():
    records = records_of(TIMER, TIMER.initial_weights(0), count=1)
    record = records[0]
    alone = (np.diff(record.decision_candidates) == 1) & (record.classes == 1) & (record.delay_free > 0)
    assert alone.any()
    assert set(np.flatnonzero(alone)) <= set(useful_decisions(records)[0])
    np.testing.assert_array_equal(recorded_log_prob(record, True)[alone], record.log_prob_delay[alone])


def train(folder, workers=2, resume=False):
    run = TrainingRun(TASK, quick_recipe(), TIMER, 1)
    return run.trainer(folder, tensorboard=False, workers=workers).train(resume)


def test_runs_are_exact(tmp_path, monkeypatch):
    """The number of workers and an interruption change nothing."""
    train(tmp_path / "two")
    save = Checkpoint.save

    def save_some(self, path):
        if self.counters["iteration"] > 2:
            raise KeyboardInterrupt
        save(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_some)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "one", workers=1)
    assert Checkpoint.load(tmp_path / "one").counters["iteration"] == 2
    train(tmp_path / "one", workers=1, resume=True)
    two, one = (Checkpoint.load(tmp_path / name) for name in ("two", "one"))
    assert same_arrays(two.arrays, one.arrays)
    assert without_times(two.curve) == without_times(one.curve)


@pytest.mark.usefixtures("as_likely_as_not")
def test_it_learns_not_to_delay_the_only_jobs_there_are():
    """Two jobs and two executors: every slot is a loss."""
    task = Task.of_jobs("two_class:arrivals=batch,n=2", executors=2)
    rates = {"lr_start": 3e-2, "lr_end": 3e-2, "minibatches": 2}
    recipe = Recipe.named("fast", sequences=2, rollouts=8, teacher=None, teacher_iterations=0, **rates)
    agent = DecimaAgent(task, TIMER, 0, Rollouts(task, "threads", 1))
    algorithm = recipe.make_algorithm(agent, 0)

    def share_of_slots():
        records = agent.collect(1000, 4, 10, None)
        free = np.concatenate([record.delay_free for record in records]) > 0
        return float(np.mean(np.concatenate([record.delay for record in records])[free] > 0))

    assert 0.3 < share_of_slots() < 0.7
    algorithm.begin()
    for iteration in range(15):
        algorithm.iterate(Progress(iteration, iteration, 0.0))
    after = share_of_slots()
    algorithm.close()
    assert after < 0.15
