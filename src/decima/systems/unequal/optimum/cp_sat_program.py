"""Constraint program, run as a script: reads an integer problem in JSON, writes CP-SAT's solution.

A process of its own, as OR-Tools and TensorFlow, each with libraries of its own for the same symbols, crash in one. It
imports nothing of this package and so begins at once.
"""

from __future__ import annotations

import json
import sys
from typing import Any


class Program:
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
        """Require one copy per node, or of inner nodes, where allowed, several copies with readers."""
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


def solve(problem: dict[str, Any]) -> dict[str, Any]:
    """Solve on one thread, for ``limit_s`` seconds at most.

    Returns:
        ``status``, ``bound``, ``branches`` and ``copies``, each copy as node, executor and start; none without a
        schedule.
    """
    from ortools.sat.python import cp_model

    program = Program(cp_model.CpModel(), problem)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = problem["limit_s"]
    status = solver.solve(program.model)
    copies = []
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        for (node, executor), present in program.present.items():
            if solver.value(present):
                copies.append([node, executor, solver.value(program.start[node, executor])])
    return {
        "status": solver.status_name(status),
        "bound": solver.best_objective_bound,
        "branches": solver.num_branches,
        "copies": copies,
    }


if __name__ == "__main__":
    json.dump(solve(json.load(sys.stdin)), sys.stdout)
