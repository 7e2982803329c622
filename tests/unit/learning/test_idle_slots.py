"""Training a policy that may idle: the gradient of the third head, exact runs, and that it learns."""

import numpy as np
import pytest

from decima.learning.configuration import Progress
from decima.learning.loss import Loss
from decima.learning.recipe import Recipe
from decima.learning.rollout import Rollouts, Teacher
from decima.systems.spark.policy import architecture as architectures
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.episodes import Episodes
from decima.systems.spark.policy.run import DecimaAgent, DecimaLearner, recorded_log_prob, useful_decisions
from decima.systems.spark.policy.task import Task, children_of
from tests.unit.learning.small import recorded

pytestmark = pytest.mark.tensorflow

SMALL = {"embedding": 4, "hidden": (4,), "score_hidden": (4,), "max_executors": 8}
TIMER = Architecture.paper(delays=3, delay_context="embedding", **SMALL)
HOLD = Architecture.paper(delays=1, idle="hold", more_features=("running_age", "since_smaller"), **SMALL)
TASK = Task.of_jobs("two_class:n=8,load=0.8,executors=2", executors=2)


@pytest.fixture
def as_likely_as_not(monkeypatch):
    """Idling is as likely as not at first."""
    monkeypatch.setattr(architectures, "NO_DELAY_CHANCE", 0.5)


def test_a_free_slot_alone_makes_a_decision_useful():
    records = recorded(TASK, TIMER, 0, count=1)
    record = records[0]
    alone = (np.diff(record.decision_candidates) == 1) & (record.classes == 1) & (record.delay_free > 0)
    assert alone.any()
    assert set(np.flatnonzero(alone)) <= set(useful_decisions(records)[0])
    np.testing.assert_array_equal(recorded_log_prob(record, True)[alone], record.log_prob_delay[alone])


@pytest.mark.usefixtures("as_likely_as_not")
def test_it_learns_not_to_delay_the_only_jobs_there_are():
    """Two jobs and two executors: every slot is a loss."""
    task = Task.of_jobs("two_class:arrivals=batch,n=2", executors=2)
    rates = {"lr_start": 3e-2, "lr_end": 3e-2, "minibatches": 2}
    recipe = Recipe.named("fast", sequences=2, rollouts=8, teacher=None, teacher_iterations=0, **rates)
    agent = DecimaAgent(task, TIMER, 0, Rollouts(Episodes(task), "threads", 1))
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


# Weights of the linear rule by its ``hold``: it idles where a running task ends soon.
IDLING = ({"base": 0.3, "soon": -1.0}, {"base": 0.7, "soon": -0.5, "hold": 1.0})


def lessons(architecture, hold, idles, share=1.0):
    """Records of a teacher that idles."""
    teacher = Teacher("idle_rule", tuple(IDLING[hold].items()), share, idles)
    return recorded(TASK, architecture, 1, 3, teacher)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("architecture", "hold"), [(TIMER, 0), (HOLD, 1)], ids=["timer", "hold"])
def test_a_teacher_that_idles_is_recorded_as_the_network_would(architecture, hold, share):
    records = lessons(architecture, hold, True, share)
    batch = GraphBatch(records, *children_of(TASK)[:2])
    learner = DecimaLearner(architecture, architecture.initial_weights(1))
    decisions = np.concatenate(useful_decisions(records))
    log_prob = np.concatenate([recorded_log_prob(record, True) for record in records])[decisions]
    found = learner.gradient(batch, decisions, np.ones(len(decisions)), log_prob, Loss(effect_classes=True))
    learner.close()
    assert found.sums["log_prob"] == pytest.approx(float(log_prob.sum()), rel=1e-5)
    free = np.concatenate([record.delay_free for record in records])
    chosen = np.concatenate([record.delay for record in records])
    assert 0 < (chosen > 0).sum() < free.sum()
    assert chosen.max() <= architecture.delays
    assert (free[chosen > 0] == 1).all()


@pytest.mark.parametrize(("architecture", "hold", "idles"), [(TIMER, 0, False), (TIMER, 1, True), (HOLD, 0, True)])
def test_idling_that_is_no_lesson_is_left_out(architecture, hold, idles):
    """Not wanted, or done in another way than the network's."""
    records = lessons(architecture, hold, idles)
    assert all((record.delay == 0).all() for record in records)
    assert any(record.delay_free.any() for record in records) == idles


def test_another_teacher_of_recipe_idle_says_nothing_about_slots():
    recipe = Recipe.named("idle", teacher="capped_srw")
    assert not recipe.imitation.teacher_idles
    assert recipe.imitation.teacher_parameters == {}
    assert Recipe.named("idle", teacher_parameters={"c0": 1.0}).imitation.teacher_idles
