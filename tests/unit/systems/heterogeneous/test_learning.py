"""Learning to choose nodes: targets of the critic, and short trainings from random weights that learn."""

from types import SimpleNamespace

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.learning.algorithms.actor_critic import ActorCritic, ActorCriticConfig
from decima.learning.cards import card
from decima.learning.recipe import Recipe
from decima.learning.returns import Episode, RegressionMemory, advantages
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.run import NodeRun
from decima.systems.heterogeneous.policy.task import NodeTask

pytestmark = pytest.mark.tensorflow

SLOW = np.array([5.0, 7.0, 11.0, 13.0, 17.0, 19.0])


class Agent:
    columns, headline, summary_width, critic, learns = (), "", 2, None, ("a critic",)


def episodes():
    """One sequence, two episodes of three decisions."""
    rng = np.random.default_rng(0)
    return [[Episode(np.arange(3.0), 3.0, -rng.random(3), rng.random((3, 2))) for _ in range(2)]]


def targets(groups, **fields):
    return ActorCritic(ActorCriticConfig(rollouts=2, **fields), Agent(), 0)._targets(groups, SLOW)


def test_targets_reach_from_the_next_value_to_the_return():
    groups = episodes()
    one, other = (episode.rewards for episode in groups[0])
    next_value = np.concatenate([one + 0.5 * np.array([7.0, 11.0, 0.0]), other + 0.5 * np.array([17.0, 19.0, 0.0])])
    np.testing.assert_allclose(targets(groups, discount=0.5), next_value)
    returns = np.concatenate([each[::-1].cumsum()[::-1] for each in (one, other)])
    np.testing.assert_allclose(targets(groups, trace=1.0), returns)
    half = one[1] + 0.5 * 11.0 + 0.5 * one[2]
    assert targets(groups, trace=0.5)[1] == pytest.approx(half)
    assert targets(groups, trace=0.5)[0] == pytest.approx(one[0] + 0.5 * 7.0 + 0.5 * half)


@pytest.mark.parametrize(("baseline", "memory"), [("time", None), ("regression", RegressionMemory.empty(2))])
def test_the_baseline_of_returns_is_that_of_the_policy_gradient(baseline, memory):
    expected = np.concatenate(advantages(episodes(), memory=memory).values)
    np.testing.assert_allclose(targets(episodes(), trace=1.0, baseline=baseline), expected, atol=1e-12)


def test_a_baseline_of_one_rollout_is_refused():
    with pytest.raises(ConfigError, match="baseline time needs several rollouts"):
        ActorCriticConfig(baseline="time")


def test_values_count_beyond_the_baseline():
    """A target of one step is a temporal difference of the baseline and the slow critic's next value."""
    groups = episodes()
    one_step = targets(groups, baseline="time")
    one, other = (episode.rewards for episode in groups[0])
    mean = (one[::-1].cumsum() + other[::-1].cumsum())[::-1] / 2.0
    assert one_step[0] == pytest.approx(one[0] + 7.0 + mean[1] - mean[0])
    assert one_step[2] == pytest.approx(one[2] - mean[2])


# Ten jobs on ten executors. HighRankUp-DEFT is at 1.098 of the bound, random weights at 1.190.
TASK = NodeTask(source="embedded", jobs=(10, 10), ccr=(5.0, 5.0), executors=(10, 10))
SHORT = {"sequences": 2, "rollouts": 8, "validate_every": 6, "validation_sequences": 10, "iterations": 6}


def test_it_passes_the_rule_of_ranks_from_random_weights(tmp_path):
    changes = {"teacher": None, "lr_start": 3e-3, "lr_end": 3e-3} | SHORT
    run = NodeRun(TASK, Recipe.named("fast", "lachesis-batch", **changes), NodeArchitecture.named("paper"), 0)
    trained = run.trainer(tmp_path, workers=1, tensorboard=False).train()
    assert trained.score < trained.references["high_rank_up_deft"]


@pytest.mark.parametrize("losses", [{}, {"critic_loss": 0.25}])
def test_a_card_keeps_the_loss_of_a_critic(losses):
    run = NodeRun(TASK, Recipe.named("paper", "lachesis-batch"), NodeArchitecture.named("paper"), 0)
    row = {"iteration": 19, "phase": "actor_critic", "wall_s": 2.0, "cpu_s": 1.0, "val_greedy": 1.5} | losses
    trained = SimpleNamespace(curve=[row], mode="greedy", score=1.5, references={}, iterations=20, iteration=20)
    curve = card(run, trained)["curve"]
    assert curve["val_greedy"] == [1.5]
    assert curve.get("critic_loss") == ([0.25] if losses else None)
