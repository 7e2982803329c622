"""Heuristics: round robin, packing, by type, greedy, random, and a prepared plan.

A heuristic fills ``plan``, the VMs of the executors of the job that is shown, and says whether all have one.

Source: Islam et al., section 7, and ``tawfiqul-islam/RM-Simulator``: RR (``RRScheduler.java``, which begins with the
first VM for every job; Apache Spark's standalone master continues where it stopped), RRC (``RRConsolidate.java``), FF
(``FirstFitScheduler.java``), AEP (``AEPScheduler.java``, which has it the wrong way round, as ``aep_inverted``) and GIO
(``GIOScheduler.java``, with the duration of a well placed job as estimate). Differs: VMs that are equal in the order of
RRC and FF go by number, where Java's sort keeps the order of the job before; a VM that is off costs GIO the whole run
time, where Java counts from time 0, so that running VMs come first.
"""

import numpy as np

from decima.core.jit import njit
from decima.core.random import draw_below, next_raw
from decima.systems.cloud.engine import added_seconds, fitting, is_off, ready_at
from decima.systems.cloud.workload import NETWORK_BOUND

_ALL = 1 << 60


# ---- what they share ------------------------------------------------------------------------------------------------


@njit
def count_room(s):
    """Count the executors that fit per VM; returns whether the job fits."""
    total = fitting(s, _ALL)
    for vm in range(s.num_vms):
        s.taken[vm] = 0
        s.order[vm] = vm
    return total >= s.job_executors[s.job]


@njit
def sort_by_key(s):
    """Bring ``order`` into ascending order of ``key``; equal VMs stay as they are."""
    for index in range(1, s.num_vms):
        vm = s.order[index]
        key = s.key[vm]
        at = index
        while at > 0 and s.key[s.order[at - 1]] > key:
            s.order[at] = s.order[at - 1]
            at -= 1
        s.order[at] = vm


@njit
def fill(s):
    """Put executors on VMs by ``order``, on each the number that fits."""
    need, done = s.job_executors[s.job], 0
    for index in range(s.num_vms):
        vm = s.order[index]
        for _ in range(s.room[vm]):
            if done == need:
                return True
            s.plan[done] = vm
            done += 1
    return done == need


@njit
def price_vms(s, run_s):
    """Let ``key`` be the cost of a run on each VM from its boot on."""
    for vm in range(s.num_vms):
        s.key[vm] = s.vm_rate[vm] * added_seconds(s, vm, ready_at(s, vm), run_s)


@njit
def price_vms_from(s, start_s, run_s):
    """Let ``key`` be the cost of a run from a time; infinite before a boot."""
    for vm in range(s.num_vms):
        ready = ready_at(s, vm) <= start_s
        s.key[vm] = s.vm_rate[vm] * added_seconds(s, vm, start_s, run_s) if ready else np.inf


@njit
def _take_cheapest(s, done):
    """Put one executor where it adds least cost; among equals on the first VM."""
    best = -1
    for vm in range(s.num_vms):
        if s.taken[vm] < s.room[vm] and (best < 0 or s.key[vm] < s.key[best]):
            best = vm
    s.taken[best] += 1
    s.key[best] = 0.0
    s.plan[done] = best


# ---- heuristics -----------------------------------------------------------------------------------------------------


@njit
def round_robin(s, continuing):
    """Deal one executor per VM (RR), from the first VM or behind the last one."""
    if not count_room(s):
        return False
    need, done, vm = s.job_executors[s.job], 0, (s.last_vm + 1) % s.num_vms if continuing else 0
    while done < need:
        if s.taken[vm] < s.room[vm]:
            s.taken[vm] += 1
            s.plan[done] = vm
            done += 1
        vm += 1
        if vm == s.num_vms:
            vm = 0
    return True


@njit
def consolidate(s):
    """Fill VMs by free cores ascending (RRC)."""
    if not count_room(s):
        return False
    for vm in range(s.num_vms):
        s.key[vm] = s.free_cores[vm]
    sort_by_key(s)
    return fill(s)


@njit
def first_fit(s):
    """Fill VMs that run first, then by price (FF)."""
    if not count_room(s):
        return False
    # Sorts are stable: by free cores first, then by price, then VMs that run or are paid for.
    for vm in range(s.num_vms):
        s.key[vm] = s.free_cores[vm]
    sort_by_key(s)
    for vm in range(s.num_vms):
        s.key[vm] = s.vm_rate[vm]
    sort_by_key(s)
    for vm in range(s.num_vms):
        idle = s.free_cores[vm] == s.vm_cores[vm]
        s.key[vm] = 1.0 if idle and (s.per_second or is_off(s, vm, s.now_s)) else 0.0
    sort_by_key(s)
    return fill(s)


@njit
def fill_by_number(s):
    """Fill VMs by number, as the reference runs do."""
    return count_room(s) and fill(s)


@njit
def adaptive(s, inverted):
    """Pack network-bound jobs and spread others (AEP), or the other way round."""
    if (s.job_type[s.job] == NETWORK_BOUND) != inverted:
        return consolidate(s)
    return round_robin(s, False)


@njit
def greedy(s):
    """Put each executor where it adds least cost (GIO)."""
    if not count_room(s):
        return False
    price_vms(s, s.duration_s[s.job])
    for done in range(s.job_executors[s.job]):
        _take_cheapest(s, done)
    return True


@njit
def follow_plan(s):
    """Follow ``wanted``; executors without room on their VM go where they add least cost."""
    job = s.job
    if s.job_waits < s.wanted_waits[job] and s.running > 0:
        return False
    if not count_room(s):
        return False
    price_vms(s, s.duration_s[job])
    for done in range(s.job_executors[job]):
        vm = s.wanted[s.first[job] + done]
        if vm >= 0 and s.taken[vm] < s.room[vm]:
            s.taken[vm] += 1
            s.key[vm] = 0.0
            s.plan[done] = vm
        else:
            _take_cheapest(s, done)
    return True


@njit
def random_valid(s, may_wait):
    """Put executors on random VMs with room; with ``may_wait``, waiting between jobs is a choice."""
    if not count_room(s):
        return False
    for done in range(s.job_executors[s.job]):
        valid = 0
        for vm in range(s.num_vms):
            valid += s.taken[vm] < s.room[vm]
        waits = may_wait and done == 0 and s.running > 0
        number = draw_below(next_raw(s.rng_next, s.rng), valid + waits) - waits
        if number < 0:
            return False
        for vm in range(s.num_vms):
            if s.taken[vm] < s.room[vm]:
                if number == 0:
                    s.taken[vm] += 1
                    s.plan[done] = vm
                    break
                number -= 1
    return True
