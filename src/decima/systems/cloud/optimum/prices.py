"""Dual prices that maximise the lower bound, by column generation.

The program covers the executors of every job by columns, each of which is what one VM takes of all jobs, with the rent
for it; there are at most as many columns of a kind as VMs of it. Columns are added as long as
:mod:`.rental` finds one that loses less than its executors earn (column generation). What the VMs
lose at least is a bound for any prices, so it does not matter how exactly the program is solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.interrupts import check_stop
from decima.systems.cloud.optimum.problem import Problem, whole
from decima.systems.cloud.optimum.rental import best_of_vm
from decima.systems.cloud.workload import NETWORK_BOUND

ROUNDS = 60
NEAR = 0.002  # part of the bound that better prices could add when the search for them ends
MOST_STARTS = 150  # possible starts of all jobs of a period together; with more of them there are no prices
MOST_EXECUTORS = 4095  # of one job, what a choice of the kernel has room for; with more there are no prices
MOST_STATES = 400_000  # states of VMs of one kind; with more of them there are no prices
ROUNDING_S = 1e-6  # far more than sums of times differ by rounding
ENTRIES = 20  # two to this power: states that are remembered


@dataclass(frozen=True)
class DualPrices:
    """Dual prices as compiled code takes them; without any they bound nothing."""

    bound: float  # least loss of the whole period
    # What all executors from a job on earn, float64 [jobs + 1], NaN without prices; options, stack, table and frame of
    # :func:`decima.systems.cloud.optimum.rental.least_of_vm`.
    arrays: tuple


def no_dual_prices(problem: Problem) -> DualPrices:
    """Arrays of the right types for a search that goes without prices."""
    options = _options(problem, np.arange(len(problem) + 1), problem.jobs[0])
    return DualPrices(-np.inf, (np.full(len(problem) + 1, np.nan), options, *_room(problem, entries=0)))


def find_dual_prices(problem: Problem, latest: np.ndarray, upper: float) -> DualPrices:
    """Prices for a period, under which VMs lose about as much as under any.

    Args:
        problem: Jobs of the period.
        latest: When each starts at the latest, float64 [jobs].
        upper: Loss of a known placement of all jobs.
    """
    starts = possible_starts(problem, latest)
    if starts is None or problem.jobs[4].max() > MOST_EXECUTORS:
        return no_dual_prices(problem)
    count, need = len(problem), problem.jobs[4]
    options = _options(problem, *starts)
    room = _room(problem, ENTRIES)
    program = _Program(problem, upper)
    # At first a job earns as much of the known loss as it takes of the cores.
    work = need * problem.jobs[2] * problem.jobs[6]
    shares = upper * work / work.sum()
    best, best_shares = -np.inf, shares
    for _ in range(ROUNDS):
        _set_shares(problem, options, room, shares)
        total = float(shares.sum())
        for vm_class in range(len(program.kinds)):
            least = program.add_best(vm_class, options, room)
            total += program.numbers[vm_class] * least
            check_stop()
        if not np.isfinite(total):
            return no_dual_prices(problem)
        if total > best:
            best, best_shares = total, shares
        upper_of_bound, dual = program.solve()
        if upper_of_bound - best < NEAR * abs(upper_of_bound):
            break
        # Dual values leap; half the way from the best ones so far leads there sooner.
        shares = 0.5 * best_shares + 0.5 * dual
    _set_shares(problem, options, room, best_shares)
    after = np.zeros(count + 1)
    after[:count] = np.cumsum(best_shares[::-1])[::-1]
    return DualPrices(best, (after, options, *room))


def possible_starts(problem: Problem, latest: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """All moments at which jobs can start: arrivals, and ends of earlier jobs.

    Returns:
        Where those of each job begin, int64 [jobs + 1], and the moments, ascending for each job; None if there are more
        than MOST_STARTS.
    """
    arrival, duration, longest = problem.jobs[0], problem.jobs[5], problem.longest
    first, starts, ends = [0], [], set()
    for job in range(len(problem)):
        last = latest[job] + ROUNDING_S
        moments = sorted({float(arrival[job]), *(end for end in ends if arrival[job] < end <= last)})
        starts += moments
        if len(starts) > MOST_STARTS:
            return None
        first.append(len(starts))
        ends |= {float(start + run) for start in moments for run in (duration[job], longest[job])}
    return np.array(first, dtype=np.int64), np.array(starts)


def _options(problem: Problem, first_start: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, ...]:
    """How a VM may take executors of each job, well or badly placed."""
    _arrival, job_type, _cores, _memory, need, duration, least = problem.jobs
    fewest, most = np.ones((2, len(problem), 2), dtype=np.int64)
    good, bad = 0, 1
    most[:, bad] = need
    network = job_type == NETWORK_BOUND
    fewest[network, good] = most[network, good] = need[network]
    most[network, bad] = need[network] - 1
    most[least > duration, good] = 0
    runs = np.stack([duration, problem.longest], axis=1)
    return first_start, starts, runs, fewest, most, np.zeros((len(problem), 2))


def _room(problem: Problem, entries: int) -> tuple[tuple, tuple, tuple]:
    """Stack, table and frame of :func:`decima.systems.cloud.optimum.rental.least_of_vm`."""
    rows, size = len(problem) + 1, 1 << entries
    stack = whole(rows), np.zeros((rows, rows)), whole(rows, rows), whole(rows, rows)
    table = np.zeros(size, dtype=np.uint64), np.zeros(size), whole(size)
    hashes = np.zeros(rows, dtype=np.uint64)
    frame = np.zeros(rows), hashes, np.zeros(rows), whole(rows), whole(rows), whole(rows), np.zeros(rows)
    return stack, table, frame


def _set_shares(problem: Problem, options: tuple, room: tuple, shares: np.ndarray) -> None:
    """Let the executors of a job earn equal parts of its share of the loss.

    What the run time of the job loses is taken off.
    """
    options[-1][:] = (shares[:, None] - problem.weights[1] * options[2]) / problem.jobs[4][:, None]
    room[1][0][:] = 0  # what was remembered belonged to other prices


class _Program:
    """Linear program over the columns so far."""

    def __init__(self, problem: Problem, upper: float) -> None:
        self.problem, self.upper = problem, upper
        vms = list(zip(*(array.tolist() for array in problem.vms[:4]), strict=True))
        self.kinds = sorted(set(vms))
        self.numbers = [vms.count(vm_class) for vm_class in self.kinds]
        self.columns: dict[tuple, tuple[int, np.ndarray, float]] = {}

    def add_best(self, vm_class: int, options: tuple, room: tuple) -> float:
        """Add the best column of a class of VMs; returns its loss less earnings."""
        problem = self.problem
        cores, memory, rate, name = self.kinds[vm_class]
        taken = np.zeros((len(problem), 2), dtype=np.int64)
        vm = cores, memory, float(problem.weights[0] * rate), name
        tables = problem.jobs[0], problem.jobs[2], problem.jobs[3]
        least, rent = best_of_vm(tables, options, vm, *room, taken, MOST_STATES)
        if np.isfinite(least) and taken.any():
            parts = taken / problem.jobs[4][:, None]
            loss = rent + problem.weights[1] * float(np.sum(parts * options[2]))
            self.columns[vm_class, taken.tobytes(), loss] = vm_class, parts.sum(axis=1), loss
        return least

    def solve(self) -> tuple[float, np.ndarray]:
        """Least loss over all columns so far, and the dual value of every job."""
        from scipy.optimize import linprog

        jobs, columns = len(self.problem), list(self.columns.values())
        # Jobs may also stay uncovered, each for the loss of all.
        covers = np.hstack([np.zeros((jobs, 0)), *(part[:, None] for _vm_class, part, _loss in columns), np.eye(jobs)])
        losses = [loss for _vm_class, _part, loss in columns] + [self.upper] * jobs
        used = np.zeros((len(self.kinds), len(losses)))
        used[[vm_class for vm_class, _part, _loss in columns], np.arange(len(columns))] = 1.0
        solved = linprog(losses, A_ub=used, b_ub=self.numbers, A_eq=covers, b_eq=np.ones(jobs), method="highs")
        return float(solved.fun), solved.eqlin.marginals
