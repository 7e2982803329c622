"""Exact optimum without voluntary waiting, by independent busy periods.

A job that is certain to find every earlier one finished begins a period of its own: with billing per second nothing
that was done before matters to it. Every period is searched exhaustively (:mod:`decima.systems.cloud.optimum.kernel`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decima.core.interrupts import check_stop
from decima.systems.cloud.optimum import kernel
from decima.systems.cloud.optimum.problem import (
    Problem,
    find_empty,
    fresh_state,
    of_empty,
    places_taken,
    room_of_bound,
    whole,
)
from decima.systems.cloud.settings import PlacementSettings
from decima.systems.cloud.workload import PlacementWorkload

# Nodes between two looks at signals and at the limit.
STEP = 5000
MOST_SEEN = 22  # two to this power: most nodes whose futures are remembered


def periods(problem: Problem) -> list[tuple[int, int]]:
    """Independent busy periods: (first job, last job + 1), by the latest ends."""
    arrival, ends = problem.jobs.arrival, of_empty(problem)[2]
    firsts = [job for job in range(len(problem)) if (ends[:job] <= arrival[job]).all()]
    return list(itertools.pairwise([*firsts, len(problem)]))


@dataclass(frozen=True)
class Solved:
    """Outcome of the search of one period."""

    counts: np.ndarray  # int64 [jobs, VMs], the best placement found
    loss: float
    nodes: int
    proved: bool  # whether the search came to its end, so that nothing is better


def solve_period(problem: Problem, nodes: int, begin: Callable[[int], tuple[float, np.ndarray]]) -> Solved:
    """Search a period that begins with an empty cluster.

    The search is done from every job that may find the cluster empty, last ones first: where a longer search finds it
    so, the rest is known.

    Args:
        problem: Its jobs.
        nodes: Most nodes of all these searches.
        begin: Function of a job that gives a placement to begin with of it and all later ones, on an empty cluster:
            its loss and executors per VM, int64 [jobs from there, VMs].
    """
    count, vms = len(problem), len(problem.vms.cores)
    taken = places_taken(problem)
    known = np.full(count + 1, np.nan)
    known[count] = 0.0
    period = kernel.Period(problem.jobs, problem.vms, problem.prices, problem.weights, taken, known)
    placements = np.zeros((count, count, vms), dtype=np.int64)
    spent = 0
    places = 1 << min(MOST_SEEN, nodes.bit_length())
    memory = _memory(problem, places)
    for start in [job for job in range(count - 1, -1, -1) if job == 0 or _may_be_empty(problem, job)]:
        loss, placements[start, start:] = begin(start)
        memory.seen[0][:] = 0
        if spent > nodes:
            continue  # what is known is the placement to begin with
        cursor = np.zeros(kernel.NUM_CURSOR, dtype=np.int64)
        cursor[kernel.DEPTH] = -1
        best = kernel.Best(np.array([loss]), whole(count, vms), whole(1))
        find_empty(problem, memory.state, start)
        while not (cursor[kernel.OVER] or cursor[kernel.TOO_MANY]) and spent + cursor[kernel.NODES] <= nodes:
            kernel.search_period(period, memory, start, cursor, best, STEP)
            check_stop()
        spent += int(cursor[kernel.NODES])
        loss, reached = float(best.loss[0]), int(best.reached[0])
        if reached:
            placements[start, start:reached] = best.counts[start:reached]
            if reached < count:
                placements[start, reached:] = placements[reached, reached:]
        if cursor[kernel.OVER]:
            known[start] = loss
    return Solved(placements[0], loss, spent, not np.isnan(known[0]))


def _may_be_empty(problem: Problem, job: int) -> bool:
    """Whether all jobs before one may have finished when it arrives."""
    arrival, least = problem.jobs.arrival, problem.jobs.least
    return bool((arrival[:job] + least[:job] <= arrival[job]).all())


def _memory(problem: Problem, places: int) -> kernel.Memory:
    rows, vms, size = len(problem) + 1, len(problem.vms.cores), kernel.CHILDREN
    lists = (
        whole(rows),
        whole(rows),
        np.zeros((rows, size, vms), dtype=np.int32),
        np.zeros((rows, size)),
        whole(rows, size),
    )
    scratch = whole(vms), whole(vms), whole(vms), room_of_bound(problem)
    return kernel.Memory(fresh_state(problem), lists, scratch, (np.zeros(places, dtype=np.uint64), np.zeros(places)))


def sub_workload(workload: PlacementWorkload, first: int, last: int) -> PlacementWorkload:
    """Some consecutive jobs of a workload."""
    return PlacementWorkload(workload.jobs[first:last], workload.label)


def exact_applies(settings: PlacementSettings) -> bool:
    """Whether the rules and the billing are those that periods are independent under."""
    rules = settings.rules
    plain = not (rules.clock_goes_back or rules.wait_frees_one) and rules.lookahead == "none"
    return plain and settings.billing.per_second


def plan_of(counts: np.ndarray) -> np.ndarray:
    """VM of every executor, int64 [executors], from executors per job and VM."""
    return np.array([vm for row in counts for vm, number in enumerate(row) for _ in range(number)], dtype=np.int64)


def counts_of(plan: np.ndarray, problem: Problem) -> np.ndarray:
    """Executors per job and VM, int64 [jobs, VMs], from the VM of every executor."""
    counts = np.zeros((len(problem), len(problem.vms.cores)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(problem)), problem.jobs.executors), plan), 1)
    return counts
