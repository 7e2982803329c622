"""Observations of executor placement: the vector of the paper, and a table with a row per VM."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from decima.core.errors import ConfigError
from decima.core.record import Record
from decima.systems.cloud.catalog import MIB_PER_GB
from decima.systems.cloud.engine import masked
from decima.systems.cloud.fields import COMPLETE
from decima.systems.cloud.schedulers.compiled import look_here
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.workload import TYPES, PlacementWorkload

KINDS = ("paper", "full")
JOB_IDS = ("id", "type")
#: Columns of ``vms`` of the observation ``full``.
VM_COLUMNS = (
    "free_cores",
    "free_memory_gb",
    "cores",
    "memory_gb",
    "price_per_hour",
    "busy_left_s",  # until the last job that runs on it ends
    "executors_here",  # of the job that is shown
    "room",  # executors of that job that still fit
    "added_cost",  # what using the VM for the job's duration adds to the bill
)
#: Entries of ``job`` of the observation ``full``.
JOB_COLUMNS = (
    "cpu_bound",
    "memory_bound",
    "network_bound",
    "cores",
    "memory_gb",
    "executors",
    "executors_left",
    "duration_s",
    "waited_s",  # since its arrival
    "jobs_running",
    "jobs_left",  # with the one that is shown
)
_MOST = 1e15


class Observer:
    """Arrays for a learner, of one episode after the other on the same VMs.

    Args:
        settings: VMs and prices.
        kind: ``"paper"`` or ``"full"``.
        prices: Whether the vector of the paper has the prices, which it has in words only.
        job_id: What stands in the vector of the paper for the job: ``"id"``, or ``"type"`` as in the published code.

    Raises:
        ConfigError: A word is unknown.
    """

    def __init__(self, settings: PlacementSettings, kind: str, prices: bool, job_id: str) -> None:
        for name, value, allowed in (("observation", kind, KINDS), ("job_id", job_id, JOB_IDS)):
            if value not in allowed:
                raise ConfigError(f"{name} must be {' or '.join(allowed)}, got {value!r}")
        self.kind, self.prices, self.job_id = kind, prices, job_id
        self._price = np.array([vm.price_per_hour for vm in settings.cluster.vms])
        self._costs = np.empty(len(self._price))

    @property
    def space(self) -> spaces.Dict:
        """Space of the observations."""
        vms = len(self._price)
        parts: dict[str, spaces.Space] = {"action_mask": spaces.Box(0, 1, (vms + 1,), np.int8)}
        shapes = {"vms": (vms, len(VM_COLUMNS)), "job": (len(JOB_COLUMNS),)}
        if self.kind == "paper":
            shapes = {"state": (2 * vms + 4 + vms * self.prices,)}
        parts |= {name: spaces.Box(0.0, _MOST, shape, np.float64) for name, shape in shapes.items()}
        return spaces.Dict(parts)

    def observe(self, state: Record, other: Record, workload: PlacementWorkload) -> dict[str, np.ndarray]:
        """Observation of a state; at the end of an episode that of its last job, with no valid action."""
        vms = len(self._price)
        mask = np.zeros(vms + 1, dtype=np.int8)
        masked(state.address, other.address, mask)
        job = workload.jobs[state.job]
        left = job.executors - state.placed
        free_gb = state.free_memory / MIB_PER_GB
        if self.kind == "paper":
            pairs = np.stack([state.free_cores, free_gb], axis=1).ravel()
            shown = job.id if self.job_id == "id" else job.type
            parts = [pairs, [shown, job.cores, job.memory_gb, left], self._price if self.prices else []]
            return {"action_mask": mask, "state": np.concatenate(parts).astype(np.float64)}
        look_here(state.address, job.duration_s, self._costs)
        first = int(state.first[state.job])
        here = np.bincount(state.where[first : first + state.placed], minlength=vms)
        columns = (
            state.free_cores,
            free_gb,
            state.vm_cores,
            state.vm_memory / MIB_PER_GB,
            self._price,
            np.maximum(state.until_s - state.now_s, 0.0),
            here,
            state.room,
            self._costs,
        )
        jobs_left = 0 if state.status == COMPLETE else len(workload) - state.job
        about = [
            *(float(job.type == kind) for kind in TYPES),
            job.cores,
            job.memory_gb,
            job.executors,
            left,
            job.duration_s,
            max(0.0, state.now_s - job.arrival_s),
            state.running,
            jobs_left,
        ]
        return {
            "action_mask": mask,
            "job": np.array(about, dtype=np.float64),
            "vms": np.stack(columns, axis=1).astype(np.float64),
        }
