"""Tuning of the linear rule by CMA-ES on schedules of drawn instances with reused memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decima.evaluation.cma_search import Minimum, minimize
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.schedulers.priorities import NAMES, rank_up, static_features
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

#: Priorities are within this range; their scale has no effect.
LARGEST = 4.0


def tune(instances: Sequence[Instance], rules: Rules, budget: int, seed: int = 0) -> Minimum:
    """Find coefficients of the linear rule with short schedules.

    Args:
        instances: What to schedule; the score is the mean makespan over that of the upward rank.
        rules: How nodes are decided and placed.
        budget: Candidates to try, each on all instances.
        seed: 0 or more.

    Returns:
        Coefficients in the order of ``NAMES`` of the rule, and their score.
    """
    planners = [Planner(each, rules) for each in instances]
    features = [static_features(each, NAMES, logarithms=True).astype(np.float64) for each in instances]
    usual_s = np.array([planner.run(rank_up(each)) for planner, each in zip(planners, instances, strict=True)])

    def score(candidates: np.ndarray) -> np.ndarray:
        lengths = [
            [planner.run(x @ weights) for planner, x in zip(planners, features, strict=True)]
            for weights in LARGEST * (2.0 * candidates - 1.0)
        ]
        return (np.array(lengths) / usual_s).mean(axis=1)

    start = np.full(len(NAMES), 0.5)
    start[NAMES.index("rank_up")] = 0.5 + 0.5 / LARGEST
    best = minimize(score, start, sigma=0.1, bounds=(0.0, 1.0), budget=budget, seed=seed)
    best.x = LARGEST * (2.0 * best.x - 1.0)
    return best
