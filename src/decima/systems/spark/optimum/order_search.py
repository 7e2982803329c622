"""Preparation of a batch of jobs for the search over orders, and simulation of single orders and of whole subtrees."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

import numpy as np

from decima.core.errors import ConfigError
from decima.core.interrupts import check_stop
from decima.systems.spark.optimum.order_kernel import (
    BEST,
    BOUND,
    NUM_COUNTS,
    NUM_SCALARS,
    NUM_TIMES,
    RULED_OUT,
    SIMULATED,
    WORD,
    search_orders,
)
from decima.systems.spark.rules.durations import REST
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload


def replay_settings(executors: int, *, runnable_only: bool = False) -> Settings:
    """The cluster of the event simulator whose rules are nearest to those of the search."""
    # With only runnable stages on offer, promises made ahead would bind executors to whatever is runnable now.
    return Settings.simplified(executors=executors, runnable_only=runnable_only, commit_ahead=not runnable_only)


class OrderSearch:
    """A batch prepared for :func:`decima.systems.spark.optimum.order_kernel.search_orders`.

    Args:
        workload: Jobs that are all present at time 0.
        executors: Executors of the cluster.
        runnable_only: See :func:`decima.systems.spark.optimum.exhaustive.exhaustive_search`.

    Raises:
        ConfigError: A job arrives later, or ``executors`` is not a positive integer.
    """

    def __init__(self, workload: Workload, executors: int = 50, *, runnable_only: bool = False) -> None:
        if not isinstance(workload, Workload):
            raise ConfigError(f"expected a Workload, got {type(workload).__name__}")
        if not workload.initial.all():
            late = int(np.flatnonzero(~workload.initial)[0])
            raise ConfigError(
                f"workload {workload.label!r}: job {late} arrives at {workload.arrival_ms[late] / 1000.0:g} s; orders "
                "are searched for batches, whose jobs are all present at the start"
            )
        self.workload = workload
        self.settings = replay_settings(executors, runnable_only=runnable_only)
        self.executors = int(executors)
        self.runnable_only = bool(runnable_only)
        self.num_jobs = len(workload)
        tables = WorkloadTables(workload, self.settings).arrays
        self.work_ms = tables["job_work_ms"]
        self._build(tables)

    def _build(self, tables: dict[str, np.ndarray]) -> None:
        row = tables["stage_row"]
        child, offset = tables["child"], tables["child_offset"]
        job = tables["stage_job"].astype(np.int64)
        first = tables["job_first_stage"].astype(np.int64)
        tasks = tables["stage_tasks"].astype(np.int64)
        duration_ms = tables["list_mean_ms"][tables["row_list"][row] + REST]
        stages = len(row)
        kids = [first[job[s]] + child[offset[row[s]] : offset[row[s] + 1]] for s in range(stages)]
        parents = tables["parent_offset"][row + 1] - tables["parent_offset"][row]
        words = -(-int(np.diff(first).max()) // WORD)
        # Stages of a job by the work on the path that they head, as the scheduler picks them.
        by_path = np.lexsort((np.arange(stages), -tables["row_path_work_ms"][row], job))
        rank = np.empty(stages, dtype=np.int64)
        rank[by_path] = np.arange(stages) - first[job]
        stage_of = np.full(self.num_jobs * words * WORD, -1, dtype=np.int64)
        stage_of[job * words * WORD + rank] = np.arange(stages)
        opened = np.zeros((self.num_jobs, words), dtype=np.uint64)
        for stage in np.flatnonzero(parents == 0):
            opened[job[stage], rank[stage] // WORD] |= np.uint64(1 << int(rank[stage]) % WORD)
        offsets = np.concatenate([[0], np.cumsum([len(below) for below in kids])]).astype(np.int64)
        self._batch = (duration_ms, job, rank, stage_of, offsets, np.concatenate(kids).astype(np.int64), words)
        self._path = self._least_path(tasks, duration_ms, kids)
        scalars = np.zeros(NUM_SCALARS, dtype=np.int64)
        scalars[1:] = self.executors  # idle and offered
        groups = np.zeros(min(self.executors, int(tasks.sum())) + 1, dtype=np.int64)
        launchable = np.add.reduceat(tasks, first[:-1])
        self._start = np.concatenate(
            [scalars, tasks, tasks, parents, launchable, np.diff(first), opened.view(np.int64).ravel(), groups]
        ).astype(np.int64)
        latest: dict[int, int] = {}
        self.same_before = np.full(self.num_jobs, -1, dtype=np.int64)
        for index, profile in enumerate(self.workload.profile_index.tolist()):
            self.same_before[index] = latest.get(profile, -1)
            latest[profile] = index

    def _least_path(self, tasks: np.ndarray, duration_ms: np.ndarray, kids: list[np.ndarray]) -> np.ndarray:
        """float64 ms [stages], least time from the end of a stage to the end of its job, with all executors."""
        rounds_ms = -(-tasks // self.executors) * duration_ms
        path = np.zeros(len(tasks))
        base = 0
        for job in self.workload.jobs:
            for index in reversed(job.profile.topological_order):
                below = kids[base + index]
                path[base + index] = max((rounds_ms[below] + path[below]).tolist(), default=0.0)
            base += len(job.profile.stages)
        return path

    @cached_property
    def num_distinct(self) -> int:
        """Number of orders, where the exchange of jobs of one profile does not count."""
        return self.num_completions(())

    def num_completions(self, prefix: tuple[int, ...]) -> int:
        """Number of distinct orders that begin with ``prefix``."""
        rest = [profile for job, profile in enumerate(self.workload.profile_index.tolist()) if job not in prefix]
        copies = math.prod(math.factorial(count) for count in Counter(rest).values())
        return math.factorial(len(rest)) // copies

    def prefixes(self, length: int) -> list[tuple[int, ...]]:
        """Beginnings of all distinct orders, in lexicographic order."""
        found: list[tuple[int, ...]] = [()]
        for _ in range(length):
            found = [
                (*prefix, job)
                for prefix in found
                for job in range(self.num_jobs)
                if job not in prefix and (self.same_before[job] < 0 or self.same_before[job] in prefix)
            ]
        return found

    def search(
        self, prefix: tuple[int, ...], sums: np.ndarray, *, prune: bool, bound: float
    ) -> tuple[float, np.ndarray, int, int, np.ndarray]:
        """Simulate the distinct orders that begin with ``prefix``.

        Args:
            prefix: First jobs.
            sums: float64 ms [orders], receives total completion times unless ``prune``.
            prune: Rule out what cannot be as good as ``bound``.
            bound: Total completion time of a known order, ms.

        Returns:
            (least total in ms, its order, orders simulated, beginnings ruled out, completion_ms of the last order).
        """
        jobs = self.num_jobs
        states = np.empty((jobs + 1, len(self._start)), dtype=np.int64)
        states[0] = self._start
        candidate, best_order, order = np.full((3, jobs + 1), -1, dtype=np.int64)
        counts, totals = np.zeros(NUM_COUNTS, dtype=np.int64), np.empty(2)
        totals[BEST], totals[BOUND] = math.inf, bound
        kept = (
            states,
            np.zeros((jobs + 1, NUM_TIMES + self.executors + 1)),
            candidate,
            order[:jobs],
            np.zeros(jobs, dtype=np.uint8),
            counts,
            totals,
        )
        finish_ms = np.empty(jobs)
        shared = (self.same_before, self.runnable_only, self._batch, self._path, kept, self.executors, prune, sums)
        while not search_orders(np.array(prefix, dtype=np.int64), *shared, best_order[:jobs], finish_ms):
            check_stop()
        return float(totals[BEST]), best_order[:jobs], int(counts[SIMULATED]), int(counts[RULED_OUT]), finish_ms

    def completion_ms(self, order) -> np.ndarray:
        """Simulate one order; completion times, float64 ms [jobs].

        Raises:
            ConfigError: ``order`` does not name every job once.
        """
        order = tuple(int(job) for job in order)
        if sorted(order) != list(range(self.num_jobs)):
            raise ConfigError(f"an order must name each job from 0 to {self.num_jobs - 1} once, got {list(order)}")
        return self.search(order, np.empty(1), prune=False, bound=math.inf)[4]

    def improve(self, order: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Move single jobs to other places as long as that helps; the order and its total completion time in ms."""
        best, least = order, float(self.completion_ms(order).sum())
        improved = True
        while improved:
            improved = False
            for job in range(self.num_jobs):
                rest = [other for other in best if other != job]
                for place in range(self.num_jobs):
                    candidate = (*rest[:place], job, *rest[place:])
                    total = float(self.completion_ms(candidate).sum())
                    if total < least:
                        best, least, improved = candidate, total, True
        return best, least
