"""Compiled lower bounds of the loss of the jobs to come in a busy period.

By work: the cores or the memory of all jobs at the lowest price.

By interval: at every moment VMs in use need the cores and the memory of what runs and of the jobs still to come, in
multiples of the smallest step between VM sizes, at the lowest price per core or MiB; what is already paid for is free.
A job that is well placed by spreading needs as many VMs as it has executors, a badly placed one runs longer: the better
of both counts, for all jobs that may run at the same time together. A job that may have to wait counts from the latest
moment that it can start to the earliest that it can end.

By prices: every VM on its own takes executors that earn a price (:mod:`.rental`). That sees that
executors stay where they are while others come and go, which the other two do not.
"""

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit
from decima.systems.cloud.optimum.rental import least_of_vm
from decima.systems.cloud.workload import NETWORK_BOUND

SLOTS = 7  # jobs at a time whose two ways, well or badly placed, are told apart
STATES_PER_BOUND = 20_000  # most new states of one VM that are tried for one bound


@njit
def _extra(demand, paid, step):
    """Capacity beyond what is paid for, in whole steps."""
    return 0.0 if demand <= paid else np.ceil((demand - paid) / step) * step


@njit
def _forget(values, slots, slot):
    """Remove one job from the table of good and bad placements; the better remains."""
    low = (1 << slot) - 1
    for bits in range(1 << (slots - 1)):
        source = (bits & low) | ((bits & ~low) << 1)
        values[bits] = min(values[source], values[source | (1 << slot)])


@njit
def interval_bound(jobs, vms, prices, weights, first, now, active, running, finish, until, scratch):
    """Least further loss of jobs from ``first`` on, beyond their least run times.

    Moment by moment, for the two ways of every job that can be placed well or badly: a table over the ways of all jobs
    that run at that moment for certain has the least loss until then.

    Args:
        jobs: Tables of the jobs (arrival, type, cores, memory, executors, duration, least run time).
        vms: Tables of the VMs (cores, memory, rate, kind, numbers by rate ascending).
        prices: float64 [4]: lowest price per core and second, step of cores, price per MiB and second, step of MiB.
        weights: float64 [3], see :func:`decima.systems.cloud.optimum.kernel.search_period`.
        first: See above.
        now: The clock.
        active: int64, jobs that run.
        running: How many.
        finish: float64 [jobs], their ends.
        until: float64 [VMs], until when each is paid for.
        scratch: Room: all moments of change; the table, and cores, memory and VMs needed by ways, float64
            [4, 2 ** SLOTS]; jobs whose ways are in the table, int64 [SLOTS]; slot of every job, int64 [jobs]; and what
            :func:`latest_starts` has filled in, of which the ends change.
    """
    arrival, job_type, cores, memory, executors, duration, least = jobs
    points, tables, slot_job, slot_of, latest, ends = scratch
    values, more_cores, more_memory, spread = tables
    size = 0
    for index in range(running):
        points[size] = finish[active[index]]
        size += 1
    for vm in range(len(until)):
        if until[vm] > now:
            points[size] = until[vm]
            size += 1
    last = len(arrival)
    for job in range(first, last):
        slot_of[job] = -1
        # Until when it runs for certain, if badly placed.
        ends[job] = max(now, arrival[job]) + duration[job] + duration[job] * weights[2] / 100
        points[size] = latest[job]
        points[size + 1] = max(now, arrival[job]) + least[job]
        points[size + 2] = ends[job]
        size += 3
    for index in range(1, size):
        value = points[index]
        at = index
        while at > 0 and points[at - 1] > value:
            points[at] = points[at - 1]
            at -= 1
        points[at] = value
    slots, arrived, begin = 0, first, now
    values[0] = 0.0
    for index in range(size):
        end = points[index]
        if end <= begin:
            continue
        slot = 0
        while slot < slots:
            job = slot_job[slot]
            if ends[job] > begin:
                slot += 1
                continue
            _forget(values, slots, slot)
            slots -= 1
            slot_of[job] = -1
            for other in range(slot, slots):
                slot_job[other] = slot_job[other + 1]
                slot_of[slot_job[other]] = other
        while arrived < last and latest[arrived] <= begin:
            job = arrived
            arrived += 1
            # Jobs beyond the size of the table, and those with one way only, take their least run time.
            if slots == SLOTS or least[job] > duration[job] or executors[job] == 1 or ends[job] <= begin:
                continue
            longer = weights[1] * duration[job] * weights[2] / 100
            for bits in range(1 << slots):
                values[bits | (1 << slots)] = values[bits] + longer
            slot_job[slots], slot_of[job] = job, slots
            slots += 1
        need_cores, need_memory, paid_cores, paid_memory, paid = 0.0, 0.0, 0.0, 0.0, 0
        for index in range(running):
            job = active[index]
            if finish[job] > begin:
                need_cores += cores[job] * executors[job]
                need_memory += memory[job] * executors[job]
        more_cores[0], more_memory[0], spread[0] = 0.0, 0.0, 0.0
        for job in range(first, arrived):
            going = max(now, arrival[job]) + least[job] > begin
            if going:
                need_cores += cores[job] * executors[job]
                need_memory += memory[job] * executors[job]
            slot = slot_of[job]
            if slot >= 0:
                # Alone, at the entries of the table where only this job has a bit: 1 is bad, for ``spread`` good.
                more_cores[1 << slot] = 0.0 if going else cores[job] * executors[job]
                more_memory[1 << slot] = 0.0 if going else memory[job] * executors[job]
                apart = going and job_type[job] != NETWORK_BOUND
                spread[1 << slot] = float(executors[job]) if apart else 0.0
        for vm in range(len(until)):
            if until[vm] > begin:
                paid_cores += vms[0][vm]
                paid_memory += vms[1][vm]
                paid += 1
        for bits in range(1, 1 << slots):
            lowest = bits & -bits
            if lowest != bits:
                more_cores[bits] = more_cores[lowest] + more_cores[bits ^ lowest]
                more_memory[bits] = more_memory[lowest] + more_memory[bits ^ lowest]
                spread[bits] = max(spread[lowest], spread[bits ^ lowest])
        every = (1 << slots) - 1
        length = weights[0] * (end - begin)
        for bits in range(1 << slots):
            rate = max(
                prices[0] * _extra(need_cores + more_cores[bits], paid_cores, prices[1]),
                prices[2] * _extra(need_memory + more_memory[bits], paid_memory, prices[3]),
            )
            missing = spread[every ^ bits] - paid
            if missing > 0.0:
                # As many VMs more, the cheapest that are not paid for.
                apart_rate = 0.0
                for vm in vms[4]:
                    if missing > 0.0 and until[vm] <= begin:
                        apart_rate += vms[2][vm]
                        missing -= 1.0
                rate = max(rate, apart_rate)
            values[bits] += rate * length
        begin = end
    least_loss = values[0]
    for bits in range(1, 1 << slots):
        least_loss = min(least_loss, values[bits])
    return least_loss


