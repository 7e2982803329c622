"""Search for the best order of a batch of jobs by trying all orders.

Source: appendix H. The rules of a run are in :mod:`decima.systems.spark.optimum.order_kernel`. Some work is
saved without loss:

- Orders with the same beginning are simulated together while the rest of the order cannot matter (see there).
- Jobs of one profile are interchangeable: of the orders that differ only in their exchange, one is simulated.
- With ``distribution=False``, a beginning is given up once a lower bound of its total completion time (see
  ``lower_bound`` there) exceeds that of a known order. The bound holds for every schedule, so the best order stays.

Differs: the event simulator takes executors that end at the same instant one by one, in the order in which they
started. Those before the last of a stage are offered while the stage's children are not runnable yet, and may be sent
elsewhere. Here they are offered together, which no tie can upset. Average JCTs of an order differ by 0.2 % as a rule
(2 % at most) on TPC-H batches, since executors wait for the children anyway; with ``runnable_only`` by 1.5 % (10 % at
most). The best order is therefore replayed there, and both numbers are reported.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.progress import progress_bar
from decima.evaluation.pool import CandidatePool
from decima.evaluation.workers import map_threads
from decima.systems.spark.optimum.order_search import OrderSearch
from decima.systems.spark.schedulers import make_scheduler
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
    """Simulate a batch under every order of its jobs in the simplified environment and return the best one.

    Args:
        workload: Jobs that are all present at time 0, at most ``limit``.
        executors: Executors of the cluster.
        runnable_only: Offered executors go to the first job with a runnable stage. Off, as in the simulator's default
            rules: they wait, idle, for the first job that has tasks to launch, up to one for each such task.
        distribution: Simulate every order, for the whole distribution; off: rule out orders by a lower bound, which
            finds the same best order much sooner.
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
        found = search.search(prefixes[index], part, prune=not distribution, bound=bound)
        return found, sizes[index]

    def advance(part) -> None:
        nonlocal best_s
        best_s = min(best_s, part[0][0] / (1000.0 * jobs))
        bar.set_postfix_str(f"best {best_s:.2f} s", refresh=False)
        bar.update(part[1])

    with progress_bar(progress, search.num_distinct, "order") as bar:
        parts = [found for found, _ in map_threads(search_part, range(len(prefixes)), threads, advance)]
    best = tuple(int(job) for job in min(parts, key=lambda found: found[0])[1])
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
        num_simulated=sum(found[2] for found in parts),
        num_ruled_out=sum(found[3] for found in parts),
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
