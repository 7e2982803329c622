"""Actor and critic, trained together on the same episodes.

Source: Luo et al., Learning to Optimize DAG Scheduling in Heterogeneous Environment, Algorithm 1 and Eq. 12. Line 13
there is the gradient of a deterministic policy of continuous actions, line 15 and Eq. 12 that of a stochastic one; the
second is meant. Line 14 updates target networks without saying how; here they follow by a share per iteration. The
defaults are the printed ones, which do not learn here; options change targets (line 9), their baseline, and scales.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.agent import Agent
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, EpisodeLengths
from decima.learning.configuration import Progress, choice, number, switch, whole
from decima.learning.loss import CRITIC, Gradient, Loss
from decima.learning.returns import Episode, RegressionMemory, advantages, backward_sums

_CRITIC = "critic_"
_COLUMNS = (
    "critic_loss", "value_mean", "target_mean", "advantage_std", "loss", "entropy_stage", "gradient_norm",
    "critic_gradient_norm", "learning_rate",
)  # fmt: skip


class Critic(Protocol):
    """Values of all possible actions, with a slower copy, which an agent keeps.

    Also an :class:`decima.learning.gradient.AdamWeights`, whose state includes the slower copy.
    """

    def values(self, batch: Any, decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of recorded actions, mean values under the present policy, slow values of those actions.

        Each is float64 [D].

        Raises:
            TrainingError: A value is not finite.
        """

    def gradient(self, batch: Any, decisions: np.ndarray, targets: np.ndarray) -> Gradient:
        """Gradient of the summed squared distance from targets, float64 [D]; the sum ``loss``.

        Raises:
            TrainingError: It is not finite.
        """

    def follow(self, share: float) -> None:
        """Move the slower copy by a share of its distance."""


