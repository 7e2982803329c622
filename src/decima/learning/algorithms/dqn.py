"""Deep Q-learning: replay memory, target network, eps-greedy exploration.

Source: Mnih et al., Nature 2015; Algorithm 1 of Islam et al., TPDS 2022, with the values of its Table 5 as defaults;
double Q-learning: van Hasselt et al., AAAI 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, check_rewards, share_of
from decima.learning.configuration import Configuration, Progress, choice, number, switch, whole
from decima.learning.loss import VALUES
from decima.learning.replay import ReplayMemory, Transitions

_COLUMNS = (
    "remembered", "explore", "loss", "value", "gradient_norm", "learning_rate", "episodes",
)  # fmt: skip
_MEMORY, _EPISODE = "memory/", "episode/"


class ValueLearner(Protocol):
    """Weights of a network whose outputs are values of actions."""

    def value_gradient(
        self, transitions: Transitions, target: np.ndarray, discount: float, *, double: bool, huber: bool
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Gradient of the mean loss, float32 [parameters], and the means ``loss`` and ``value``."""


class ValueAgent(Protocol):
    """What value learning needs of an agent besides the learner, columns and ``describe``."""

    def explore(self, iteration: int, steps: int, epsilon: float) -> tuple[Transitions, dict[str, float]]:
        """Make ``steps`` decisions in the ongoing episode, and in the next one where it ends.

        Returns:
            That number of transitions, and values of the agent's columns about episodes that ended, if there are any.
        """

    def explorer_state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Where the ongoing episode is: arrays by name and JSON values."""

    def restore_explorer(self, arrays: dict[str, np.ndarray], counters: dict) -> None:
        """Take over what :meth:`explorer_state` returned."""


@dataclass(frozen=True)
class DqnConfig(Configuration):
    """Configuration of deep Q-learning, by default Algorithm 1 and Table 5 of Islam et al."""

    steps: int = whole(10, "Decisions collected per iteration.", 1)
    updates: int = whole(1, "Updates per iteration.", 1)
    minibatch: int = whole(64, "Transitions per update.", 1)
    memory: int = whole(10_000, "Transitions that are remembered.", 1)
    memory_first: int = whole(64, "Transitions before the first update.", 1)
    discount: float = number(0.9, "Discount of one step.", 0.0, 1.0)
    lr_start: float = number(1e-3, "Adam's learning rate at the first iteration.", above=True)
    lr_end: float = number(1e-3, "Learning rate at the end, geometric in between.", above=True)
    explore_start: float = number(1e-3, "Probability of a random action at the first iteration.", 0.0, 1.0)
    explore_end: float = number(1e-3, "The same probability at the end.", 0.0, 1.0)
    explore_iterations: int | None = whole(
        None, "Iterations from start to end, linear; none: over the whole budget.", 1, none=True
    )
    target_every: int = whole(
        100, "Updates between two copies of the network into the target network; the paper says periodically.", 1
    )
    double: bool = switch(False, "The network chooses the next action, the target network values it.")
    loss: str = choice("Of temporal differences: squared (Eq. 16), or huber.", "squared", "huber")
    reward_scale: float = number(1.0, "Rewards are divided by this.", above=True)
    gradient_norm: float | None = number(
        None, "Gradients are scaled down to this norm; none: never.", above=True, none=True
    )

    def check_beside(self, recipe: Any) -> None:
        """Refuse imitation before: a teacher's decisions say nothing of values."""
        if recipe.imitates:
            raise ConfigError("recipe: dqn learns values, which imitation does not teach; set teacher to none")

    def learning_rate(self, now: Progress) -> float:
        """Adam's learning rate."""
        return self.lr_start * (self.lr_end / self.lr_start) ** share_of(None, now)

    def epsilon(self, now: Progress) -> float:
        """Probability of a random action."""
        share = share_of(self.explore_iterations, now)
        return self.explore_start + (self.explore_end - self.explore_start) * share


@register_algorithm(DqnConfig, "dqn", learns=VALUES)
class DeepQLearning(AgentAlgorithm):
    """Learns the value of every action from remembered transitions.

    Args:
        config: How.
        agent: What acts and learns; also a :class:`ValueAgent` with a :class:`ValueLearner`.
        seed: Seed of the run.
    """

    def __init__(self, config: DqnConfig, agent, seed: int) -> None:
        super().__init__(config, agent, seed, _COLUMNS)
        self.headline = "remembered"
        self.memory = ReplayMemory(config.memory)
        self._target = agent.learner.weights
        self._updates = self._episodes = 0

    def begin(self) -> None:
        """The target network begins as the network is."""
        super().begin()
        self._target = self.agent.learner.weights

    def iterate(self, now: Progress) -> dict:
        """Make some decisions, remember them, and learn from remembered ones."""
        config, learner = self.config, self.agent.learner
        epsilon, rate = config.epsilon(now), config.learning_rate(now)
        transitions, ended = self.agent.explore(now.iteration, config.steps, epsilon)
        check_rewards(transitions.arrays["reward"])
        scaled = transitions.arrays | {"reward": transitions.arrays["reward"] / config.reward_scale}
        self.memory.add(Transitions(scaled))
        self._episodes += bool(ended)
        row = {"remembered": len(self.memory), "explore": epsilon, "episodes": self._episodes} | ended
        if len(self.memory) < config.memory_first:
            return row
        rng = np.random.default_rng([self.seed, now.iteration, 2])
        for _ in range(config.updates):
            batch = self.memory.draw(config.minibatch, rng)
            gradient, means = learner.value_gradient(
                batch, self._target, config.discount, double=config.double, huber=config.loss == "huber"
            )
            norm = learner.apply(gradient, rate, config.gradient_norm)
            self._updates += 1
            if self._updates % config.target_every == 0:
                self._target = learner.weights
        return row | means | {"gradient_norm": norm, "learning_rate": rate}

    def state(self) -> AlgorithmState:
        """Weights, optimiser, target network, replay memory, ongoing episode."""
        arrays, counters = self.agent.explorer_state()
        extra = {_MEMORY + name: values for name, values in self.memory.state().items()}
        extra |= {_EPISODE + name: values for name, values in arrays.items()}
        return AlgorithmState(
            super().state().arrays | extra | {"target": self._target},
            {"updates": self._updates, "episodes": self._episodes, "explorer": counters},
        )

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""
        super().restore(state)

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {key.removeprefix(prefix): array for key, array in state.arrays.items() if key.startswith(prefix)}

        self._target = state.arrays["target"]
        self.memory.restore(part(_MEMORY))
        self._updates, self._episodes = state.counters["updates"], state.counters["episodes"]
        self.agent.restore_explorer(part(_EPISODE), state.counters["explorer"])
