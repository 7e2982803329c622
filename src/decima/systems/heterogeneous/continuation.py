"""Decisions that continue a begun schedule, for a service whose client executes it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from decima.core.cache import cached
from decima.core.errors import RecordError, WorkloadError
from decima.core.jit import njit
from decima.systems.heterogeneous.engine import ListRule, begin_decisions, decide_now, offer
from decima.systems.heterogeneous.fields import plan_at
from decima.systems.heterogeneous.placement import NONE, note, put
from decima.systems.heterogeneous.settings import DECISIONS

_PLAN = DECISIONS.index("plan")
_UNKNOWN_PARENT, _OVERLAP = 1, 2
_PART = 4096


class Copy(NamedTuple):
    """Copy of a node on an executor."""

    node: int
    executor: int
    start_s: float
    finish_s: float
    executed: bool = False  # it has been executed at these times; else they are expected


def decide(
    rule: ListRule, copies: Sequence[Copy | tuple], available_s: np.ndarray, now_s: float, most: int | None = None
) -> list[Copy]:
    """Decide what can be decided now, after earlier decisions and executions.

    With ``plan``, a node can be decided when its parents are; else when they were executed. What was to be finished by
    now and was not executed counts as finishing now. Copies that were decided by the same rule, and whose times are as
    expected, are continued by the schedule that the rule makes of the whole instance.

    Args:
        rule: The rule and its instance; jobs whose arrival is later than now are not looked at.
        copies: What was decided so far, in that order; plain tuples with the fields of :class:`Copy` are quicker made.
        available_s: Time before which an executor takes nothing further, whatever its copies say, float64 [executors].
        now_s: Time of the decisions in seconds.
        most: Most nodes to decide; all that can be decided when omitted.

    Returns:
        Further copies in the order in which they were decided; the copy of a parent goes before the node it is for.

    Raises:
        WorkloadError: A copy lies on another one, comes before its parents, or is one too many; or a copy was executed
            later than now.
        PolicyError: The rule is a network whose scores are not finite.
    """
    planner = rule.planner
    instance, duplicate = planner.instance, planner.rules.duplicate
    columns = np.empty((len(copies), 5))
    for begin in range(0, len(copies), _PART):  # between parts, other threads may go first
        part = copies[begin : begin + _PART]
        columns[begin : begin + _PART] = np.fromiter(chain.from_iterable(part), np.float64, 5 * len(part)).reshape(
            -1, 5
        )
    rows, times = columns[:, [0, 1, 4]].astype(np.int64), np.ascontiguousarray(columns[:, 2:4])
    decided = len(np.unique(rows[:, 0]))
    if len(copies) > (2 if duplicate else 1) * decided or decided > len(instance):
        allowed = "two copies on average" if duplicate else "one copy"
        raise WorkloadError(f"{len(copies)} copies of {decided} nodes; the scheduler makes {allowed} of a node at most")
    if (late := (rows[:, 2] != 0) & (times[:, 1] > now_s)).any():
        copy = int(np.argmax(late))
        where = instance.node_name(copies[copy][0])
        raise WorkloadError(f"node {where} was executed by {times[copy, 1]:g}; expected at most now, {now_s:g}")
    address = planner.record.address
    wrong, fault = _restore(address, now_s, rows, times, np.ascontiguousarray(available_s, dtype=np.float64))
    if wrong >= 0:
        copy = Copy(*copies[wrong])
        where = f"node {instance.node_name(copy.node)} on executor {instance.cluster.names[copy.executor]}"
        if fault == _OVERLAP:
            span = f"from {copy.start_s:g} to {copy.finish_s:g}"
            raise WorkloadError(f"{where} {span} lies on a copy that was told before")
        raise WorkloadError(f"{where} is told before its parents; expected copies in the order of their decisions")
    rule.resume()
    first = planner.record.copies
    go_on(address, now_s, len(instance) if most is None else most)
    rule.check()
    record = planner.record
    columns = (record.copy_node, record.copy_executor, record.copy_start, record.copy_finish)
    if not np.isfinite(record.copy_finish[first : record.copies]).all():
        raise RecordError("a node was decided whose data is nowhere; the schedule cannot be gone on from")
    rows_of_copies = zip(*(column[first : record.copies].tolist() for column in columns), strict=True)
    return [Copy(*each) for each in rows_of_copies]


@cached(njit(cache=True, nogil=True))
def _restore(address, now, rows, times, available):
    """Restore copies; return the first impossible copy and the reason, else -1 and 0."""
    state = plan_at(address)
    begin_decisions(state)
    executed = np.full(state.nodes, np.inf)
    for copy in range(len(rows)):
        node = rows[copy, 0]
        executor = rows[copy, 1]
        start = times[copy, 0]
        finish = times[copy, 1]
        for edge in range(state.parent_start[node], state.parent_start[node + 1]):
            if state.first_copy[state.parent[edge]] == NONE:
                return copy, _UNKNOWN_PARENT
        if state.first_copy[node] == NONE:
            state.left[state.job[node]] -= state.mean_time[node]
        if start >= state.available[executor] or _in_a_gap(state, executor, start, finish):
            put(state, node, executor, start, finish)
        elif start == finish and not _is_covered(rows, times, copy):
            note(state, node, executor, start, finish)
        else:
            return copy, _OVERLAP
        if rows[copy, 2]:
            executed[node] = min(executed[node], finish)
    for copy in range(len(rows)):
        if not rows[copy, 2] and state.copy_finish[copy] < now:
            state.copy_finish[copy] = now
            state.available[rows[copy, 1]] = max(state.available[rows[copy, 1]], now)
    for node in range(state.nodes):
        state.finish[node] = np.inf
    for copy in range(len(rows)):
        state.finish[rows[copy, 0]] = min(state.finish[rows[copy, 0]], state.copy_finish[copy])
    for executor in range(state.executors):
        state.available[executor] = max(state.available[executor], available[executor])
        _cut_gaps(state, executor, available[executor])
    for position in range(state.nodes):
        node = state.arriving[position]
        if state.arrival[node] > now:
            break
        if state.first_copy[node] == NONE:
            since = state.arrival[node]
            waiting = 0
            for edge in range(state.parent_start[node], state.parent_start[node + 1]):
                parent = state.parent[edge]
                if state.decision == _PLAN:
                    waiting += state.first_copy[parent] == NONE
                else:
                    waiting += executed[parent] == np.inf
                    since = max(since, executed[parent])
            state.waiting[node] = waiting
            if waiting == 0:
                offer(state, node, since)
    return -1, 0


@njit
def _cut_gaps(state, executor, until):
    """Keep only the part of an executor's gaps after a time; other gaps admit nothing."""
    gap = state.gap_last[executor]
    while gap != NONE:
        state.gap_start[gap] = max(state.gap_start[gap], until)
        if state.gap_start[gap] >= state.gap_end[gap]:
            state.gap_start[gap] = np.inf
        gap = state.gap_before[gap]


@njit
def _in_a_gap(state, executor, start, finish):
    """Whether an executor is free between two times, the first before its last finish."""
    gap = state.gap_last[executor]
    while gap != NONE:
        if state.gap_start[gap] <= start:
            return finish <= state.gap_end[gap]
        gap = state.gap_before[gap]
    return False


@njit
def _is_covered(rows, times, copy):
    """Whether a copy without length lies strictly inside an earlier copy on its executor."""
    for other in range(copy):
        if rows[other, 1] == rows[copy, 1] and times[other, 0] < times[copy, 0] < times[other, 1]:
            return True
    return False


@cached(njit(cache=True, nogil=True))
def go_on(address, now, most):
    """Decide at most ``most`` nodes at a time, continuing the plan that :func:`decide` restored."""
    decide_now(plan_at(address), now, most)
