"""Compiled lower bounds of the loss of the jobs to come in a busy period.

By work: the cores or the memory of all jobs at the lowest price.

By interval: at every moment VMs in use need the cores and the memory of what runs and of the jobs still to come, in
multiples of the smallest step between VM sizes, at the lowest price per core or MiB; what is already paid for is free.
A job that is well placed by spreading needs as many VMs as it has executors, a badly placed one runs longer: the better
of both counts, for all jobs that may run at the same time together. A job that may have to wait counts from the latest
moment that it can start to the earliest that it can end.
"""

from collections import namedtuple

import numpy as np

from decima.core.jit import njit
from decima.systems.cloud.workload import NETWORK_BOUND

SLOTS = 7  # jobs at a time whose two ways, well or badly placed, are told apart
#: Tables of jobs; of VMs, with their numbers by rate ascending; and rows by depth of what a search has done so far.
Jobs = namedtuple("Jobs", ["arrival", "type", "cores", "memory", "executors", "duration", "least"])
Vms = namedtuple("Vms", ["cores", "memory", "rate", "type", "by_rate"])
State = namedtuple(
    "State", ["free_cores", "free_memory", "until", "clock", "loss", "running", "active", "counts", "finish"]
)
#: All moments of change; the table, and cores, memory and VMs needed by ways, float64 [4, 2 ** SLOTS]; jobs whose ways
#: are in the table, int64 [SLOTS]; slot of every job, int64 [jobs]; latest starts and ends, float64 [jobs].
Room = namedtuple("Room", ["points", "tables", "slot_job", "slot_of", "latest", "ends"])


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
def _change_points(jobs, penalty, first, now, active, finish, until, room):
    """Moments of change, ascending; fills in the ends of badly placed jobs."""
    arrival, duration, points, ends = jobs.arrival, jobs.duration, room.points, room.ends
    size = 0
    for job in active:
        points[size] = finish[job]
        size += 1
    for moment in until:
        if moment > now:
            points[size] = moment
            size += 1
    for job in range(first, len(arrival)):
        room.slot_of[job] = -1
        ends[job] = max(now, arrival[job]) + duration[job] + duration[job] * penalty / 100
        points[size] = room.latest[job]
        points[size + 1] = max(now, arrival[job]) + jobs.least[job]
        points[size + 2] = ends[job]
        size += 3
    return np.sort(points[:size])


@njit
def _leave(begin, slots, room):
    """Take jobs that have ended off the table; returns how many are left."""
    slot, slot_job, slot_of = 0, room.slot_job, room.slot_of
    while slot < slots:
        if room.ends[slot_job[slot]] > begin:
            slot += 1
            continue
        _forget(room.tables[0], slots, slot)
        slots -= 1
        slot_of[slot_job[slot]] = -1
        for other in range(slot, slots):
            slot_job[other] = slot_job[other + 1]
            slot_of[slot_job[other]] = other
    return slots


@njit
def _enter(jobs, weights, job, begin, slots, room):
    """Enter a job into the table; returns how many are in it.

    Jobs beyond the size of the table, and those with one way only, take their least run time.
    """
    duration = jobs.duration[job]
    if slots == SLOTS or jobs.least[job] > duration or jobs.executors[job] == 1 or room.ends[job] <= begin:
        return slots
    longer = weights[1] * duration * weights[2] / 100
    for bits in range(1 << slots):
        room.tables[0, bits | (1 << slots)] = room.tables[0, bits] + longer
    room.slot_job[slots], room.slot_of[job] = job, slots
    return slots + 1


@njit
def _needs(jobs, first, arrived, now, begin, active, finish, slots, room):
    """Cores and memory that are needed for certain; fills in what the table adds."""
    cores, memory, executors = jobs.cores, jobs.memory, jobs.executors
    _values, more_cores, more_memory, spread = room.tables
    need_cores, need_memory = 0.0, 0.0
    for job in active:
        if finish[job] > begin:
            need_cores += cores[job] * executors[job]
            need_memory += memory[job] * executors[job]
    more_cores[0], more_memory[0], spread[0] = 0.0, 0.0, 0.0
    for job in range(first, arrived):
        going = max(now, jobs.arrival[job]) + jobs.least[job] > begin
        if going:
            need_cores += cores[job] * executors[job]
            need_memory += memory[job] * executors[job]
        if room.slot_of[job] >= 0:
            # Alone, at the entries of the table where only this job has a bit: 1 is bad, for ``spread`` good.
            alone = 1 << room.slot_of[job]
            more_cores[alone] = 0.0 if going else cores[job] * executors[job]
            more_memory[alone] = 0.0 if going else memory[job] * executors[job]
            spread[alone] = float(executors[job]) if going and jobs.type[job] != NETWORK_BOUND else 0.0
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
    for vm in vms.by_rate:
        if count > 0.0 and until[vm] <= begin:
            rate += vms.rate[vm]
            count -= 1.0
    return rate


