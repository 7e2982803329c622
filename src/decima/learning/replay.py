"""Replay memory: the transitions seen last, in blocks that are filled once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
        """Transitions that batches are drawn from."""
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
