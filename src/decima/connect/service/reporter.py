"""Reports of a simulated cluster to a service: its jobs, and what changed since the last call."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.wire import JOB_FIELDS, STAGE_FIELDS
from decima.systems.spark.fields import ACTIVE, NONE, WITHHELD
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.state import ClusterState

_FLAGS = ("stage_runnable", "stage_in_frontier", "stage_slot")


class StateReporter:
    """Writer of the reports on one run of a simulated cluster.

    Args:
        state: The cluster; its arrays stay where they are.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._sent: dict[str, np.ndarray] = {}
        self._known: set[int] = set()

    def request(self, full: bool) -> protocol.DecideRequest:
        """Return the next report, without session and number.

        Args:
            full: Report everything, not only what changed.
        """
        state = self._state
        active = state.active[: state.num_active].tolist()
        request = protocol.DecideRequest(full=full, time_ms=state.now_ms, executors=state.num_executors)
        request.offer.executors = state.num_source
        source = state.source_job
        if source != NONE and state.job_state[source] == ACTIVE:
            request.offer.job = str(source)
            if state.commit_ahead and state.source < state.num_stages:
                request.offer.stage = state.source - state.job_first_stage[source]
        if full:
            self._known = set()
        present = set(active)
        request.gone.extend(str(job) for job in sorted(self._known - present))
        new = [job for job in active if job not in self._known]
        for job in new:
            self._add_graph(request.jobs.add(), job)
        stages = self._changed(STAGE_FIELDS.values(), state.num_stages)
        stages[np.isin(state.stage_job, new)] = True
        flags = self._changed(_FLAGS, state.num_stages)
        touched = self._changed(JOB_FIELDS.values(), state.num_jobs)
        touched[state.stage_job[stages | flags]] = True
        touched[new] = True
        for job in active:
            if touched[job]:
                self._add_state(request.states.add(), job, stages)
        self._known = present
        return request

    def _changed(self, names: Iterable[str], length: int) -> np.ndarray:
        """Mask of the entries of some arrays that differ from what was sent; remembers what they are now."""
        mask = np.zeros(length, dtype=bool)
        for name in names:
            now = getattr(self._state, name)
            if name in self._sent:
                mask |= now != self._sent[name]
            self._sent[name] = now.copy()
        return mask

    def _add_graph(self, message: protocol.Job, job: int) -> None:
        state = self._state
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        message.job = str(job)
        message.arrival_ms = state.job_arrival_ms[job]
        hints = rule_record(state)
        message.priority = hints.job_rank[job]
        message.cap = hints.job_limit_cap[job]
        for stage in range(first, end):
            row = state.stage_row[stage]
            parents = state.parent[state.parent_offset[row] : state.parent_offset[row + 1]]
            message.stages.add(
                stage=stage - first,
                num_tasks=state.stage_tasks[stage],
                parents=parents.tolist(),
                duration_ms=state.row_nominal_ms[row],
                duration_known=True,
            )

    def _running_since_ms(self, stage: int) -> list[float]:
        """When the running tasks of a stage began, by executor; the one that is offered has ended its task."""
        state = self._state
        busy = (state.executor_stage == stage) & (state.executor_pool == NONE) & (state.executor_moving == 0)
        if state.num_free > 0 and state.source == stage:
            busy[state.free_executors[0]] = False
        return state.executor_start_ms[busy].tolist()

    def _add_state(self, message: protocol.JobState, job: int, changed: np.ndarray) -> None:
        state = self._state
        first, end = (int(bound) for bound in state.job_first_stage[job : job + 2])
        message.job = str(job)
        for name, field in JOB_FIELDS.items():
            setattr(message, name, getattr(state, field)[job])
        stage = state.runnable_head[job]
        while stage != NONE:
            message.runnable.append(stage - first)
            stage = state.runnable_next[stage]
        message.schedulable.extend(np.flatnonzero(state.stage_in_frontier[first:end]).tolist())
        for index in np.flatnonzero(changed[first:end]).tolist():
            values = {name: getattr(state, field)[first + index] for name, field in STAGE_FIELDS.items()}
            message.stages.add(stage=index, **values, running_since_ms=self._running_since_ms(first + index))
        for index in np.flatnonzero(state.stage_slot[first:end]).tolist():
            withheld = state.stage_slot[first + index] == WITHHELD
            message.delayed.add(stage=index, withheld=withheld, end_ms=state.slot_end_ms[first + index])
