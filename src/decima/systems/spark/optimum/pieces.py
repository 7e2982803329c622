"""Facts about jobs in every schedule: shortest durations, heads, tails, pieces of work.

The facts and what follows from them are in :mod:`decima.systems.spark.optimum.bounds`.
"""

import heapq
from typing import NamedTuple

import numpy as np

from decima.systems.spark.rules.durations import FIRST, FRESH
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload

# Mirror ascent: the first step in units of 1 / average bound.
FIRST_STEP = 0.6


class StageFacts(NamedTuple):
    """What is known of a stage in every schedule; ms."""

    tasks: int
    parents: tuple[int, ...]
    at_least_ms: np.ndarray  # float64 [executors], least time of a task launched with 1, 2, ... or more executors
    cold_ms: float  # least time of an executor's first task
    ratio: float  # least ratio of the times of a first and of any task, over numbers of executors
    span_ms: float  # least time of the stage
    head_ms: float  # least time from the arrival of the job to the start
    below_ms: float  # least time from the end to the end of the job


class Pieces:
    """Stages as pieces of work on one machine of E-fold speed; ms per piece.

    Attributes:
        executors: Of the cluster.
        delay_ms: Time that an executor needs to join a job.
        first_row: Per job, row of its first stage; equal for jobs of one profile.
        facts: Stages by the row of the first one.
        arrival_ms: Per job.
        job_path_ms: Per job, least JCT on an empty cluster.
        job_work_ms: Per job, least executor time.
        job: Its job.
        head: Earliest start.
        size: Least time of its work on the fast machine.
        tail: Least time from the mean time of its work to the end of the job.
    """

    def __init__(self, workload: Workload, settings: Settings) -> None:
        tables = WorkloadTables(workload, settings).arrays
        self.executors = executors = int(settings.executors)
        self.delay_ms = delay = settings.moving_delay_ms if settings.startup else 0.0
        shortest = _ShortestTasks(tables, settings)
        self.arrival_ms = tables["job_arrival_ms"]
        self.job_path_ms = np.empty(len(workload.jobs))
        self.job_work_ms = np.empty(len(workload.jobs))
        self.first_row = tables["stage_row"][tables["job_first_stage"][:-1]].tolist()
        self.facts: dict[int, list[StageFacts]] = {}
        by_row: dict[int, tuple] = {}
        columns: list[tuple] = []
        for index, job in enumerate(workload.jobs):
            row = self.first_row[index]
            if row not in by_row:
                *by_row[row], self.facts[row] = _job_pieces(job.profile, shortest, row, executors, delay)
            path, work, pieces = by_row[row]
            arrival = self.arrival_ms[index]
            self.job_path_ms[index] = path
            self.job_work_ms[index] = work
            columns += [(index, arrival + head, size, tail) for head, size, tail in pieces]
        job_of, self.head, self.size, self.tail = (np.array(column) for column in zip(*columns, strict=True))
        self.job = job_of.astype(np.int64)

    def best_combination(self, rounds: int) -> float:
        """Search for the mixture with the largest bound on the sum of JCTs, ms."""
        jobs = len(self.job_path_ms)
        alone = self.arrival_ms + self.job_path_ms
        # Weights of the pieces and, last, of the path bound; they sum to 1 for each job.
        owner = np.concatenate([self.job, np.arange(jobs)])
        whole = np.maximum(np.bincount(self.job, self.size), 1e-300)
        weight = np.concatenate([self.size / whole[self.job], np.ones(jobs)])
        weight += 1e-6
        best = -np.inf
        for number in range(1, rounds + 1):
            weight /= np.bincount(owner, weight)[owner]
            middle = self._mean_busy_ms(weight[: len(self.job)])
            end = np.concatenate([middle + self.tail, alone])  # what each member of the mixture says about the end
            value = float(np.dot(weight, end) - self.arrival_ms.sum())
            best = max(best, value)
            gain = end - np.bincount(owner, weight * end)[owner]
            step = FIRST_STEP / np.sqrt(number) * jobs / max(best, 1e-9)
            weight = np.maximum(weight * np.exp(np.clip(step * gain, -20.0, 20.0)), 1e-12)
        return best

    def _mean_busy_ms(self, weight: np.ndarray) -> np.ndarray:
        """Mean time of each piece's work when served by weight / size."""
        middle = self.head.copy()  # right for pieces without work
        left = self.size.tolist()
        with np.errstate(over="ignore"):
            rank = np.divide(-weight, self.size, out=np.full(len(weight), -np.inf), where=self.size > 0.0).tolist()
        head = self.head.tolist()
        order = np.argsort(self.head, kind="stable").tolist()
        # Centres of the pieces' intervals, weighted by the work done there. Squared times, or a division
        # by the whole size, would lose a short piece of work at a late time.
        done = [0.0] * len(left)
        moment = [0.0] * len(left)
        waiting: list[tuple[float, int]] = []
        now, following = 0.0, 0
        while following < len(order) or waiting:
            if not waiting:
                now = max(now, head[order[following]])
            while following < len(order) and head[order[following]] <= now:
                piece = order[following]
                if left[piece] > 0.0:
                    heapq.heappush(waiting, (rank[piece], piece))
                following += 1
            if not waiting:
                continue
            piece = waiting[0][1]
            work = left[piece]
            end = now + work
            if following < len(order) and head[order[following]] < end:
                end = head[order[following]]
                work = end - now
                left[piece] -= work
            else:
                left[piece] = 0.0
            done[piece] += work
            moment[piece] += work * (now + 0.5 * work)
            now = end
            if left[piece] <= 0.0:
                heapq.heappop(waiting)
        busy = self.size > 0.0
        middle[busy] = np.array(moment)[busy] / np.array(done)[busy]
        return middle


