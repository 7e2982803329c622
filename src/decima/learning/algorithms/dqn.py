"""Deep Q-learning: replay memory, target network, eps-greedy exploration.

Source: Mnih et al., Nature 2015; Algorithm 1 of Islam et al., TPDS 2022, with the values of its Table 5 as defaults;
double Q-learning: van Hasselt et al., AAAI 2016.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from decima.core.errors import ConfigError
from decima.learning.algorithms.interface import AlgorithmState, register_algorithm
from decima.learning.algorithms.parts import AgentAlgorithm, check_rewards, share_of
from decima.learning.configuration import Configuration, Progress, number, switch, whole
from decima.learning.loss import VALUES

_COLUMNS = (
    "remembered", "explore", "loss", "value", "gradient_norm", "learning_rate", "episodes",
)  # fmt: skip
_MEMORY, _EPISODE = "memory/", "episode/"


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
        agent: What acts and learns; also a :class:`ValueAgent`, whose learner has
            ``value_gradient`` (see :class:`decima.systems.cloud.policy.network.PlacementLearner`).
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
            gradient, means = learner.value_gradient(batch, self._target, config.discount, double=config.double)
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


# Parts of the memory. A full block is never changed, so that checkpoints need no copy of it.
BLOCKS = 10


@dataclass(frozen=True)
class Transitions:
    """Transitions between decisions; what they consist of, an agent and its learner agree on.

    Every array is as long as there are transitions.
    """

    arrays: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def part(self, which) -> Transitions:
        """Some of them, by slice or indices."""
        return Transitions({name: values[which] for name, values in self.arrays.items()})

    @staticmethod
    def joined(parts: Sequence[Transitions]) -> Transitions:
        """Several, one after the other."""
        return Transitions({name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays})


class ReplayMemory:
    """The transitions seen last (Algorithm 1 of Islam et al.: the replay buffer).

    Args:
        capacity: How many are kept.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._block = -(-capacity // BLOCKS)
        self._blocks: deque[Transitions] = deque()  # all but the last are full

    def __len__(self) -> int:
        return min(self.capacity, self._held)

    @property
    def _held(self) -> int:
        return sum(map(len, self._blocks))

    def add(self, transitions: Transitions) -> None:
        """Take transitions in; the oldest ones beyond the capacity are forgotten."""
        if self._blocks and len(self._blocks[-1]) < self._block:
            transitions = Transitions.joined([self._blocks.pop(), transitions])
        for first in range(0, len(transitions), self._block):
            self._blocks.append(transitions.part(slice(first, first + self._block)))
        while self._held - self._block >= self.capacity:
            self._blocks.popleft()

    def draw(self, count: int, rng: np.random.Generator) -> Transitions:
        """Draw ``count`` transitions, all equally likely, with replacement."""
        held = self._held
        places = rng.integers(held - len(self), held, size=count)
        first = self._blocks[0].arrays
        drawn = {name: np.empty((count, *values.shape[1:]), values.dtype) for name, values in first.items()}
        which, inside = places // self._block, places % self._block
        for index in np.unique(which):
            chosen = which == index
            for name, values in self._blocks[index].arrays.items():
                drawn[name][chosen] = values[inside[chosen]]
        return Transitions(drawn)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays for a checkpoint."""
        return {
            f"{index}/{name}": values
            for index, block in enumerate(self._blocks)
            for name, values in block.arrays.items()
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        columns: dict[int, dict[str, np.ndarray]] = {}
        for key, values in arrays.items():
            index, _, name = key.partition("/")
            columns.setdefault(int(index), {})[name] = values
        self._blocks = deque(Transitions(columns[index]) for index in sorted(columns))
