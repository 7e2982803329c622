"""Algorithms that train a policy; importing the package registers them."""

from decima.training.algorithms import imitation, policy_gradient
from decima.training.algorithms.interface import (
    Algorithm,
    AlgorithmState,
    configuration_of,
    list_algorithms,
    make_algorithm,
    register_algorithm,
)

__all__ = [
    "Algorithm",
    "AlgorithmState",
    "configuration_of",
    "imitation",
    "list_algorithms",
    "make_algorithm",
    "policy_gradient",
    "register_algorithm",
]
