"""Policy gradients from recorded episodes: REINFORCE (Algorithm 1 of appendix C) and PPO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import UPDATE_COLUMNS, EpisodeLengths, Surrogate, SurrogateAlgorithm
from decima.learning.configuration import Progress, choice, number, switch, whole
from decima.learning.returns import Advantages, Episode, RegressionMemory, RewardRate, advantages

if TYPE_CHECKING:
    from decima.learning.agent import Agent

WINDOW = 100_000  # decisions of the average reward rate
_COLUMNS = ("return_mean", "return_std", "explained_by_time", "explained_by_summary", *UPDATE_COLUMNS)


@dataclass(frozen=True)
class PolicyGradientConfig(EpisodeLengths, Surrogate):
    """Configuration of the policy gradient, by default Algorithm 1 with the values of appendix C."""

    algorithm: str = choice(
        "reinforce (Algorithm 1) or ppo (clipped surrogate, several passes over the rollouts).", "reinforce", "ppo"
    )
    sequences: int = whole(1, "Job sequences per iteration.", 1)
    rollouts: int = whole(16, "Episodes per sequence, N of Algorithm 1.", 1)
    fixed_sequences: bool = switch(
        True,
        "The rollouts over which a baseline averages have the same arrivals (§5.3, input-dependent baseline); off: "
        "each has a sequence of its own (Figure 14).",
    )
    baseline: str = choice(
        "time: mean return of the sequence's rollouts at the same time (Algorithm 1); regression: plus a linear "
        "function of the state summary, fitted without the rollout it is used on; none: the returns as they are.",
        "time",
        "regression",
        "none",
    )
    baseline_memory: float = number(
        0.0, "Share of the regression's statistics kept from one iteration to the next; 0: none.", 0.0, 0.9999
    )
    trace_s: float | None = number(
        None,
        "Time constant of the advantage's trace (lambda of GAE is exp(-dt / trace_s)); none: full returns.",
        above=True,
        none=True,
    )
    trace_end_s: float | None = number(
        None,
        "The time constant grows geometrically to this one over the budget; none: it stays. Short traces have little "
        "noise while the policy is poor, but near the optimum they point elsewhere than the objective.",
        above=True,
        none=True,
    )
    horizon_s: float | None = number(
        None, "Time constant of the discount, exp(-dt / horizon_s); none: undiscounted.", above=True, none=True
    )
    normalise: str = choice(
        "Divide advantages by their standard deviation over all decisions or per sequence; centred: the first, after "
        "their mean is subtracted; raw: do not.",
        "raw",
        "all",
        "sequence",
        "centred",
    )
    differential: bool = switch(
        True,
        f"Subtract the average reward rate of the last {WINDOW} decisions from the rewards of streams (appendix B). "
        "Differs: a rate per time, not per decision.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trace_end_s is not None and self.trace_s is None:
            raise ConfigError("recipe: trace_end_s needs trace_s, where it starts")

    def check_beside(self, recipe: Any) -> None:
        """Refuse several passes over rollouts that nothing uses several times.

        Raises:
            ConfigError: REINFORCE alone was given epochs or minibatches.
        """
        if self.algorithm == "reinforce" and (self.epochs, self.minibatches) != (1, 1) and not recipe.imitates:
            raise ConfigError("recipe: epochs and minibatches need algorithm ppo; reinforce uses its rollouts once")

    def trace_at(self, share: float) -> float | None:
        """Time constant of the advantage's trace, s, at a budget share; None for full returns."""
        if self.trace_s is None or self.trace_end_s is None:
            return self.trace_s
        return self.trace_s * (self.trace_end_s / self.trace_s) ** share


@register_algorithm(PolicyGradientConfig, "reinforce", "ppo")
class PolicyGradient(SurrogateAlgorithm):
    """Makes good decisions more probable.

    An iteration draws ``sequences`` job sequences, runs each ``rollouts`` times and updates the weights.

    Args:
        config: How.
        agent: What acts and learns.
        seed: Seed of the run.
    """

    def __init__(self, config: PolicyGradientConfig, agent: Agent, seed: int) -> None:
        super().__init__(config, agent, seed, _COLUMNS)
        self.clips = config.algorithm == "ppo"
        self.memory = RegressionMemory.empty(agent.summary_width)
        self.reward_rate = RewardRate.empty()

    def iterate(self, now: Progress) -> dict:
        """Run episodes of the present policy and update the weights."""
        config, agent = self.config, self.agent
        length_s = config.mean_episode_s(now.since, now.share)
        sequences, rollouts = config.sequences, config.rollouts
        if not config.fixed_sequences:
            sequences, rollouts = sequences * rollouts, 1
        records = agent.collect(now.iteration, sequences, rollouts, length_s)
        groups = self.choices(records, now)
        if not any(map(len, groups)):
            return agent.describe(records) | {"updates": 0}
        batch = agent.batch(records)
        gains = self.advantages(records, config.trace_at(now.share))
        total = np.concatenate(gains.returns)
        row = self.update(records, groups, batch, gains.values, now)
        row |= {
            "explained_by_time": gains.explained_by_time,
            "explained_by_summary": gains.explained_by_summary,
            "return_mean": float(total.mean()),
            "return_std": float(total.std()),
        }
        return agent.describe(records) | row

    def episodes(self, records: Sequence) -> list[list[Episode]]:
        """Episodes by sequence, in the recipe's reward unit; differential rewards update the reward rate.

        Args:
            records: The rollouts of every sequence, one after the other. Where each has its own sequence,
                groups of the usual number of rollouts count as one sequence.
        """
        config = self.config
        differential = self.agent.streaming and config.differential
        sequences = []
        for group in self.sequences(records, config.rollouts):
            # An average is subtracted over time: with one end for all, nobody gains by being done sooner or later.
            changes = {"end_s": max(episode.end_s for episode in group)} if differential else {}
            scale = config.reward_scale_s
            sequences.append([replace(each, rewards=each.rewards / scale, **changes) for each in group])
        if differential:
            rate = self.reward_rate
            rate.add([episode for group in sequences for episode in group], WINDOW)
            sequences = [[rate.subtract(episode) for episode in group] for group in sequences]
        return sequences

    def advantages(self, records: Sequence, trace_s: float | None) -> Advantages:
        """Advantages of all decisions; updates the memories of reward rate and regression.

        Args:
            records: The rollouts of every sequence, one after the other.
            trace_s: Present time constant of the trace, None for full returns.
        """
        config = self.config
        return advantages(
            self.episodes(records),
            horizon_s=config.horizon_s,
            trace_s=trace_s,
            memory=self.memory if config.baseline == "regression" else None,
            memory_share=config.baseline_memory,
            normalise=config.normalise,
            baseline=config.baseline != "none",
        )

    def state(self) -> AlgorithmState:
        """Weights, state of the optimiser, and what baselines and reward rate remember."""
        extra = {
            "memory_gram": self.memory.gram,
            "memory_moment": self.memory.moment,
            "rate_rewards": self.reward_rate.rewards,
            "rate_gaps_s": self.reward_rate.gaps_s,
        }
        return AlgorithmState(super().state().arrays | extra)

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        super().restore(state)
        arrays = state.arrays
        self.memory = RegressionMemory(arrays["memory_gram"], arrays["memory_moment"])
        self.reward_rate = RewardRate(arrays["rate_rewards"], arrays["rate_gaps_s"])
