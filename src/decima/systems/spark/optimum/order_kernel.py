"""Compiled depth-first search over all orders of a batch, with shared beginnings.

In the simplified environment all tasks of a stage take equally long and executors are interchangeable, so the kernel
moves *groups* (finish time, stage, number of executors) instead of tasks. The rules are those of the event simulator
without commitments:

- an executor whose stage has tasks left takes the next one; otherwise it is offered (§5.2, scheduling events);
- offered executors go to the first job of the order with a runnable stage, there to the stage that heads the heaviest
  path, one for each task that it has to launch, then to the next stage or job;
- with ``runnable_only`` off they do not pass a job that has further tasks to launch, whose parents still run: one for
  each such task waits, idle, and is offered again when something ends;
- everything that ends at one instant has ended before executors are offered.

A job that no offer has reached yet cannot influence the run. So the run of an order is that of every order with the
same first k jobs until executors are left over by these k, and the search continues from there once for each choice of
the next job. Nothing is approximated: every order is simulated to its end, most of it together with others.
"""

import numpy as np
from llvmlite import ir
from numba import types

from decima.core.cache import cached
from decima.core.jit import intrinsic, njit

# A state is one row of int64 and one of float64. Scalars first; the sections behind them are laid out by ``layout``.
GROUPS, IDLE, OFFERED, NUM_SCALARS = 0, 1, 2, 3
NOW, FINISH_SUM, NUM_TIMES = 0, 1, 2
WORD = 64
PACK = 32  # a group is stage << PACK | executors
# How ``run_known`` ends: the run is over, it asks for the next job, or it has worked long enough for one call.
ENDED, ASKS, PAUSED = 0, 1, 2
# What a search keeps between calls: int64 [4] and float64 [2].
DEPTH, SIMULATED, RULED_OUT, RUNNING, NUM_COUNTS = 0, 1, 2, 3, 4
BEST, BOUND = 0, 1
# Work of one call, about the groups that end; some milliseconds.
WORK = 1 << 20


