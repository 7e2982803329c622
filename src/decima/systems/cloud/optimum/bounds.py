"""Compiled lower bounds of the loss of the jobs to come in a busy period.

By work: the cores or the memory of all jobs at the lowest price.

By interval: at every moment VMs in use need the cores and the memory of what runs and of the jobs still to come, in
multiples of the smallest step between VM sizes, at the lowest price per core or MiB; what is already paid for is free.
A job that is well placed by spreading needs as many VMs as it has executors, a badly placed one runs longer: the better
of both counts, for all jobs that may run at the same time together. A job that may have to wait counts from the latest
moment that it can start to the earliest that it can end.
"""

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit
from decima.systems.cloud.workload import NETWORK_BOUND

SLOTS = 7  # jobs at a time whose two ways, well or badly placed, are told apart


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
def _change_points(jobs, penalty, first, now, active, finish, until, scratch):
    """Moments of change, ascending; fills in the ends of badly placed jobs."""
    arrival, _type, _cores, _memory, _executors, duration, least = jobs
    points, _tables, _slot_job, slot_of, latest, ends = scratch
    size = 0
    for job in active:
        points[size] = finish[job]
        size += 1
    for moment in until:
        if moment > now:
            points[size] = moment
            size += 1
    for job in range(first, len(arrival)):
        slot_of[job] = -1
        ends[job] = max(now, arrival[job]) + duration[job] + duration[job] * penalty / 100
        points[size] = latest[job]
        points[size + 1] = max(now, arrival[job]) + least[job]
        points[size + 2] = ends[job]
        size += 3
    return np.sort(points[:size])


@njit
def _leave(begin, slots, scratch):
    """Take jobs that have ended off the table; returns how many are left."""
    _points, tables, slot_job, slot_of, _latest, ends = scratch
    slot = 0
    while slot < slots:
        if ends[slot_job[slot]] > begin:
            slot += 1
            continue
        _forget(tables[0], slots, slot)
        slots -= 1
        slot_of[slot_job[slot]] = -1
        for other in range(slot, slots):
            slot_job[other] = slot_job[other + 1]
            slot_of[slot_job[other]] = other
    return slots


@njit
def _enter(jobs, weights, job, begin, slots, scratch):
    """Enter a job into the table; returns how many are in it.

    Jobs beyond the size of the table, and those with one way only, take their least run time.
    """
    _points, tables, slot_job, slot_of, _latest, ends = scratch
    executors, duration, least = jobs[4], jobs[5], jobs[6]
    if slots == SLOTS or least[job] > duration[job] or executors[job] == 1 or ends[job] <= begin:
        return slots
    longer = weights[1] * duration[job] * weights[2] / 100
    for bits in range(1 << slots):
        tables[0, bits | (1 << slots)] = tables[0, bits] + longer
    slot_job[slots], slot_of[job] = job, slots
    return slots + 1


@njit
def _needs(jobs, first, arrived, now, begin, active, finish, slots, scratch):
    """Cores and memory that are needed for certain; fills in what the table adds."""
    arrival, job_type, cores, memory, executors, _duration, least = jobs
    _points, tables, _slot_job, slot_of, _latest, _ends = scratch
    _values, more_cores, more_memory, spread = tables
    need_cores, need_memory = 0.0, 0.0
    for job in active:
        if finish[job] > begin:
            need_cores += cores[job] * executors[job]
            need_memory += memory[job] * executors[job]
    more_cores[0], more_memory[0], spread[0] = 0.0, 0.0, 0.0
    for job in range(first, arrived):
        going = max(now, arrival[job]) + least[job] > begin
        if going:
            need_cores += cores[job] * executors[job]
            need_memory += memory[job] * executors[job]
        if slot_of[job] >= 0:
            # Alone, at the entries of the table where only this job has a bit: 1 is bad, for ``spread`` good.
            alone = 1 << slot_of[job]
            more_cores[alone] = 0.0 if going else cores[job] * executors[job]
            more_memory[alone] = 0.0 if going else memory[job] * executors[job]
            spread[alone] = float(executors[job]) if going and job_type[job] != NETWORK_BOUND else 0.0
    for bits in range(1, 1 << slots):
        lowest = bits & -bits
        if lowest != bits:
            more_cores[bits] = more_cores[lowest] + more_cores[bits ^ lowest]
            more_memory[bits] = more_memory[lowest] + more_memory[bits ^ lowest]
            spread[bits] = max(spread[lowest], spread[bits ^ lowest])
    return need_cores, need_memory


@njit
def _cheapest(vms, until, begin, count):
    """Rate of the ``count`` cheapest VMs that are not paid for."""
    rate = 0.0
    for vm in vms[4]:
        if count > 0.0 and until[vm] <= begin:
            rate += vms[2][vm]
            count -= 1.0
    return rate


@njit
def interval_bound(jobs, vms, prices, weights, first, now, active, finish, until, scratch):
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
        finish: float64 [jobs], their ends.
        until: float64 [VMs], until when each is paid for.
        scratch: Room: all moments of change; the table, and cores, memory and VMs needed by ways, float64
            [4, 2 ** SLOTS]; jobs whose ways are in the table, int64 [SLOTS]; slot of every job, int64 [jobs]; and what
            :func:`latest_starts` has filled in, of which the ends change.
    """
    values, more_cores, more_memory, spread = scratch[1]
    latest = scratch[4]
    slots, arrived, begin = 0, first, now
    values[0] = 0.0
    for end in _change_points(jobs, weights[2], first, now, active, finish, until, scratch):
        if end <= begin:
            continue
        slots = _leave(begin, slots, scratch)
        while arrived < len(latest) and latest[arrived] <= begin:
            slots = _enter(jobs, weights, arrived, begin, slots, scratch)
            arrived += 1
        need_cores, need_memory = _needs(jobs, first, arrived, now, begin, active, finish, slots, scratch)
        paid_cores, paid_memory, paid = 0.0, 0.0, 0
        for vm in range(len(until)):
            if until[vm] > begin:
                paid_cores += vms[0][vm]
                paid_memory += vms[1][vm]
                paid += 1
        length = weights[0] * (end - begin)
        for bits in range(1 << slots):
            rate = max(
                prices[0] * _extra(need_cores + more_cores[bits], paid_cores, prices[1]),
                prices[2] * _extra(need_memory + more_memory[bits], paid_memory, prices[3]),
            )
            missing = spread[((1 << slots) - 1) ^ bits] - paid
            values[bits] += max(rate, _cheapest(vms, until, begin, missing)) * length
        begin = end
    return values[: 1 << slots].min()


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


@cached(njit(cache=True, nogil=True))
def bound_of_empty(jobs, vms, prices, weights, state, taken, scratch):
    """:func:`interval_bound` of jobs that find an empty cluster; fills in :func:`latest_starts`, too."""
    until, active, finish = state[2][0], state[6][0], state[8]
    latest_starts(jobs, 0, state, taken, weights[2], scratch[4], scratch[5])
    ends = scratch[5].copy()
    least_loss = interval_bound(jobs, vms, prices, weights, 0, jobs[0][0], active[:0], finish, until, scratch)
    scratch[5][:] = ends
    return least_loss
