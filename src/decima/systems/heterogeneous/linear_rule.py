"""Linear rule: priorities as a weighted sum of logarithms of static features."""

from __future__ import annotations

import numpy as np

from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.node_features import MORE, static_features
from decima.systems.heterogeneous.ranks import rank_up
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

NAMES = ("time", "data_in", "data_out", "rank_up", "rank_down", *MORE)
#: Weights of the features, by when nodes are decided; found by `experiments/heterogeneous/linear_tuning.py`.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "plan": (2.019, 1.865, 0.722, 3.953, -2.086, 1.627, -1.511, -0.03, 3.968, -4.0, 3.994),
    "idle": (3.922, 3.99, 3.514, 0.634, 1.888, 3.992, 0.26, -0.833, 1.821, -1.511, 2.289),
}
COEFFICIENTS["event"] = COEFFICIENTS["plan"]

# Parts of the transfer times that upward ranks count.
TRANSFER_PARTS = (1.0, 0.5, 0.25, 0.1, 0.0)


def linear_priority(instance: Instance, coefficients) -> np.ndarray:
    """Weighted sum of the features, float64 [nodes].

    Args:
        instance: Jobs and cluster.
        coefficients: Float [features], in the order of :data:`NAMES`.
    """
    return static_features(instance, NAMES, logarithms=True).astype(np.float64) @ np.asarray(coefficients)


def best_rule_priority(instance: Instance, rules: Rules) -> np.ndarray:
    """Priorities of the simple rule whose schedule of this instance is the shortest, float64 [nodes].

    Simple rules are upward ranks with discounted transfers, and the linear rule with the weights for the decisions.
    Where jobs arrive later, that looks into the future: only the whole schedule says which rule it is.

    Args:
        instance: Jobs and cluster.
        rules: How nodes are decided and placed.
    """
    ranks = [rank_up(instance, transfers=discount) for discount in TRANSFER_PARTS]
    linear = linear_priority(instance, COEFFICIENTS[rules.decision])
    return min([*ranks, linear], key=Planner(instance, rules).run)
