"""Removal of copies that nothing reads; later copies start earlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from decima.systems.heterogeneous.result import Schedule


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
    by_finish = np.argsort(schedule.finish_s, kind="stable")
    nodes, firsts = np.unique(schedule.node[by_finish], return_index=True)
    read_by: dict[int, list[int]] = {}
    for read, reader in schedule.sources().tolist():
        read_by.setdefault(reader, []).append(read)
    stack = by_finish[firsts[children[nodes] == 0]].tolist()
    needed[stack] = True
    while stack:
        for read in read_by.get(stack.pop(), ()):
            if not needed[read]:
                needed[read] = True
                stack.append(read)
    return needed


def _moved_up(schedule: Schedule, kept: np.ndarray) -> Schedule:
    """Kept copies, each as early as the order on its executor and its inputs allow."""
    position = np.argsort(schedule.instance.order)
    # What takes no time goes before what begins at the same time; so do parents.
    order = np.lexsort((position[schedule.node], schedule.finish_s, schedule.start_s))
    order = order[kept[order]]
    copies = zip(schedule.node[order].tolist(), schedule.executor[order].tolist(), strict=True)
    timed = Schedule.in_order(schedule.instance, copies)
    start_s, finish_s = schedule.start_s.copy(), schedule.finish_s.copy()
    start_s[order], finish_s[order] = timed.start_s, timed.finish_s
    return replace(
        schedule,
        node=schedule.node[kept],
        executor=schedule.executor[kept],
        start_s=start_s[kept],
        finish_s=finish_s[kept],
        duplicate=None,
    )
