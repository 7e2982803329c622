"""Objectives of executor placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.objectives import Outcome, objective_at_end


@dataclass(frozen=True, eq=False)
class PlacementOutcome(Outcome):
    """Outcome of an episode; NaN where it is incomplete."""

    cost: float  # of all VMs, in the currency of the list
    mean_duration_s: float  # mean run time
    good_placements: int
    waits: int
    reward: float  # R_epi of Eq. 14


COST = objective_at_end("cost", "cost", "", lambda outcome: outcome.cost, digits=4)
DURATION = objective_at_end("duration", "mean duration", "s", lambda outcome: outcome.mean_duration_s)
RESPONSE = objective_at_end(
    "response", "mean response time", "s", lambda outcome: float(np.mean(outcome.jct_ms)) / 1000.0
)
GOOD = objective_at_end("good", "good placements", "", lambda outcome: float(outcome.good_placements), "max")
WAITS = objective_at_end("waits", "waits", "", lambda outcome: float(outcome.waits))
REWARD = objective_at_end("reward", "episodic reward", "", lambda outcome: outcome.reward, "max", digits=1)
OBJECTIVES = {objective.name: objective for objective in (COST, DURATION, RESPONSE, GOOD, WAITS, REWARD)}
