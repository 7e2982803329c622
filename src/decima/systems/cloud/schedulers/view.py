"""What a placement rule written in Python sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from decima.core.record import Record
from decima.systems.cloud.schedulers.compiled import added_costs
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.workload import PlacementJob, PlacementWorkload


class PlacementScheduler(Protocol):
    """A rule in Python: a name and one method; nothing has to be subclassed.

    A true attribute ``concurrent`` says that one object may serve several runs at the same time; a false one ``draws``,
    that it takes no chance, so that another seed is the same run.
    """

    name: str

    def decide(self, view: View) -> list[int] | None:
        """VM of every executor of the job, from 0; None waits for a completion."""


@dataclass(frozen=True)
class View:
    """State at a decision: the executors of a job are to be placed, or wait.

    Attributes:
        workload: All jobs; a rule that looks at later ones is offline.
        settings: VMs, billing, beta.
    """

    workload: PlacementWorkload
    settings: PlacementSettings
    _state: Record

    @property
    def now_s(self) -> float:
        """The clock in seconds."""
        return self._state.now_s

    @property
    def job(self) -> PlacementJob:
        """The job that is shown."""
        return self.workload.jobs[self._state.job]

    @property
    def may_wait(self) -> bool:
        """Whether something runs, so that waiting leads somewhere."""
        return self._state.running > 0

    @property
    def free_cores(self) -> np.ndarray:
        """int64 [VMs]."""
        return self._state.free_cores.copy()

    @property
    def free_memory_mib(self) -> np.ndarray:
        """int64 [VMs]."""
        return self._state.free_memory.copy()

    @property
    def room(self) -> np.ndarray:
        """int64 [VMs], executors of the job that fit on each."""
        job = self.job
        return np.minimum(self.free_cores // job.cores, self.free_memory_mib // job.memory_mib)

    @property
    def fits(self) -> bool:
        """Whether all executors of the job can be placed now."""
        return int(self.room.sum()) >= self.job.executors

    def added_cost(self, run_s: float) -> np.ndarray:
        """float64 [VMs], cost of using each VM from now for a run time."""
        costs = np.empty(self._state.num_vms)
        added_costs(self._state.address, float(run_s), costs)
        return costs
