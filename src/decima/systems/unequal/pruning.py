"""Removal of copies that nothing reads; later copies start earlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from decima.systems.unequal.result import Schedule


def drop_unread(schedule: Schedule) -> Schedule:
    """The same schedule without copies that nothing reads; no copy starts later than before.

    Needed are the first copy to finish of every node without children, and every copy that a needed one reads. Each
    executor keeps the order of what is left and starts everything as early as it can. Where times change, what is read
    may change; so this is repeated until nothing is left to drop.

    Args:
        schedule: A valid schedule of which nothing has been executed yet.
    """
    while True:
        needed = _needed(schedule)
        if needed.all():
            return schedule
        schedule = _moved_up(schedule, needed)


def _needed(schedule: Schedule) -> np.ndarray:
    """Whether each copy is needed, bool [copies]."""
    children = np.diff(schedule.instance.children[0])
    needed = np.zeros(len(schedule), dtype=bool)
    firsts: dict[int, int] = {}
    for copy, node in enumerate(schedule.node.tolist()):
        if children[node] == 0 and (node not in firsts or schedule.finish_s[copy] < schedule.finish_s[firsts[node]]):
            firsts[node] = copy
    read_by: dict[int, list[int]] = {}
    for read, reader in schedule.sources().tolist():
        read_by.setdefault(reader, []).append(read)
    stack = list(firsts.values())
    needed[stack] = True
    while stack:
        for read in read_by.get(stack.pop(), ()):
            if not needed[read]:
                needed[read] = True
                stack.append(read)
    return needed


def _moved_up(schedule: Schedule, kept: np.ndarray) -> Schedule:
    """Kept copies, each as early as the order on its executor and its inputs allow."""
    instance = schedule.instance
    position = np.empty(len(instance), dtype=np.int64)
    position[instance.order] = np.arange(len(instance))
    # What takes no time goes before what begins at the same time; so do parents.
    order = np.lexsort((position[schedule.node], schedule.finish_s, schedule.start_s))
    parent_start, parents, data = instance.parents
    free_s = np.zeros(len(instance.cluster))
    start_s, finish_s = schedule.start_s.copy(), schedule.finish_s.copy()
    done: dict[int, list[int]] = {}
    for copy in order[kept[order]].tolist():
        node, executor = int(schedule.node[copy]), int(schedule.executor[copy])
        ready_s = max(float(instance.arrival_s[node]), float(free_s[executor]))
        for edge in range(parent_start[node], parent_start[node + 1]):
            there_s = [
                finish_s[each] + instance.transfer_s(float(data[edge]), int(schedule.executor[each]), executor)
                for each in done[int(parents[edge])]
            ]
            ready_s = max(ready_s, min(there_s))
        start_s[copy] = ready_s
        finish_s[copy] = free_s[executor] = ready_s + instance.time_s(node, executor)
        done.setdefault(node, []).append(copy)
    return replace(
        schedule,
        node=schedule.node[kept],
        executor=schedule.executor[kept],
        start_s=start_s[kept],
        finish_s=finish_s[kept],
        duplicate=None,
    )
