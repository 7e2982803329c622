"""Experiment on real Spark: measures a plan, repeats contended runs, can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from decima.connect.cluster.contention import Load
from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from measure.plan import Block, Plan
from measure.records import (
    CARD,
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
