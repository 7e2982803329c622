"""Interface between trainer and algorithm, and the registry of algorithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from decima.core.errors import ConfigError
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
