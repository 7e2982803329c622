"""Memory of a mirrored cluster: positions of jobs in the state, and derived numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, fields
from types import SimpleNamespace

import numpy as np

from decima.connect.service.graphs import JobGraph
from decima.connect.service.limits import Account
from decima.connect.service.wire import JOB_FIELDS, STAGE_FIELDS
from decima.core.record import BOUND
from decima.core.relocation import Numbering, Relocation, restart_rows
from decima.systems.spark.fields import ACTIVE, ARRAYS, CLUSTER, NONE
from decima.systems.spark.policy.fields import POLICY_SLOT
from decima.systems.spark.schedulers.fields import RULE, rule_record
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState

# Single numbers that are read and written often.
_VIEWED = (
    *STAGE_FIELDS.values(), *JOB_FIELDS.values(), "runnable_next", "runnable_prev", "runnable_head", "runnable_tail",
    "stage_job", "stage_tasks", "stage_runnable", "stage_in_frontier", "stage_saturated", "job_frontier",
    "stage_unsaturated_parents", "job_unsaturated", "job_unexhausted",
)  # fmt: skip
# What a job takes along to another position: all that is kept by stage or by job; the rest is of the whole cluster.
_MOVED = ("stage", "job")
_OF_CLUSTER = {field.extent for field in CLUSTER.fields} - set(_MOVED)
_STATE_RELOCATION = Relocation(CLUSTER, _MOVED, left=_OF_CLUSTER)
_RULE_RELOCATION = Relocation(RULE, _MOVED)
# What is written once of a stage and of a job, besides numbers and edges.
_OF_STAGE = ("stage_tasks", "row_level", "row_nominal_ms", "row_path_work_ms", "row_path_ms")
_OF_JOB = ("job_arrival_ms", "job_work_ms")
# What a stage takes besides arrays: ids, durations, lists.
_STAGE_BYTES = 400
# Hints to rules, which jobs bring when they come.
_HINTS = ("job_rank", "job_limit_cap")


@dataclass(frozen=True)
class Capacity:
    """Sizes that a mirror has room for; they size the workspace of a learned policy."""

    jobs: int  # jobs, those that are gone included
    stages: int  # stages of these jobs
    edges: int  # edges between them
    job_stages: int  # stages of the largest job
    levels: int  # edges on the longest path of a job, plus 1
    executors: int  # executors of the cluster

    def covers(self, need: Capacity) -> bool:
        """Whether no size of another capacity is larger."""
        return all(getattr(self, field.name) >= getattr(need, field.name) for field in fields(self))

    def plus(self, more: Capacity) -> Capacity:
        """Capacity for the jobs of two."""
        return Capacity(
            jobs=self.jobs + more.jobs,
            stages=self.stages + more.stages,
            edges=self.edges + more.edges,
            job_stages=max(self.job_stages, more.job_stages),
            levels=max(self.levels, more.levels),
            executors=max(self.executors, more.executors),
        )

    def suits(self, need: Capacity) -> bool:
        """Whether jobs of a need leave room for half their number, and not too much."""
        half_more = Capacity(
            3 * need.jobs // 2, 3 * need.stages // 2, 3 * need.edges // 2, need.job_stages, need.levels, need.executors
        )
        return self.covers(half_more) and self.stages <= 8 * max(64, need.stages)

    def grown(self, need: Capacity) -> Capacity:
        """Capacity for a need: twice what jobs use, and at least the present rest."""
        return Capacity(
            jobs=max(8, 2 * need.jobs),
            stages=max(64, 2 * need.stages),
            edges=max(64, 2 * need.edges),
            job_stages=max(self.job_stages, need.job_stages),
            levels=max(self.levels, need.levels),
            executors=max(self.executors, need.executors),
        )


class MirrorTables:
    """Workload tables of a mirrored cluster; row ``s`` of the profile tables is stage ``s``.

    Nothing is simulated on it, so the tables of task durations are empty.

    Args:
        capacity: Room for jobs and executors.
        history: Arrivals to remember, each in the place of a job behind all others.
    """

    def __init__(self, capacity: Capacity, history: int = 0) -> None:
        self.num_jobs = capacity.jobs + history
        # One more stage: it shows the policy the longest path there may be.
        self.num_stages = capacity.stages + 1
        self.num_tasks = 0
        self.grid_width = 1
        self.extents = {
            "job": self.num_jobs,
            "job + 1": self.num_jobs + 1,
            "stage": self.num_stages,
            "row": self.num_stages,
            "row + 1": self.num_stages + 1,
            "edge": capacity.edges,
            "arrival": history,
            "grid cell": 0,
            "duration list": 0,
            "duration": 0,
            "class": 1,
            "group": 1,
        }
        self.arrays = {
            name: np.zeros(self.extents[field.extent], dtype=field.dtype)
            for name, field in ARRAYS.items()
            if field.storage == BOUND
        }
        self.arrays["stage_row"][:] = np.arange(self.num_stages)
        self.arrays["arrival_order"][:] = np.arange(capacity.jobs, self.num_jobs)
        self.arrays["row_level"][-1] = capacity.levels - 1
        # Executors of a real cluster are alike, and every stage fits them.
        self.arrays["class_memory"][:] = self.arrays["class_cpu"][:] = self.arrays["group_fits"][:] = 1
        self.arrays["class_executors"][:] = capacity.executors


@dataclass
class Slot:
    """Position of a job in the mirror: its index, its first stage, and its graph."""

    job: int
    first: int
    graph: JobGraph
    size: int = field(init=False)  # number of stages

    def __post_init__(self) -> None:
        self.size = len(self.graph.stage_ids)


def _memory_bytes(state: ClusterState) -> int:
    """Size of a state's arrays and of those of its scheduler."""
    return sum(
        record.extents[field.extent] * field.dtype.itemsize
        for record in (state, *state.attached.values())
        for field in record.layout.arrays.values()
    )


