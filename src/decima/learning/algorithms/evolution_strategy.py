"""Evolution strategy: changes of the weights are tried in whole greedy episodes, and the weights follow the good ones.

Source: Salimans et al., "Evolution strategies as a scalable alternative to reinforcement learning", 2017, with mirrored
changes. Differs: costs are compared on the same job sequences and chance, sequence by sequence, and not by rank; the
policy is greedy, as it is when it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.core.configuration import number, switch, whole
from decima.learning.algorithms.interface import register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, EpisodeLengths, LearningRates
from decima.learning.budget import Progress
from decima.learning.loss import EPISODES

if TYPE_CHECKING:
    from decima.systems.spark.policy.agent import Agent

_COLUMNS = ("cost_change_std", "gradient_norm", "learning_rate")


@dataclass(frozen=True)
class EvolutionConfig(EpisodeLengths, LearningRates):
    """Configuration of the evolution strategy."""

    pairs: int = whole(8, "Changes per iteration, each also tried with the opposite sign.", 1)
    sequences: int = whole(8, "Job sequences on which each is tried.", 1)
    spread: float = number(0.05, "Standard deviation of a change of a weight.", above=True)
    last_layers: bool = switch(True, "Change only the last layers of the heads that score stages and limits.")
    gradient_norm: float | None = number(
        None, "Gradients are scaled down to this norm; none: never.", above=True, none=True
    )


@register_algorithm(EvolutionConfig, "evolution_strategy", learns=EPISODES)
class EvolutionStrategy(AgentAlgorithm):
    """Estimates the gradient of what a greedy episode costs from differences between opposite changes of the weights.

    Args:
        config: Changes and sequences per iteration, learning rate.
        agent: What acts and learns.
        seed: Seed of the run.
    """

    def __init__(self, config: EvolutionConfig, agent: Agent, seed: int) -> None:
        super().__init__(config, agent, seed, _COLUMNS)
        count = len(self.weights)
        self._places = agent.last_layers if config.last_layers else np.arange(count)

    def iterate(self, now: Progress) -> dict:
        """Try changes, and take one step of Adam."""
        config, agent = self.config, self.agent
        rng = np.random.default_rng([self.seed, now.iteration, 2])
        changes = config.spread * rng.standard_normal((config.pairs, len(self._places))).astype(np.float32)
        length_s = config.mean_episode_s(now.since, now.share)
        present, records, costs = self.weights, [], np.zeros((2, config.pairs, config.sequences))
        for sign, row in zip((1.0, -1.0), costs, strict=True):
            for change, cost in zip(changes, row, strict=True):
                weights = present.copy()
                weights[self._places] += np.float32(sign) * change
                records = agent.collect(now.iteration, config.sequences, 1, length_s, greedy=1.0, weights=weights)
                cost[:] = [-episode.rewards.sum() for episode in agent.episodes(records)]
        # A sequence counts by how much changes matter there, relative to its own cost.
        relative = costs / np.maximum(costs.mean(axis=(0, 1)), np.finfo(float).tiny)
        gain = relative.mean(axis=2)
        slopes = (gain[0] - gain[1]) / (2.0 * config.spread**2 * config.pairs)
        gradient = np.zeros_like(present)
        gradient[self._places] = slopes.astype(np.float32) @ changes
        rate = config.learning_rate(now)
        norm = agent.learner.apply(gradient, rate, config.gradient_norm)
        return agent.describe(records) | {
            "cost_change_std": float(gain.std()),
            "gradient_norm": norm,
            "learning_rate": rate,
        }
