"""What is to be small, as rewards of recorded decisions; more can be registered.

A registered function gets all rollouts of one job sequence and returns, for each, the reward that accrues from every
decision to the next one (the last: to the end of the episode), in job-seconds or seconds. Rewards before the first
decision depend on no action and are left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.policy.record import EpisodeRecord

Rewards = Callable[[Sequence["EpisodeRecord"]], list[np.ndarray]]

_OBJECTIVES: dict[str, tuple[Rewards, str]] = {}
_TAIL = 0.1


def register_objective(name: str, metric: str = "avg_jct_s") -> Callable[[Rewards], Rewards]:
    """Decorator: make a function of the rollouts of a sequence known as an objective.

    Args:
        name: What tasks call it.
        metric: Metric of :data:`decima.evaluation.run.METRICS` by which checkpoints are selected.
    """

    def wrap(function: Rewards) -> Rewards:
        _OBJECTIVES[name] = (function, metric)
        return function

    return wrap


def list_objectives() -> list[str]:
    """Known names, sorted."""
    return sorted(_OBJECTIVES)


def check_objective(name: str) -> None:
    """Raise ConfigError unless the objective is known."""
    if name not in _OBJECTIVES:
        close = difflib.get_close_matches(str(name), _OBJECTIVES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"unknown objective {name!r}{hint}; known: {', '.join(list_objectives())}")


def objective_metric(name: str) -> str:
    """Metric that selects checkpoints."""
    check_objective(name)
    return _OBJECTIVES[name][1]


def objective_rewards(name: str, records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Rewards, float64 [D] per record, of all rollouts of one sequence.

    Raises:
        ConfigError: The objective is unknown, or returned something of another shape.
    """
    check_objective(name)
    rewards = [np.asarray(values, dtype=np.float64) for values in _OBJECTIVES[name][0](records)]
    got, expected = [values.shape for values in rewards], [record.time_ms.shape for record in records]
    if got != expected:
        raise ConfigError(f"objective {name} returned rewards of shapes {got[:3]}..., expected {expected[:3]}...")
    return rewards


@register_objective("avg_jct")
def average_jct(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Minus the integral of the number of jobs in the system: their sum of completion times (§5.3, Little's law)."""
    return [-np.diff(record.area_ms, append=record.end_area_ms) / 1000.0 for record in records]


@register_objective("makespan", metric="makespan_s")
def makespan(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Minus elapsed time."""
    return [-np.diff(record.time_ms, append=record.end_ms) / 1000.0 for record in records]


@register_objective("p90_jct")
def tail_jct(records: Sequence[EpisodeRecord]) -> list[np.ndarray]:
    """Average JCT plus that of the slowest tenth beyond the 90th percentile of the sequence's rollouts.

    The second part is the conditional value at risk: a job older than the percentile costs 1 / 0.1 per second. The
    percentile is taken over all rollouts, so that a single one hardly moves its own yardstick.
    """
    ends = [np.where(np.isnan(record.completion_ms), record.end_ms, record.completion_ms) for record in records]
    ages = [end - np.minimum(record.arrival_ms, end) for end, record in zip(ends, records, strict=True)]
    limit_ms = np.quantile(np.concatenate(ages), 1.0 - _TAIL)
    rewards = []
    for record, end, plain in zip(records, ends, average_jct(records), strict=True):
        late_ms = record.arrival_ms + limit_ms
        when = np.append(record.time_ms, record.end_ms)[:, None]
        overdue_ms = np.clip(when - late_ms, 0.0, np.maximum(end - late_ms, 0.0)).sum(axis=1)
        rewards.append(plain - np.diff(overdue_ms) / 1000.0 / _TAIL)
    return rewards
