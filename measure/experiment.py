"""Experiment on real Spark: a plan of batches, schedulers and repetitions, measured and resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Protocol

import numpy as np

from decima.connect.cluster.contention import Load
from decima.connect.cluster.tpch_queries import NAMES
from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from decima.workload.measured import profile_name, scales
from measure.records import (
    CARD,
    CONTROL,
    LOGS,
    WAIT_LIMIT,
    BatchRecord,
    BatchRun,
    QueryTimes,
    read_json,
    read_records,
    write_record,
)

FOREIGN_LIMIT = 0.15
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
        """Names of the queries of a batch in order of arrival, all different.

        Batches of one query are all queries in turn.
        """
        if self.queries == 1:
            return (NAMES[number % len(NAMES)],)
        rng = np.random.default_rng([self.seed, _STREAM, number])
        return tuple(NAMES[index] for index in rng.permutation(len(NAMES))[: self.queries])

    def profile(self, query: str) -> str:
        """Name of the profile of a query at this scale: `q9-1g` for `q09`."""
        return profile_name(int(query[1:]), self.scale)

    def durations(self) -> str | None:
        """Source of measured durations for the service, if there are any at this scale."""
        return f"measured:sizes={self.scale:g}g" if self.scale in scales() else None

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


@dataclass(frozen=True)
class Outcome:
    """Outcome of one run of a batch."""

    queries: tuple[QueryTimes, ...]  # in order of arrival
    load: Load  # of the machine meanwhile


class RunningApplication(Protocol):
    """Spark application that is running and warmed up."""

    log: str

    def measure(self, run: BatchRun, key: str) -> Outcome:
        """Run a batch under its scheduler; ids of queries begin with `key`."""


class Bench(Protocol):
    """Cluster where applications run."""

    def application(self, block: Block, number: int) -> AbstractContextManager[RunningApplication]:
        """Start an application, with a `number` of its folder."""


@dataclass
class Experiment:
    """Measurement of a plan of batches into a folder, which can be resumed.

    Raises:
        ConfigError: the folder holds an experiment with another plan or other schedulers.
    """

    folder: Path  # gets `card.json`, one file per attempt in `runs` and the event logs in `events`
    plan: Plan  # what to run
    about: Mapping[str, object]  # further entries of the card: schedulers with their parameters, machine, versions
    wait_limit: float = WAIT_LIMIT  # largest share of time in which threads of Spark may wait for a core
    foreign_limit: float = FOREIGN_LIMIT  # largest share of all cores that other processes may take
    records: list[BatchRecord] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        path = self.folder / CARD
        card = self.card()
        if path.is_file():
            _check_same(read_json(path), card, path)
        else:
            atomic_write_text(path, json.dumps(card, indent=2) + "\n")
        self.records = read_records(self.folder)

    def card(self) -> dict:
        """Card of the folder: plan, limits and further facts."""
        limits = {"wait_share": self.wait_limit, "foreign_share": self.foreign_limit}
        return {"plan": self.plan.as_dict(), "limits": limits, **self.about}

    def attempts(self, run: BatchRun) -> list[BatchRecord]:
        """Attempts at a run so far."""
        return [record for record in self.records if record.run == run]

    def is_open(self, run: BatchRun) -> bool:
        """Whether the run has no usable attempt and may be tried again."""
        tried = self.attempts(run)
        return len(tried) < self.plan.attempts and all(record.contended for record in tried)

    def missing(self) -> list[Block]:
        """Blocks with the runs that are still to be measured."""
        blocks = [Block(block.control, tuple(filter(self.is_open, block.runs))) for block in self.plan.blocks()]
        return [block for block in blocks if block.runs]

    def measure(self, bench: Bench, finished: Callable[[BatchRecord], None] = lambda record: None) -> None:
        """Measure all runs that are missing."""
        for block in self.missing():
            number = 1 + max((int(path.name[4:6]) for path in (self.folder / LOGS).glob("app-*")), default=-1)
            with bench.application(block, number) as application:
                for run in block.runs:
                    for record in self._attempt(application, run):
                        self.records.append(record)
                        write_record(self.folder, record)
                        finished(record)

    def _attempt(self, application: RunningApplication, run: BatchRun) -> Iterator[BatchRecord]:
        while self.is_open(run):
            attempt = len(self.attempts(run))
            outcome = application.measure(run, f"{run.key}-a{attempt}")
            load = outcome.load.row()
            contended = load["wait_share"] > self.wait_limit or load["foreign_share"] > self.foreign_limit
            yield BatchRecord(run, attempt, application.log, outcome.queries, load, contended)


def _check_same(kept: dict, card: dict, path: Path) -> None:
    """Check that a folder is continued with its plan, limits and schedulers."""
    for part in ("plan", "limits", "schedulers"):
        if kept.get(part) != json.loads(json.dumps(card.get(part))):
            raise ConfigError(
                f"{path} belongs to an experiment with another {part.rstrip('s')}: "
                f"{_difference(kept.get(part), card.get(part))}; choose another folder"
            )


def _difference(kept: object, wanted: object) -> str:
    if isinstance(kept, dict) and isinstance(wanted, dict):
        names = [name for name in (kept | wanted) if kept.get(name) != json.loads(json.dumps(wanted.get(name)))]
        return ", ".join(f"{name} is {kept.get(name)!r} there, {wanted.get(name)!r} here" for name in names)
    return f"{kept!r} there, {wanted!r} here"