@dataclass(frozen=True)
class ActorCriticConfig(EpisodeLengths):
    """Configuration of actor and critic."""

    sequences: int = whole(1, "Job sequences per iteration.", 1)
    rollouts: int = whole(1, "Episodes per sequence.", 1)
    lr_start: float = number(1e-3, "Adam's learning rate of the actor.", above=True)
    critic_lr: float = number(1e-3, "Adam's learning rate of the critic.", above=True)
    gradient_norm: float | None = number(
        None, "Gradients are scaled down to this norm; none: never.", above=True, none=True
    )
    discount: float = number(1.0, "Discount of the next action's value.", 0.0, 1.0)
    target_share: float = number(0.05, "Share by which the slower critic follows per iteration.", 0.0, 1.0)
    better_than_average: bool = switch(
        True, "Weigh an action by its value less the mean value under the policy, not by the value alone (Eq. 12)."
    )
    trace: float = number(
        0.0,
        "Share (lambda) of the rewards to come in a target: 0 stands for the slow critic's next value (line 9), 1 for "
        "the return.",
        0.0,
        1.0,
    )
    baseline: str = choice(
        "Expected return beyond which values count; its growth is added to rewards. none; time: mean of the "
        "sequence's rollouts at the same time; regression: plus a linear function of the state summary.",
        "none",
        "time",
        "regression",
    )
    scaled: bool = switch(False, "Divide advantages by their standard deviation over all decisions.")
    critic_first: int = whole(0, "Iterations at first in which the critic alone learns.", 0)
    critic_steps: int = whole(1, "Steps of the critic per iteration.", 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline != "none" and self.rollouts == 1:
            raise ConfigError(f"recipe: baseline {self.baseline} needs several rollouts: of one, nothing would be left")


@register_algorithm(ActorCriticConfig, "actor_critic", learns=CRITIC)
class ActorCritic(AgentAlgorithm):
    """Makes actions more probable whose values a critic finds better than average.

    Args:
        config: How.
        agent: What acts and learns; it has a critic.
        seed: Seed of the run.
    """

    def __init__(self, config: ActorCriticConfig, agent: Agent, seed: int) -> None:
        super().__init__(config, agent, seed, _COLUMNS)
        self.critic: Critic = agent.critic

    def begin(self) -> None:
        """Forget what the optimisers know of an earlier phase."""
        super().begin()
        self.critic.restart_adam()

    def iterate(self, now: Progress) -> dict:
        """Run episodes, train the critic towards its targets, and change the policy by its values."""
        config, agent, critic = self.config, self.agent, self.critic
        length_s = config.mean_episode_s(now.since, now.share)
        records = agent.collect(now.iteration, config.sequences, config.rollouts, length_s)
        useful = np.concatenate(self.choices(records, now))
        batch = agent.batch(records)
        groups = self.sequences(records, config.rollouts)
        decisions = np.arange(sum(len(episode.rewards) for group in groups for episode in group))
        slow = critic.values(batch, decisions)[2] if config.trace < 1.0 else np.zeros(len(decisions))
        targets = self._targets(groups, slow)
        for _ in range(config.critic_steps):
            slope = critic.gradient(batch, decisions, targets)
            mean = slope.values / np.float32(len(decisions))
            critic_norm = critic.apply(mean, config.critic_lr, config.gradient_norm)
        critic.follow(config.target_share)
        values, average, _ = critic.values(batch, decisions)
        weights = values - average if config.better_than_average else values
        if config.scaled:
            weights = weights / max(float(weights.std()), 1e-12)
        recorded = agent.recorded_log_prob(records, False)
        row = {"loss": 0.0, "entropy_stage": 0.0, "gradient_norm": 0.0}
        if len(useful) and now.since >= config.critic_first:
            loss = Loss(effect_classes=False)
            gradient = agent.learner.gradient(batch, useful, weights[useful], recorded[useful], loss)
            step = gradient.values / np.float32(len(useful))
            norm = agent.learner.apply(step, config.lr_start, config.gradient_norm)
            row = {name: gradient.mean(name) for name in ("loss", "entropy_stage")} | {"gradient_norm": norm}
        row |= {
            "critic_loss": slope.mean("loss"),
            "value_mean": float(values.mean()),
            "target_mean": float(targets.mean()),
            "advantage_std": float(weights.std()),
            "critic_gradient_norm": critic_norm,
            "learning_rate": config.lr_start,
        }
        return agent.describe(records) | row

    def _targets(self, groups: list[list[Episode]], slow: np.ndarray) -> np.ndarray:
        """Reward plus what follows (line 9), 0 after the last, float64 [D].

        What follows is a mixture of the slow critic's next value and of the next target, by ``trace``. The growth of
        the baseline is part of the reward, so that values are those of actions beyond it.
        """
        config, targets, first = self.config, [], 0
        rewards = [episode.rewards for group in groups for episode in group]
        if config.baseline != "none":
            memory = RegressionMemory.empty(self.agent.summary_width) if config.baseline == "regression" else None
            known = advantages(groups, memory=memory)
            expected = [total - value for total, value in zip(known.returns, known.values, strict=True)]
            ahead = [config.discount * np.append(each[1:], 0.0) - each for each in expected]
            rewards = [one + other for one, other in zip(rewards, ahead, strict=True)]
        for each in rewards:
            following = np.append(slow[first + 1 : first + len(each)], 0.0)
            ahead = each + (1.0 - config.trace) * config.discount * following
            targets.append(backward_sums(ahead, np.full(len(each), config.trace * config.discount)))
            first += len(each)
        return np.concatenate(targets)

    def state(self) -> AlgorithmState:
        """State of actor and critic."""
        extra = {_CRITIC + name: values for name, values in self.critic.state().items()}
        return AlgorithmState(super().state().arrays | extra)

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        extra = {name: values for name, values in state.arrays.items() if name.startswith(_CRITIC)}
        self.critic.restore({name.removeprefix(_CRITIC): values for name, values in extra.items()})
        super().restore(AlgorithmState({name: each for name, each in state.arrays.items() if name not in extra}))