@njit
def latest_starts(jobs, below, state, taken, penalty, latest, ends):
    """Fill in the latest starts and ends of jobs from one on.

    A job starts at the latest when its forerunner has, and there is room for it beside what may still run by then, even
    if every executor of the jobs between takes as many places as its cores or its memory could, ``taken`` [jobs, jobs].
    """
    arrival, _job_type, cores, memory, executors, duration, _least = jobs
    free_cores, free_memory, _until, clock, _loss, running, active, counts, finish = state
    start = clock[below]
    for job in range(below, len(arrival)):
        start = max(start, arrival[job])
        while True:
            total, following = 0, np.inf
            for vm in range(free_cores.shape[1]):
                has_cores, has_memory = free_cores[below, vm], free_memory[below, vm]
                for index in range(running[below]):
                    other = active[below, index]
                    if finish[other] <= start:
                        has_cores += counts[other, vm] * cores[other]
                        has_memory += counts[other, vm] * memory[other]
                total += min(has_cores // cores[job], has_memory // memory[job])
            for index in range(running[below]):
                if finish[active[below, index]] > start:
                    following = min(following, finish[active[below, index]])
            for other in range(below, job):
                if ends[other] > start:
                    total -= taken[other, job]
                    following = min(following, ends[other])
            if total >= executors[job]:
                break
            start = following
        latest[job] = start
        ends[job] = start + duration[job] + duration[job] * penalty / 100


@njit
def work_bound(jobs, vms, prices, below, state):
    """Least further cost of jobs from one on, by their cores and memory.

    What is paid for and not in use is free.
    """
    _arrival, _job_type, cores, memory, executors, _duration, least = jobs
    _free_cores, _free_memory, until, clock, _loss, running, active, _counts, finish = state
    need_cores, need_memory, now = 0.0, 0.0, clock[below]
    for job in range(below, len(cores)):
        need_cores += cores[job] * executors[job] * least[job]
        need_memory += memory[job] * executors[job] * least[job]
    for index in range(running[below]):
        job = active[below, index]
        left = executors[job] * max(0.0, finish[job] - now)
        need_cores += cores[job] * left
        need_memory += memory[job] * left
    for vm in range(len(vms[0])):
        left = max(0.0, until[below, vm] - now)
        need_cores -= vms[0][vm] * left
        need_memory -= vms[1][vm] * left
    return max(0.0, prices[0] * need_cores, prices[2] * need_memory)


@njit
def rental_bound(jobs, vms, weights, below, state, dual):
    """Least further loss of jobs from ``below`` on by dual prices, see :mod:`decima.systems.cloud.optimum.rental`.

    Args:
        jobs: See :func:`interval_bound`.
        vms: See there.
        weights: See :func:`interval_bound`.
        below: See above.
        state: What the job ``below`` finds at its clock, rows by depth.
        dual: Loss by dual prices of all jobs from one on, float64 [jobs + 1], and what
            :func:`~decima.systems.cloud.optimum.rental.least_of_vm` takes: options, stack, table, frame.
    """
    after, options, stack, table, frame = dual
    running, active, counts, finish = state[5][below], state[6], state[7], state[8]
    tables = jobs[0], jobs[2], jobs[3]
    total = after[below]
    for vm in range(len(vms[0])):
        size = 0
        for index in range(running):
            job = active[below, index]
            if counts[job, vm] > 0:
                stack[1][below, size] = finish[job]
                stack[2][below, size] = counts[job, vm] * jobs[2][job]
                stack[3][below, size] = counts[job, vm] * jobs[3][job]
                size += 1
        stack[0][below] = size
        vm_class = vms[0][vm], vms[1][vm], weights[0] * vms[2][vm], vms[3][vm]
        total += least_of_vm(tables, options, vm_class, below, state[3][below], stack, table, frame, STATES_PER_BOUND)
    return total


@cached(njit(cache=True, nogil=True))
def bound_of_empty(jobs, vms, prices, weights, state, taken, scratch):
    """:func:`interval_bound` of jobs that find an empty cluster; fills in :func:`latest_starts`, too."""
    until, active, finish = state[2][0], state[6][0], state[8]
    latest_starts(jobs, 0, state, taken, weights[2], scratch[4], scratch[5])
    ends = scratch[5].copy()
    least_loss = interval_bound(jobs, vms, prices, weights, 0, jobs[0][0], active, 0, finish, until, scratch)
    scratch[5][:] = ends
    return least_loss
