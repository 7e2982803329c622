"""Parts that several algorithms share: fields, each documented once, and the handling of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError, TrainingError
from decima.learning.algorithms.interface import AlgorithmState
from decima.learning.configuration import Configuration, Progress, choice, number, switch, whole
from decima.learning.loss import Gradient, Loss, shuffled_parts

if TYPE_CHECKING:
    from decima.learning.agent import Agent
    from decima.learning.returns import Episode

# What has an end of its own: every sequence, every rollout, or none, when all episodes have the mean length.
ENDS = ("sequence", "rollout", "fixed")


@dataclass(frozen=True)
class Updates(Configuration):
    """Fields for the number of uses of an iteration's rollouts and for the step size."""

    epochs: int = whole(1, "Passes over the rollouts of an iteration (ppo and imitation).", 1)
    minibatches: int = whole(1, "Updates per pass (ppo and imitation).", 1)
    gradient_norm: float | None = number(
        None, "Gradients are scaled down to this norm; none: never.", above=True, none=True
    )


@dataclass(frozen=True)
class EpisodeLengths(Configuration):
    """Fields about how long the episodes of streams are."""

    episode_start_s: float | None = number(
        2000.0,
        "Mean episode length of streams at the first iteration. The length of each is drawn anew (exponentially), so "
        "that the end cannot be foreseen. none: episodes run until all jobs are done. Batches always do.",
        above=True,
        none=True,
    )
    episode_end_s: float | None = number(20_000.0, "Largest mean.", above=True, none=True)
    episode_growth_s: float | None = number(
        None,
        "Growth of the mean per iteration (line 13 of Algorithm 1); none: the probability of termination falls "
        "linearly from 1 / start to 1 / end over the budget (appendix C).",
        none=True,
    )
    ends: str = choice(
        "Ends of the episodes of streams. sequence: drawn for every sequence, the same for its rollouts (§5.3); "
        "rollout: drawn for every rollout (Figure 14, unsynchronised termination); fixed: always at the mean length, "
        "so that the end can be foreseen.",
        *ENDS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episode_start_s is not None and (self.episode_end_s or 0.0) < self.episode_start_s:
            raise ConfigError(
                f"recipe: episode_end_s must be at least episode_start_s ({self.episode_start_s:g}), "
                f"got {self.episode_end_s!r}"
            )

    def mean_episode_s(self, since: int, share: float) -> float | None:
        """Mean episode length of streams, None for no end.

        Args:
            since: Iterations since the length began to grow.
            share: Used part of the budget that was left then, 0 to 1.
        """
        if self.episode_start_s is None:
            return None
        start, end = self.episode_start_s, self.episode_end_s
        if self.episode_growth_s is not None:
            return min(end, start + self.episode_growth_s * since)
        return 1.0 / (1.0 / start + (1.0 / end - 1.0 / start) * share)


@dataclass(frozen=True)
class LearningRates(Configuration):
    """Fields about how the learning rate changes."""

    lr_start: float = number(1e-3, "Adam's learning rate at the first iteration.", above=True)
    lr_end: float = number(1e-3, "Learning rate at the end.")
    lr_shape: str = choice("Way of the learning rate from start to end.", "linear", "geometric")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lr_shape == "geometric" and self.lr_end == 0.0:
            raise ConfigError("recipe: lr_end must be above 0 for lr_shape geometric")

    def learning_rate(self, now: Progress) -> float:
        """Adam's learning rate."""
        share, start, end = now.share, self.lr_start, self.lr_end
        if self.lr_shape == "geometric":
            return start * (end / start) ** share
        return start + (end - start) * share


@dataclass(frozen=True)
class Surrogate(Updates, LearningRates):
    """Fields of the loss that changes probabilities of decisions by their advantages."""

    loss_reduction: str = choice(
        "sum over decisions per rollout (Algorithm 1) or mean over all decisions.", "sum", "mean"
    )
    entropy_start: float = number(1.0, "Weight of the entropy bonus at the first iteration.")
    entropy_end: float = number(1e-4, "Its weight at the end.")
    entropy_iterations: int | None = whole(
        1000, "Iterations of its linear decay; none: over the whole budget.", 1, none=True
    )
    effect_classes: bool = switch(
        False,
        "Learn from the probability of all limits with the same effect instead of that of the one drawn; also the "
        "entropy counts effects.",
    )
    reward_scale_s: float = number(100.0, "Rewards are in units of this many job-seconds.", above=True)
    minibatches_used: int | None = whole(
        None,
        "Minibatches per pass that become updates (ppo); none: all. All decisions of an episode share its outcome, so "
        "a part of those of many episodes says more than all of those of few.",
        1,
        none=True,
    )
    clip: float = number(0.2, "Probability ratios are clipped to 1 -+ clip (ppo).", above=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatches_used is not None and self.minibatches_used > self.minibatches:
            most, got = self.minibatches, self.minibatches_used
            raise ConfigError(f"recipe: minibatches_used must be at most minibatches ({most}), got {got}")

    def entropy_weight(self, now: Progress) -> float:
        """Weight of the entropy bonus."""
        return self.entropy_start + (self.entropy_end - self.entropy_start) * share_of(self.entropy_iterations, now)


def share_of(iterations: int | None, now: Progress) -> float:
    """Completed part, 0 to 1, of a change over some iterations; None: over the budget."""
    return now.share if iterations is None else min(1.0, now.since / iterations)


def check_rewards(rewards: np.ndarray) -> None:
    """Refuse rewards that the weights' float32 cannot hold.

    Raises:
        TrainingError: A reward is not finite or beyond float32.
    """
    most = np.finfo(np.float32).max
    if len(wrong := rewards[~(np.abs(rewards) <= most)]):  # NaN too
        raise TrainingError(f"a reward is {wrong[0]:g}; expected numbers from {-most:.1e} to {most:.1e}")


class AgentAlgorithm:
    """Base of the algorithms that make the weights of an agent better.

    Args:
        config: Fields of the algorithm.
        agent: What acts and learns.
        seed: Seed of the run.
        columns: Columns besides those by which the agent describes episodes.
    """

    at_milestone = False

    def __init__(self, config: Configuration, agent: Agent, seed: int, columns: tuple[str, ...]) -> None:
        self.config, self.agent, self.seed = config, agent, seed
        self.columns = (*agent.columns, *columns)
        self.headline = agent.headline

    @property
    def weights(self) -> np.ndarray:
        """The agent's weights."""
        return self.agent.learner.weights

    def begin(self) -> None:
        """Forget what the optimiser knows of an earlier phase."""
        self.agent.learner.restart_adam()

    def choices(self, records: Sequence, now: Progress) -> list[np.ndarray]:
        """Decisions with a choice by episode, int64 [D] each, numbered through all records.

        Raises:
            TrainingError: The first iteration has none: nothing can be learned.
        """
        groups = self.agent.useful_decisions(records)
        if now.iteration == 0 and not any(map(len, groups)):
            raise TrainingError(
                f"no decision of {len(records)} episodes leaves a choice; expected jobs with several stages, limits or "
                "machines to choose from"
            )
        return groups

    def sequences(self, records: Sequence, rollouts: int) -> list[list[Episode]]:
        """Episodes by sequence, ``rollouts`` of each one after the other.

        Raises:
            TrainingError: A reward is not finite or beyond float32.
        """
        groups = [self.agent.episodes(records[first : first + rollouts]) for first in range(0, len(records), rollouts)]
        for episode in (episode for group in groups for episode in group):
            check_rewards(episode.rewards)
        return groups

    def state(self) -> AlgorithmState:
        """Weights and the state of the optimiser."""
        return AlgorithmState(self.agent.learner.state())

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        self.agent.learner.restore(state.arrays)

    def close(self) -> None:
        """Close the agent."""
        self.agent.close()


UPDATE_COLUMNS = (
    "loss", "entropy_stage", "entropy_limit", "gradient_norm", "kl", "clipped", "updates", "learning_rate",
    "entropy_weight",
)  # fmt: skip


class SurrogateAlgorithm(AgentAlgorithm):
    """Base of the algorithms that make decisions more probable by their advantages.

    Attributes:
        clips: Whether rollouts are used several times, with clipped ratios of probabilities (PPO).
    """

    config: Surrogate
    clips = True

    def update(
        self, records: Sequence, groups: list[np.ndarray], batch, values: Sequence[np.ndarray], now: Progress
    ) -> dict[str, float]:
        """Take the steps of an iteration.

        Args:
            records: Episodes of the present policy.
            groups: Their decisions with a choice.
            batch: The same as the agent's batch.
            values: Float64 [D] per episode, advantages of all decisions.
            now: Progress, which sets learning rate and entropy bonus, and the order of updates.

        Returns:
            Averages over decisions by column of the curve: loss, entropies, norm of the gradient, and the divergence
            from the policy that acted and share of clipped ratios at the last update.
        """
        config, agent = self.config, self.agent
        rate, entropy_weight = config.learning_rate(now), config.entropy_weight(now)
        weights = np.concatenate(values)
        recorded = agent.recorded_log_prob(records, config.effect_classes)
        loss = Loss(self.clips, config.clip, entropy_weight, config.effect_classes)
        gradients: list[Gradient] = []
        norms: list[float] = []
        for part in self._parts(groups, now.iteration):
            gradient = agent.learner.gradient(batch, part, weights[part], recorded[part], loss)
            scale = len(part) if config.loss_reduction == "mean" else len(records)
            gradients.append(gradient)
            norms.append(agent.learner.apply(gradient.values / np.float32(scale), rate, config.gradient_norm))
        decisions = sum(gradient.decisions for gradient in gradients)
        row = {
            name: sum(gradient.sums[name] for gradient in gradients) / max(1, decisions)
            for name in ("loss", "entropy_stage", "entropy_limit")
        }
        row |= {name: gradients[-1].mean(name) if gradients else 0.0 for name in ("kl", "clipped")}
        return row | {
            "gradient_norm": float(np.mean(norms)) if norms else 0.0,
            "updates": len(gradients),
            "learning_rate": rate,
            "entropy_weight": entropy_weight,
        }

    def _parts(self, groups: list[np.ndarray], iteration: int):
        if not self.clips:
            yield np.concatenate(groups)
            return
        rng = np.random.default_rng([self.seed, iteration, 2])
        for _ in range(self.config.epochs):
            yield from shuffled_parts(groups, self.config.minibatches, rng)[: self.config.minibatches_used]
