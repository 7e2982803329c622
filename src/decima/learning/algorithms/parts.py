"""Parts that several algorithms share: fields, each documented once, and the handling of an agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError, TrainingError
from decima.learning.algorithms.interface import AlgorithmState
from decima.learning.configuration import Configuration, Progress, choice, number, whole

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
    lr_shape: str = choice("Way of the learning rate from start to end.", "linear", "geometric", "cosine")
    lr_iterations: int | None = whole(None, "Iterations from start to end; none: over the whole budget.", 1, none=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lr_shape == "geometric" and self.lr_end == 0.0:
            raise ConfigError("recipe: lr_end must be above 0 for lr_shape geometric")

    def learning_rate(self, now: Progress) -> float:
        """Adam's learning rate."""
        share = share_of(self.lr_iterations, now)
        start, end = self.lr_start, self.lr_end
        if self.lr_shape == "geometric":
            return start * (end / start) ** share
        if self.lr_shape == "cosine":
            share = 0.5 - 0.5 * math.cos(math.pi * share)
        return start + (end - start) * share


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
