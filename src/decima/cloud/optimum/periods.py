"""The exact optimum for given arrivals without voluntary waiting, by independent busy periods.

A job that is certain to find every earlier one finished begins a period of its own: with billing per second nothing
that was done before matters to it. Every period is searched exhaustively (:mod:`decima.cloud.optimum.kernel`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decima.cloud.jobs import NETWORK_BOUND, PlacementWorkload
from decima.cloud.optimum import bounds, kernel
from decima.cloud.optimum.prices import Priced, no_prices
from decima.cloud.settings import PlacementSettings
from decima.cloud.state import SECONDS_PER_HOUR
from decima.compiled.interrupts import check_stop

# Nodes between two looks at signals and at the limit.
STEP = 5000
MOST_SEEN = 22  # two to this power: most nodes whose futures are remembered


@dataclass(frozen=True)
class Problem:
    """Jobs, VMs and weights as arrays, of a whole workload."""

    jobs: tuple[np.ndarray, ...]  # arrival, type, cores, memory, executors, duration, least run time
    vms: tuple[np.ndarray, ...]  # cores, memory, rate, kind, numbers by rate ascending
    prices: np.ndarray  # float64 [4], see the bounds
    weights: np.ndarray  # float64 [4], see the kernel

    @classmethod
    def of(cls, workload: PlacementWorkload, settings: PlacementSettings) -> Problem:
        """Arrays of a workload; losses are those of R_epi (Eq. 14)."""
        jobs, vms, rules = workload.jobs, settings.cluster.vms, settings.rules
        duration = np.array([job.duration_s for job in jobs])
        worst = duration + duration * rules.penalty_percent / 100
        least = np.where([_can_be_good(job, settings) for job in jobs], duration, worst)
        kinds = {kind.name: number for number, kind in enumerate(settings.cluster.types)}
        rate = np.array([vm.price_per_hour / SECONDS_PER_HOUR for vm in vms])
        cores = np.array([vm.cores for vm in vms], dtype=np.int64)
        memory = np.array([vm.memory_mib for vm in vms], dtype=np.int64)
        longest = worst.sum() if rules.penalty_in_cost_max else duration.sum()
        spread = duration.mean() * rules.penalty_percent / 100.0 * len(jobs)
        return cls(
            (
                np.array([job.arrival_s for job in jobs], dtype=np.float64),
                np.array([job.type for job in jobs], dtype=np.int64),
                np.array([job.cores for job in jobs], dtype=np.int64),
                np.array([job.memory_mib for job in jobs], dtype=np.int64),
                np.array([job.executors for job in jobs], dtype=np.int64),
                duration.astype(np.float64),
                least.astype(np.float64),
            ),
            (
                cores,
                memory,
                rate,
                np.array([kinds[vm.name] for vm in vms], dtype=np.int64),
                np.argsort(rate, kind="stable"),
            ),
            np.array(
                [
                    float((rate / cores).min()),
                    float(np.gcd.reduce(cores)),
                    float((rate / memory).min()),
                    float(np.gcd.reduce(memory)),
                ]
            ),
            np.array(
                [
                    rules.fixed_reward * settings.beta / (longest * rate.sum()),
                    rules.fixed_reward * (1.0 - settings.beta) / spread,
                    rules.penalty_percent,
                    float(rules.spread_rule == "not_all_one"),
                ]
            ),
        )

    def part(self, first: int, last: int) -> Problem:
        """The same with some of the jobs."""
        return Problem(tuple(array[first:last].copy() for array in self.jobs), self.vms, self.prices, self.weights)

    def __len__(self) -> int:
        return len(self.jobs[0])

    @property
    def longest(self) -> np.ndarray:
        """float64 [jobs], run times when badly placed."""
        return self.jobs[5] + self.jobs[5] * self.weights[2] / 100

    def loss(self, cost: np.ndarray, run_s: np.ndarray) -> float:
        """Loss of jobs from what they add to the bill and their run times."""
        return float(self.weights[0] * np.sum(cost) + self.weights[1] * np.sum(run_s))

    def work_bound(self) -> float:
        """Least cost of the cores, or of the memory, that all jobs take, at the lowest price; holds with waits, too."""
        _arrival, _kind, cores, memory, executors, _duration, least = self.jobs
        by_cores = self.prices[0] * float(np.sum(cores * executors * least))
        return max(by_cores, self.prices[2] * float(np.sum(memory * executors * least)))

    def interval_bound(self) -> float:
        """Least cost moment by moment of what runs at that moment for certain."""
        return _of_empty(self)[0]

    def cost_bound(self) -> float:
        """Least cost of a period without voluntary waits: the higher of both bounds."""
        return max(self.work_bound(), self.interval_bound())

    def least_loss(self, cost: float) -> float:
        """Loss for a cost and the least run times of all jobs."""
        return self.loss(np.array([cost]), self.jobs[6])


def _can_be_good(job, settings: PlacementSettings) -> bool:
    """Whether some placement on the empty cluster is a good one."""
    rooms = [min(vm.cores // job.cores, vm.memory_mib // job.memory_mib) for vm in settings.cluster.vms]
    if job.type == NETWORK_BOUND:
        return max(rooms) >= job.executors
    usable = sum(room > 0 for room in rooms)
    if settings.rules.spread_rule == "not_all_one":
        return usable > 1 and job.executors > 1
    return usable >= job.executors


def places_taken(problem: Problem) -> np.ndarray:
    """Places for executors of a job that another one, placed before and still running, may take at most.

    An executor takes from a VM at most as many places as its cores or its memory would need, rounded up.

    Returns:
        int64 [jobs, jobs]: first the other job, then the job.
    """
    _arrival, _kind, cores, memory, executors, _duration, _least = problem.jobs
    by_cores, by_memory = -(-cores[:, None] // cores), -(-memory[:, None] // memory)
    return np.maximum(by_cores, by_memory) * executors[:, None]


def _of_empty(problem: Problem) -> tuple[float, np.ndarray, np.ndarray]:
    """Least cost by interval of jobs that find an empty cluster; when each starts and ends at the latest."""
    state, room = _state(problem), _room_of_bound(problem)
    _empty(problem, state, 0)
    of_cost = np.array([1.0, 0.0, *problem.weights[2:]])
    taken = places_taken(problem)
    found = bounds.bound_of_empty(problem.jobs, problem.vms, problem.prices, of_cost, state, taken, room)
    return float(found), room[4], room[5]


def latest_starts(problem: Problem) -> np.ndarray:
    """When each job starts at the latest, whatever is done, float64 [jobs]; the first finds an empty cluster."""
    return _of_empty(problem)[1]


def periods(problem: Problem) -> list[tuple[int, int]]:
    """Independent busy periods: (first job, last job + 1), by the latest that anything can end."""
    arrival, ends = problem.jobs[0], _of_empty(problem)[2]
    firsts = [job for job in range(len(problem)) if (ends[:job] <= arrival[job]).all()]
    return list(itertools.pairwise([*firsts, len(problem)]))


@dataclass(frozen=True)
class Solved:
    """Outcome of the search of one period."""

    counts: np.ndarray  # int64 [jobs, VMs], the best placement found
    loss: float
    nodes: int
    proved: bool  # whether the search came to its end, so that nothing is better


def solve_period(
    problem: Problem,
    nodes: int,
    begin: Callable[[int], tuple[float, np.ndarray]],
    priced: Priced | None = None,
) -> Solved:
    """Search a period that begins with an empty cluster.

    The search is done from every job that may find the cluster empty, last ones first: where a longer search finds it
    so, the rest is known.

    Args:
        problem: Its jobs.
        nodes: Most nodes of all these searches.
        begin: Function of a job that gives a placement to begin with of it and all later ones, on an empty cluster:
            its loss and executors per VM, int64 [jobs from there, VMs].
        priced: Prices for a third bound besides work and interval.
    """
    priced = no_prices(problem) if priced is None else priced
    count, vms = len(problem), len(problem.vms[0])
    taken = places_taken(problem)
    state, lists, scratch = _memory(problem)
    known = np.full(count + 1, np.nan)
    known[count] = 0.0
    placements = np.zeros((count, count, vms), dtype=np.int64)
    spent = 0
    places = 1 << min(MOST_SEEN, nodes.bit_length())
    seen = np.zeros(places, dtype=np.uint64), np.zeros(places)
    for start in [job for job in range(count - 1, -1, -1) if job == 0 or _may_be_empty(problem, job)]:
        loss, placements[start, start:] = begin(start)
        seen[0][:] = 0
        if spent > nodes:
            continue  # what is known is the placement to begin with
        cursor = np.zeros(kernel.NUM_CURSOR, dtype=np.int64)
        cursor[kernel.DEPTH] = -1
        best = np.array([loss])
        counts, reached = np.zeros((count, vms), dtype=np.int64), np.zeros(1, dtype=np.int64)
        _empty(problem, state, start)
        while not (cursor[kernel.OVER] or cursor[kernel.TOO_MANY]) and spent + cursor[kernel.NODES] <= nodes:
            kernel.search_period(
                problem.jobs,
                problem.vms,
                problem.prices,
                problem.weights,
                taken,
                start,
                known,
                cursor,
                best,
                counts,
                reached,
                state,
                lists,
                scratch,
                seen,
                priced.arrays,
                STEP,
            )
            check_stop()
        spent += int(cursor[kernel.NODES])
        loss = float(best[0])
        if reached[0]:
            placements[start, start : reached[0]] = counts[start : reached[0]]
            if reached[0] < count:
                placements[start, reached[0] :] = placements[reached[0], reached[0] :]
        if cursor[kernel.OVER]:
            known[start] = loss
    return Solved(placements[0], loss, spent, not np.isnan(known[0]))


def _may_be_empty(problem: Problem, job: int) -> bool:
    """Whether all jobs before one may have finished when it arrives."""
    arrival, least = problem.jobs[0], problem.jobs[6]
    return bool((arrival[:job] + least[:job] <= arrival[job]).all())


def _whole(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


def _state(problem: Problem) -> tuple[np.ndarray, ...]:
    """Rows by depth, see :mod:`decima.cloud.optimum.kernel`."""
    rows, vms = len(problem) + 1, len(problem.vms[0])
    return (
        _whole(rows, vms),
        _whole(rows, vms),
        np.zeros((rows, vms)),
        np.zeros(rows),
        np.zeros(rows),
        _whole(rows),
        _whole(rows, rows),
        _whole(rows, vms),
        np.zeros(rows),
    )


def _empty(problem: Problem, state: tuple[np.ndarray, ...], job: int) -> None:
    """Let a job find an empty cluster."""
    state[0][job], state[1][job] = problem.vms[0], problem.vms[1]
    state[2][job], state[3][job], state[4][job], state[5][job] = -1.0, problem.jobs[0][job], 0.0, 0


def _memory(problem: Problem) -> tuple[tuple, tuple, tuple]:
    rows, vms, size = len(problem) + 1, len(problem.vms[0]), kernel.CHILDREN
    lists = (
        _whole(rows),
        _whole(rows),
        np.zeros((rows, size, vms), dtype=np.int32),
        np.zeros((rows, size)),
        _whole(rows, size),
    )
    return _state(problem), lists, (_whole(vms), _whole(vms), _whole(vms), _room_of_bound(problem))


def _room_of_bound(problem: Problem) -> tuple[np.ndarray, ...]:
    """The scratch of :func:`decima.cloud.optimum.bounds.interval_bound`."""
    count, slots = len(problem), bounds.SLOTS
    points = np.empty(4 * count + len(problem.vms[0]))
    tables, latest, ends = np.zeros((4, 1 << slots)), np.zeros(count), np.zeros(count)
    return points, tables, _whole(slots), _whole(count), latest, ends


def sub_workload(workload: PlacementWorkload, first: int, last: int) -> PlacementWorkload:
    """Some consecutive jobs of a workload."""
    return PlacementWorkload(workload.jobs[first:last], workload.label)


def exact_applies(settings: PlacementSettings) -> bool:
    """Whether the rules and the billing are those that periods are independent under."""
    rules = settings.rules
    plain = not (rules.clock_goes_back or rules.wait_frees_one) and rules.look_ahead == "none"
    return plain and settings.billing.per_second


def plan_of(counts: np.ndarray) -> np.ndarray:
    """VM of every executor, int64 [executors], from executors per job and VM."""
    return np.array([vm for row in counts for vm, number in enumerate(row) for _ in range(number)], dtype=np.int64)


def counts_of(plan: np.ndarray, problem: Problem) -> np.ndarray:
    """Executors per job and VM, int64 [jobs, VMs], from the VM of every executor."""
    counts = np.zeros((len(problem), len(problem.vms[0])), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(problem)), problem.jobs[4]), plan), 1)
    return counts
