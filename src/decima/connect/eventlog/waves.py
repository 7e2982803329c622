"""Slots, waves and executor counts in a log, where a slot stands for an executor of the paper."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decima.workload.profile import WAVES

FRESH, FIRST, REST = range(len(WAVES))


@dataclass(frozen=True)
class Placement:
    """Slot and wave of every task, in the order the tasks were given."""

    slot: np.ndarray  # int64 [tasks], slot of its executor
    wave: np.ndarray  # int8 [tasks], index of the wave in `WAVES`
    first_of_query: np.ndarray  # bool [tasks], the slot's first task of the query


def place_tasks(
    executor: np.ndarray,
    launch_ms: np.ndarray,
    finish_ms: np.ndarray,
    task_id: np.ndarray,
    query: np.ndarray,
    stage: np.ndarray,
    slots: Sequence[int],
) -> Placement:
    """Give every task a slot of its executor and a wave.

    An executor of the paper runs one task at a time; a Spark executor with room for several tasks at once counts as
    that many, its *slots*. A task takes the slot that became free first, else a new one. The driver stamps the end of
    a task after its core was given to the next one (up to some tens of milliseconds), so tasks can seem to be more
    than there are slots: such a task takes the slot that will be free next.

    Waves (§6.2): `fresh` is the first task of a slot since its executor started, `first` its first task of a stage,
    `rest` all later ones. Failed and killed tasks count, they warm the executor up as others do.

    Args:
        executor: int [tasks], executor as a number from 0.
        launch_ms: [tasks].
        finish_ms: [tasks].
        task_id: int [tasks], decides among equal launch times.
        query: int [tasks], number of the query; -1 is none.
        stage: int [tasks], number of the merged stage, unique over all queries.
        slots: per executor, how many tasks it runs at once.
    """
    count = len(executor)
    slot, wave, new_query = np.zeros(count, np.int64), np.full(count, REST, np.int8), np.zeros(count, bool)
    busy: list[list[tuple[float, int]]] = [[] for _ in slots]  # per executor, heap of (finish, slot)
    opened = [0] * len(slots)
    known_stages: set[tuple[int, int, int]] = set()
    known_queries: set[tuple[int, int, int]] = set()
    columns = [column.tolist() for column in (executor, launch_ms, finish_ms, query, stage)]
    for row in np.lexsort((task_id, launch_ms)).tolist():
        process, launch, finish, of_query, of_stage = (column[row] for column in columns)
        heap = busy[process]
        if heap and (heap[0][0] <= launch or opened[process] >= slots[process]):
            _, number = heapq.heappop(heap)
            fresh = False
        else:
            number = opened[process]
            opened[process] += 1
            fresh = True
        heapq.heappush(heap, (finish, number))
        slot[row] = number
        place = (process, number, of_stage)
        wave[row] = FRESH if fresh else REST if place in known_stages else FIRST
        known_stages.add(place)
        place = (process, number, of_query)
        new_query[row] = place not in known_queries
        known_queries.add(place)
    return Placement(slot, wave, new_query)


def mean_slots(begin_ms: float, end_ms: float, added_ms: Sequence[float], removed_ms: Sequence[float], slots) -> float:
    """Time-weighted number of slots of registered executors between two times.

    Args:
        begin_ms: start of the span.
        end_ms: end of the span; when not later than the start, the slots present at the start are counted.
        added_ms: per executor.
        removed_ms: per executor; infinite while it was not removed.
        slots: per executor.
    """
    span = end_ms - begin_ms
    if span <= 0:
        return float(sum(s for a, r, s in zip(added_ms, removed_ms, slots, strict=True) if a <= begin_ms < r))
    overlap = [
        max(0.0, min(end_ms, removed) - max(begin_ms, added)) * count
        for added, removed, count in zip(added_ms, removed_ms, slots, strict=True)
    ]
    return sum(overlap) / span
