"""The linear rule: priorities as a weighted sum of logarithms of features that do not change."""

from __future__ import annotations

import numpy as np

from decima.systems.unequal.node_features import MORE, static_features
from decima.systems.unequal.workload import Instance

NAMES = ("time", "data_in", "data_out", "rank_up", "rank_down", *MORE)
#: Weights of the features, by when nodes are decided; :func:`decima.systems.unequal.linear_tuning.tune` found them.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "plan": (2.019, 1.865, 0.722, 3.953, -2.086, 1.627, -1.511, -0.03, 3.968, -4.0, 3.994),
    "idle": (3.922, 3.99, 3.514, 0.634, 1.888, 3.992, 0.26, -0.833, 1.821, -1.511, 2.289),
}
COEFFICIENTS["event"] = COEFFICIENTS["plan"]


def linear_priority(instance: Instance, coefficients) -> np.ndarray:
    """Weighted sum of the features, float64 [nodes].

    Args:
        instance: Jobs and cluster.
        coefficients: Float [features], in the order of :data:`NAMES`.
    """
    return static_features(instance, NAMES, logarithms=True).astype(np.float64) @ np.asarray(coefficients)
