"""Lower bounds on the average JCT that hold for every scheduler, also one that knows the future.

The bounds rest on these facts about a run, and on nothing else:

- A task takes at least the shortest duration that its stage has at any executor count and in any wave: the shortest
  mean where durations are ``"mean"``, the smallest sample where they are ``"sampled"``. The first task of an executor
  in a stage is not of the later ("rest") wave; where a job has one source stage, it is of the fresh wave there.
- The k-th of the tasks that a job runs at one time was launched with at least k executors at the job.
- A stage starts when its parents have finished, a job's first task one moving delay after the arrival at the earliest.
- There are E executors, and an executor runs one task at a time.

The bound holds for every run, in every mode, with these settings. For sampled durations the smallest samples make it
loose; nothing is claimed about expected values.

Four bounds follow, and the largest counts:

- ``path``: every job alone on an otherwise empty cluster, its longest chain of stages.
- ``work``: all jobs on one machine of E-fold speed with preemption, shortest remaining work first (optimal there).
- ``combined``: a job cannot end before the mean time at which the work of any of its stages is done, plus half of
  that stage, plus the longest chain below it. Any mixture of these and of the path bound is a bound on the job. Given
  the mixtures, the least possible sum of mean busy times on the one fast machine, each stage released after the longest
  chain above it, is reached by serving stages by weight over work with preemption (Goemans 1997). So any mixtures give
  a bound on the sum over jobs; the best ones are sought by mirror ascent (the bound is concave in them). ``path`` and,
  for batches, more than ``work`` are special cases.
- ``priced``: what every job costs at least when executor time has a price, see :mod:`decima.optimum.priced_bound`. It
  alone knows that tasks take longer the more of them run at one time, that executors begin a stage with a slow task,
  and that stages of a path share the time of their job.

Source: §7.4 and appendix H call bounds by total work or critical path too loose to say much; the combination is ours.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from decima.exceptions import ConfigError
from decima.optimum.priced_bound import PricedBound
from decima.simulator.rules.durations import FIRST, FRESH
from decima.simulator.settings import Settings
from decima.simulator.tables import WorkloadTables
from decima.workload.jobs import Workload

# Mirror ascent: rounds, and the first step in units of 1 / average bound.
ROUNDS = 300
FIRST_STEP = 0.6
# Ascent along prices: rounds, and the most jobs for which it is tried without being asked for.
PRICE_ROUNDS = 60
PRICED_JOBS = 100


@dataclass(frozen=True)
class LowerBound:
    """Lower bounds on the average JCT in ms."""

    path_ms: float  # from critical paths alone
    work_ms: float  # from the total work alone
    combined_ms: float  # from both
    priced_ms: float  # from prices of executor time; 0 if none were tried
    job_path_ms: np.ndarray = field(repr=False)  # float64 [jobs], the path bound of each job's JCT
    durations: str  # ``"mean"`` or ``"sampled"``: which shortest durations were used

    @property
    def avg_jct_ms(self) -> float:
        """The largest of the bounds."""
        return max(self.path_ms, self.work_ms, self.combined_ms, self.priced_ms)

    @property
    def avg_jct_s(self) -> float:
        """The largest of the bounds, in seconds."""
        return self.avg_jct_ms / 1000.0

    def as_dict(self) -> dict[str, float]:
        """Bounds in seconds by name, for tables."""
        return {
            "lower_bound_s": self.avg_jct_s,
            "path_s": self.path_ms / 1000.0,
            "work_s": self.work_ms / 1000.0,
            "combined_s": self.combined_ms / 1000.0,
            "priced_s": self.priced_ms / 1000.0,
        }

    def __str__(self) -> str:
        values = self.as_dict()
        return (
            f"average JCT at least {values['lower_bound_s']:.2f} s (path {values['path_s']:.2f} s, work "
            f"{values['work_s']:.2f} s, combined {values['combined_s']:.2f} s, priced {values['priced_s']:.2f} s; "
            f"{self.durations} durations)"
        )


def lower_bound(
    workload: Workload, settings: Settings, *, rounds: int = ROUNDS, price_rounds: int | None = None
) -> LowerBound:
    """Compute a lower bound on the average JCT of any schedule of these jobs on this cluster.

    Args:
        workload: The jobs.
        settings: The cluster; ``durations`` decides between the bound for mean durations and the looser one that holds
            for every draw of sampled ones.
        rounds: Effort spent on the combined bound; any number is valid, more is tighter.
        price_rounds: The same for the bound with prices; 0 for none, which is the default above ``PRICED_JOBS`` jobs.

    Raises:
        ConfigError: Runs would be cut by a time limit, so that the average is not over all jobs.
    """
    if settings.time_limit_applies and settings.time_limit_ms < float("inf"):
        raise ConfigError(f"no bound for runs cut at {settings.time_limit_ms} ms; expected no time limit")
    pieces = Pieces(workload, settings)
    path = pieces.job_path_ms
    jobs = len(path)
    work = _shortest_remaining_work_ms(pieces.arrival_ms, pieces.job_work_ms / settings.executors) / jobs
    combined = pieces.best_combination(rounds) / jobs
    if price_rounds is None:
        price_rounds = PRICE_ROUNDS if jobs <= PRICED_JOBS else 0
    priced = PricedBound(pieces).improve(price_rounds) * 1000.0 / jobs if price_rounds else 0.0
    return LowerBound(float(path.mean()), work, combined, priced, path, settings.durations)


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
    """Stages of all jobs as pieces of work on one machine of E-fold speed; arrays are in ms, per piece unless said.

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
        """Search for the mixture that gives the largest bound on the sum of JCTs, in ms."""
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
        """Mean time of each piece's work when the machine always serves the largest weight / size available."""
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
        """Shortest duration of a launch in a situation with 1, 2, ... executors at the job; float64 [executors]."""
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
        """Shortest duration of a launch with 1, 2, ... or more executors at the job; float64 [executors]."""
        shortest = np.min([self.by_count(row, situation) for situation in range(3)], axis=0)
        return _or_more(shortest)


def _or_more(times: np.ndarray) -> np.ndarray:
    """Least of each and all later numbers."""
    return np.minimum.accumulate(times[::-1])[::-1]


def _job_pieces(profile, shortest: _ShortestTasks, first_row: int, executors: int, delay: float):
    """Least JCT, least executor time, pieces (head, size, tail) and stages of a job that arrives at time 0."""
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
        with np.errstate(divide="ignore", invalid="ignore"):
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


def _shortest_remaining_work_ms(arrival_ms: np.ndarray, size_ms: np.ndarray) -> float:
    """Least sum of JCTs of jobs on one machine with preemption: shortest remaining processing time first."""
    order = np.argsort(arrival_ms, kind="stable")
    waiting: list[float] = []
    now, total, following = 0.0, -float(arrival_ms.sum()), 0
    while following < len(order) or waiting:
        if not waiting:
            now = max(now, float(arrival_ms[order[following]]))
        while following < len(order) and arrival_ms[order[following]] <= now:
            heapq.heappush(waiting, float(size_ms[order[following]]))
            following += 1
        left = waiting[0]
        if following < len(order) and arrival_ms[order[following]] < now + left:
            event = float(arrival_ms[order[following]])
            heapq.heapreplace(waiting, left - (event - now))
            now = event
        else:
            heapq.heappop(waiting)
            now += left
            total += now
    return total
