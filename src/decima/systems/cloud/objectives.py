"""Objectives of executor placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.errors import ConfigError
from decima.core.grammar import hint
from decima.core.objectives import Objective, Outcome, Progress


@dataclass(frozen=True, eq=False)
class PlacementOutcome(Outcome):
    """Outcome of an episode; NaN where it is incomplete."""

    cost: float  # of all VMs, in the currency of the list
    mean_duration_s: float  # mean run time
    good_placements: int
    waits: int
    reward: float  # R_epi of Eq. 14


def _at_the_end(progress: Progress) -> float:
    raise ConfigError("objectives of placement are known at the end of an episode only")


def _objective(name: str, label: str, unit: str, score, direction: str = "min") -> Objective:
    return Objective(name, label, unit, score, _at_the_end, direction=direction)


COST = _objective("cost", "cost", "", lambda outcome: outcome.cost)
DURATION = _objective("duration", "mean duration", "s", lambda outcome: outcome.mean_duration_s)
RESPONSE = _objective("response", "mean response time", "s", lambda outcome: float(np.mean(outcome.jct_ms)) / 1000.0)
GOOD = _objective("good", "good placements", "", lambda outcome: float(outcome.good_placements), "max")
WAITS = _objective("waits", "waits", "", lambda outcome: float(outcome.waits))
REWARD = _objective("reward", "episodic reward", "", lambda outcome: outcome.reward, "max")
OBJECTIVES = {objective.name: objective for objective in (COST, DURATION, RESPONSE, GOOD, WAITS, REWARD)}


def placement_objective(name: str) -> Objective:
    """The objective of a name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in OBJECTIVES:
        raise ConfigError(f"unknown metric {name!r}{hint(name, OBJECTIVES)}; known: {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]
