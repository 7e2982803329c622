"""Search for the best order of a batch of jobs by trying all orders.

Source: appendix H.

In the simplified environment all tasks of a stage take equally long and executors are interchangeable, so the kernel
moves *groups* (finish time, stage, number of executors) instead of tasks. The rules are those of the event simulator
without commitments:

- an executor whose stage has tasks left takes the next one; otherwise it is offered (§5.2, scheduling events);
- offered executors go to the first job of the order with a runnable stage, there to the stage that heads the heaviest
  path, one for each task that it has to launch, then to the next stage or job;
- with ``runnable_only`` off they do not pass a job that has further tasks to launch, whose parents still run: one for
  each such task waits, idle, and is offered again when something ends;
- everything that ends at one instant has ended before executors are offered.

A job that no offer has reached yet cannot influence the run. So the run of an order is that of every order with the
same first k jobs until executors are left over by these k, and the search continues from there once for each choice of
the next job. Nothing is approximated: every order is simulated to its end, most of it together with others.

More work is saved without loss:

- Jobs of one profile are interchangeable: of the orders that differ only in their exchange, one is simulated.
- With ``distribution=False``, a beginning is given up once a lower bound of its total completion time (see
  ``lower_bound``) exceeds that of a known order. The bound holds for every schedule, so the best order stays.

Differs: the event simulator takes executors that end at the same instant one by one, in the order in which they
started. Those before the last of a stage are offered while the stage's children are not runnable yet, and may be sent
elsewhere. Here they are offered together, which no tie can upset. Average JCTs of an order differ by 0.2 % as a rule
(2 % at most) on TPC-H batches, since executors wait for the children anyway; with ``runnable_only`` by 1.5 % (10 % at
most). The best order is therefore replayed there, and both numbers are reported.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from llvmlite import ir
from numba import types

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.interrupts import check_stop
from decima.core.jit import intrinsic, njit
from decima.core.progress import progress_bar
from decima.evaluation.pool import CandidatePool
from decima.evaluation.workers import map_threads
from decima.systems.spark.rules.durations import REST
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload

LIMIT = 10
_MAX_STORED = 100_000_000


@dataclass(frozen=True, eq=False)
class OrderDistribution:
    """Average JCT over all n! orders, in seconds."""

    min_s: float  # average JCT of the best order
    median_s: float  # half of the orders are better
    mean_s: float  # expected average JCT of an order drawn at random
    max_s: float  # average JCT of the worst order
    edges_s: np.ndarray = field(repr=False)  # float64 [bins + 1], edges of the histogram
    counts: np.ndarray = field(repr=False)  # int64 [bins], orders per bin

    @classmethod
    def of(cls, values_s: np.ndarray, copies: int, bins: int) -> OrderDistribution:
        """Summarise average JCTs in seconds, each of which stands for ``copies`` orders."""
        counts, edges = np.histogram(values_s, bins=bins)
        return cls(
            float(values_s.min()),
            float(np.median(values_s)),
            float(values_s.mean()),
            float(values_s.max()),
            edges,
            counts * copies,
        )


@dataclass(frozen=True, eq=False)
class ExhaustiveResult:
    """Outcome of :func:`exhaustive_search`."""

    workload: Workload  # the batch
    executors: int  # executors of the cluster
    runnable_only: bool  # as given
    best_order: tuple[int, ...]  # jobs from first to last; of equally good orders the first in lexicographic order
    best_avg_jct_s: float  # its average JCT
    best_completion_s: np.ndarray = field(repr=False)  # float64 [jobs], completion times under it
    sjf_order: tuple[int, ...]  # jobs by total work, the order that SJF-CP follows
    sjf_avg_jct_s: float  # its average JCT
    replayed_best_avg_jct_s: float  # the best order in the event simulator (``order_search.replay_settings``)
    replayed_sjf_avg_jct_s: float  # the same for the order by total work
    num_orders: int  # n!
    num_distinct: int  # orders up to exchange of jobs of one profile
    num_simulated: int  # distinct orders simulated to their end; the others were ruled out
    num_ruled_out: int  # beginnings of orders that the lower bound ruled out
    elapsed_s: float  # time of the search
    distribution: OrderDistribution | None  # over all orders; None when orders were ruled out

    def __str__(self) -> str:
        gain = 1.0 - self.best_avg_jct_s / self.sjf_avg_jct_s if self.sjf_avg_jct_s else 0.0
        return (
            f"best of {self.num_orders:,} orders: average JCT {self.best_avg_jct_s:.2f} s, "
            f"{gain:.1%} below shortest job first ({self.sjf_avg_jct_s:.2f} s); "
            f"{self.num_simulated:,} simulated in {self.elapsed_s:.1f} s"
        )


def exhaustive_search(
    workload: Workload,
    executors: int = 50,
    *,
    runnable_only: bool = False,
    distribution: bool = True,
    bins: int = 50,
    limit: int = LIMIT,
    threads: int | None = None,
    progress: str | None = None,
) -> ExhaustiveResult:
    """Find the best order of a batch's jobs in the simplified environment.

    Args:
        workload: Jobs that are all present at time 0, at most ``limit``.
        executors: Executors of the cluster.
        runnable_only: Offered executors go to the first job with a runnable stage. Off, as in the simulator's default
            rules: they wait, idle, for the first job that has tasks to launch, up to one for each such task.
        distribution: Simulate every order, for the whole distribution; off: rule out orders by a lower bound, which
            finds the same best order much earlier.
        bins: Bins of the histogram.
        limit: Largest batch accepted; time grows as n!.
        threads: Workers, all cores by default. Results do not depend on it.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: The batch is too large, jobs arrive later, or a number is outside its range.

    Source: appendix H.
    """
    for name, value in (("limit", limit), ("bins", bins)):
        check_whole(name, value, least=1)
    search = OrderSearch(workload, executors, runnable_only=runnable_only)
    jobs = search.num_jobs
    if jobs > limit:
        raise ConfigError(
            f"workload {workload.label!r} has {jobs:,} jobs, and the number of their orders grows as the factorial; "
            f"at most {limit} jobs are searched unless limit is raised"
        )
    if distribution and search.num_distinct > _MAX_STORED:
        raise ConfigError(
            f"a distribution is kept over at most {_MAX_STORED:,} orders, and {jobs} jobs have more; "
            "switch it off, the best order is found without it"
        )
    began = time.perf_counter()
    sjf_order = tuple(int(job) for job in np.argsort(search.work_ms, kind="stable"))
    sjf_ms = search.completion_ms(sjf_order)
    _, bound = search.improve(sjf_order)
    prefixes = search.prefixes(max(0, min(2, jobs - 2)))
    sizes = [search.num_completions(prefix) for prefix in prefixes]
    ends = np.cumsum(sizes)
    sums = np.empty(search.num_distinct if distribution else 0)
    best_s = math.inf

    def search_part(index: int):
        part = sums[ends[index] - sizes[index] : ends[index]]
        outcome = search.search(prefixes[index], part, prune=not distribution, bound=bound)
        return outcome, sizes[index]

    def advance(part) -> None:
        nonlocal best_s
        best_s = min(best_s, part[0][0] / (1000.0 * jobs))
        bar.set_postfix_str(f"best {best_s:.2f} s", refresh=False)
        bar.update(part[1])

    with progress_bar(progress, search.num_distinct, "order") as bar:
        parts = [outcome for outcome, _ in map_threads(search_part, range(len(prefixes)), threads, advance)]
    best = tuple(int(job) for job in min(parts, key=lambda outcome: outcome[0])[1])
    best_ms = search.completion_ms(best)
    elapsed_s = time.perf_counter() - began
    replayed = _replay(search, [best, sjf_order])
    return ExhaustiveResult(
        workload=workload,
        executors=search.executors,
        runnable_only=search.runnable_only,
        best_order=best,
        best_avg_jct_s=float(best_ms.mean()) / 1000.0,
        best_completion_s=best_ms / 1000.0,
        sjf_order=sjf_order,
        sjf_avg_jct_s=float(sjf_ms.mean()) / 1000.0,
        replayed_best_avg_jct_s=float(replayed[0]),
        replayed_sjf_avg_jct_s=float(replayed[1]),
        num_orders=math.factorial(jobs),
        num_distinct=search.num_distinct,
        num_simulated=sum(outcome[2] for outcome in parts),
        num_ruled_out=sum(outcome[3] for outcome in parts),
        elapsed_s=elapsed_s,
        distribution=(
            OrderDistribution.of(sums / (1000.0 * jobs), math.factorial(jobs) // search.num_distinct, int(bins))
            if distribution
            else None
        ),
    )


def _replay(search: OrderSearch, orders: list[tuple[int, ...]]) -> np.ndarray:
    """Average JCT in seconds of orders in the event simulator, float64 [orders]."""
    pool = CandidatePool(search.workload, search.settings, workers=1, backend="threads")
    scheduler = make_scheduler("priority", stay=-1)
    return pool.scores([scheduler] * len(orders), {"job_rank": np.argsort(orders, axis=1)})


# ---- simulation of single orders and of whole subtrees -------------------------------------------------------------


def replay_settings(executors: int, *, runnable_only: bool = False) -> Settings:
    """The cluster of the event simulator whose rules are nearest to those of the search."""
    # With only runnable stages on offer, promises made ahead would bind executors to whatever is runnable now.
    return Settings.simplified(executors=executors, runnable_only=runnable_only, commit_ahead=not runnable_only)


class OrderSearch:
    """A batch prepared for :func:`decima.systems.spark.optimum.exhaustive.search_orders`.

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
        self._path = self._least_path(-(-tasks // self.executors) * duration_ms)
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

    def _least_path(self, stage_ms: np.ndarray) -> np.ndarray:
        """Least time from the end of a stage to its job's, float64 ms [stages]."""
        path: list[float] = []
        for job in self.workload.jobs:
            longest_ms = job.profile.longest_path_down(stage_ms[len(path) :])
            path += [max((longest_ms[child] for child in below), default=0.0) for below in job.profile.children]
        return np.array(path)

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
        orders: list[tuple[int, ...]] = [()]
        for _ in range(length):
            orders = [
                (*prefix, job)
                for prefix in orders
                for job in range(self.num_jobs)
                if job not in prefix and (self.same_before[job] < 0 or self.same_before[job] in prefix)
            ]
        return orders

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
        """Improve an order by moving single jobs; the order and its total completion time, ms."""
        best, least = order, float(self.completion_ms(order).sum())
        improved = True
        while improved:
            improved = False
            for job in range(self.num_jobs):
                rest = [other for other in best if other != job]
                for index in range(self.num_jobs):
                    candidate = (*rest[:index], job, *rest[index:])
                    total = float(self.completion_ms(candidate).sum())
                    if total < least:
                        best, least, improved = candidate, total, True
        return best, least


# A state is one row of int64 and one of float64. Scalars first; the sections behind them are laid out by ``layout``.
GROUPS, IDLE, OFFERED, NUM_SCALARS = 0, 1, 2, 3
NOW, FINISH_SUM, NUM_TIMES = 0, 1, 2
WORD = 64
PACK = 32  # a group is stage << PACK | executors
# How ``run_known`` ends: the run is over, it asks for the next job, or it has worked long enough for one call.
ENDED, ASKS, PAUSED = 0, 1, 2
# What a search keeps between calls: int64 [4] and float64 [2].
DEPTH, SIMULATED, RULED_OUT, RUNNING, NUM_COUNTS = 0, 1, 2, 3, 4
BEST, BOUND = 0, 1
# Work of one call, about the groups that end; some milliseconds.
WORK = 1 << 20


@intrinsic(lambda word: (int(word) & -int(word)).bit_length() - 1)
def _lowest_bit(_typing, word):
    """Position of the lowest set bit of an int64 that is not 0."""

    def codegen(_context, builder, _signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@njit
def layout(stages, jobs, words):
    """Offsets of the sections of a row: to_launch, unfinished, parents, launchable, pending, open, groups."""
    to_launch = NUM_SCALARS
    unfinished = to_launch + stages
    parents = unfinished + stages
    launchable = parents + stages
    pending = launchable + jobs
    opened = pending + jobs
    groups = opened + jobs * words
    return to_launch, unfinished, parents, launchable, pending, opened, groups


@njit(inline="always")
def _add_group(size, finishes, groups, finish, stage, executors):
    """Insert a group; they are sorted by finish time, the earliest last. Returns their number."""
    hole = size
    while hole > 0 and finishes[hole - 1] <= finish:
        finishes[hole] = finishes[hole - 1]
        groups[hole] = groups[hole - 1]
        hole -= 1
    finishes[hole] = finish
    groups[hole] = stage << PACK | executors
    return size + 1


@njit
def run_known(state, times, order, known, position, runnable_only, batch, finish_ms):
    """Continue a run until an offer reaches a job that is not known yet.

    Args:
        state: int64 row.
        times: float64 row.
        order: int64 [jobs], of which the first ``known`` are decided.
        known: See ``order``.
        position: Place in the order that offers have reached: of the last known job if the run asked for it, 0 if it
            was paused.
        runnable_only: See the module.
        batch: Tables of the jobs.
        finish_ms: Receives completion times.

    Returns:
        (``ENDED``, ``ASKS`` or ``PAUSED``, work done).
    """
    duration_ms, job_of, rank_of, stage_of, child_offset, child, words = batch
    jobs = len(order)
    sections = layout(len(job_of), jobs, words)
    to_launch = state[sections[0] : sections[1]]
    unfinished = state[sections[1] : sections[2]]
    parents = state[sections[2] : sections[3]]
    launchable = state[sections[3] : sections[4]]
    pending = state[sections[4] : sections[5]]
    opened = state[sections[5] : sections[6]]
    groups = state[sections[6] :]
    finishes = times[NUM_TIMES:]
    offered = state[OFFERED]
    idle = state[IDLE]
    size = state[GROUPS]
    now = times[NOW]
    work = 0
    while True:
        while offered > 0 and position < known:
            job = order[position]
            for word in range(job * words, (job + 1) * words):
                while opened[word] != 0 and offered > 0:
                    stage = stage_of[word * WORD + _lowest_bit(opened[word])]
                    waiting = to_launch[stage]
                    used = min(offered, waiting)
                    offered -= used
                    idle -= used
                    to_launch[stage] = waiting - used
                    launchable[job] -= used
                    if used == waiting:
                        opened[word] &= opened[word] - 1
                    size = _add_group(size, finishes, groups, now + duration_ms[stage], stage, used)
            if not runnable_only:
                offered -= min(offered, launchable[job])
            position += 1
        asks = offered > 0 and known < jobs
        if asks or work >= WORK:
            state[OFFERED] = offered
            state[IDLE] = idle
            state[GROUPS] = size
            times[NOW] = now
            return ASKS if asks else PAUSED, work
        if size == 0:
            return ENDED, work
        now = finishes[size - 1]
        while size > 0 and finishes[size - 1] == now:
            size -= 1
            group = groups[size]
            stage = group >> PACK
            executors = group & ((1 << PACK) - 1)
            while size > 0 and finishes[size - 1] == now and groups[size - 1] >> PACK == stage:
                size -= 1
                executors += groups[size] & ((1 << PACK) - 1)
            job = job_of[stage]
            waiting = to_launch[stage]
            left = unfinished[stage] - executors
            unfinished[stage] = left
            if waiting > 0:
                used = min(executors, waiting)
                executors -= used
                to_launch[stage] = waiting - used
                launchable[job] -= used
                if used == waiting:
                    rank = rank_of[stage]
                    opened[job * words + rank // WORD] &= ~(1 << (rank % WORD))
                size = _add_group(size, finishes, groups, now + duration_ms[stage], stage, used)
            elif left == 0:
                for index in range(child_offset[stage], child_offset[stage + 1]):
                    kid = child[index]
                    parents[kid] -= 1
                    if parents[kid] == 0:
                        rank = rank_of[kid]
                        opened[job * words + rank // WORD] |= 1 << (rank % WORD)
                pending[job] -= 1
                if pending[job] == 0:
                    finish_ms[job] = now
                    times[FINISH_SUM] += now
            idle += executors
            work += 1 + (size >> 4)  # groups are kept in order by moving them
        offered = idle
        position = 0


@njit
def _copy(source, source_times, target, target_times, fixed):
    size = source[GROUPS]
    for index in range(fixed + size):
        target[index] = source[index]
    for index in range(NUM_TIMES + size):
        target_times[index] = source_times[index]


@njit
def _sort(values, size):
    """Sort the first few values; NumPy's sort takes seconds to compile."""
    for index in range(1, size):
        value = values[index]
        hole = index
        while hole > 0 and values[hole - 1] > value:
            values[hole] = values[hole - 1]
            hole -= 1
        values[hole] = value


@njit
def lower_bound(state, times, batch, path, executors, works, ends):
    """Lower bound of the sum of completion times over all continuations.

    The k-th job to end cannot end before the k smallest remaining works are done by all executors together, nor before
    the k-th smallest of the jobs' own longest remaining paths, where a stage takes as many rounds as its tasks need on
    all executors. Both hold at once, so the later one counts.
    """
    duration_ms, job_of, _rank_of, _stage_of, _child_offset, _child, words = batch
    jobs = len(works)
    to_launch, _unfinished, parents, _launchable, pending, _opened, groups = layout(len(job_of), jobs, words)
    now = times[NOW]
    works[:] = 0.0
    ends[:] = now
    for stage in range(len(job_of)):
        waiting = state[to_launch + stage]
        if waiting > 0:
            job = job_of[stage]
            works[job] += waiting * duration_ms[stage]
            if state[parents + stage] == 0:
                rounds = (waiting + executors - 1) // executors
                ends[job] = max(ends[job], now + rounds * duration_ms[stage] + path[stage])
    for index in range(state[GROUPS]):
        group = state[groups + index]
        stage = group >> PACK
        finish = times[NUM_TIMES + index]
        job = job_of[stage]
        works[job] += (group & ((1 << PACK) - 1)) * (finish - now)
        ends[job] = max(ends[job], finish + path[stage])
    left = 0
    for job in range(jobs):
        if state[pending + job] > 0:
            works[left] = works[job]
            ends[left] = ends[job]
            left += 1
    _sort(works, left)
    _sort(ends, left)
    total = times[FINISH_SUM]
    work = 0.0
    for index in range(left):
        work += works[index]
        total += max(ends[index], now + work / executors)
    return total


@njit(cache=True, nogil=True)
def search_orders(
    prefix, same_before, runnable_only, batch, path, search, executors, prune, sums, best_order, finish_ms
):
    """Simulate orders that begin with ``prefix``; returns whether all are done.

    Args:
        prefix: int64, the first jobs.
        same_before: int64 [jobs], the job of the same profile that has to come earlier, -1: none.
        runnable_only: See the module.
        batch: Tables of the jobs.
        path: float64 ms [stages], least time from the end of a stage to the end of its job.
        search: What is kept between calls, see :meth:`.OrderSearch.search`: states and their
            times by number of known jobs, candidate[k], the job tried in place k, the order as far as decided, jobs
            used in it, counts (``PLACE``, ...) and totals in ms (``BEST``, ``BOUND``).
        executors: Executors of the cluster.
        prune: Leave out what ``lower_bound`` rules out, compared with ``BOUND``.
        sums: float64, receives the sum of completion times of every order, in lexicographic order; without ``prune``.
        best_order: int64 [jobs], receives the first of the best orders, if one is at least as good as ``BOUND``.
        finish_ms: float64 [jobs], receives the completion times of the order simulated last.
    """
    states, clocks, candidate, order, used, counts, totals = search
    jobs = len(same_before)
    fixed = layout(len(path), jobs, batch[6])[6]
    works = np.empty(jobs)
    ends = np.empty(jobs)
    depth = counts[DEPTH]
    left = WORK
    while depth >= 0:
        known = depth + 1
        position = 0
        if not counts[RUNNING]:
            # Take back the job tried last in this place, then find the next one.
            if candidate[depth] >= 0:
                used[candidate[depth]] = 0
            job = candidate[depth] + 1
            if depth < len(prefix):
                job = prefix[depth] if candidate[depth] < 0 else jobs
            else:
                while job < jobs and (used[job] or (same_before[job] >= 0 and not used[same_before[job]])):
                    job += 1
            if job == jobs:
                candidate[depth] = -1
                depth -= 1
                continue
            if left <= 0:
                break
            candidate[depth] = job
            order[depth] = job
            used[job] = 1
            position = depth
            _copy(states[depth], clocks[depth], states[known], clocks[known], fixed)
        code, work = run_known(states[known], clocks[known], order, known, position, runnable_only, batch, finish_ms)
        counts[RUNNING] = code == PAUSED
        if code == PAUSED:
            break
        left -= work + len(path)
        if code == ASKS:
            if prune and known >= len(prefix):
                least = lower_bound(states[known], clocks[known], batch, path, executors, works, ends)
                if least > totals[BOUND] * (1.0 + 1e-9):  # rounding must not rule out what is as good as the best
                    counts[RULED_OUT] += 1
                    continue
            depth = known
            continue
        total = clocks[known, FINISH_SUM]
        if not prune:
            sums[counts[SIMULATED]] = total
        counts[SIMULATED] += 1
        if total < totals[BEST] and total <= totals[BOUND] * (1.0 + 1e-9):
            totals[BEST] = total
            totals[BOUND] = min(totals[BOUND], total)
            best_order[:] = order
    counts[DEPTH] = depth
    return depth < 0