@njit
def interval_bound(jobs, vms, prices, weights, first, now, active, finish, until, room):
    """Least further loss of jobs from ``first`` on, beyond their least run times.

    Moment by moment, for the two ways of every job that can be placed well or badly: a table over the ways of all jobs
    that run at that moment for certain has the least loss until then.

    Args:
        jobs: :class:`Jobs`.
        vms: :class:`Vms`.
        prices: float64 [4]: lowest price per core and second, step of cores, price per MiB and second, step of MiB.
        weights: float64 [3], see :func:`decima.systems.cloud.optimum.kernel.search_period`.
        first: See above.
        now: The clock.
        active: int64, jobs that run.
        finish: float64 [jobs], their ends.
        until: float64 [VMs], until when each is paid for.
        room: :class:`Room`, with what :func:`latest_starts` has filled in, of which the ends change.
    """
    values, more_cores, more_memory, spread = room.tables
    latest = room.latest
    slots, arrived, begin = 0, first, now
    values[0] = 0.0
    for end in _change_points(jobs, weights[2], first, now, active, finish, until, room):
        if end <= begin:
            continue
        slots = _leave(begin, slots, room)
        while arrived < len(latest) and latest[arrived] <= begin:
            slots = _enter(jobs, weights, arrived, begin, slots, room)
            arrived += 1
        need_cores, need_memory = _needs(jobs, first, arrived, now, begin, active, finish, slots, room)
        paid_cores, paid_memory, paid = 0.0, 0.0, 0
        for vm in range(len(until)):
            if until[vm] > begin:
                paid_cores += vms.cores[vm]
                paid_memory += vms.memory[vm]
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

    A job starts at the latest when its forerunner has, and there is room for it and what may still run by then, even if
    every executor of the jobs between takes as many places as its cores or its memory could, ``taken`` [jobs, jobs].
    """
    arrival, cores, memory, duration = jobs.arrival, jobs.cores, jobs.memory, jobs.duration
    running, active, counts, finish = state.running, state.active, state.counts, state.finish
    start = state.clock[below]
    for job in range(below, len(arrival)):
        start = max(start, arrival[job])
        while True:
            total, following = 0, np.inf
            for vm in range(state.free_cores.shape[1]):
                has_cores, has_memory = state.free_cores[below, vm], state.free_memory[below, vm]
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
            if total >= jobs.executors[job]:
                break
            start = following
        latest[job] = start
        ends[job] = start + duration[job] + duration[job] * penalty / 100


@njit
def work_bound(jobs, vms, prices, below, state):
    """Least further cost of jobs from one on, by their cores and memory.

    What is paid for and not in use is free.
    """
    cores, memory, executors, least = jobs.cores, jobs.memory, jobs.executors, jobs.least
    need_cores, need_memory, now = 0.0, 0.0, state.clock[below]
    for job in range(below, len(cores)):
        need_cores += cores[job] * executors[job] * least[job]
        need_memory += memory[job] * executors[job] * least[job]
    for index in range(state.running[below]):
        job = state.active[below, index]
        left = executors[job] * max(0.0, state.finish[job] - now)
        need_cores += cores[job] * left
        need_memory += memory[job] * left
    for vm in range(len(vms.cores)):
        left = max(0.0, state.until[below, vm] - now)
        need_cores -= vms.cores[vm] * left
        need_memory -= vms.memory[vm] * left
    return max(0.0, prices[0] * need_cores, prices[2] * need_memory)


@njit(cache=True, nogil=True)
def bound_of_empty(jobs, vms, prices, weights, state, taken, room):
    """:func:`interval_bound` of jobs that find an empty cluster; also fills in :func:`latest_starts`."""
    until, active, finish = state.until[0], state.active[0], state.finish
    latest_starts(jobs, 0, state, taken, weights[2], room.latest, room.ends)
    ends = room.ends.copy()
    least_loss = interval_bound(jobs, vms, prices, weights, 0, jobs.arrival[0], active[:0], finish, until, room)
    room.ends[:] = ends
    return least_loss
