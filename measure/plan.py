"""Plan of the experiment on real Spark: batches, schedulers, order, repetitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

import numpy as np

from decima.connect.cluster.tpch_queries import NAMES
from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.workload.measured import profile_name
from measure.records import CONTROL, BatchRun

DEFAULT_SCHEDULERS = ("fifo", "fair", "weighted_fair", "decima")
# Batches of this experiment, apart from the seeds of tuning and training.
_STREAM = 3


@dataclass(frozen=True)
class Block:
    """Runs in one Spark application, in this order."""

    control: bool  # without the plugin
    runs: tuple[BatchRun, ...]  # at least one


@dataclass(frozen=True)
class Plan:
    """Plan of a whole experiment.

    Raises:
        ConfigError: a number is out of range, or a scheduler is given twice.
    """

    scale: float  # TPC-H scale factor
    executors: int = 4  # one-core executors
    queries: int = 12  # jobs of a batch, all submitted at once
    batches: int = 2  # different batches
    repetitions: int = 4  # runs of each batch under each scheduler
    schedulers: tuple[str, ...] = DEFAULT_SCHEDULERS  # names of the schedulers behind the plugin
    control: bool = True  # also run Spark's own FIFO without the plugin
    rounds_per_start: int = 4  # rounds (a batch under every scheduler) before Spark is started anew
    warmups: int = 2  # times each query runs before the first measured batch of an application
    attempts: int = 3  # how often a contended run is tried in all
    seed: int = 0  # draws batches and orders

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedulers", tuple(self.schedulers))
        if not (isinstance(self.scale, (int, float)) and math.isfinite(self.scale) and self.scale > 0):
            raise ConfigError(f"scale factor {self.scale!r}: expected a positive number")
        least = dict.fromkeys(("executors", "queries", "batches", "repetitions", "rounds_per_start", "attempts"), 1)
        for name, low in (least | {"warmups": 0, "seed": 0}).items():
            check_whole(name, getattr(self, name), low)
        if self.queries > len(NAMES):
            raise ConfigError(f"queries must be at most {len(NAMES)}, all of TPC-H, got {self.queries}")
        if not self.schedulers and not self.control:
            raise ConfigError("no scheduler given; expected at least one")
        if len(set(self.schedulers)) < len(self.schedulers):
            raise ConfigError(f"a scheduler is given twice: {', '.join(self.schedulers)}")
        if CONTROL in self.schedulers:
            raise ConfigError(f"{CONTROL} is Spark's own scheduler, which runs without the plugin: use --control")

    def batch(self, number: int) -> tuple[str, ...]:
        """Names of the queries of a batch in order of arrival, all different."""
        rng = np.random.default_rng([self.seed, _STREAM, number])
        return tuple(NAMES[index] for index in rng.permutation(len(NAMES))[: self.queries])

    def profile(self, query: str) -> str:
        """Name of the profile of a query at this scale: `q9-1g` for `q09`."""
        return profile_name(int(query[1:]), self.scale)

    def blocks(self) -> Iterator[Block]:
        """Arrange all runs in blocks of schedulers, in a new order each round."""
        rng = np.random.default_rng([self.seed, _STREAM])
        rounds = [(batch, repetition) for repetition in range(self.repetitions) for batch in range(self.batches)]
        for begin in range(0, len(rounds), self.rounds_per_start):
            chunk = rounds[begin : begin + self.rounds_per_start]
            steered = [
                BatchRun(*run, self.schedulers[index])
                for run in chunk
                for index in rng.permutation(len(self.schedulers))
            ]
            blocks = [Block(False, tuple(steered))] if steered else []
            if self.control:
                blocks.append(Block(True, tuple(BatchRun(*run, CONTROL) for run in chunk)))
            yield from (blocks[index] for index in rng.permutation(len(blocks)))

    def runs(self) -> list[BatchRun]:
        """Runs of all blocks, in order."""
        return [run for block in self.blocks() for run in block.runs]

    def as_dict(self) -> dict:
        """Fields by name, JSON-ready."""
        return asdict(self) | {"schedulers": list(self.schedulers)}

    @classmethod
    def from_dict(cls, values: dict) -> Plan:
        """Make a plan of its fields by name, as :meth:`as_dict` gives them.

        Raises:
            ConfigError: a field is unknown or missing, or out of range.
        """
        unknown = set(values) ^ {item.name for item in fields(cls)}
        if unknown:
            raise ConfigError(f"a plan lacks or does not know: {', '.join(sorted(unknown))}")
        return cls(**values)
