"""Simulation of a cluster that is only observed: what a service knows of a client's cluster, made ready to run.

Known are the progress of every stage and how many executors each job has and where they go. Not known, and put in their
place: nominal durations for every task, how long running tasks have run, promises of executors (they are given again).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numba import njit

from decima.core.cache import cached
from decima.core.heap import heap_push
from decima.core.record import GIVEN
from decima.systems.spark.fields import ACTIVE, ARRAYS, FINISHED, MOVE, TASK, state_at
from decima.systems.spark.rules.frontier import add_runnable, stage_room, update_frontier
from decima.systems.spark.rules.pools import join_job_pool, join_null_pool, mark_all_pools
from decima.systems.spark.state import ClusterState

# What is looked at: of the tables all but durations, of the run these.
_STAGES = ("stage_next", "stage_finished_tasks", "stage_moving")
_OTHERS = ("job_attached", "active")
_LISTS = {
    "row_grid", "row_list", "grid_left", "grid_right", "grid_weight", "list_offset", "list_length", "list_add_ms",
    "list_mean_ms", "values_ms",
}  # fmt: skip
_TABLES = [name for name, field in ARRAYS.items() if field.storage == GIVEN and name not in _LISTS]


class Snapshot:
    """What is known of a cluster at one moment, as copies: the cluster may change while a plan is made.

    Args:
        state: The cluster.
    """

    def __init__(self, state: ClusterState) -> None:
        self.settings, self.extents = state.settings, dict(state.extents)
        self.arrays = {name: getattr(state, name).copy() for name in (*_TABLES, *_STAGES, *_OTHERS)}
        self.now_ms, self.num_active, self.num_executors = state.now_ms, state.num_active, state.num_executors
        self.moving_delay_ms = state.moving_delay_ms


class ObservedCluster:
    """Cluster in the simulator with the extents of one that is observed.

    Args:
        snapshot: What is known of it at first; later ones must have the same extents.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        rows = snapshot.extents["row"]
        extents = snapshot.extents | {"grid cell": 1, "duration list": 3 * rows, "duration": rows}
        arrays = {name: snapshot.arrays[name].copy() for name in _TABLES}
        for name in _LISTS:
            arrays[name] = np.zeros(extents[ARRAYS[name].extent], ARRAYS[name].dtype)
        # A stage has one list of one duration, whatever the situation.
        arrays["row_list"][:] = 3 * np.arange(rows)
        arrays["list_offset"][:] = np.repeat(np.arange(rows), 3)
        arrays["list_length"][:] = 1
        tables = SimpleNamespace(
            num_jobs=extents["job"],
            num_stages=extents["stage"],
            num_tasks=0,
            grid_width=1,
            extents=extents,
            arrays=arrays,
        )
        self.state = ClusterState(tables, snapshot.settings)
        self._arrays = arrays

    def see(self, snapshot: Snapshot) -> ClusterState:
        """Put the simulated cluster into the state of a snapshot, with all free executors to be offered."""
        state = self.state
        for name in _TABLES:
            self._arrays[name][:] = snapshot.arrays[name]
        nominal_ms = snapshot.arrays["row_nominal_ms"]
        self._arrays["values_ms"][:] = nominal_ms
        self._arrays["list_mean_ms"][:] = np.repeat(nominal_ms, 3)
        state.restart()
        state.put(
            sampled=1,
            now_ms=snapshot.now_ms,
            num_executors=snapshot.num_executors,
            moving_delay_ms=snapshot.moving_delay_ms,
        )
        known = snapshot.arrays
        _rebuild(
            state.address,
            known["active"][: snapshot.num_active].copy(),
            *(known[name] for name in _STAGES),
            known["job_attached"],
        )
        return state


