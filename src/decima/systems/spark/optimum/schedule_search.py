"""Search for the best schedule of one known instance.

The search knows the jobs and, with mean durations, everything that will happen. It steers ``capped_srw``: a factor on
the remaining work that orders the jobs and one on the weight of a job's share are found by CMA-ES; then small random
changes of these and of the order of stages are kept if they do no harm.
The schedule of ``capped_srw`` itself is the first candidate, so the result is never worse. What was found can be the
start of a further search, which may also delay stages: what idling can gain for a scheduler that knows the future.

Source: appendix H searches job orders; the shares, the stages and the search are ours. Delays are those of Duan and Wu,
up to the length of a stage, but of any size and known to be good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from decima.core.decision import CompiledDecision
from decima.core.errors import ConfigError
from decima.core.jit import njit
from decima.core.progress import progress_bar
from decima.core.system import Best, form_for
from decima.evaluation.cma_search import minimize
from decima.evaluation.pool import CandidatePool
from decima.systems.spark.decision import STAGE
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.result import Result
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.capped_srw import PARAMETERS, _capped_srw
from decima.systems.spark.schedulers.fields import delay_by_array, rule_of, rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
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
# How often a change of a delay takes the delay away.
NO_DELAY = 0.5


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Best known schedule of one workload."""

    avg_jct_s: float  # its average JCT
    start_avg_jct_s: float  # average JCT of ``capped_srw``, where the search began
    # Float64 [jobs], natural logarithm of the factor on the remaining work that orders the jobs.
    order_factor: np.ndarray = field(repr=False)
    # Float64 [jobs], natural logarithm of the factor on the weight of a job's share.
    share_factor: np.ndarray = field(repr=False)
    stage_priority: np.ndarray = field(repr=False)  # float64 [stages of all jobs], greater ones go first inside a job
    stage_delay_ms: np.ndarray = field(repr=False)  # float64 [stages of all jobs], delays; 0 for none
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

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.order_factor, self.share_factor, self.stage_priority, self.stage_delay_ms

    def run(self, *, log: bool = False) -> Result:
        """Run the best schedule once more; ``log`` keeps every task and decision."""
        state = new_state(self.workload, self.settings, log_tasks=log, log_decisions=log)
        for name, values in _steering(self._parts).items():
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
    begin: SearchResult | None = None,
    delays: bool = False,
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
        begin: Outcome of another search of this workload to continue from; ``start`` is its own then.
        delays: Stages may also be delayed.
        seed: Random seed of the search, and of sampled durations as in ``simulate``.
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
    values = (start or {}) if begin is None else begin.parameters
    parameters = form_for(make_scheduler("capped_srw", **values), workload).values
    scheduler = steered(**parameters)
    pool = CandidatePool(workload, settings, seed=seed, workers=workers, backend=backend)
    jobs, stages = pool.tables.num_jobs, pool.tables.num_stages
    first, end = np.cumsum([0, jobs, jobs, stages]), np.cumsum([jobs, jobs, stages, stages])
    # Stages may wait up to their length.
    length_ms = pool.tables.arrays["row_nominal_ms"][pool.tables.arrays["stage_row"]]
    ranges = list(zip(first, end, strict=True))[: 4 if delays else 3]
    tried, curve = 0, []

    def evaluate(points: np.ndarray) -> np.ndarray:
        """Blocks of a point: order and share factors, stage priorities and delays."""
        nonlocal tried
        whole = np.zeros((len(points), end[-1]))
        whole[:, : points.shape[1]] = points
        scores = pool.scores([scheduler] * len(points), _steering(np.split(whole, end[:-1], axis=1)))
        tried += len(points)
        if not curve or scores.min() < curve[-1]["best"]:
            curve.append({"evaluations": tried, "best": float(scores.min())})
            bar.set_postfix_str(f"best {curve[-1]['best']:.2f}", refresh=False)
        bar.update(len(points))
        return scores

    best = np.zeros(end[-1]) if begin is None else np.concatenate(begin._parts)
    with progress_bar(progress, budget, "schedule") as bar:
        value = float(evaluate(best[None])[0])
        start_s = value if begin is None else begin.start_avg_jct_s
        if budget > 1 and begin is None:
            outcome = minimize(
                evaluate,
                best[: 2 * jobs],
                sigma=FIRST_STEP,
                bounds=(-LARGEST_FACTOR, LARGEST_FACTOR),
                budget=max(1, min(GLOBAL_MOST, int(GLOBAL_PART * budget))),
                seed=seed,
            )
            best[: 2 * jobs], value = outcome.x, outcome.value
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1 if begin is None else 2]))
        while tried < budget:
            points = np.array([_changed(best, ranges, length_ms, rng) for _ in range(ROUND)])
            scores = evaluate(points)
            winner = int(np.argmin(scores))
            if scores[winner] <= value:  # an equal one as well: it leads away from here
                best, value = points[winner], float(scores[winner])
    order, share, stage, delay_ms = np.split(best, end[:-1])
    return SearchResult(
        avg_jct_s=value,
        start_avg_jct_s=start_s,
        order_factor=order,
        share_factor=share,
        stage_priority=stage,
        stage_delay_ms=delay_ms,
        parameters=dict(parameters),
        evaluations=tried,
        curve=curve,
        workload=workload,
        settings=settings,
        seed=seed,
    )


