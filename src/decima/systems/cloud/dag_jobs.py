"""Placement jobs made of this project's DAG workloads: every job simulated alone at its executor count.

A DAG job says nothing about cores, memory and what its executors compete for. Cores and memory are given for all jobs;
the type is given, or drawn with the shares of :mod:`.generator`. The number of executors is drawn, and the
makespan of the job alone on a simulated Spark cluster with that many executors is its duration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.checks import check_whole, is_number
from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.cloud.generator import SHARES
from decima.systems.cloud.workload import TYPES, PlacementJob, PlacementWorkload
from decima.workload.jobs import Job, Workload


@dataclass(frozen=True)
class DagJobs:
    """What DAG jobs do not say themselves.

    Raises:
        ConfigError: A number is out of range.
    """

    most_executors: int = 6  # executors of a job are drawn from 1 to so many
    cores: int = 2  # of each executor
    memory_gb: float = 8.0  # of each executor
    type: int = 0  # of all jobs; 0: drawn
    scale: float = 1.0  # factor of durations and gaps, so that long jobs make handy traces

    def __post_init__(self) -> None:
        check_whole("most_executors", self.most_executors, least=1)
        check_whole("cores", self.cores, least=1)
        for name in ("memory_gb", "scale"):
            if not is_number(getattr(self, name)) or not 0.0 < getattr(self, name) <= 1e6:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; expected a number above 0, up to 1e+06")
        if self.type not in (0, *TYPES):
            raise ConfigError(f"type is {self.type!r}; expected {', '.join(map(str, TYPES))}, or 0 for drawn ones")

    def convert(self, workload: Workload, seed: int = 0, scheduler: str = "fair") -> PlacementWorkload:
        """Simulate every job of a workload alone.

        Args:
            workload: DAG jobs.
            seed: Source of executor counts, types and task durations.
            scheduler: Rule that orders the stages of the job.

        Returns:
            Jobs in order of arrival.
        """
        check_whole("seed", seed, least=0)
        rng = np.random.default_rng(seed)
        jobs = []
        ordered = sorted(workload.jobs, key=lambda job: job.arrival_ms)
        for number, job in enumerate(ordered):
            executors = int(rng.integers(1, self.most_executors + 1))
            drawn = int(rng.choice(list(SHARES), p=list(SHARES.values())))
            alone = Workload((Job(job.profile),), workload.label, workload.universe)
            result = simulate(alone, scheduler, executors=executors, seed=seed)
            jobs.append(
                PlacementJob(
                    self.scale * job.arrival_ms / 1000.0,
                    number + 1,
                    self.type or drawn,
                    self.cores,
                    self.memory_gb,
                    executors,
                    self.scale * result.makespan_s,
                )
            )
        return PlacementWorkload(tuple(jobs), f"{workload.label}, each job alone")
