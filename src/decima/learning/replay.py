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
        self._full: deque[Transitions] = deque()
        self._filling: Transitions | None = None

    def __len__(self) -> int:
        """Transitions that batches are drawn from."""
        return min(self.capacity, self._held)

    @property
    def _held(self) -> int:
        return len(self._full) * self._block + (0 if self._filling is None else len(self._filling))

    def add(self, transitions: Transitions) -> None:
        """Take transitions in; the oldest ones beyond the capacity are forgotten."""
        filling = transitions if self._filling is None else Transitions.joined([self._filling, transitions])
        while len(filling) >= self._block:
            self._full.append(filling.part(slice(0, self._block)))
            filling = filling.part(slice(self._block, None))
        self._filling = filling
        while self._held - self._block >= self.capacity:
            self._full.popleft()

    def draw(self, count: int, rng: np.random.Generator) -> Transitions:
        """Draw ``count`` transitions, all equally likely, with replacement."""
        held = self._held
        places = rng.integers(held - len(self), held, size=count)
        blocks = [*self._full, *([] if self._filling is None else [self._filling])]
        first = blocks[0].arrays
        drawn = {name: np.empty((count, *values.shape[1:]), values.dtype) for name, values in first.items()}
        which, inside = places // self._block, places % self._block
        for index in np.unique(which):
            chosen = which == index
            for name, values in blocks[index].arrays.items():
                drawn[name][chosen] = values[inside[chosen]]
        return Transitions(drawn)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays for a checkpoint."""
        blocks = [*self._full, *([] if self._filling is None else [self._filling])]
        return {
            f"{index}/{name}": values for index, block in enumerate(blocks) for name, values in block.arrays.items()
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        columns: dict[int, dict[str, np.ndarray]] = {}
        for key, values in arrays.items():
            index, _, name = key.partition("/")
            columns.setdefault(int(index), {})[name] = values
        blocks = [Transitions(columns[index]) for index in sorted(columns)]
        self._filling = None
        if blocks and len(blocks[-1]) < self._block:
            self._filling = blocks.pop()
        self._full = deque(blocks)
