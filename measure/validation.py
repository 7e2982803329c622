"""Measurement for the simulator's validation: queries alone, and all at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from decima.connect.cluster import machine, tpch_queries
from measure.alone import KINDS, Measurement, PlannedApplication
from measure.experiment import Experiment, Plan

ALONE, MIX = "alone", "mix"  # folders
ROUNDS = 4  # of the queries alone before the first mix; the first one compiles their code
# Mixes are rejected for the time that Spark waited for cores; processes of low priority beside it take none from it.
FOREIGN_LIMIT = 1.0


@dataclass(frozen=True)
class Validation:
    """Plan and folder of a validation."""

    folder: Path  # gets `alone` (as `decima spark profile` writes it) and `mix` (as `decima spark experiment` does)
    scale: float  # TPC-H scale factor
    executors: int  # of the cluster; the queries alone run on one executor, too
    repetitions: int  # of everything
    memory_mb: int = 2048  # memory of an executor
    seed: int = 0  # order of the queries in the mix, the same in all repetitions

    @property
    def plan(self) -> Plan:
        """Plan of the mixes: all 22 queries at once under Spark's FIFO, warm."""
        return Plan(
            self.scale, self.executors, len(tpch_queries.NAMES), 1, self.repetitions, (), True,
            self.repetitions, ROUNDS, seed=self.seed,
        )  # fmt: skip

    def alone(self, data: Path | None) -> Measurement:
        """Measurement of the queries alone, on warm and on new executors."""
        applications = [
            PlannedApplication(self.scale, count, repetition, KINDS if count == self.executors else KINDS[:1])
            for repetition in range(self.repetitions)
            for count in sorted({1, self.executors})
        ]
        return Measurement(self.folder / ALONE, applications, data, self.memory_mb)

    def mixes(self) -> Experiment:
        """Experiment that measures the mixes, with the runs that its folder already holds."""
        about = {"schedulers": {}, "machine": machine.describe()}
        return Experiment(self.folder / MIX, self.plan, about, foreign_limit=FOREIGN_LIMIT)
