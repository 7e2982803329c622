"""Search for the best schedule of one known instance: what can be reached, beside the lower bound.

The search knows the jobs and, with mean durations, everything that will happen. It steers ``capped_srw`` (see
:mod:`decima.optimum.steered`): a factor on the remaining work that orders the jobs and one on the weight of a job's
share are found by CMA-ES; then small random changes of these and of the order of stages are kept if they do no harm.
The schedule of ``capped_srw`` itself is the first candidate, so the result is never worse.

Source: appendix H searches job orders; the shares, the stages and the search are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from decima.evaluation.cma_search import Minimum, minimize
from decima.evaluation.pool import CandidatePool
from decima.exceptions import ConfigError
from decima.optimum.steered import STEERED_BY, steered
from decima.progress import progress_bar
from decima.schedulers import form_for, make_scheduler
from decima.schedulers.fields import rule_record
from decima.schedulers.system import run_state
from decima.simulator.loop import new_state
from decima.simulator.result import Result
from decima.simulator.settings import Settings
from decima.workload.jobs import Workload

# CMA-ES: its part of the budget, the schedules after which it has little to gain, first step and bound of a factor's
# natural logarithm.
GLOBAL_PART = 0.2
GLOBAL_MOST = 2000
FIRST_STEP = 0.3
LARGEST_FACTOR = 5.0
# Local search: changed schedules per round (fixed, so that the result does not depend on the threads), and the range of
# the size of a change, drawn evenly in its logarithm.
ROUND = 8
CHANGE = (0.02, 1.0)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best schedule found for one workload."""

    avg_jct_s: float  # its average JCT
    start_avg_jct_s: float  # average JCT of ``capped_srw``, where the search began
    # Float64 [jobs], natural logarithm of the factor on the remaining work that orders the jobs.
    order_factor: np.ndarray = field(repr=False)
    # Float64 [jobs], natural logarithm of the factor on the weight of a job's share.
    share_factor: np.ndarray = field(repr=False)
    stage_priority: np.ndarray = field(repr=False)  # float64 [stages of all jobs], greater ones go first inside a job
    parameters: dict[str, float]  # parameters of ``capped_srw``
    evaluations: int  # schedules tried
    curve: list[dict[str, float]] = field(repr=False)  # one row per improvement: evaluations, best (average JCT in s)
    workload: Workload = field(repr=False)  # the jobs
    settings: Settings = field(repr=False)  # the cluster
    seed: int  # seed of sampled durations

    @property
    def change_percent(self) -> float:
        """Change of the average JCT against ``capped_srw`` in percent."""
        return 100.0 * (self.avg_jct_s / self.start_avg_jct_s - 1.0)

    def run(self, *, log: bool = False) -> Result:
        """Run the schedule found once more, for its details; ``log`` keeps every task and decision."""
        state = new_state(self.workload, self.settings, log_tasks=log, log_decisions=log)
        for name, values in _steering(self.order_factor, self.share_factor, self.stage_priority).items():
            rule_record(state).bind(name, values)
        run_state(state, steered(**self.parameters), self.seed)
        return Result.of_state(state, self.workload, "search", self.seed)

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
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> SearchResult:
    """Search for a good schedule of exactly this workload.

    Args:
        workload: The jobs.
        settings: The cluster. With sampled durations the search fits the one draw of ``seed``.
        budget: Schedules to try, at least 1; a generation or round begun is completed.
        start: Parameters of ``capped_srw``; those that are omitted have its defaults for such jobs.
        seed: Source of chance of the search, and of sampled durations as in ``simulate``.
        workers: Workers, all cores by default. The result does not depend on it.
        backend: Where the workers are, see :func:`decima.evaluation.workers.make_workers`. The result does not depend
            on it.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: The budget is below 1, a parameter is out of range, or a time limit would cut runs.
    """
    if isinstance(budget, bool) or int(budget) != budget or budget < 1:
        raise ConfigError(f"budget must be a whole number of at least 1, got {budget!r}")
    if settings.time_limit_applies and settings.time_limit_ms < float("inf"):
        raise ConfigError(f"no search for runs cut at {settings.time_limit_ms} ms; expected no time limit")
    parameters = form_for(make_scheduler("capped_srw", **(start or {})), workload).values
    scheduler = steered(**parameters)
    pool = CandidatePool(workload, settings, seed=seed, workers=workers, backend=backend)
    jobs, stages = pool.tables.num_jobs, pool.tables.num_stages
    tried, curve = 0, []

    def evaluate(points: np.ndarray) -> np.ndarray:
        """Points hold the order factors, then the share factors, then the stage priorities if there are any."""
        nonlocal tried
        order, share, stage = np.split(points, [jobs, 2 * jobs], axis=1)
        if not stage.size:
            stage = np.zeros((len(points), stages))
        scores = pool.scores([scheduler] * len(points), _steering(order, share, stage))
        tried += len(points)
        if not curve or scores.min() < curve[-1]["best"]:
            curve.append({"evaluations": tried, "best": float(scores.min())})
            bar.set_postfix_str(f"best {curve[-1]['best']:.2f}", refresh=False)
        bar.update(len(points))
        return scores

    with progress_bar(progress, budget, "schedule") as bar:
        start_s = float(evaluate(np.zeros((1, 2 * jobs)))[0])
        found = Minimum(np.zeros(2 * jobs), start_s)
        if budget > 1:
            found = minimize(
                evaluate,
                found.x,
                sigma=FIRST_STEP,
                bounds=(-LARGEST_FACTOR, LARGEST_FACTOR),
                budget=max(1, min(GLOBAL_MOST, int(GLOBAL_PART * budget))),
                seed=seed,
            )
        best, value = np.concatenate([found.x, np.zeros(stages)]), found.value
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        while tried < budget:
            points = np.array([_changed(best, jobs, rng) for _ in range(ROUND)])
            scores = evaluate(points)
            winner = int(np.argmin(scores))
            if scores[winner] <= value:  # an equal one as well: it leads away from here
                best, value = points[winner], float(scores[winner])
    order, share, stage = np.split(best, [jobs, 2 * jobs])
    return SearchResult(
        avg_jct_s=value,
        start_avg_jct_s=start_s,
        order_factor=order,
        share_factor=share,
        stage_priority=stage,
        parameters=dict(parameters),
        evaluations=tried,
        curve=curve,
        workload=workload,
        settings=settings,
        seed=seed,
    )


def _steering(order: np.ndarray, share: np.ndarray, stage: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays of the steered rule; stages of greater priority come first."""
    return dict(zip(STEERED_BY, (order, share, -stage), strict=True))


def _changed(point: np.ndarray, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """Copy a point with one or a few numbers moved, of job orders, shares or stages with equal probability."""
    point = point.copy()
    low, high = np.log(CHANGE)
    for _ in range(1 + rng.poisson(1.0)):
        first, end = ((0, jobs), (jobs, 2 * jobs), (2 * jobs, len(point)))[rng.integers(3)]
        point[rng.integers(first, end)] += np.exp(rng.uniform(low, high)) * rng.standard_normal()
    return point