@intrinsic(lambda word: (int(word) & -int(word)).bit_length() - 1)
def _lowest_bit(_typing, word):
    """Position of the lowest set bit of an int64 that is not 0."""

    def codegen(_context, builder, _signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@njit
def layout(stages, jobs, words):
    """Offsets of the sections of a row: to_launch, unfinished, parents, launchable, pending, open, groups."""
    to_launch = NUM_SCALARS
    unfinished = to_launch + stages
    parents = unfinished + stages
    launchable = parents + stages
    pending = launchable + jobs
    opened = pending + jobs
    groups = opened + jobs * words
    return to_launch, unfinished, parents, launchable, pending, opened, groups


@njit(inline="always")
def _add_group(size, finishes, groups, finish, stage, executors):
    """Insert a group; they are sorted by finish time, the earliest last. Returns their number."""
    hole = size
    while hole > 0 and finishes[hole - 1] <= finish:
        finishes[hole] = finishes[hole - 1]
        groups[hole] = groups[hole - 1]
        hole -= 1
    finishes[hole] = finish
    groups[hole] = stage << PACK | executors
    return size + 1


@njit
def run_known(state, times, order, known, position, runnable_only, batch, finish_ms):
    """Continue a run until an offer reaches a job that is not known yet.

    Args:
        state: int64 row.
        times: float64 row.
        order: int64 [jobs], of which the first ``known`` are decided.
        known: See ``order``.
        position: Place in the order that offers have reached: of the last known job if the run asked for it, 0 if it
            was paused.
        runnable_only: See the module.
        batch: Tables of the jobs.
        finish_ms: Receives completion times.

    Returns:
        (``ENDED``, ``ASKS`` or ``PAUSED``, work done).
    """
    duration_ms, job_of, rank_of, stage_of, child_offset, child, words = batch
    jobs = len(order)
    sections = layout(len(job_of), jobs, words)
    to_launch = state[sections[0] : sections[1]]
    unfinished = state[sections[1] : sections[2]]
    parents = state[sections[2] : sections[3]]
    launchable = state[sections[3] : sections[4]]
    pending = state[sections[4] : sections[5]]
    opened = state[sections[5] : sections[6]]
    groups = state[sections[6] :]
    finishes = times[NUM_TIMES:]
    offered = state[OFFERED]
    idle = state[IDLE]
    size = state[GROUPS]
    now = times[NOW]
    work = 0
    while True:
        while offered > 0 and position < known:
            job = order[position]
            for word in range(job * words, (job + 1) * words):
                while opened[word] != 0 and offered > 0:
                    stage = stage_of[word * WORD + _lowest_bit(opened[word])]
                    waiting = to_launch[stage]
                    used = min(offered, waiting)
                    offered -= used
                    idle -= used
                    to_launch[stage] = waiting - used
                    launchable[job] -= used
                    if used == waiting:
                        opened[word] &= opened[word] - 1
                    size = _add_group(size, finishes, groups, now + duration_ms[stage], stage, used)
            if not runnable_only:
                offered -= min(offered, launchable[job])
            position += 1
        asks = offered > 0 and known < jobs
        if asks or work >= WORK:
            state[OFFERED] = offered
            state[IDLE] = idle
            state[GROUPS] = size
            times[NOW] = now
            return ASKS if asks else PAUSED, work
        if size == 0:
            return ENDED, work
        now = finishes[size - 1]
        while size > 0 and finishes[size - 1] == now:
            size -= 1
            group = groups[size]
            stage = group >> PACK
            executors = group & ((1 << PACK) - 1)
            while size > 0 and finishes[size - 1] == now and groups[size - 1] >> PACK == stage:
                size -= 1
                executors += groups[size] & ((1 << PACK) - 1)
            job = job_of[stage]
            waiting = to_launch[stage]
            left = unfinished[stage] - executors
            unfinished[stage] = left
            if waiting > 0:
                used = min(executors, waiting)
                executors -= used
                to_launch[stage] = waiting - used
                launchable[job] -= used
                if used == waiting:
                    rank = rank_of[stage]
                    opened[job * words + rank // WORD] &= ~(1 << (rank % WORD))
                size = _add_group(size, finishes, groups, now + duration_ms[stage], stage, used)
            elif left == 0:
                for index in range(child_offset[stage], child_offset[stage + 1]):
                    kid = child[index]
                    parents[kid] -= 1
                    if parents[kid] == 0:
                        rank = rank_of[kid]
                        opened[job * words + rank // WORD] |= 1 << (rank % WORD)
                pending[job] -= 1
                if pending[job] == 0:
                    finish_ms[job] = now
                    times[FINISH_SUM] += now
            idle += executors
            work += 1 + (size >> 4)  # groups are kept in order by moving them
        offered = idle
        position = 0


@njit
def _copy(source, source_times, target, target_times, fixed):
    """Copy a state: the fixed part and the groups in use."""
    size = source[GROUPS]
    for index in range(fixed + size):
        target[index] = source[index]
    for index in range(NUM_TIMES + size):
        target_times[index] = source_times[index]


@njit
def _sort(values, size):
    """Sort the first few values; NumPy's sort takes seconds to compile."""
    for index in range(1, size):
        value = values[index]
        hole = index
        while hole > 0 and values[hole - 1] > value:
            values[hole] = values[hole - 1]
            hole -= 1
        values[hole] = value


@njit
def lower_bound(state, times, batch, path, executors, works, ends):
    """Lower bound of the sum of completion times over all continuations.

    The k-th job to end cannot end before the k smallest remaining works are done by all executors together, nor before
    the k-th smallest of the jobs' own longest remaining paths, where a stage takes as many rounds as its tasks need on
    all executors. Both hold at once, so the later one counts.
    """
    duration_ms, job_of, _rank_of, _stage_of, _child_offset, _child, words = batch
    jobs = len(works)
    to_launch, _unfinished, parents, _launchable, pending, _opened, groups = layout(len(job_of), jobs, words)
    now = times[NOW]
    works[:] = 0.0
    ends[:] = now
    for stage in range(len(job_of)):
        waiting = state[to_launch + stage]
        if waiting > 0:
            job = job_of[stage]
            works[job] += waiting * duration_ms[stage]
            if state[parents + stage] == 0:
                rounds = (waiting + executors - 1) // executors
                ends[job] = max(ends[job], now + rounds * duration_ms[stage] + path[stage])
    for index in range(state[GROUPS]):
        group = state[groups + index]
        stage = group >> PACK
        finish = times[NUM_TIMES + index]
        job = job_of[stage]
        works[job] += (group & ((1 << PACK) - 1)) * (finish - now)
        ends[job] = max(ends[job], finish + path[stage])
    left = 0
    for job in range(jobs):
        if state[pending + job] > 0:
            works[left] = works[job]
            ends[left] = ends[job]
            left += 1
    _sort(works, left)
    _sort(ends, left)
    total = times[FINISH_SUM]
    work = 0.0
    for index in range(left):
        work += works[index]
        total += max(ends[index], now + work / executors)
    return total


@cached(njit(cache=True, nogil=True))
def search_orders(
    prefix, same_before, runnable_only, batch, path, search, executors, prune, sums, best_order, finish_ms
):
    """Simulate orders that begin with ``prefix``; returns whether all are done.

    Args:
        prefix: int64, the first jobs.
        same_before: int64 [jobs], the job of the same profile that has to come earlier, -1: none.
        runnable_only: See the module.
        batch: Tables of the jobs.
        path: float64 ms [stages], least time from the end of a stage to the end of its job.
        search: What is kept between calls, see :meth:`.OrderSearch.search`: states and their
            times by number of known jobs, candidate[k], the job tried in place k, the order as far as decided, jobs
            used in it, counts (``PLACE``, ...) and totals in ms (``BEST``, ``BOUND``).
        executors: Executors of the cluster.
        prune: Leave out what ``lower_bound`` rules out, compared with ``BOUND``.
        sums: float64, receives the sum of completion times of every order, in lexicographic order; without ``prune``.
        best_order: int64 [jobs], receives the first of the best orders, if one is at least as good as ``BOUND``.
        finish_ms: float64 [jobs], receives the completion times of the order simulated last.
    """
    states, clocks, candidate, order, used, counts, totals = search
    jobs = len(same_before)
    fixed = layout(len(path), jobs, batch[6])[6]
    works = np.empty(jobs)
    ends = np.empty(jobs)
    depth = counts[DEPTH]
    left = WORK
    while depth >= 0:
        known = depth + 1
        position = 0
        if not counts[RUNNING]:
            # Take back the job tried last in this place, then find the next one.
            if candidate[depth] >= 0:
                used[candidate[depth]] = 0
            job = candidate[depth] + 1
            if depth < len(prefix):
                job = prefix[depth] if candidate[depth] < 0 else jobs
            else:
                while job < jobs and (used[job] or (same_before[job] >= 0 and not used[same_before[job]])):
                    job += 1
            if job == jobs:
                candidate[depth] = -1
                depth -= 1
                continue
            if left <= 0:
                break
            candidate[depth] = job
            order[depth] = job
            used[job] = 1
            position = depth
            _copy(states[depth], clocks[depth], states[known], clocks[known], fixed)
        code, work = run_known(states[known], clocks[known], order, known, position, runnable_only, batch, finish_ms)
        counts[RUNNING] = code == PAUSED
        if code == PAUSED:
            break
        left -= work + len(path)
        if code == ASKS:
            if prune and known >= len(prefix):
                least = lower_bound(states[known], clocks[known], batch, path, executors, works, ends)
                if least > totals[BOUND] * (1.0 + 1e-9):  # rounding must not rule out what is as good as the best
                    counts[RULED_OUT] += 1
                    continue
            depth = known
            continue
        total = clocks[known, FINISH_SUM]
        if not prune:
            sums[counts[SIMULATED]] = total
        counts[SIMULATED] += 1
        if total < totals[BEST] and total <= totals[BOUND] * (1.0 + 1e-9):
            totals[BEST] = total
            totals[BOUND] = min(totals[BOUND], total)
            best_order[:] = order
    counts[DEPTH] = depth
    return depth < 0
