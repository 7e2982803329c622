"""The shortest schedule of a small instance by CP-SAT of OR-Tools.

CP-SAT counts in whole numbers. The unit is the largest one in which all times are whole. Where there is none, or times
would be too large, all times are rounded down to multiples of a unit, so that the optimum of the program is a lower
bound of the true one; it is so small that the two differ by less than :data:`TOLERANCE`. The order that CP-SAT finds is
timed with the true numbers.
"""

import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from decima.core.errors import DecimaError
from decima.systems.heterogeneous.optimum.bounds import earliest_start, unit_s
from decima.systems.heterogeneous.workload import Instance

#: A schedule counts as the shortest when none is shorter by this share of its length.
TOLERANCE = 1e-6
_CHECK_S = 0.1  # between two looks at the clock
_MOST_UNITS = 1e11  # of a schedule in the unit that makes all times whole


class SolverError(DecimaError, RuntimeError):
    """The solver denies that there is a schedule."""


@dataclass(frozen=True)
class Answer:
    """Answer of CP-SAT within the time limit."""

    copies: list[tuple[int, int]]  # node and executor, in the order of their starts; empty: nothing was found
    bound_s: float  # no schedule is shorter
    branches: int
    proved: bool  # the copies, timed, are within the tolerance of the bound


def solve(
    instance: Instance, *, duplicate: bool, most_s: float, time_limit_s: float, tick: Callable[[], object]
) -> Answer:
    """Solve the program on one thread; machines that have the time find the same.

    Args:
        instance: Jobs and cluster.
        duplicate: Whether nodes may be copied.
        most_s: Length of a schedule that is known, above 0; only those that are not longer are looked for.
        time_limit_s: Seconds after which to give up.
        tick: Called ten times a second; what it raises ends the search.

    Raises:
        SolverError: The solver calls the program infeasible or invalid.
    """
    cluster, times_s = instance.cluster, instance.times_s
    rates = np.broadcast_to(cluster.rate, (len(cluster), len(cluster)))
    sent_s = cluster.latency_s + instance.parents[2][:, None, None] / rates  # [edges, senders, receivers]
    # A path has at most a copy and a transfer for each node on each executor; each loses less than a unit.
    unit = 2.0 ** math.floor(math.log2(TOLERANCE * most_s / (2 * times_s.size + 1)))
    whole = unit_s(instance)
    exact = whole is not None and most_s / float(whole) < _MOST_UNITS
    unit, rounded = (float(whole), np.rint) if exact else (unit, np.floor)
    times, sent, arrival, most = (rounded(each / unit) for each in (times_s, sent_s, instance.arrival_s, most_s))
    problem = _problem(instance, times, sent, arrival, duplicate, most)
    cp_model = _cp_model()
    program, solver = _Program(cp_model.CpModel(), problem), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = time_limit_s
    status = _run(solver, program.model, tick)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        raise SolverError(f"CP-SAT says {solver.status_name(status)} of a problem that has a solution")
    copies = []
    if status != cp_model.UNKNOWN:
        copies = [
            (node, executor, solver.value(program.start[node, executor]))
            for (node, executor), present in program.present.items()
            if solver.value(present)
        ]
    position = np.argsort(instance.order)
    rows = sorted(  # what takes no time comes before what begins with it, parents before children
        (start, start + problem["times"][node][executor], int(position[node]), node, executor)
        for node, executor, start in copies
    )
    bound_s = max(0.0, solver.best_objective_bound * unit)
    return Answer([row[3:] for row in rows], bound_s, solver.num_branches, status == cp_model.OPTIMAL)


def _problem(
    instance: Instance, times: np.ndarray, sent: np.ndarray, arrival: np.ndarray, duplicate: bool, most: float
) -> dict[str, Any]:
    """Problem of whole numbers as :class:`_Program` takes it, from times in units."""
    # What is longer than the known schedule need not be told apart.
    times, sent, arrival = (np.minimum(each, most + 1.0) for each in (times, sent, arrival))
    least = times.min(axis=1)
    executors = times.shape[1]
    shortest = np.full(len(sent), np.inf)  # nothing is sent where there is one executor only
    if executors > 1:
        shortest = sent[:, ~np.eye(executors, dtype=bool)].min(axis=1)
    start, parent, _ = instance.parents
    child = np.repeat(np.arange(len(instance)), np.diff(start))
    head = earliest_start(instance.order, start, parent, shortest, least, arrival)
    child_start, children, _ = instance.children
    path = instance.longest_down(least)
    if duplicate:
        tail = _shortest_below(instance, least)
    else:
        backwards = instance.order[::-1].copy()
        by_parent = shortest[np.lexsort((child, parent))]
        tail = earliest_start(backwards, child_start, children, by_parent, least, np.zeros(len(instance)))
    return {
        "times": times.astype(int).tolist(),
        "edges": [
            {"parent": int(parent[edge]), "child": int(child[edge]), "sent": sent[edge].astype(int).tolist()}
            for edge in range(len(parent))
        ],
        "head": head.astype(int).tolist(),
        "tail": tail.astype(int).tolist(),
        "least": int((head + path).max()),
        "most": int(most),
        "duplicate": duplicate,
    }


