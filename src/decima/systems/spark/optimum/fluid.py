"""Fluid estimate of the least average JCT by a linear program; no bound.

Every job is taken for malleable: alone with n executors it needs the time T(n) and the executor time U(n), one move
per executor that came included, both measured in the simulator with mean durations. Between two events, arrivals or
completions in a given order, a job may spend parts of its time with any numbers of executors; all of it done, their
parts of T(n) sum to 1, and no phase uses more than all executors. The program finds the lengths of the phases with the
least sum of times in the system. To change the number of executors costs nothing.

It is no bound, since the order of events is given: that of capped SRW's run, or with jobs that end in the order of
shortest remaining work on one fast machine, whichever is better; a completion and an arrival next to each other are
exchanged where that gains. T(n) is that of a rule that serves the oldest stage first. No source; the bounds are in
:mod:`.bounds`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.systems.spark.optimum.pieces import shortest_remaining_work
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Job, Workload

# Numbers of executors at which jobs are measured; all of the cluster's, too.
LEVELS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 40, 50, 70, 100, 140, 200)
# Exchanges of neighbouring events that are tried.
EXCHANGES = 40


class Malleable(NamedTuple):
    """A job alone with several numbers of executors."""

    time_ms: np.ndarray  # float64 [levels], T
    used_ms: np.ndarray  # float64 [levels], U


def fluid_estimate(workload: Workload, settings: Settings, *, exchanges: int = EXCHANGES) -> float:
    """Estimate the least average JCT of some jobs in ms.

    Args:
        workload: The jobs, of which all arrivals are known.
        settings: The cluster; durations are taken for their means.
        exchanges: Exchanges of neighbouring events to try.

    Raises:
        ConfigError: Executors are of several classes, or runs would be cut by a time limit.
    """
    if settings.classes or (settings.time_limit_applies and settings.time_limit_ms < float("inf")):
        raise ConfigError(
            "no fluid estimate for several classes of executors, or for runs that are cut by a time limit"
        )
    settings.require_fixed("the fluid estimate")
    settings = settings.replace(durations="mean")
    measured: dict[int, Malleable] = {}
    for job in workload.jobs:
        if id(job.profile) not in measured:
            measured[id(job.profile)] = measure(job, settings)
    jobs = [measured[id(job.profile)] for job in workload.jobs]
    arrival_ms = np.where(workload.initial, 0.0, workload.arrival_ms)
    best, lengths, events = min(
        ((*_solve(order, jobs, arrival_ms, settings.executors), order) for order in _orders(workload, jobs, settings)),
        key=lambda solved: solved[0],
    )
    tried: set[tuple] = set()
    while len(tried) < exchanges:
        # A phase without length is where the order may be in the way.
        pairs = [(index, events[index - 1], events[index]) for index in range(1, len(events)) if lengths[index] < 1e-6]
        pairs = [each for each in pairs if each[1][0] != each[2][0] and each[1][1] != each[2][1]]
        untried = [each for each in pairs if each[1:] not in tried]
        if not untried:
            break
        index, before, after = untried[0]
        tried.add((before, after))
        other = [*events[: index - 1], after, before, *events[index + 1 :]]
        total, changed = _solve(other, jobs, arrival_ms, settings.executors)
        if total < best - 1e-6:
            events, best, lengths = other, total, changed
    return best / len(jobs)


def _orders(workload: Workload, jobs: list[Malleable], settings: Settings) -> list[list[tuple[int, int]]]:
    """Orders of events to begin with; the last one can always be met."""
    result = simulate(workload, "capped_srw", cluster=settings)
    arrival_ms = np.where(workload.initial, 0.0, workload.arrival_ms)
    least_ms = np.array([job.used_ms.min() for job in jobs]) / settings.executors
    _, ends = shortest_remaining_work(arrival_ms, least_ms)
    shortest_ms = np.empty(len(jobs))
    shortest_ms[list(ends)] = np.sort(result.completion_ms)
    orders = []
    for end_ms in (shortest_ms, result.completion_ms, result.completion_ms + arrival_ms.max()):
        times = [(time, 0, job) for job, time in enumerate(arrival_ms) if time > 0.0]
        times += [(time, 1, job) for job, time in enumerate(end_ms)]
        orders.append([(event, job) for _, event, job in sorted(times)])
    return orders


def measure(job: Job, settings: Settings) -> Malleable:
    """Time and executor time of a job alone, by number of executors."""
    alone = Workload((Job(job.profile, 0.0),), "alone")
    levels = sorted({min(level, settings.executors) for level in (*LEVELS, settings.executors)})
    delay_ms = settings.moving_delay_ms if settings.startup else 0.0
    times, used = [], []
    for level in levels:
        result = simulate(alone, "fifo", cluster=settings.replace(executors=level), log=True)
        came = len(np.unique(result.log.executor))
        times.append(float(result.completion_ms[0]))
        used.append(result.busy_ms + came * delay_ms)
    return Malleable(np.array(times), np.array(used))


def _solve(
    events: list[tuple[int, int]], jobs: list[Malleable], arrival_ms: np.ndarray, executors: int
) -> tuple[float, np.ndarray]:
    """Least sum of JCTs for one order of events, and its phases, ms."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    phases = len(events)
    begin = np.zeros(len(jobs), dtype=int)
    end = np.zeros(len(jobs), dtype=int)
    for phase, (event, job) in enumerate(events):
        if event == 0:
            begin[job] = phase + 1
        else:
            end[job] = phase + 1
    at_most, equal = [], []  # rows, columns, values
    column, work = phases, len(jobs)
    row = phases  # of the inequalities: first the executors of every phase, then a job's time in it
    cost = np.zeros(phases)
    for job, (time_ms, used_ms) in enumerate(jobs):
        cost[begin[job] : end[job]] += 1.0
        for phase in range(begin[job], end[job]):
            for level in range(len(time_ms)):
                at_most += [(phase, column, used_ms[level] / time_ms[level]), (row, column, 1.0)]
                equal.append((job, column, 1.0 / time_ms[level]))
                column += 1
            at_most.append((row, phase, -1.0))
            row += 1
    at_most += [(phase, phase, -float(executors)) for phase in range(phases)]
    known = [(phase, job) for phase, (event, job) in enumerate(events) if event == 0]
    for index, (phase, _) in enumerate(known):
        equal += [(work + index, before, 1.0) for before in range(phase + 1)]
    goals = np.concatenate([np.ones(work), [arrival_ms[job] for _, job in known]])

    def matrix(entries: list[tuple], rows: int) -> coo_matrix:
        where, what, values = zip(*entries, strict=True)
        return coo_matrix((values, (where, what)), shape=(rows, column)).tocsr()

    costs = np.concatenate([cost, np.zeros(column - phases)])
    limits = matrix(at_most, row), np.zeros(row)
    solved = linprog(costs, *limits, matrix(equal, len(goals)), goals, method="highs")
    if solved.x is None:
        return float("inf"), np.zeros(phases)
    return float(solved.fun), solved.x[:phases]
