"""Actor and critic, trained together on the same episodes.

Source: Luo et al., Learning to Optimize DAG Scheduling in Heterogeneous Environment, Algorithm 1 and Eq. 12. Line 13
there is the gradient of a deterministic policy of continuous actions, line 15 and Eq. 12 that of a stochastic one; the
second is meant. Line 14 updates target networks without saying how; here they follow by a share per iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from decima.core.configuration import number, switch, whole
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, EpisodeLengths
from decima.learning.budget import Progress
from decima.learning.loss import CRITIC, Gradient, Loss

if TYPE_CHECKING:
    from decima.learning.agent import Agent

_CRITIC = "critic_"
_COLUMNS = (
    "critic_loss", "value_mean", "target_mean", "advantage_std", "loss", "entropy_stage", "gradient_norm",
    "critic_gradient_norm", "learning_rate",
)  # fmt: skip


class Critic(Protocol):
    """Values of all possible actions, with a slower copy, which an agent keeps."""

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

    def apply(self, gradient: np.ndarray, learning_rate: float, largest_norm: float | None = None) -> float:
        """Take one step; returns the norm of the gradient."""

    def follow(self, share: float) -> None:
        """Move the slower copy by a share of its distance."""

    def restart_adam(self) -> None:
        """Forget the optimiser's moments."""

    def state(self) -> dict[str, np.ndarray]:
        """Weights, the slower copy's and the optimiser's state."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""


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
        batch = agent.batch(records)
        rewards = self._rewards(records)
        decisions = np.arange(sum(len(each) for each in rewards))
        targets = self._targets(rewards, critic.values(batch, decisions)[2])
        found = critic.gradient(batch, decisions, targets)
        mean = found.values / np.float32(len(decisions))
        critic_norm = critic.apply(mean, config.critic_lr, config.gradient_norm)
        critic.follow(config.target_share)
        values, average, _ = critic.values(batch, decisions)
        advantages = values - average if config.better_than_average else values
        useful = np.concatenate(agent.useful_decisions(records))
        recorded = agent.recorded_log_prob(records, False)
        row = {"loss": 0.0, "entropy_stage": 0.0, "gradient_norm": 0.0}
        if len(useful):
            loss = Loss(effect_classes=False)
            gradient = agent.learner.gradient(batch, useful, advantages[useful], recorded[useful], loss)
            step = gradient.values / np.float32(len(useful))
            norm = agent.learner.apply(step, config.lr_start, config.gradient_norm)
            row = {name: gradient.mean(name) for name in ("loss", "entropy_stage")} | {"gradient_norm": norm}
        return (
            agent.describe(records)
            | row
            | {
                "critic_loss": found.mean("loss"),
                "value_mean": float(values.mean()),
                "target_mean": float(targets.mean()),
                "advantage_std": float(advantages.std()),
                "critic_gradient_norm": critic_norm,
                "learning_rate": config.lr_start,
            }
        )

    def _rewards(self, records: Sequence) -> list[np.ndarray]:
        """Float64 [D] per episode."""
        rollouts = self.config.rollouts
        groups = [records[first : first + rollouts] for first in range(0, len(records), rollouts)]
        return [episode.rewards for group in groups for episode in self.agent.episodes(group)]

    def _targets(self, rewards: list[np.ndarray], slow: np.ndarray) -> np.ndarray:
        """Reward plus the slow critic's next value (line 9), 0 after the last, float64 [D]."""
        targets, first = [], 0
        for own in rewards:
            following = np.append(slow[first + 1 : first + len(own)], 0.0)
            targets.append(own + self.config.discount * following)
            first += len(own)
        return np.concatenate(targets)

    def state(self) -> AlgorithmState:
        """State of actor and critic."""
        own = {_CRITIC + name: values for name, values in self.critic.state().items()}
        return AlgorithmState(super().state().arrays | own)

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        own = {name: values for name, values in state.arrays.items() if name.startswith(_CRITIC)}
        self.critic.restore({name.removeprefix(_CRITIC): values for name, values in own.items()})
        super().restore(AlgorithmState({name: each for name, each in state.arrays.items() if name not in own}))
