"""Tables of a cluster whose jobs are not known beforehand, with room for jobs to come."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from decima.core.record import GIVEN
from decima.systems.spark.fields import ARRAYS


@dataclass(frozen=True)
class Capacity:
    """Sizes that a mirror has room for; a learned policy makes its workspace from these numbers."""

    jobs: int  # jobs, those that are gone included
    stages: int  # stages of these jobs
    edges: int  # edges between them
    job_stages: int  # stages of the largest job
    levels: int  # edges on the longest path of a job, plus 1
    executors: int  # executors of the cluster

    def covers(self, need: Capacity) -> bool:
        """Whether no size of another capacity is larger."""
        return all(getattr(self, field.name) >= getattr(need, field.name) for field in fields(self))

    def plus(self, more: Capacity) -> Capacity:
        """Capacity for the jobs of two."""
        return Capacity(
            jobs=self.jobs + more.jobs,
            stages=self.stages + more.stages,
            edges=self.edges + more.edges,
            job_stages=max(self.job_stages, more.job_stages),
            levels=max(self.levels, more.levels),
            executors=max(self.executors, more.executors),
        )

    def grown(self, need: Capacity) -> Capacity:
        """Capacity for a need: twice what jobs use up, and of the rest no less than before."""
        return Capacity(
            jobs=max(8, 2 * need.jobs),
            stages=max(64, 2 * need.stages),
            edges=max(64, 2 * need.edges),
            job_stages=max(self.job_stages, need.job_stages),
            levels=max(self.levels, need.levels),
            executors=max(self.executors, need.executors),
        )


class MirrorTables:
    """Workload tables of a mirrored cluster; row ``s`` of the profile tables is stage ``s``.

    Nothing is simulated on it, so the tables of task durations are empty.

    Args:
        capacity: Room for jobs and executors.
        history: Arrivals to remember, each in the place of a job behind all others.
    """

    def __init__(self, capacity: Capacity, history: int = 0) -> None:
        self.num_jobs = capacity.jobs + history
        # One more stage: it shows the policy the longest path there may be.
        self.num_stages = capacity.stages + 1
        self.num_tasks = 0
        self.grid_width = 1
        self.extents = {
            "job": self.num_jobs,
            "job + 1": self.num_jobs + 1,
            "stage": self.num_stages,
            "row": self.num_stages,
            "row + 1": self.num_stages + 1,
            "edge": capacity.edges,
            "arrival": history,
            "grid cell": 0,
            "duration list": 0,
            "duration": 0,
            "class": 1,
            "group": 1,
        }
        self.arrays = {
            name: np.zeros(self.extents[field.extent], dtype=field.dtype)
            for name, field in ARRAYS.items()
            if field.storage == GIVEN
        }
        self.arrays["stage_row"][:] = np.arange(self.num_stages)
        self.arrays["arrival_order"][:] = np.arange(capacity.jobs, self.num_jobs)
        self.arrays["row_level"][-1] = capacity.levels - 1
        # Executors of a real cluster are alike, and every stage fits them.
        self.arrays["class_memory"][:] = self.arrays["class_cpu"][:] = self.arrays["group_fits"][:] = 1
        self.arrays["class_executors"][:] = capacity.executors