def _shortest_below(instance: Instance, least: np.ndarray) -> np.ndarray:
    """Least time from a copy's end to the end of its path, float64 [nodes].

    A copy is made for one reader: other children, with longer paths, may read other copies.
    """
    start, child, _ = instance.children
    below = np.zeros(len(instance))
    for node in instance.order[::-1].tolist():
        readers = child[start[node] : start[node + 1]]
        if len(readers):
            below[node] = (least[readers] + below[readers]).min()
    return below


@cache
def _cp_model() -> Any:
    """Module of OR-Tools, whose libraries do not share symbols with others.

    TensorFlow has others of the same names. Where they were mixed up, whichever of the two came second crashed.
    """
    deep = getattr(os, "RTLD_DEEPBIND", 0)  # Linux; elsewhere symbols are not mixed up
    flags = sys.getdlopenflags() if deep else 0
    if deep:
        sys.setdlopenflags(flags | deep)
    try:
        from ortools.sat.python import cp_model
    finally:
        if deep:
            sys.setdlopenflags(flags)
    return cp_model


def _run(solver: Any, model: Any, tick: Callable[[], object]) -> Any:
    """Status of the solver, which works in another thread and does not outlive this call."""
    with ThreadPoolExecutor(1, thread_name_prefix="decima-cp-sat") as pool:
        status = pool.submit(solver.solve, model)
        try:
            while not wait([status], _CHECK_S).done:
                tick()
        except BaseException:
            while not wait([status], _CHECK_S).done:
                solver.stop_search()
            raise
        return status.result()


class _Program:
    """The constraint program of a problem.

    Args:
        model: An empty ``CpModel``.
        problem: ``times`` [nodes][executors]; ``edges``, each with ``parent``, ``child`` and transfer times ``sent``
            [senders][receivers]; ``head`` and ``tail`` [nodes], before which no node begins and how long before the
            end it ends at the latest; ``least``, below which no schedule is, and ``most``, the longest schedule of
            interest; ``duplicate``.
    """

    def __init__(self, model: Any, problem: dict[str, Any]) -> None:
        self.model, self.problem = model, problem
        self.times = problem["times"]
        self.executors = range(len(self.times[0]))
        self.end = model.new_int_var(problem["least"], problem["most"], "end")
        self.present: dict[tuple[int, int], Any] = {}
        self.start: dict[tuple[int, int], Any] = {}
        self.readers: dict[tuple[int, int], list[Any]] = {}
        for executor in self.executors:
            self._add_executor(executor)
        for edge in problem["edges"]:
            self._add_edge(edge)
        self._add_copies()
        model.minimize(self.end)

    def _add_executor(self, executor: int) -> None:
        """An interval for each node that can end in time; they do not overlap."""
        model, problem = self.model, self.problem
        intervals, load = [], []
        for node, row in enumerate(self.times):
            time, tail = row[executor], problem["tail"][node]
            first, last = problem["head"][node], problem["most"] - time - tail
            if first > last:
                continue
            key = node, executor
            present = self.present[key] = model.new_bool_var(f"copy {key}")
            start = self.start[key] = model.new_int_var(first, last, f"start {key}")
            self.readers[key] = []
            intervals.append(model.new_optional_fixed_size_interval_var(start, time, present, f"interval {key}"))
            load.append(time * present)
            model.add(self.end >= start + time + tail).only_enforce_if(present)
        model.add_no_overlap(intervals)
        if load:
            model.add(self.end >= sum(load))

    def _add_edge(self, edge: dict[str, Any]) -> None:
        """Each copy of the child reads exactly one copy of the parent."""
        parent, child = edge["parent"], edge["child"]
        for receiver in self.executors:
            if (child, receiver) not in self.present:
                continue
            sources = []
            for sender in self.executors:
                key = parent, sender
                if key not in self.present:
                    continue
                reads = self.model.new_bool_var(f"{child, receiver} reads {key}")
                delay = self.times[parent][sender] + (0 if sender == receiver else edge["sent"][sender][receiver])
                ready = self.start[key] + delay
                self.model.add(self.start[child, receiver] >= ready).only_enforce_if(reads)
                self.model.add_implication(reads, self.present[key])
                self.readers[key].append(reads)
                sources.append(reads)
            self.model.add(sum(sources) == self.present[child, receiver])

    def _add_copies(self) -> None:
        """One copy of each node, or several of nodes with children, each with a reader."""
        inner = {edge["parent"] for edge in self.problem["edges"]} if self.problem["duplicate"] else set()
        for node in range(len(self.times)):
            keys = [(node, executor) for executor in self.executors if (node, executor) in self.present]
            copies = [self.present[key] for key in keys]
            if node not in inner:
                self.model.add_exactly_one(copies)
                continue
            self.model.add_bool_or(copies)
            for key in keys:
                self.model.add_bool_or(self.readers[key]).only_enforce_if(self.present[key])
