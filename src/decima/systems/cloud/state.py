"""Memory of an episode, from jobs and settings."""

from typing import Any

import numpy as np

from decima.core.checks import is_whole
from decima.core.errors import ConfigError
from decima.core.random import generator_addresses
from decima.core.record import Record
from decima.systems.cloud.fields import PLACEMENT
from decima.systems.cloud.settings import LOOKAHEAD, PlacementSettings
from decima.systems.cloud.workload import PlacementWorkload

SECONDS_PER_HOUR = 3600.0


def new_state(workload: PlacementWorkload, settings: PlacementSettings) -> Record:
    """Memory for episodes of a workload, one after the other; fields of :mod:`.fields` are attributes.

    Raises:
        WorkloadError: A job does not fit the empty cluster.
    """
    workload.require_room(settings.cluster)
    jobs, vms, rules, billing = workload.jobs, settings.cluster.vms, settings.rules, settings.billing
    executors = np.array([job.executors for job in jobs], dtype=np.int64)
    total, most = int(executors.sum()), int(executors.max())
    extents = {
        "vm": len(vms),
        "job": len(jobs),
        "job + 1": len(jobs) + 1,
        "executor": total,
        "plan": most,
        "plan + 1": most + 1,
        "cell": (most + 1) * (len(vms) + 1),
        "step": total + len(jobs) + rules.idle_waits + 1,  # waits free a job at least, but for idle ones
    }
    state = Record(PLACEMENT, extents)
    types = {vm_type.name: number for number, vm_type in enumerate(settings.cluster.types)}
    duration = np.array([job.duration_s for job in jobs], dtype=np.float64)
    rate = np.array([vm.price_per_hour / SECONDS_PER_HOUR for vm in vms])
    for name, values in {
        "vm_cores": [vm.cores for vm in vms],
        "vm_memory": [vm.memory_mib for vm in vms],
        "vm_type": [types[vm.name] for vm in vms],
        "vm_rate": rate,
        "job_type": [job.type for job in jobs],
        "job_cores": [job.cores for job in jobs],
        "job_memory": [job.memory_mib for job in jobs],
        "job_executors": executors,
        "arrival_s": [job.arrival_s for job in jobs],
        "duration_s": duration,
        "first": np.concatenate([[0], np.cumsum(executors)]),
        "wanted": np.full(total, -1),
    }.items():
        state.bind(name, np.asarray(values, dtype=PLACEMENT.arrays[name].dtype))
    best = float(duration.sum())
    worst = float((duration + duration * rules.penalty_percent / 100.0).sum())
    mean_min = best / len(jobs)
    state.configure(
        num_vms=len(vms),
        num_jobs=len(jobs),
        clock_back=rules.clock_goes_back,
        lookahead=LOOKAHEAD.index(rules.lookahead),
        frees_one=rules.wait_frees_one,
        idle_waits=rules.idle_waits,
        per_second=billing.per_second,
        penalty=rules.penalty_percent,
        wait_reward=rules.wait_reward,
        placement_reward=rules.placement_reward,
        invalid_reward=rules.invalid_reward,
        partial_reward=rules.partial_wait_reward,
        fixed_reward=rules.fixed_reward,
        beta=settings.beta,
        granularity_s=billing.granularity_s,
        minimum_s=billing.minimum_s,
        boot_s=billing.boot_s,
        cost_max=(worst if rules.penalty_in_cost_max else best) * float(rate.sum()),
        mean_min_s=mean_min,
        mean_max_s=mean_min + mean_min * (rules.penalty_percent / 100.0),
    )
    return state


def give_chance(state: Record, rng: np.random.Generator) -> None:
    """Let a state draw from a generator, which the caller keeps alive."""
    generator, function = generator_addresses(rng)
    state.put(rng=generator, rng_next=function)


def give_plan(state: Record, wanted: Any, waits: Any = None) -> None:
    """Give a state a plan to follow.

    Args:
        state: The state.
        wanted: VM of every executor of all jobs in order, whole numbers; -1: wherever it costs least.
        waits: Waits before every job; none when omitted.

    Raises:
        ConfigError: A number is not that of a VM, or out of range.
        RecordError: There are too few or too many.
    """
    wanted = np.asarray(wanted)
    if wanted.dtype.kind not in "iu" or (len(wanted) and not -1 <= wanted.min() <= wanted.max() < state.num_vms):
        raise ConfigError(f"a plan needs numbers of VMs, -1 to {state.num_vms - 1}, got {wanted!r:.80}")
    state.bind("wanted", wanted.astype(np.int64))
    if waits is None:
        state.release("wanted_waits")
    else:
        waits = np.asarray(waits)
        if waits.dtype.kind not in "iu" or (len(waits) and waits.min() < 0):
            raise ConfigError(f"a plan needs numbers of waits from 0, got {waits!r:.80}")
        state.bind("wanted_waits", waits.astype(np.int64))


def check_action(state: Record, action: Any) -> int:
    """The action as a number.

    Raises:
        ConfigError: It is not a whole number from 0 to the number of VMs.
    """
    if isinstance(action, np.ndarray) and action.size == 1:
        action = action.reshape(()).item()
    if not is_whole(action) or not 0 <= action <= state.num_vms:
        raise ConfigError(f"action is {action!r:.60}; expected 0 to wait, or the number of a VM up to {state.num_vms}")
    return int(action)
