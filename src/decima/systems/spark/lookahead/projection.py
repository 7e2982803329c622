"""Projection of a running cluster to one with the jobs in the system alone.

The target has job 0, which stands for all jobs that are gone, then the jobs in the system in order of arrival, then
jobs that are assumed to come. What a scheduler may not know stays behind: jobs that have not arrived, and the
true ends of running tasks, which are drawn anew given how long the tasks have run already.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cfunc, types

from decima.core.cache import cached
from decima.core.heap import heap_push
from decima.core.jit import njit
from decima.core.random import draw_below, draw_uniform
from decima.core.relocation import Numbering, Relocation
from decima.systems.spark.fields import ARRIVING, CLUSTER, FINISHED, NONE, TASK, state_at
from decima.systems.spark.rules.durations import FIRST, FRESH, REST
from decima.systems.spark.state import ClusterState

# Jobs and stages, and what is kept by them, get other numbers; executors, promises, classes and groups keep theirs.
_RELOCATION = Relocation(
    CLUSTER,
    renumbered=("stage", "job", "pool", "source", "stage class", "job class", "pool class", "source class"),
    unchanged=(None, "executor", "commit", "class", "group", "stage list", "job list"),
)
# What a task that runs longer than any that was measured still takes, as a part of its nominal duration.
_OVERDUE = 0.1


class Future(NamedTuple):
    """Jobs that are assumed to come."""

    like: np.ndarray  # int32 [jobs], jobs of the cluster that they are like
    arrival_ms: np.ndarray  # float64 [jobs], ascending


NO_FUTURE = Future(np.zeros(0, np.int32), np.zeros(0))

# ---- chance: one word of memory, set anew before every run, so that candidates share it -----------------------------

# It has the form that the simulator expects of a generator: a compiled function of the address of its state that
# returns 64 random bits. Source: SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
# (2014).
_GAP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS = np.uint64(30), np.uint64(27), np.uint64(31)


@njit
def next_bits(word):
    """64 random bits; ``word`` is the generator, uint64 [1]."""
    state = word[0] + _GAP
    word[0] = state
    state = (state ^ (state >> _BITS[0])) * _FIRST
    state = (state ^ (state >> _BITS[1])) * _SECOND
    return state ^ (state >> _BITS[2])


def _next_bits(word):
    return next_bits(word)


@cache
def _compiled():
    return cached(cfunc(types.uint64(types.CPointer(types.uint64)), cache=True))(_next_bits)


class SharedChance:
    """Source of all chance of a state, for durations and for its scheduler.

    Args:
        state: What draws from it.

    Attributes:
        word: The generator, uint64 [1].
    """

    def __init__(self, state: ClusterState) -> None:
        self.word = np.zeros(1, np.uint64)
        generator, function = self.word.ctypes.data, _compiled().address
        state.put(duration_rng=generator, duration_next=function, policy_rng=generator, policy_next=function)

    def set(self, seed: int) -> None:
        """Set the generator by a seed, a whole number below 2**64."""
        self.word[0] = seed


# ---- projection -----------------------------------------------------------------------------------------------------


@cached(njit(cache=True, nogil=True))
def lay_out(source_address, target_address, jobs, future, future_ms, pools, sources, rows):
    """Fill the tables of the target, and number what is copied.

    Args:
        source_address: State with the tables of all jobs.
        target_address: State whose tables are filled; there must be room.
        jobs: Jobs in the system, in order of arrival, int32 [jobs].
        future: Jobs of the source that those to come are like, in order of arrival, int32 [future].
        future_ms: When they come, ms of simulated time, float64 [future].
        pools: Receives the job of the target, or its null pool, by pool of the source; int32 [jobs of the source + 1].
        sources: Receives the source id there by source id here, int32.
        rows: Receives the source ids that are copied, stages first; int32, as long as ``sources``.

    Returns:
        Number of stages among ``rows``.
    """
    source = state_at(source_address)
    target = state_at(target_address)
    target.job_first_stage[0] = 0
    target.stage_job[0] = 0
    target.stage_tasks[0] = 1
    target.stage_row[0] = 0
    target.stage_group[0] = 0
    stage = 1
    known = len(jobs)
    arrivals = 0
    for position in range(known + len(future)):
        like = jobs[position] if position < known else future[position - known]
        job = position + 1
        target.job_first_stage[job] = stage
        target.job_work_ms[job] = source.job_work_ms[like]
        target.job_arrival_ms[job] = source.job_arrival_ms[like]
        if position >= known:
            target.job_arrival_ms[job] = future_ms[position - known]
        if position >= known or source.job_arrival_ms[like] > 0.0:
            target.arrival_order[arrivals] = job
            arrivals += 1
        for old in range(source.job_first_stage[like], source.job_first_stage[like + 1]):
            target.stage_job[stage] = job
            target.stage_tasks[stage] = source.stage_tasks[old]
            target.stage_row[stage] = source.stage_row[old]
            target.stage_group[stage] = source.stage_group[old]
            target.stage_memory[stage] = source.stage_memory[old]
            target.stage_cpu[stage] = source.stage_cpu[old]
            stage += 1
    for job in range(known + len(future) + 1, target.num_jobs + 1):
        target.job_first_stage[job] = stage
    target.next_arrival = arrivals - len(future)
    target.num_arrivals = arrivals
    # What belongs to a job that is gone is, where anything refers to it yet, at job 0 and its stage.
    pools[:] = 0
    sources[: source.num_stages] = 0
    count = 0
    for index in range(known):
        pools[jobs[index]] = index + 1
        first, start = source.job_first_stage[jobs[index]], target.job_first_stage[index + 1]
        for old in range(first, source.job_first_stage[jobs[index] + 1]):
            sources[old] = start + old - first
            rows[count] = old
            count += 1
    pools[source.num_jobs] = target.num_jobs
    for pool in range(source.num_jobs + 1):
        sources[source.num_stages + pool] = target.num_stages + pools[pool]
    for index in range(known):
        rows[count + index] = source.num_stages + jobs[index]
    rows[count + known] = source.num_stages + source.num_jobs
    return count


@njit
def _level(state, stage, word):
    """First duration list of the level of a task, drawn between two neighbours."""
    row = state.stage_row[stage]
    executors = min(state.job_attached[state.stage_job[stage]], state.grid_width - 1)
    cell = state.row_grid[row] * state.grid_width + executors
    level = state.grid_left[cell]
    if draw_uniform(next_bits(word)) < state.grid_weight[cell]:
        level = state.grid_right[cell]
    return state.row_list[row] + 3 * level


@njit
def _remaining_ms(state, stage, elapsed_ms, word):
    """Remaining task time in ms, drawn among the measured durations longer than its age.

    A time below 0 is not known; then some part of a duration is left.
    """
    lists = _level(state, stage, word)
    bits = next_bits(word)
    if elapsed_ms < 0.0:
        chosen = lists + REST
        index = state.list_offset[chosen] + draw_below(bits, state.list_length[chosen])
        return draw_uniform(next_bits(word)) * (state.values_ms[index] + state.list_add_ms[chosen])
    for situation in (REST, FIRST, FRESH):
        chosen = lists + situation
        first = state.list_offset[chosen]
        end = first + state.list_length[chosen]
        added = state.list_add_ms[chosen]
        longer = 0
        for index in range(first, end):
            if state.values_ms[index] + added > elapsed_ms:
                longer += 1
        if longer > 0:
            left = draw_below(bits, longer)
            for index in range(first, end):
                if state.values_ms[index] + added > elapsed_ms:
                    if left == 0:
                        return state.values_ms[index] + added - elapsed_ms
                    left -= 1
    return _OVERDUE * state.row_nominal_ms[state.stage_row[stage]]


@njit
def _copy_events(source, target):
    """Copy the events as they are, where durations are means."""
    target.heap_size = source.heap_size
    target.sequence = source.sequence
    target.busy_ms = source.busy_ms
    for index in range(source.heap_size):
        target.heap_ms[index] = source.heap_ms[index]
        target.heap_order[index] = source.heap_order[index]
        target.heap_event[index] = source.heap_event[index]


@njit
def _draw_events(source, target, kinds, ends_ms, word):
    """Draw the ends of running tasks; executors under way arrive when they do.

    Events are pushed in the order of executors, so that not even the order in the heap tells of true ends. The time
    that all launched tasks take is that of those drawn, too.
    """
    busy_ms = source.busy_ms
    for executor in range(source.num_executors):
        kinds[executor] = NONE
    for index in range(source.heap_size):
        executor = source.heap_event[index] & 0xFFFFFFFF
        kinds[executor] = source.heap_event[index] >> 32
        ends_ms[executor] = source.heap_ms[index]
    for executor in range(source.num_executors):
        if kinds[executor] == NONE:
            continue
        end_ms = ends_ms[executor]
        if kinds[executor] == TASK:
            start_ms = source.executor_start_ms[executor]
            elapsed_ms = source.now_ms - start_ms if start_ms >= 0.0 else -1.0
            end_ms = source.now_ms + _remaining_ms(source, source.executor_stage[executor], elapsed_ms, word)
            busy_ms += end_ms - ends_ms[executor]
        heap_push(target, end_ms, kinds[executor], executor)
    target.sequence = source.sequence
    target.busy_ms = max(0.0, busy_ms)


@cached(njit(cache=True, nogil=True))
def settle(source_address, target_address, num_jobs, kinds, ends_ms, word):
    """Set what a relocated run has other than the original: jobs, sums, events.

    Args:
        source_address: A state in which a decision is asked for.
        target_address: A state that :func:`lay_out` filled and the run of the source was copied into.
        num_jobs: Jobs in the system.
        kinds: Memory, int64 [executors].
        ends_ms: Memory, float64 [executors].
        word: Source of chance, uint64 [1].
    """
    source = state_at(source_address)
    target = state_at(target_address)
    coming = target.num_arrivals - target.next_arrival
    for job in range(target.num_jobs):
        if job == 0 or job > num_jobs:
            target.job_state[job] = ARRIVING if num_jobs < job <= num_jobs + coming else FINISHED
    target.num_done = 0
    target.area_ms = 0.0
    target.area_time_ms = source.now_ms
    if source.sampled:
        _draw_events(source, target, kinds, ends_ms, word)
    else:
        _copy_events(source, target)


class Projection:
    """Memory with which one cluster is projected to others.

    Args:
        num_jobs: Jobs of the cluster.
        num_stages: Stages of them.
        num_executors: Its executors.
    """

    def __init__(self, num_jobs: int, num_stages: int, num_executors: int) -> None:
        self._num_stages = num_stages
        self._pools = np.zeros(num_jobs + 1, np.int32)
        self._sources, self._rows = np.zeros((2, num_stages + num_jobs + 1), np.int32)
        self._kinds, self._ends_ms = np.zeros(num_executors, np.int64), np.zeros(num_executors)

    def project(
        self, source: ClusterState, target: ClusterState, jobs: np.ndarray, future: Future, word: np.ndarray
    ) -> None:
        """Put the target into the state that the source is in.

        Args:
            source: A state in which a decision is asked for.
            target: A state put to its beginning, with room.
            jobs: Jobs in the system, in order of arrival, int32 [jobs].
            future: Jobs that are assumed to come.
            word: Source of chance, uint64 [1].
        """
        begin, end = source.address, target.address
        stages = lay_out(begin, end, jobs, *future, self._pools, self._sources, self._rows)
        rows = self._rows[:stages], self._rows[: stages + len(jobs) + 1]
        pool_rows = rows[1][stages:] - np.int32(self._num_stages)
        numbers = ((rows[0], self._sources), (jobs, self._pools), (pool_rows, self._pools), (rows[1], self._sources))
        numberings = [Numbering(*each, width=width) for width in (1, source.num_classes) for each in numbers]
        _RELOCATION.copy(source, target, numberings)
        settle(begin, end, len(jobs), self._kinds, self._ends_ms, word)