class _ShortestTasks:
    """Shortest durations of the stages of a set of profiles, in ms.

    Everything is per row of the workload tables. ``at_least(row)[k - 1]`` is the shortest duration, in any wave, of a
    task launched with k or more executors at the job.
    """

    def __init__(self, tables: dict[str, np.ndarray], settings: Settings) -> None:
        self._tables = tables
        self._mean = settings.durations == "mean"
        self._width = len(tables["grid_left"]) // (int(tables["row_grid"].max()) + 1)
        self._counts = np.minimum(np.arange(1, int(settings.executors) + 1), self._width - 1)
        if self._mean:
            self._list_ms = tables["list_mean_ms"]
        else:
            smallest = np.minimum.reduceat(tables["values_ms"], tables["list_offset"])
            self._list_ms = smallest + tables["list_add_ms"]

    def by_count(self, row: int, situation: int) -> np.ndarray:
        """Shortest duration of a launch by executors at the job, float64 [executors]."""
        cells = self._tables["row_grid"][row] * self._width + self._counts
        base = self._tables["row_list"][row] + situation
        left = self._list_ms[base + 3 * self._tables["grid_left"][cells]]
        right = self._list_ms[base + 3 * self._tables["grid_right"][cells]]
        if self._mean:
            part = self._tables["grid_weight"][cells]
            same = self._tables["grid_left"][cells] == self._tables["grid_right"][cells]
            return np.where(same, left, (1.0 - part) * left + part * right)
        return np.minimum(left, right)

    def at_least(self, row: int) -> np.ndarray:
        """Shortest duration of a launch by least executors at the job, float64 [executors]."""
        shortest = np.min([self.by_count(row, situation) for situation in range(3)], axis=0)
        return _or_more(shortest)


def _or_more(times: np.ndarray) -> np.ndarray:
    """Least of each and all later numbers."""
    return np.minimum.accumulate(times[::-1])[::-1]


def _job_pieces(profile, shortest: _ShortestTasks, first_row: int, executors: int, delay: float):
    """Least JCT, executor time, pieces (head, size, tail) and stages of a job."""
    stages = profile.stages
    sources = [index for index, stage in enumerate(stages) if not stage.parents]
    count = len(stages)
    span, work, middle, ratio = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    times, firsts = [], []
    for index, stage in enumerate(stages):
        row = first_row + index
        later = shortest.at_least(row)
        fresh, first = (shortest.by_count(row, situation) for situation in (FRESH, FIRST))
        begun = _or_more(fresh if sources == [index] else np.minimum(fresh, first))
        task, tasks = float(later[0]), stage.num_tasks
        cold = max(float(begun[0]), task)
        waves = cold + (-(-tasks // executors) - 1) * task
        with np.errstate(divide="ignore", over="ignore"):
            rate = float(np.sum(1.0 / later[: min(executors, tasks)]))
        span[index] = max(waves, tasks / rate)
        work[index] = cold + (tasks - 1) * task
        # Half of the time the work takes at least: at full speed, and as tasks that are each in the middle.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio[index] = max(1.0, float(np.min(np.where(later > 0.0, begun / later, 1.0))))
        times.append(later)
        firsts.append(cold)
        squares = cold**2 + (tasks - 1) * task**2
        middle[index] = 0.5 * max(work[index] / executors, squares / work[index]) if work[index] > 0.0 else 0.0
    head, below = np.full(count, delay), np.zeros(count)
    for index in profile.topological_order:
        for parent in stages[index].parents:
            head[index] = max(head[index], head[parent] + span[parent])
    for index in reversed(profile.topological_order):
        for child in profile.children[index]:
            below[index] = max(below[index], span[child] + below[child])
    path = float((head + span + below).max())
    pieces = list(zip(head, work / executors, middle + below, strict=True))
    # The move of the executor that runs the first task occupies it as a task would.
    pieces.append((0.0, delay / executors, 0.5 * delay + path - delay))
    facts = [
        StageFacts(stage.num_tasks, tuple(stage.parents), *known)
        for stage, *known in zip(stages, times, firsts, ratio, span, head, below, strict=True)
    ]
    return path, float(work.sum() + delay), pieces, facts


def shortest_remaining_work(arrival: np.ndarray, size: np.ndarray) -> tuple[float, dict[int, float]]:
    """Least sum of JCTs on one machine with preemption, and the ends of jobs.

    Args:
        arrival: Float64 [jobs].
        size: Float64 [jobs], in the same unit of time, which is that of the results.

    Returns:
        The sum, and the ends by job in the order of completions.
    """
    order = np.argsort(arrival, kind="stable").tolist()
    arrivals, sizes = arrival.tolist(), size.tolist()
    waiting: list[tuple[float, int]] = []
    ends: dict[int, float] = {}
    now, total, following = 0.0, -float(arrival.sum()), 0
    while following < len(order) or waiting:
        if not waiting:
            now = max(now, arrivals[order[following]])
        while following < len(order) and arrivals[order[following]] <= now:
            heapq.heappush(waiting, (sizes[order[following]], order[following]))
            following += 1
        left, job = waiting[0]
        if following < len(order) and arrivals[order[following]] < now + left:
            event = arrivals[order[following]]
            heapq.heapreplace(waiting, (left - (event - now), job))
            now = event
        else:
            heapq.heappop(waiting)
            now += left
            total += now
            ends[job] = now
    return total, ends
