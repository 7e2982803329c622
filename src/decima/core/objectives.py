"""Objectives of schedules, for rewards, validation, tuning, comparisons, plots and the command line.

An :class:`Objective` says two things about a run. Its *score* is one number of a finished run, such as the average JCT.
Its *cost* is a number that may be asked for at any moment of a run; a learner's reward between two decisions is minus
the growth of the cost (§5.3). For the objectives below, the growth over a whole run adds up to the score, or to the
score times the number of jobs.

More objectives can be registered::

    from decima.core.objectives import Objective, register_objective

    def share_late(outcome):
        return float(np.mean(outcome.jct_ms > 60_000.0))

    def late_jobs(progress):
        return (progress.ages_ms() > 60_000.0).sum(axis=-1)

    register_objective(Objective("late", "share of late jobs", "", score=share_late, cost=late_jobs, total="job"))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from decima.core.errors import ConfigError
from decima.core.registry import Registry

DIRECTIONS = ("min", "max")
TOTALS = ("run", "job", None)
CUT_BOUNDS = ("always", "arrived", None)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of a run: all that a score may depend on, one number per job."""

    arrival_ms: np.ndarray  # float64 [jobs]
    completion_ms: np.ndarray  # float64 [jobs], NaN for jobs that did not finish
    # Float64 [jobs], duration of the job alone on an unlimited system: for a DAG of stages its critical path with one
    # mean task duration per stage (:attr:`decima.workload.jobs.Workload.ideal_ms`).
    ideal_ms: np.ndarray
    # When the run was cut, with jobs unfinished or still to come; None for one that went on to its end.
    end_ms: float | None = field(default=None, kw_only=True)
    drawn: bool = field(default=True, kw_only=True)  # False: the run took no chance, so that it has no other seed
    executor_ms: float | None = field(default=None, kw_only=True)  # time that executors were there, summed, if counted

    @property
    def num_unfinished(self) -> int:
        """Number of jobs that did not finish."""
        return int(np.isnan(self.completion_ms).sum())

    @property
    def num_to_come(self) -> int:
        """Number of jobs that had not arrived when the run was cut."""
        return 0 if self.end_ms is None else int((self.arrival_ms > self.end_ms).sum())

    @property
    def jct_ms(self) -> np.ndarray:
        """float64 [finished jobs], completion less arrival."""
        return (self.completion_ms - self.arrival_ms)[~np.isnan(self.completion_ms)]

    @property
    def slowdown(self) -> np.ndarray:
        """float64 [finished jobs with an ideal duration above 0], JCT over ideal duration."""
        counted = ~np.isnan(self.completion_ms) & (self.ideal_ms > 0.0)
        return (self.completion_ms - self.arrival_ms)[counted] / self.ideal_ms[counted]


@dataclass(frozen=True, eq=False)
class Progress(Outcome):
    """Run at one or T moments: all that a cost may depend on."""

    # The moment, a float or float64 [T]; that of the last completion once all jobs have finished.
    time_ms: float | np.ndarray
    # Number of jobs in the system, integrated over time up to the moment; shaped as ``time_ms``.
    area_ms: float | np.ndarray

    def ages_ms(self) -> np.ndarray:
        """float64 [jobs] or [T, jobs]: time since arrival, JCT once finished, 0 before the arrival."""
        end_ms = np.where(np.isnan(self.completion_ms), np.inf, self.completion_ms)
        return np.clip(np.asarray(self.time_ms)[..., None] - self.arrival_ms, 0.0, end_ms - self.arrival_ms)