def best_run(workload: Workload, settings: Settings, budget: int, seed: int) -> Best:
    """The schedule of the least average JCT that the search finds, and the lower bound."""
    result = search_schedule(workload, settings, budget, seed=seed).run(log=True)
    bound_s = lower_bound(workload, settings).avg_jct_s
    return Best(result, "avg_jct", result.avg_jct_s, bound_s, result.avg_jct_s <= bound_s * (1.0 + 1e-9))


def _steering(parts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    order, share, stage, delay_ms = parts
    return dict(zip(STEERED_BY, (order, share, -stage, delay_ms), strict=True))


def _changed(
    point: np.ndarray, ranges: Sequence[tuple[int, int]], length_ms: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Copy a point with one or a few numbers changed.

    ``ranges`` has first and end of what may change: job orders, shares, stages and their delays up to ``length_ms``.
    """
    point = point.copy()
    low, high = np.log(CHANGE)
    for _ in range(1 + rng.poisson(1.0)):
        block = int(rng.integers(len(ranges)))
        position = rng.integers(*ranges[block])
        if block < 3:
            point[position] += np.exp(rng.uniform(low, high)) * rng.standard_normal()
        elif rng.uniform() < NO_DELAY:
            point[position] = 0.0
        else:
            point[position] = rng.uniform() * length_ms[position - ranges[block][0]]
    return point


# ---- the schedules among which a search chooses: ``capped_srw`` with offsets per job and stage -----------------------

# The arrays ``job_order_factor`` and ``job_share_factor`` are what ``capped_srw`` takes them for. Of the stages that
# could be chosen in the chosen job, the first by ``stage_rank`` is taken, and delayed by its number of ms in
# ``stage_delay_ms`` if that is above 0. With zeros everywhere it is ``capped_srw``.


# Arrays to be given; the search chooses them.
STEERED_BY = ("job_order_factor", "job_share_factor", "stage_rank", "stage_delay_ms")
_rule = njit(_capped_srw.function)


@CompiledDecision.reading(PARAMETERS, STEERED_BY)
def _steered(address):
    _rule(address)
    state = state_at(address)
    best = int(state.action[STAGE])
    if best == NONE:
        return
    rank = rule_of(state).stage_rank
    runnable = state.stage_runnable[best]
    job = state.stage_job[best]
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if state.stage_in_frontier[stage] and state.stage_runnable[stage] == runnable and rank[stage] < rank[best]:
            best = stage
    state.action[STAGE] = best
    delay_by_array(state)


def steered(**values: float) -> CompiledScheduler:
    """The steered rule with parameters of ``capped_srw``; a run needs the arrays ``STEERED_BY``."""
    return CompiledScheduler("steered", _steered, values)