def size_of(graphs: Collection[JobGraph]) -> Capacity:
    """Capacity that some jobs take."""
    return Capacity(
        jobs=len(graphs),
        stages=sum(len(graph.dag) for graph in graphs),
        edges=sum(graph.dag.num_edges for graph in graphs),
        job_stages=max((len(graph.dag) for graph in graphs), default=0),
        levels=max((graph.dag.num_levels for graph in graphs), default=0),
        executors=0,
    )


class JobMemory(ABC):
    """Cluster state whose jobs come and go, by any hashable key, in order of arrival.

    New jobs are written behind the others; when there is no room, all move together over the gaps, or to new memory.

    Args:
        settings: The cluster.
        account: What it takes of the service's budget.
        history: Arrivals to remember, those of jobs that are gone too.

    Raises:
        RefusalError: The budget is exhausted.
    """

    def __init__(self, settings: Settings, account: Account, history: int = 0) -> None:
        self._settings = settings
        self._history: deque[tuple[float, float]] = deque(maxlen=history)  # arrival and work of the last jobs, in ms
        self.account = account
        self.slots: dict[Hashable, Slot] = {}
        self.num_stages = self.num_edges = 0  # of all jobs
        self._keys: list[Hashable] = []
        self._last_arrival_ms = -math.inf
        self._sorted = True  # jobs stand in order of arrival
        self._active: np.ndarray | None = None  # job indices in order of arrival, None: to be found again
        self._next_job = self._next_stage = self._next_edge = 0
        need = Capacity(0, 0, 0, 16, 8, settings.executors)
        self._build(need.grown(need))

    @abstractmethod
    def _start(self, state: ClusterState) -> None:
        """Start a new state, with a scheduler bound to it.

        Raises:
            ConfigError: The scheduler does not work on it.
        """

    # ---- memory -----------------------------------------------------------------------------------------------------

    def _build(self, capacity: Capacity) -> None:
        """Make new memory and move the jobs there.

        Raises:
            ConfigError: The scheduler does not work on it; nothing has changed then.
            RefusalError: The budget is exhausted; nothing has changed then.
        """
        self.account.hold("total_executors", capacity.executors)
        settings = self._settings.replace(executors=capacity.executors)
        state = ClusterState(MirrorTables(capacity, self._history.maxlen), settings)
        for name in _HINTS:
            rule_record(state).bind(name, np.zeros(state.num_jobs), copy=False)
        state.job_first_stage[1] = capacity.job_stages  # the largest job a policy makes room for
        self._start(state)
        self.account.hold("total_bytes", _memory_bytes(state) + capacity.stages * _STAGE_BYTES)
        state.job_first_stage[1] = 0
        old, self.state = getattr(self, "state", None), state
        self._capacity, self._settings = capacity, settings
        # Single numbers are read and written ten times faster through memory views than through NumPy arrays.
        self.views = SimpleNamespace(**{name: memoryview(getattr(state, name)) for name in _VIEWED})
        if old is not None:
            state.put(num_executors=old.num_executors)
            self._move(old)
        self._put_history()

    def _move(self, old: ClusterState) -> None:
        """Write all jobs without gaps into the present state, from another one or from itself."""
        state, same = self.state, old is self.state
        slots = sorted(self.slots.items(), key=lambda item: item[1].first)
        jobs = np.array([slot.job for _, slot in slots], dtype=np.int32)
        sizes = np.array([slot.size for _, slot in slots], dtype=np.int32)
        first = np.zeros(len(slots) + 1, dtype=np.int32)
        np.cumsum(sizes, out=first[1:])
        before = np.array([slot.first for _, slot in slots], dtype=np.int32)
        stages = np.repeat(before - first[:-1], sizes) + np.arange(first[-1], dtype=np.int32)
        rows = {"stage": slice(len(stages), self._next_stage), "job": slice(len(slots), self._next_job)}
        for side in ("parent", "child"):
            offset = getattr(old, f"{side}_offset")
            counts = offset[stages + 1] - offset[stages]
            ends = np.cumsum(counts)
            edges = np.repeat(offset[stages] - ends + counts, counts) + np.arange(counts.sum())
            getattr(state, side)[: len(edges)] = getattr(old, side)[edges]
            getattr(state, f"{side}_offset")[1 : len(stages) + 1] = ends
        hints, old_hints = rule_record(state), rule_record(old)
        for source, target, names, index, extent in (
            (old, state, _OF_STAGE, stages, "stage"),
            (old, state, _OF_JOB, jobs, "job"),
            (old_hints, hints, _HINTS, jobs, "job"),
        ):
            for name in names:
                values = getattr(source, name)[index]
                getattr(target, name)[: len(index)] = values
                if same:
                    getattr(target, name)[rows[extent]] = 0
        state.job_first_stage[: len(first)] = first
        state.stage_job[: len(stages)] = np.repeat(np.arange(len(slots), dtype=np.int32), sizes)
        numberings = []
        for index, end in ((stages, self._next_stage), (jobs, self._next_job)):
            numbers = np.full(max(1, end), NONE, dtype=np.int32)
            numbers[index] = np.arange(len(index), dtype=np.int32)
            numberings.append(Numbering(index, numbers))
        # No row moves up, so that a copy within one memory overwrites nothing that is still to be read.
        _STATE_RELOCATION.copy(old, state, numberings)
        _RULE_RELOCATION.copy(old_hints, hints, numberings)
        if same:
            state.job_first_stage[len(first) : self._next_job + 1] = 0
            state.stage_job[rows["stage"]] = 0
            restart_rows(state, rows)
            restart_rows(hints, rows)
            if POLICY_SLOT in state.attached:
                state.attached[POLICY_SLOT].put(net_ready=0)
        for job, (_, slot) in enumerate(slots):
            slot.job, slot.first = job, int(first[job])
        self._keys = [key for key, _ in slots]
        self._next_job, self._next_stage, self._next_edge = len(slots), len(stages), self.num_edges
        self._active = None

    def _copy(self, old: ClusterState, source: Slot, target: Slot) -> None:
        """Copy the state of a job to a new slot of at least its size."""
        numberings = [
            Numbering(
                np.arange(before, before + size, dtype=np.int32), np.arange(after, after + size, dtype=np.int32), before
            )
            for before, after, size in ((source.first, target.first, source.size), (source.job, target.job, 1))
        ]
        _STATE_RELOCATION.copy(old, self.state, numberings)
        _RULE_RELOCATION.copy(rule_record(old), rule_record(self.state), numberings)

    @property
    def size(self) -> Capacity:
        """Capacity that the present jobs take when there are no gaps between them."""
        return Capacity(len(self.slots), self.num_stages, self.num_edges, 0, 0, self._capacity.executors)

    def reserve(self, graphs: Collection[JobGraph]) -> None:
        """Make room for further jobs, which may move those that are there."""
        more = size_of(graphs)
        if self._capacity.covers(Capacity(self._next_job, self._next_stage, self._next_edge, 0, 0, 0).plus(more)):
            return
        need = self.size.plus(more)
        if self._capacity.suits(need):
            self._move(self.state)
        else:
            self._build(self._capacity.grown(need))

    def _append(self, key: Hashable, graph: JobGraph) -> Slot:
        """Write a job's graph behind all others and return its slot."""
        state, slot = self.state, Slot(self._next_job, self._next_stage, graph)
        if key in self.slots:
            self._uncount(self.slots[key])
        self.slots[key] = slot
        self.num_stages += slot.size
        self.num_edges += graph.dag.num_edges
        self._active = None
        self._keys.append(key)
        self._next_job += 1
        self._next_stage += slot.size
        dag, stages_of_job = graph.dag, slice(slot.first, self._next_stage)
        state.job_first_stage[slot.job] = slot.first
        state.job_first_stage[slot.job + 1] = self._next_stage
        state.stage_job[stages_of_job] = slot.job
        state.stage_tasks[stages_of_job] = dag.tasks
        state.row_level[stages_of_job] = dag.levels
        at, end = self._next_edge, self._next_edge + dag.num_edges
        for side, links in (("parent", dag.parents), ("child", dag.children)):
            getattr(state, f"{side}_offset")[slot.first : self._next_stage + 1] = at + links.offset
            getattr(state, side)[at:end] = links.neighbour
        self._next_edge = end
        state.job_arrival_ms[slot.job] = graph.arrival_ms
        hints = rule_record(state)
        hints.job_rank[slot.job] = graph.priority
        hints.job_limit_cap[slot.job] = graph.cap
        state.job_state[slot.job] = ACTIVE
        self.put_durations(slot)
        return slot

    # ---- jobs -------------------------------------------------------------------------------------------------------

    def put_job(self, key: Hashable, graph: JobGraph) -> None:
        """Add a job that fits, or replace one in position by its extended version."""
        old_slot = self.slots.get(key)
        slot = self._append(key, graph)  # a known key keeps its place in the order of arrival
        if old_slot is None:
            self.put_counts(slot)  # rows behind all jobs are as they begin
            # False: it was here before, and was gone for a while.
            self._sorted &= graph.arrival_ms >= self._last_arrival_ms
            self._last_arrival_ms = max(self._last_arrival_ms, graph.arrival_ms)
            if self._history.maxlen and graph.arrival_ms > 0.0:
                self._history.append((graph.arrival_ms, float(self.state.job_work_ms[slot.job])))
                self._put_history()
            return
        self._copy(self.state, old_slot, slot)
        self._bury(old_slot)
        self.put_counts(slot)

    def _put_history(self) -> None:
        """Write the last arrivals into the state, without jobs at time 0 as in simulations."""
        state, places = self.state, slice(self._capacity.jobs, self._capacity.jobs + len(self._history))
        if self._history:
            state.job_arrival_ms[places], state.job_work_ms[places] = np.array(self._history).T
        state.put(next_arrival=len(self._history))

    def drop_job(self, key: Hashable) -> None:
        """Remove a job; its slot stays empty until all jobs move to new memory."""
        self._active = None
        slot = self.slots.pop(key)
        self._uncount(slot)
        self._bury(slot)

    def _uncount(self, slot: Slot) -> None:
        self.num_stages -= slot.size
        self.num_edges -= slot.graph.dag.num_edges

    def _bury(self, slot: Slot) -> None:
        """Clear a slot, so that nothing in it can be chosen."""
        self.state.job_state[slot.job] = 0
        self.state.stage_in_frontier[slot.first : slot.first + slot.size] = 0

    def start_counts(self, slot: Slot) -> None:
        """Reset a job to what it is before anything is reported of its state."""
        rows = {"stage": slice(slot.first, slot.first + slot.size), "job": slice(slot.job, slot.job + 1)}
        restart_rows(self.state, rows)
        self.state.job_state[slot.job] = ACTIVE
        slot.graph.forget_state()
        self.put_counts(slot)

    def sort_jobs(self, keys: Sequence[Hashable] | None = None) -> None:
        """Sort the jobs by arrival; equal arrivals follow ``keys``, else their present order."""
        slots = [(key, self.slots[key]) for key in (self.slots if keys is None else keys)]
        self.slots = dict(sorted(slots, key=lambda item: item[1].graph.arrival_ms))
        self._active = None
        self._sorted = True

    def active_jobs(self) -> np.ndarray:
        """Indices of the jobs in order of arrival, int64."""
        if self._active is None:
            if not self._sorted:
                self.sort_jobs()
            self._active = np.array([slot.job for slot in self.slots.values()], dtype=np.int64)
            self.state.active[: len(self._active)] = self._active
        return self._active

    def put_durations(self, slot: Slot) -> None:
        """Update a job's nominal durations and what follows from them."""
        state, stages_of_job = self.state, slice(slot.first, slot.first + slot.size)
        durations, path_work, path, work_ms = slot.graph.nominal()
        state.row_nominal_ms[stages_of_job] = durations
        state.row_path_work_ms[stages_of_job] = path_work
        state.row_path_ms[stages_of_job] = path
        state.job_work_ms[slot.job] = work_ms

    def put_counts(self, slot: Slot) -> None:
        """Update which stages of a job count as finished and as saturated."""
        self.put_finished(slot)
        state, stages_of_job = self.state, slice(slot.first, slot.first + slot.size)
        coming = state.stage_commit[stages_of_job] + state.stage_moving[stages_of_job]
        waiting = state.stage_tasks[stages_of_job] - state.stage_next[stages_of_job]
        saturated = waiting <= coming
        state.job_unexhausted[slot.job] = np.count_nonzero(waiting)
        state.stage_saturated[stages_of_job] = saturated
        state.job_unsaturated[slot.job] = slot.size - np.count_nonzero(saturated)
        state.stage_unsaturated_parents[stages_of_job] = slot.graph.dag.count_parents(~saturated)

    def put_room(self, slot: Slot, index: int) -> bool:
        """Update whether a stage is saturated; returns whether that changed."""
        views, stage = self.views, slot.first + index
        saturated = self.room(slot, index) <= 0
        if saturated == views.stage_saturated[stage]:
            return False
        views.stage_saturated[stage] = saturated
        change = -1 if saturated else 1
        views.job_unsaturated[slot.job] += change
        for child in slot.graph.dag.children_of(index):
            views.stage_unsaturated_parents[slot.first + child] += change
        return True

    def put_finished(self, slot: Slot) -> None:
        """Update which stages of a job count as finished."""
        state, stages_of_job = self.state, slice(slot.first, slot.first + slot.size)
        finished, unfinished_parents = slot.graph.dag.finished(slot.graph.finished)
        state.stage_finished_tasks[stages_of_job] = finished
        state.stage_unfinished_parents[stages_of_job] = unfinished_parents
        state.job_unfinished[slot.job] = np.count_nonzero(finished < state.stage_tasks[stages_of_job])

    def put_frontier(self, slot: Slot) -> None:
        """Update the frontier: the stages that the client calls schedulable and that have room."""
        views, first, count = self.views, slot.first, 0
        views.stage_in_frontier[first : first + slot.size] = bytes(slot.size)
        for index in slot.graph.schedulable:
            if not views.stage_saturated[first + index]:
                views.stage_in_frontier[first + index] = 1
                count += 1
        views.job_frontier[slot.job] = count

    def all_have_room(self, slot: Slot) -> bool:
        """Whether all stages of a job that the client calls schedulable are in the frontier."""
        return self.views.job_frontier[slot.job] == len(slot.graph.schedulable)

    def room(self, slot: Slot, index: int) -> int:
        """Number of executors that a stage can still use."""
        views, stage = self.views, slot.first + index
        coming = views.stage_commit[stage] + views.stage_moving[stage]
        return views.stage_tasks[stage] - views.stage_next[stage] - coming