@dataclass(frozen=True)
class Objective:
    """One thing to make small, or great.

    Raises:
        ConfigError: The name is empty, or ``direction`` or ``total`` is unknown.
    """

    name: str  # what options and arguments call it
    label: str  # what people call it, on axes and in titles
    unit: str  # unit of the score; empty for plain numbers
    score: Callable[[Outcome], float]  # score of an :class:`Outcome`; NaN where it has none
    # Cost of a :class:`Progress` so far, a float or float64 [T]; what is to be great costs its negative.
    cost: Callable[[Progress], float | np.ndarray]
    direction: str = "min"  # ``"min"`` where the smaller score is better, ``"max"`` where the greater one is
    # What the cost of a finished run is, divided by ``scale`` and negated for ``"max"``: the score (``"run"``), the
    # score times the number of jobs (``"job"``), or neither (None).
    total: str | None = None
    scale: float = 1.0  # costs are divided by it; 1000 where they are in ms and the unit is s
    # Rewards of all rollouts of one job sequence, [D] each, from their :class:`Progress` at D decisions and the end;
    # where training can say more with all rollouts at hand than ``cost`` does from one.
    group_rewards: Callable[[Sequence[Progress]], list[np.ndarray]] | None = None
    aliases: tuple[str, ...] = ()  # other names it is known by
    digits: int = 1  # decimals in tables for people
    # When the score of a run that was cut bounds that of the whole run, from below (``"max"``: from above):
    # ``"always"``, once all jobs had ``"arrived"``, or where nobody knows (None).
    cut_bound: str | None = None

    def __post_init__(self) -> None:
        if not self.name or not self.label:
            raise ConfigError(f"an objective needs a name and a label, got {self.name!r} and {self.label!r}")
        for option, allowed in (("direction", DIRECTIONS), ("total", TOTALS), ("cut_bound", CUT_BOUNDS)):
            if getattr(self, option) not in allowed:
                raise ConfigError(
                    f"{option} of objective {self.name} must be one of {allowed}, got {getattr(self, option)!r}"
                )

    def __reduce_ex__(self, protocol: int) -> str | tuple:
        """Pickle a registered objective as its name, whose functions may be anonymous."""
        if self.name in OBJECTIVES and OBJECTIVES.find(self.name) is self:
            return get_objective, (OBJECTIVES.spelling(self),)
        return super().__reduce_ex__(protocol)

    @property
    def column(self) -> str:
        """Name of the score in tables: name and unit."""
        return self.with_unit(self.name)

    @property
    def axis_label(self) -> str:
        """Label and unit, for axes."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def names(self) -> tuple[str, ...]:
        """Everything it may be called."""
        return (self.name, self.column, *self.aliases)

    def with_unit(self, statistic: str) -> str:
        """Name of a statistic of scores in tables, such as ``mean_s``."""
        return f"{statistic}_{self.unit}" if self.unit else statistic

    def shown(self, score: float) -> str:
        """The score with its unit, as text for people."""
        return f"{score:.{max(2, self.digits)}f} {self.unit}".rstrip()

    def measure(self, outcome: Outcome) -> float:
        """Score of a run; for a truncated run, of its jobs up to the end.

        Jobs that were unfinished at the end count with their cost up to then, and jobs that had not arrived are left
        out; :meth:`mark` tells whether the score bounds that of the whole run.

        Returns:
            NaN for a run that was cut before any job arrived, and where the cost does not add up to the score
            (``total`` None).
        """
        if not outcome.num_unfinished:
            return self.score(outcome)
        if outcome.end_ms is None or self.total is None or not (arrived := outcome.arrival_ms <= outcome.end_ms).any():
            return float("nan")
        times = [values[arrived] for values in (outcome.arrival_ms, outcome.completion_ms, outcome.ideal_ms)]
        so_far = Progress(*times, time_ms=outcome.end_ms, area_ms=0.0)
        so_far = replace(so_far, area_ms=float(so_far.ages_ms().sum()))
        cost = float(self.cost_so_far(so_far)) / (int(arrived.sum()) if self.total == "job" else 1)
        return cost if self.direction == "min" else -cost

    def mark(self, unfinished: int, to_come: int) -> str:
        """Sign before a score, or a mean of scores.

        Args:
            unfinished: Jobs that a limit left unfinished, of all runs.
            to_come: Those of them that had not arrived at the limit.

        Returns:
            Nothing where all runs came to their end, ``≥`` or ``≤`` of a bound, ``~`` of neither.
        """
        if not unfinished:
            return ""
        if self.cut_bound is None or (self.cut_bound == "arrived" and to_come):
            return "~"
        return "≥" if self.direction == "min" else "≤"

    def loss(self, score):
        """The score, or an array of scores, as something of which the smallest is best."""
        return score if self.direction == "min" else -score

    def cost_so_far(self, progress: Progress) -> float | np.ndarray:
        """Cost in the unit of the score."""
        return self.cost(progress) / self.scale

    def rewards(self, rollouts: Sequence[Progress]) -> list[np.ndarray]:
        """Rewards, float64 [D] each, of the rollouts of one job sequence.

        Raises:
            ConfigError: The objective returned something of another shape.
        """
        if self.group_rewards is not None:
            rewards = [np.asarray(values, dtype=np.float64) for values in self.group_rewards(rollouts)]
        else:
            # A cost of another shape than the moments' is refused below.
            costs = [np.atleast_1d(np.asarray(self.cost(rollout), dtype=np.float64)) for rollout in rollouts]
            rewards = [-np.diff(each) / self.scale for each in costs]
        got, expected = [values.shape for values in rewards], [(len(rollout.time_ms) - 1,) for rollout in rollouts]
        if got != expected:
            raise ConfigError(f"objective {self.name} gave rewards of shapes {got[:3]}, expected {expected[:3]}")
        return rewards


def _adopted(name: str, item: object) -> Objective:
    """Objective from outside, also registered under the name it has."""
    if not isinstance(item, Objective):
        raise ConfigError(f"{name} is {item!r:.60}; expected an Objective")
    return register_objective(item)


OBJECTIVES: Registry[Objective] = Registry("objective", group="decima.objectives", adopt=_adopted)


def register_objective(objective: Objective) -> Objective:
    """Make an objective known; one of the same name is replaced.

    Raises:
        ConfigError: Another objective is known by one of its names.
    """
    for other in map(OBJECTIVES.find, OBJECTIVES.loaded()):
        shared = set(objective.names) & set(other.names)
        if other.name != objective.name and shared:
            raise ConfigError(f"objective {other.name} is already known as {', '.join(sorted(shared))}")
    return OBJECTIVES.add(objective.name, objective)


def list_objectives() -> list[str]:
    """Names of all objectives, sorted."""
    return OBJECTIVES.names()


def get_objective(objective: str | Objective) -> Objective:
    """The objective of a name (``avg_jct``) or column (``avg_jct_s``); an objective as it is.

    Raises:
        ConfigError: There is none of that name.
    """
    if isinstance(objective, Objective):
        return objective
    for known in OBJECTIVES.members():
        if objective in known.names:
            return known
    return OBJECTIVES.find(objective)


def axis_label(column: str, other: str | None = None) -> str:
    """Label and unit of the objective of a column; else ``other`` or the column's name."""
    matching = [each for each in OBJECTIVES.members() if each.column == column]
    return matching[0].axis_label if matching else other or column


