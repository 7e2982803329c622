"""Several algorithms one after the other, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decima.core.errors import TrainingError
from decima.learning.algorithms.interface import Algorithm, AlgorithmState
from decima.learning.configuration import Progress


@dataclass(frozen=True)
class Phase:
    """One part of training."""

    name: str  # what the column ``phase`` calls it
    algorithm: Algorithm  # what it does
    iterations: int | None = None  # how many; None: as many as the budget allows


class Phases:
    """Algorithms that work on the same weights, one after the other.

    The state is that of the present phase: earlier ones are over, later ones have not begun and take the weights as
    they find them. The end of a phase is a milestone.

    Args:
        phases: At least one; only the last may be unlimited.
    """

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)
        self._index = 0
        # Iteration and used share of the budget at which the present phase began; None: it has not.
        self._began: tuple[int, float] | None = None
        self._done = 0
        columns = dict.fromkeys(column for phase in self.phases for column in phase.algorithm.columns)
        self.columns = ("phase", *columns)

    @property
    def _present(self) -> Phase:
        return self.phases[self._index]

    @property
    def headline(self) -> str:
        """Headline of the present phase."""
        return self._present.algorithm.headline

    @property
    def weights(self) -> np.ndarray:
        """Weights of the present phase."""
        return self._present.algorithm.weights

    @property
    def at_milestone(self) -> bool:
        """Whether a phase has just ended."""
        return self._done == self._present.iterations or self._present.algorithm.at_milestone

    def begin(self) -> None:
        """Nothing yet: every phase begins at its first iteration."""

    def iterate(self, now: Progress) -> dict:
        """Run one iteration of the present phase, or of the next one if due."""
        if self._done == self._present.iterations and self._index + 1 < len(self.phases):
            self._index, self._began, self._done = self._index + 1, None, 0
        algorithm = self._present.algorithm
        if self._began is None:
            self._began = now.iteration, now.share
            algorithm.begin()
        row = algorithm.iterate(now.after(*self._began))
        self._done += 1
        return {"phase": self._present.name} | row

    def state(self) -> AlgorithmState:
        """State of the present phase, and which one it is."""
        inner = self._present.algorithm.state()
        counters = {"phase": self._index, "began": self._began, "done": self._done, "inner": inner.counters}
        return AlgorithmState(inner.arrays, counters)

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned.

        Raises:
            TrainingError: There is no such phase.
        """
        counters = state.counters
        if not 0 <= counters["phase"] < len(self.phases):
            raise TrainingError(f"there are {len(self.phases)} phases, the checkpoint is in phase {counters['phase']}")
        self._index, self._done = counters["phase"], counters["done"]
        self._began = None if counters["began"] is None else tuple(counters["began"])
        self._present.algorithm.restore(AlgorithmState(state.arrays, counters["inner"]))

    def close(self) -> None:
        """Close all phases."""
        for phase in self.phases:
            phase.algorithm.close()
