"""Compiled observations of ``decima/VmPlacement-v0``; callers in Python give addresses of states."""

from decima.core.jit import njit
from decima.systems.cloud.catalog import MIB_PER_GB
from decima.systems.cloud.engine import fill_mask
from decima.systems.cloud.fields import COMPLETE, placement_at
from decima.systems.cloud.schedulers.heuristics import count_room, price_vms


@njit(cache=True, nogil=True)
def observe_paper(state, other, jobs, mask, row):
    """Fill the mask, and the observation ``paper`` up to its prices.

    Args:
        state: Address of the state.
        other: Address of a scratch state.
        jobs: float64 [jobs, 2], what is shown as id, and GB of an executor.
        mask: int8 [VMs + 1].
        row: float64 [2 VMs + 4 or more].
    """
    s, vms = placement_at(state), len(mask) - 1
    fill_mask(s, placement_at(other), mask)
    for vm in range(vms):
        row[2 * vm] = s.free_cores[vm]
        row[2 * vm + 1] = s.free_memory[vm] / MIB_PER_GB
    row[2 * vms] = jobs[s.job, 0]
    row[2 * vms + 1] = s.job_cores[s.job]
    row[2 * vms + 2] = jobs[s.job, 1]
    row[2 * vms + 3] = s.job_executors[s.job] - s.placed


@njit(cache=True, nogil=True)
def observe_full(state, other, jobs, prices, mask, about, vms):
    """Fill the mask and the observation ``full``; the rest as in :func:`observe_paper`.

    Args:
        state: Address of the state.
        other: Address of a scratch state.
        jobs: float64 [jobs, 2].
        prices: float64 [VMs], per hour.
        mask: int8 [VMs + 1].
        about: float64, zeros, columns :data:`.environment.JOB_COLUMNS`.
        vms: float64 [VMs, columns], :data:`.environment.VM_COLUMNS`.
    """
    s = placement_at(state)
    fill_mask(s, placement_at(other), mask)
    job = s.job
    count_room(s)
    price_vms(s, s.duration_s[job])
    for vm in range(s.num_vms):
        vms[vm, 0] = s.free_cores[vm]
        vms[vm, 1] = s.free_memory[vm] / MIB_PER_GB
        vms[vm, 2] = s.vm_cores[vm]
        vms[vm, 3] = s.vm_memory[vm] / MIB_PER_GB
        vms[vm, 4] = prices[vm]
        vms[vm, 5] = max(s.until_s[vm] - s.now_s, 0.0)
        vms[vm, 6] = 0.0
        vms[vm, 7] = s.room[vm]
        vms[vm, 8] = s.key[vm]
    for executor in range(s.first[job], s.first[job] + s.placed):
        vms[s.where[executor], 6] += 1.0
    about[s.job_type[job] - 1] = 1.0
    about[3] = s.job_cores[job]
    about[4] = jobs[job, 1]
    about[5] = s.job_executors[job]
    about[6] = s.job_executors[job] - s.placed
    about[7] = s.duration_s[job]
    about[8] = max(0.0, s.now_s - s.arrival_s[job])
    about[9] = s.running
    about[10] = 0 if s.status == COMPLETE else s.num_jobs - job