def objective_at_end(
    name: str, label: str, unit: str, score: Callable[[Outcome], float], direction: str = "min", digits: int = 2
) -> Objective:
    """Objective without a cost during the run: it is known at the end only."""

    def cost(progress: Progress) -> float:
        raise ConfigError(f"objective {name} is known at the end of a run only")

    return Objective(name, label, unit, score, cost, direction, digits=digits)


# ---- the objectives that are always there -------------------------------------------------------------------------


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _mean_slowdown_cost(progress: Progress) -> float | np.ndarray:
    counted = progress.ideal_ms > 0.0
    if not counted.any():
        return np.zeros_like(progress.time_ms, dtype=np.float64)
    return (progress.ages_ms()[..., counted] / progress.ideal_ms[counted]).mean(axis=-1)


def _tail_jct(percent: int) -> Objective:
    """Percentile of the JCT of finished jobs, linearly interpolated.

    Its cost is the same percentile of the ages of all jobs, those that have not arrived being of age 0.

    In training, where all rollouts of a sequence are at hand, rewards are those of the average JCT plus that of the
    slowest jobs beyond the percentile (the conditional value at risk): a job older than the percentile costs
    1 / (1 - percent / 100) per second. The percentile is taken over all rollouts, so that a single one hardly moves
    its own yardstick.
    """
    tail = (100 - percent) / 100

    def score(outcome: Outcome) -> float:
        jct_ms = outcome.jct_ms
        return float(np.quantile(jct_ms, 1.0 - tail)) / 1000.0 if len(jct_ms) else float("nan")

    def cost(progress: Progress) -> float | np.ndarray:
        return np.quantile(progress.ages_ms(), 1.0 - tail, axis=-1)

    def group_rewards(rollouts: Sequence[Progress]) -> list[np.ndarray]:
        ends = [np.where(np.isnan(each.completion_ms), each.time_ms[-1], each.completion_ms) for each in rollouts]
        ages = [end - np.minimum(each.arrival_ms, end) for end, each in zip(ends, rollouts, strict=True)]
        limit_ms = np.quantile(np.concatenate(ages), 1.0 - tail)
        rewards = []
        for each, end, plain in zip(rollouts, ends, AVG_JCT.rewards(rollouts), strict=True):
            late_ms = each.arrival_ms + limit_ms
            overdue_ms = np.clip(each.time_ms[:, None] - late_ms, 0.0, np.maximum(end - late_ms, 0.0)).sum(axis=1)
            rewards.append(plain - np.diff(overdue_ms) / 1000.0 / tail)
        return rewards

    ordinal = "median" if percent == 50 else f"{percent}th percentile of"
    return Objective(
        f"p{percent}_jct",
        f"{ordinal} JCT",
        "s",
        score,
        cost,
        total="run",
        scale=1000.0,
        group_rewards=group_rewards,
        cut_bound="arrived",
    )


# Jobs in the system integrated over time are the sum of JCTs (§5.3, Little's law).
AVG_JCT = register_objective(
    Objective(
        "avg_jct",
        "average JCT",
        "s",
        score=lambda outcome: _mean(outcome.jct_ms) / 1000.0,
        cost=lambda progress: progress.area_ms,
        total="job",
        scale=1000.0,
        aliases=("jct",),
        cut_bound="arrived",
    )
)
MAKESPAN = register_objective(
    Objective(
        "makespan",
        "makespan",
        "s",
        score=lambda outcome: float(np.max(outcome.completion_ms)) / 1000.0,
        cost=lambda progress: progress.time_ms,
        total="run",
        scale=1000.0,
        cut_bound="always",
    )
)
SLOWDOWN = register_objective(
    Objective(
        "slowdown",
        "mean slowdown",
        "",
        score=lambda outcome: _mean(outcome.slowdown),
        cost=_mean_slowdown_cost,
        total="run",
        cut_bound="arrived",
    )
)
for _percent in (50, 90, 95, 99):
    register_objective(_tail_jct(_percent))
