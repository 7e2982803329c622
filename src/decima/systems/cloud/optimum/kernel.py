"""Compiled depth-first search over all placements of a busy period, pruned by bounds.

Jobs come in order and start as soon as they fit; a node is a job that fits, its children are the placements of its
executors: counts per VM, where VMs with the same future are interchangeable. The loss of a job is a weighted sum of
what it adds to the bill and of its run time. Where the cluster is empty when a job arrives, the rest does not depend on
what was before, and its least loss is looked up. A node with the same future as an earlier one that lost no more is
left out; futures are compared by hashes of 64 bits, which confuse any two of a million with a chance below one in ten
million.

What the jobs to come lose at least is said by :mod:`decima.systems.cloud.optimum.bounds`.
"""

from collections import namedtuple

import numpy as np

from decima.core.jit import njit
from decima.systems.cloud.optimum.bounds import interval_bound, latest_starts, work_bound
from decima.systems.cloud.workload import NETWORK_BOUND

CHILDREN = 16384  # most placements of one job that are listed
# Entries of ``cursor``: depth of the search, nodes so far, whether it is over, whether a node had too many placements.
DEPTH, NODES, OVER, TOO_MANY, NUM_CURSOR = 0, 1, 2, 3, 4

#: Jobs, VMs and prices (see :func:`decima.systems.cloud.optimum.bounds.interval_bound`); float64 [3], loss per cost
#: and per second of run time, per cent of the penalty; int64 [jobs, jobs], places for the second job that the first
#: may take if it still runs then; float64 [jobs + 1], least loss from a job on with an empty cluster, NaN where not
#: known, 0 at the end.
Period = namedtuple("Period", ["jobs", "vms", "prices", "weights", "taken", "known"])
#: Rows by depth, see ``_release``; children by depth, see ``_list_children``; room for rules; hashes (uint64) of
#: what was met, at places by their last bits, and their losses, a power of two of them.
Memory = namedtuple("Memory", ["state", "lists", "scratch", "seen"])
#: Float64 [1], least loss found so far, or a value to be beaten; int64 [jobs, VMs], receives the placement of the jobs
#: before the next number; int64 [1], where it is continued by what is known.
Best = namedtuple("Best", ["loss", "counts", "reached"])


@njit
def _release(jobs, depth, now, state):
    running, active, counts = state.running, state.active, state.counts
    kept = 0
    for index in range(running[depth]):
        job = active[depth, index]
        if state.finish[job] <= now:
            for vm in range(counts.shape[1]):
                state.free_cores[depth, vm] += counts[job, vm] * jobs.cores[job]
                state.free_memory[depth, vm] += counts[job, vm] * jobs.memory[job]
        else:
            active[depth, kept] = job
            kept += 1
    running[depth] = kept


