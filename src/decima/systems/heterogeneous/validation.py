"""The rules that a schedule has to keep, written apart from all schedulers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decima.systems.heterogeneous.checking import InvalidScheduleError
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.workload import Instance

#: Differences of times up to this part of the schedule's length are rounding.
TOLERANCE = 1e-9


def validate(instance: Instance, schedule: Schedule) -> None:
    """Check a schedule against the rules of the model.

    Every node has a copy; a copy takes as long as its executor needs; none begins before its job has arrived or before
    the data of all parents is there, each from the copy whose data arrives first (Eq. 2); an executor executes one node
    at a time and finishes what it has begun.

    Args:
        instance: The jobs and the cluster.
        schedule: The schedule, which may come from anywhere.

    Raises:
        InvalidScheduleError: A rule is broken; the message names the first breach and counts the others.
    """
    faults = list(violations(instance, schedule))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InvalidScheduleError(f"{faults[0]}{more}")


def violations(instance: Instance, schedule: Schedule) -> Iterator[str]:
    """Sentences about everything that breaks a rule of :func:`validate`; none for a valid schedule."""
    nodes, executors = len(instance), len(instance.cluster)
    for name, values, count in (("node", schedule.node, nodes), ("executor", schedule.executor, executors)):
        wrong = values[(values < 0) | (values >= count)]
        if len(wrong):
            yield f"{name} {wrong[0]} is unknown; the instance has {count}"
            return
    for name, values in (("start_s", schedule.start_s), ("finish_s", schedule.finish_s)):
        if not np.isfinite(values).all():
            yield f"{name} of copy {int(np.argmin(np.isfinite(values)))} is not a finite number"
            return
    copies: list[list[int]] = [[] for _ in range(nodes)]
    for copy, node in enumerate(schedule.node.tolist()):
        copies[node].append(copy)
    for node in range(nodes):
        if not copies[node]:
            yield f"node {instance.node_name(node)} has no copy"
    slack = TOLERANCE * max(1.0, float(np.abs(schedule.finish_s).max(initial=0.0)))
    yield from _times(instance, schedule, slack)
    yield from _overlaps(instance, schedule, slack)
    yield from _inputs(instance, schedule, copies, slack)


def _times(instance: Instance, schedule: Schedule, slack: float) -> Iterator[str]:
    for copy in range(len(schedule)):
        node, executor = int(schedule.node[copy]), int(schedule.executor[copy])
        start_s, finish_s = float(schedule.start_s[copy]), float(schedule.finish_s[copy])
        needed_s = instance.time_s(node, executor)
        if np.isinf(needed_s):
            yield f"{_copy(schedule, copy)} cannot be: this executor cannot execute the node"
        elif abs(finish_s - start_s - needed_s) > slack:
            yield (
                f"{_copy(schedule, copy)} takes {finish_s - start_s:g} s; expected {needed_s:g} s, without interruption"
            )
        if start_s < instance.arrival_s[node] - slack:
            yield f"{_copy(schedule, copy)} begins at {start_s:g} s; its job arrives at {instance.arrival_s[node]:g} s"


def _overlaps(instance: Instance, schedule: Schedule, slack: float) -> Iterator[str]:
    order = np.lexsort((schedule.finish_s, schedule.start_s, schedule.executor))
    last, until_s = -1, -np.inf
    for copy in order.tolist():
        if last >= 0 and schedule.executor[copy] != schedule.executor[last]:
            last, until_s = -1, -np.inf
        if schedule.start_s[copy] < until_s - slack:
            yield (
                f"{_copy(schedule, copy)} begins at {schedule.start_s[copy]:g} s, while the executor is busy with "
                f"{instance.node_name(int(schedule.node[last]))} until {until_s:g} s"
            )
        if schedule.finish_s[copy] >= until_s:
            last, until_s = copy, float(schedule.finish_s[copy])


def _inputs(instance: Instance, schedule: Schedule, copies: list[list[int]], slack: float) -> Iterator[str]:
    start, parents, data = instance.parents
    for copy in range(len(schedule)):
        node, executor = int(schedule.node[copy]), int(schedule.executor[copy])
        for edge in range(start[node], start[node + 1]):
            parent = int(parents[edge])
            there_s = min(
                (
                    schedule.finish_s[each]
                    + instance.transfer_s(float(data[edge]), int(schedule.executor[each]), executor)
                    for each in copies[parent]
                ),
                default=np.inf,
            )
            if copies[parent] and schedule.start_s[copy] < there_s - slack:
                yield (
                    f"{_copy(schedule, copy)} begins at {schedule.start_s[copy]:g} s; the data of "
                    f"{instance.node_name(parent)} is there at {there_s:g} s"
                )


def _copy(schedule: Schedule, copy: int) -> str:
    instance = schedule.instance
    return (
        f"the copy of {instance.node_name(int(schedule.node[copy]))} on executor "
        f"{instance.cluster.names[int(schedule.executor[copy])]}"
    )
