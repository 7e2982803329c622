"""Objectives as a cost that grows during a run; the reward of a step is minus the growth since the one before.

Source: §5.3. Any function of the state that never needs the future can be one, for example the sum of squared JCTs of
the finished jobs for a lighter tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.simulator.state import ClusterState

Objective = Callable[["ClusterState"], float]


def jct_cost_s(state: ClusterState) -> float:
    """Jobs in the system integrated over time, in seconds: at the end the sum of all JCTs (Little's law)."""
    return (state.area_ms + state.num_active * (state.now_ms - state.area_time_ms)) / 1000.0


def makespan_cost_s(state: ClusterState) -> float:
    """Time, in seconds; at the end the makespan, even if an executor is still moving after the last job."""
    if state.num_done == state.num_jobs:
        return float(state.job_finish_ms.max()) / 1000.0
    return state.now_ms / 1000.0


OBJECTIVES: dict[str, Objective] = {"jct": jct_cost_s, "makespan": makespan_cost_s}


def make_objective(objective: str | Objective) -> Objective:
    """An objective by name, or a function ``state -> cost so far`` as it is.

    Raises:
        ConfigError: There is no objective of that name.
    """
    if callable(objective):
        return objective
    if objective not in OBJECTIVES:
        raise ConfigError(f"objective is {objective!r}; expected {', '.join(OBJECTIVES)} or a function of the state")
    return OBJECTIVES[objective]


def cost_of(objective: Objective, state: ClusterState) -> float:
    """The cost so far.

    Raises:
        ConfigError: The objective returned something else than a finite number.
    """
    cost = objective(state)
    try:
        finite = math.isfinite(cost)
    except TypeError:
        finite = False
    if not finite:
        name = getattr(objective, "__name__", type(objective).__name__)
        when = f"{state.now_ms / 1000:.1f} s"
        raise ConfigError(f"objective {name} returned {cost!r} at {when}; expected a finite number")
    return float(cost)