@njit
def _put_stages(state, job, launched, finished, moving, executors):
    """Progress of the stages of a job, and what follows from it; returns how many executors are left.

    Tasks and moves for which there is no executor have not begun.
    """
    first, end = state.job_first_stage[job], state.job_first_stage[job + 1]
    for stage in range(first, end):
        done = min(finished[stage], state.stage_tasks[stage])
        running = min(launched[stage] - done, executors)
        state.stage_finished_tasks[stage] = done
        state.stage_next[stage] = done + max(0, running)
        executors -= max(0, running)
        state.stage_moving[stage] = min(moving[stage], executors)
        state.job_moving[job] += state.stage_moving[stage]
        executors -= state.stage_moving[stage]
        state.stage_saturated[stage] = stage_room(state, stage) <= 0
        state.job_unsaturated[job] += not state.stage_saturated[stage]
        state.job_unexhausted[job] += state.stage_next[stage] < state.stage_tasks[stage]
        state.job_unfinished[job] += state.stage_finished_tasks[stage] < state.stage_tasks[stage]
    state.num_jobs_unsaturated += state.job_unsaturated[job] > 0
    for stage in range(first, end):
        row = state.stage_row[stage]
        for index in range(state.parent_offset[row], state.parent_offset[row + 1]):
            parent = first + state.parent[index]
            state.stage_unsaturated_parents[stage] += not state.stage_saturated[parent]
            state.stage_unfinished_parents[stage] += state.stage_finished_tasks[parent] < state.stage_tasks[parent]
        if state.stage_unfinished_parents[stage] == 0 and state.stage_next[stage] < state.stage_tasks[stage]:
            add_runnable(state, stage)
        update_frontier(state, stage)
    return executors


@njit
def _put_busy(state, job, executor):
    """Executors of a job that run tasks, and those under way to it; returns the next free one."""
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        for _ in range(state.stage_next[stage] - state.stage_finished_tasks[stage]):
            state.executor_job[executor] = job
            state.executor_stage[executor] = stage
            state.executor_last[executor] = stage
            state.executor_start_ms[executor] = -1.0
            state.stage_executors[stage] += 1
            state.job_attached[job] += 1
            heap_push(state, state.now_ms + state.row_nominal_ms[state.stage_row[stage]], TASK, executor)
            executor += 1
        for _ in range(state.stage_moving[stage]):
            state.executor_destination[executor] = stage
            state.executor_moving[executor] = 1
            heap_push(state, state.now_ms + state.moving_delay_ms, MOVE, executor)
            executor += 1
    return executor


@njit
def _put_waiting(state, job, executor, attached):
    """Executors of a job that do neither; returns the next free one."""
    while state.job_attached[job] < attached and executor < state.num_executors:
        state.executor_job[executor] = job
        state.job_attached[job] += 1
        join_job_pool(state, executor)
        executor += 1
    return executor


@cached(njit(cache=True, nogil=True))
def _rebuild(address, active, launched, finished, moving, attached):
    """Fill a state that was put to its beginning.

    Args:
        address: The state; its tables, time and number of executors are set.
        active: Jobs in the system in order of arrival, int32 [jobs].
        launched: Tasks launched, int32 [stages].
        finished: Tasks finished, int32 [stages].
        moving: Executors under way, int32 [stages].
        attached: Executors that a job has, int32 [jobs].
    """
    state = state_at(address)
    for job in range(state.num_jobs):
        state.job_state[job] = FINISHED
    executors = state.num_executors
    for index in range(len(active)):
        job = active[index]
        state.job_state[job] = ACTIVE
        state.active[index] = job
        state.num_active += 1
        executors = _put_stages(state, job, launched, finished, moving, executors)
    executor = 0
    for index in range(len(active)):
        executor = _put_busy(state, active[index], executor)
    for index in range(len(active)):
        executor = _put_waiting(state, active[index], executor, attached[active[index]])
    while executor < state.num_executors:
        join_null_pool(state, executor)
        executor += 1
    for record in range(state.num_commits):
        state.commit_next[record] = record + 1 if record + 1 < state.num_commits else -1
    mark_all_pools(state)
