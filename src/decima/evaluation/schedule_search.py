"""The best schedule of one known instance that a search can find: a mark beside the lower bound.

The search knows the jobs and, with mean durations, everything that will happen. It steers ``capped_srw`` job by job: a
factor on the remaining work that orders the jobs, a factor on the weight that sets a job's share, and the four
parameters of the rule. The schedule of ``capped_srw`` itself is the first candidate, so the result is never worse.

Source: appendix H searches job orders; the shares and CMA-ES are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from decima.evaluation.cma_search import minimize
from decima.evaluation.pool import CandidatePool
from decima.evaluation.tuning import Scaling
from decima.schedulers import make_scheduler
from decima.simulator.settings import Settings
from decima.workload.jobs import Workload

# Natural logarithm of the largest factor on a job's order and on its share.
ORDER_RANGE = 3.0
SHARE_RANGE = 2.0
FIRST_STEP = 0.08


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best schedule found for one workload.

    Attributes:
        avg_jct_s: Its average JCT.
        start_avg_jct_s: Average JCT of ``capped_srw``, where the search began.
        order_factor: float64 [jobs], natural logarithm of the factor on the remaining work that orders the jobs.
        share_factor: float64 [jobs], natural logarithm of the factor on the weight of a job's share.
        parameters: Parameters of ``capped_srw``.
        evaluations: Schedules tried.
        curve: One row per generation: evaluations, best, median, step.
    """

    avg_jct_s: float
    start_avg_jct_s: float
    order_factor: np.ndarray = field(repr=False)
    share_factor: np.ndarray = field(repr=False)
    parameters: dict[str, float]
    evaluations: int
    curve: list[dict[str, float]] = field(repr=False)

    @property
    def change_percent(self) -> float:
        """Against ``capped_srw``."""
        return 100.0 * (self.avg_jct_s / self.start_avg_jct_s - 1.0)

    def __str__(self) -> str:
        return (
            f"average JCT {self.avg_jct_s:.2f} s after {self.evaluations} schedules, {self.change_percent:+.1f} % "
            f"against capped_srw ({self.start_avg_jct_s:.2f} s)"
        )


def search_schedule(
    workload: Workload,
    settings: Settings,
    budget: int = 2000,
    *,
    start: Mapping[str, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: str | None = None,
) -> SearchResult:
    """Search for a good schedule of exactly this workload.

    Args:
        workload: The jobs.
        settings: The cluster. With sampled durations the search fits the one draw of ``seed``.
        budget: Schedules to try, at least 1; the last generation is completed.
        start: Parameters of ``capped_srw`` to begin with, its defaults when omitted.
        seed: Source of chance of the search, and of sampled durations as in ``simulate``.
        threads: Workers, all cores by default. The result does not depend on it.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: The budget is below 1 or a parameter is out of range.
    """
    from tqdm.auto import tqdm

    first = make_scheduler("capped_srw", **(start or {}))
    tunable = [parameter for parameter in first.parameters if parameter.tunable]
    fixed = {name: value for name, value in first.values.items() if name not in {p.name for p in tunable}}
    scaling = Scaling(tunable)
    jobs = len(workload)
    pool = CandidatePool(workload, settings, seed=seed, threads=threads)

    def decode(points: np.ndarray):
        order, share, rest = np.split(points, [jobs, 2 * jobs], axis=1)
        values = [scaling.decode(row) | fixed for row in rest]
        return ORDER_RANGE * (2.0 * order - 1.0), SHARE_RANGE * (2.0 * share - 1.0), values

    def evaluate(points: np.ndarray) -> np.ndarray:
        order, share, values = decode(points)
        scores = pool.scores([make_scheduler("capped_srw", **each) for each in values], order, share)
        bar.update(len(points))
        return scores

    middle = np.concatenate([np.full(2 * jobs, 0.5), scaling.encode(first.values)])
    start_s = float(pool.scores([first])[0])
    with tqdm(total=budget, desc=progress, unit="schedule", disable=None if progress else True) as bar:
        found = minimize(evaluate, middle, sigma=FIRST_STEP, bounds=(0.0, 1.0), budget=budget, seed=seed)
    order, share, values = decode(found.x[None])
    return SearchResult(
        avg_jct_s=found.value,
        start_avg_jct_s=start_s,
        order_factor=order[0],
        share_factor=share[0],
        parameters=values[0],
        evaluations=found.curve[-1]["evaluations"],
        curve=found.curve,
    )
