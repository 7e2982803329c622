"""Interface between trainer and algorithm, and the registry of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from decima.core.errors import ConfigError, TrainingError
from decima.core.registry import Registry
from decima.learning.configuration import Configuration, Progress
from decima.learning.loss import PROBABILITIES

if TYPE_CHECKING:
    from decima.learning.agent import Agent


@dataclass(frozen=True)
class AlgorithmState:
    """Everything that an algorithm's next iteration depends on, besides its configuration and the seed."""

    # Arrays by name: weights, moments of an optimiser, a replay memory. They must not change any more while the
    # algorithm goes on; a large memory is best kept in blocks that are filled once, which need no copy.
    arrays: dict[str, np.ndarray]
    counters: dict = field(default_factory=dict)  # JSON values by name


class Algorithm(Protocol):
    """Something that makes weights better, one iteration after the other.

    Two runs with the same seed and the same progress must be equal to the last bit, whatever the number of workers is
    and however often they were stopped, saved and restored.

    Attributes:
        columns: Names of the values that rows may have; others are refused.
        headline: The column that a progress bar shows.
    """

    columns: tuple[str, ...]
    headline: str

    @property
    def weights(self) -> np.ndarray:
        """Float32 [parameters], those that validation measures and that are kept if they are the best."""

    @property
    def at_milestone(self) -> bool:
        """Whether the weights should be validated now, whatever the rhythm of validations is."""

    def begin(self) -> None:
        """Called once before the first iteration, not when a run is resumed."""

    def iterate(self, now: Progress) -> dict:
        """Do one iteration; returns its row of the curve, values by column.

        Raises:
            TrainingError: The weights, the loss or a gradient is not finite.
        """

    def state(self) -> AlgorithmState:
        """State for a checkpoint."""

    def restore(self, state: AlgorithmState) -> None:
        """Take over what :meth:`state` returned."""

    def close(self) -> None:
        """Free threads and the like."""


Maker = Callable[[Configuration, "Agent", int], Algorithm]


@dataclass(frozen=True)
class AlgorithmEntry:
    """A registered algorithm."""

    configuration: type[Configuration]  # class of its fields
    maker: Maker  # makes it of configuration, agent and seed
    learns: str = PROBABILITIES  # what it makes better, as in :data:`decima.learning.loss.PROBABILITIES`


ALGORITHMS: Registry[AlgorithmEntry] = Registry("algorithm of a recipe", package="decima.learning.algorithms")


def register_algorithm(
    configuration: type[Configuration], *names: str, learns: str = PROBABILITIES
) -> Callable[[Maker], Maker]:
    """Decorator: make an algorithm known to recipes.

    The decorated class or function is called with the configuration, the agent and the seed of the run.

    Args:
        configuration: Frozen dataclass of the algorithm's fields; its fields become those of recipes. One that has a
            field ``algorithm`` receives the name by which it was chosen.
        names: What recipes call it.
        learns: What it makes better; an agent says in ``learns`` what it has.
    """

    def wrap(maker: Maker) -> Maker:
        for name in names:
            ALGORITHMS.add(name, AlgorithmEntry(configuration, maker, learns))
        return maker

    return wrap


def make_algorithm(name: str, configuration: Configuration, agent: Agent, seed: int) -> Algorithm:
    """An algorithm by its name.

    Args:
        name: Registered name.
        configuration: Of the class that belongs to it.
        agent: What acts and learns.
        seed: Seed of the run.

    Raises:
        ConfigError: The algorithm is unknown, or needs what the agent does not have.
    """
    entry = ALGORITHMS.find(name)
    if entry.learns != PROBABILITIES and entry.learns not in agent.learns:
        raise ConfigError(
            f"recipe: algorithm {name} needs an agent with {entry.learns}, this one has {agent.learns[0]}"
        )
    return entry.maker(configuration, agent, seed)


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