@njit
def _rooms(jobs, depth, state, room):
    total = 0
    for vm in range(len(room)):
        cores, memory = state.free_cores[depth, vm], state.free_memory[depth, vm]
        room[vm] = min(cores // jobs.cores[depth], memory // jobs.memory[depth])
        total += room[vm]
    return total


@njit
def _interchangeable(vms, depth, now, state, same_as):
    """For every VM the last one before it that has the same future, -1: none."""
    until, active, counts = state.until, state.active, state.counts
    for vm in range(len(same_as)):
        same_as[vm] = -1
        for other in range(vm - 1, -1, -1):
            idle = until[depth, vm] <= now and until[depth, other] <= now
            same = vms.type[vm] == vms.type[other] and (idle or until[depth, vm] == until[depth, other])
            for index in range(state.running[depth]):
                job = active[depth, index]
                same = same and counts[job, vm] == counts[job, other]
            if same:
                same_as[vm] = other
                break


@njit
def _is_good(job_type, need, used):
    return used == (1 if job_type == NETWORK_BOUND else need)


@njit
def _list_children(jobs, vms, weights, depth, cutoff, state, lists, scratch):
    """List placements of a job below ``cutoff``, cheapest first; returns whether they fit."""
    children, _next, placements, losses, order = lists
    room, same_as, chosen, _bound = scratch
    until, now = state.until[depth], state.clock[depth]
    count, need = len(room), jobs.executors[depth]
    _interchangeable(vms, depth, now, state, same_as)
    size, vm, left = 0, 0, need
    chosen[0] = -1
    down = True
    while vm >= 0:
        if down:
            most = min(room[vm], left)
            if same_as[vm] >= 0:
                most = min(most, chosen[same_as[vm]])
            chosen[vm] = most
        else:
            left += chosen[vm]
            chosen[vm] -= 1
            if chosen[vm] < 0:
                vm -= 1
                continue
        left -= chosen[vm]
        if left > 0 and vm + 1 < count:
            vm += 1
            down = True
            continue
        down = False
        if left > 0:
            # The last VM has not room enough; fewer here cannot help, so the one before gets fewer.
            left += chosen[vm]
            vm -= 1
            continue
        used = 0
        for other in range(vm + 1):
            used += chosen[other] > 0
        good = _is_good(jobs.type[depth], need, used)
        run = jobs.duration[depth]
        if not good:
            run = run + run * weights[2] / 100
        cost = 0.0
        for other in range(vm + 1):
            if chosen[other] > 0:
                cost += vms.rate[other] * (run if now > until[other] else max(0.0, now + run - until[other]))
        if weights[0] * cost + weights[1] * run >= cutoff:
            continue
        if size == CHILDREN:
            return False
        losses[depth, size] = weights[0] * cost + weights[1] * run
        for other in range(count):
            placements[depth, size, other] = chosen[other] if other <= vm else 0
        at = size
        while at > 0 and losses[depth, order[depth, at - 1]] > losses[depth, size]:
            order[depth, at] = order[depth, at - 1]
            at -= 1
        order[depth, at] = size
        size += 1
    children[depth] = size
    return True


@njit
def _mix(value):
    """A well mixed uint64 of a uint64 (the finalizer of splitmix64)."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit
def _future(vms, depth, state):
    """Hash of all that the rest of a search depends on at a depth.

    VMs of a type may change places.
    """
    until, now = state.until[depth], state.clock[depth]
    running, active, counts, finish = state.running[depth], state.active, state.counts, state.finish
    total = _mix(np.uint64(depth + 1)) + _mix(np.uint64(np.int64(now * 1048576.0) + 77))
    for index in range(running):
        job = active[depth, index]
        total += _mix(np.uint64(np.int64(finish[job] * 1048576.0)) + _mix(np.uint64(job + 1)))
    for vm in range(len(until)):
        vm_hash = _mix(np.uint64(vms.type[vm] + 1))
        if until[vm] > now:
            vm_hash = _mix(vm_hash + np.uint64(np.int64(until[vm] * 1048576.0)))
        for index in range(running):
            job = active[depth, index]
            if counts[job, vm] > 0:
                vm_hash = _mix(vm_hash + _mix(np.uint64(job * 1000003 + counts[job, vm])))
        total += _mix(vm_hash)
    return total


@njit
def _seen(hashes, losses, key, loss):
    """Whether the same future was met with no greater loss; keeps the smaller one."""
    index = np.int64(key & np.uint64(len(hashes) - 1))
    if hashes[index] == key and losses[index] <= loss + 1e-9:
        return True
    hashes[index] = key
    losses[index] = loss
    return False


@njit
def _enter(jobs, depth, state, scratch):
    """Move the clock until the job fits; returns whether the cluster is empty."""
    running, active, finish = state.running, state.active, state.finish
    now = max(state.clock[depth], jobs.arrival[depth])
    _release(jobs, depth, now, state)
    empty = running[depth] == 0 and now == jobs.arrival[depth]
    while _rooms(jobs, depth, state, scratch[0]) < jobs.executors[depth]:
        now = finish[active[depth, 0]]
        for index in range(1, running[depth]):
            now = min(now, finish[active[depth, index]])
        _release(jobs, depth, now, state)
    state.clock[depth] = now
    return empty


@njit(cache=True, nogil=True)
def search_period(period, memory, start, cursor, best, nodes):
    """Continue the search over jobs ``start`` and later of a period for some nodes.

    Args:
        period: :class:`Period`.
        memory: :class:`Memory`.
        start: Where the search begins, with an empty cluster.
        cursor: int64 [NUM_CURSOR], kept between calls.
        best: :class:`Best`.
        nodes: Nodes of this call.
    """
    jobs, vms, prices, weights, taken, known = period
    state, lists, scratch, seen = memory
    free_cores, free_memory, until, clock, loss, running, active, counts, finish = state
    children, following, placements, losses, order = lists
    count = len(jobs.arrival)
    depth = cursor[DEPTH]
    until_node = cursor[NODES] + nodes
    if depth < 0:  # the root
        depth = start
        _enter(jobs, depth, state, scratch)
        cutoff = best.loss[0]
        for job in range(depth + 1, count):
            cutoff -= weights[1] * jobs.least[job]
        if not _list_children(jobs, vms, weights, depth, cutoff, state, lists, scratch):
            cursor[TOO_MANY] = 1
            return
        following[depth] = 0
    while depth >= start:
        if cursor[NODES] >= until_node:
            cursor[DEPTH] = depth
            return
        # The run times of the jobs to come are lost in any case.
        rest = 0.0
        for job in range(depth + 1, count):
            rest += weights[1] * jobs.least[job]
        if following[depth] == children[depth]:
            depth -= 1
            continue
        child = order[depth, following[depth]]
        following[depth] += 1
        total = loss[depth] + losses[depth, child]
        limit = best.loss[0] if np.isinf(best.loss[0]) else best.loss[0] - 1e-9 * abs(best.loss[0])
        if total + rest >= limit:
            following[depth] = children[depth]  # all others lose more
            continue
        cursor[NODES] += 1
        now = clock[depth]
        used = 0
        for vm in range(free_cores.shape[1]):
            used += placements[depth, child, vm] > 0
        run = jobs.duration[depth]
        if not _is_good(jobs.type[depth], jobs.executors[depth], used):
            run = run + run * weights[2] / 100
        finish[depth] = now + run
        below = depth + 1
        for vm in range(free_cores.shape[1]):
            number = placements[depth, child, vm]
            counts[depth, vm] = number
            free_cores[below, vm] = free_cores[depth, vm] - number * jobs.cores[depth]
            free_memory[below, vm] = free_memory[depth, vm] - number * jobs.memory[depth]
            until[below, vm] = max(until[depth, vm], finish[depth]) if number > 0 else until[depth, vm]
        for index in range(running[depth]):
            active[below, index] = active[depth, index]
        active[below, running[depth]] = depth
        running[below] = running[depth] + 1
        clock[below] = now
        loss[below] = total
        empty = below == count
        if not empty:
            bound = work_bound(jobs, vms, prices, below, state)
            if total + rest + weights[0] * bound >= limit:
                continue
            latest_starts(jobs, below, state, taken, weights[2], scratch[3].latest, scratch[3].ends)
            going = active[below, : running[below]]
            bound = interval_bound(jobs, vms, prices, weights, below, now, going, finish, until[below], scratch[3])
            if total + rest + bound >= limit:
                continue
            empty = _enter(jobs, below, state, scratch) and not np.isnan(known[below])
            if not empty and _seen(seen[0], seen[1], _future(vms, below, state), total):
                continue
        if empty:
            total += known[below]
            if total < limit:
                best.loss[0] = total
                best.reached[0] = below
                for job in range(start, below):
                    for vm in range(free_cores.shape[1]):
                        best.counts[job, vm] = counts[job, vm]
            continue
        cutoff = limit - total - rest + weights[1] * jobs.least[below]
        if not _list_children(jobs, vms, weights, below, cutoff, state, lists, scratch):
            cursor[TOO_MANY] = 1
            return
        following[below] = 0
        depth = below
    cursor[DEPTH] = depth
    cursor[OVER] = 1
