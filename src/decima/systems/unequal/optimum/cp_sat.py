"""The shortest schedule of a small instance by CP-SAT of OR-Tools.

CP-SAT counts in whole numbers: all times are rounded down to multiples of a unit, so that the optimum of the program is
a lower bound of the true one. The order that it finds is then timed with the true numbers. The unit is so small that
the two differ by less than :data:`TOLERANCE`, and a power of two, so that whole numbers stay what they are.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decima.core.errors import DecimaError
from decima.systems.unequal import graph
from decima.systems.unequal.optimum.bounds import earliest_start
from decima.systems.unequal.workload import Instance

#: A schedule counts as the shortest when none is shorter by this share of its length.
TOLERANCE = 1e-6
PROGRAM = Path(__file__).with_name("cp_sat_program.py")
_LOOK_S = 0.1  # between two looks at the clock


class SolverError(DecimaError, RuntimeError):
    """The solver ended without an answer."""


@dataclass(frozen=True)
class Answer:
    """Answer of CP-SAT within the time limit."""

    copies: list[tuple[int, int]]  # node and executor, in the order of their starts; empty: nothing was found
    bound_s: float  # no schedule is shorter
    branches: int
    proved: bool  # the copies, timed, are within the tolerance of the bound


def solve(
    instance: Instance,
    times_s: np.ndarray,
    sent_s: np.ndarray,
    *,
    duplicate: bool,
    most_s: float,
    time_limit_s: float,
    tick: Callable[[], object],
) -> Answer:
    """Solve the program on one thread of another process, reproducibly if time suffices.

    Args:
        instance: Jobs and cluster.
        times_s: Execution times, float64 [nodes, executors].
        sent_s: Transfer times, float64 [edges, senders, receivers], edges by child.
        duplicate: Whether nodes may be copied.
        most_s: Length of a schedule that is known, above 0; only those that are not longer are looked for.
        time_limit_s: Seconds after which to give up.
        tick: Called ten times a second; what it raises ends the search.

    Raises:
        SolverError: The process ended without an answer.
    """
    # A path has at most a copy and a transfer for each node on each executor; each loses less than a unit.
    unit = 2.0 ** math.floor(math.log2(TOLERANCE * most_s / (2 * times_s.size + 1)))
    problem = _problem(instance, times_s / unit, sent_s / unit, instance.arrival_s / unit, duplicate, most_s // unit)
    answer = _run(problem | {"limit_s": time_limit_s}, tick)
    if answer["status"] not in ("OPTIMAL", "FEASIBLE", "UNKNOWN"):
        raise SolverError(f"CP-SAT says {answer['status']} of a problem that has a solution")
    place = np.argsort(instance.order)
    rows = sorted(  # what takes no time comes before what begins with it, parents before children
        (start, start + problem["times"][node][executor], int(place[node]), node, executor)
        for node, executor, start in answer["copies"]
    )
    return Answer(
        [row[3:] for row in rows], max(0.0, answer["bound"] * unit), answer["branches"], answer["status"] == "OPTIMAL"
    )


def _problem(
    instance: Instance, times: np.ndarray, sent: np.ndarray, arrival: np.ndarray, duplicate: bool, most: float
) -> dict[str, Any]:
    """Input of ``cp_sat_program``, from times in units."""
    # What is longer than the known schedule need not be told apart.
    times, sent, arrival = (np.floor(np.minimum(each, most + 1.0)) for each in (times, sent, arrival))
    least = times.min(axis=1)
    executors = times.shape[1]
    shortest = np.full(len(sent), np.inf)  # nothing is sent where there is one executor only
    if executors > 1:
        shortest = sent[:, ~np.eye(executors, dtype=bool)].min(axis=1)
    start, parent, _ = instance.parents
    child = np.repeat(np.arange(len(instance)), np.diff(start))
    head = earliest_start(instance.order, start, parent, shortest, least, arrival)
    child_start, children, _ = instance.children
    path = graph.longest_down(instance.order, child_start, children, least, np.zeros(len(children)))
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


def _run(problem: dict[str, Any], tick: Callable[[], object]) -> dict[str, Any]:
    """The answer of the program, in a process that does not outlive this call."""
    text: str | None = json.dumps(problem)
    command = [sys.executable, "-P", str(PROGRAM)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(text, timeout=_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    text = None
                    tick()
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        last = (errors.strip().splitlines() or ["no message"])[-1]
        raise SolverError(f"CP-SAT ended with code {process.returncode}: {last}")
    return json.loads(output)
