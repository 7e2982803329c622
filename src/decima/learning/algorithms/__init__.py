"""Algorithms that train a policy; importing the package registers them."""

from decima.learning.algorithms import actor_critic, continuing, dqn, imitation, policy_gradient
from decima.learning.algorithms.interface import (
    ALGORITHMS,
    Algorithm,
    AlgorithmState,
    make_algorithm,
    register_algorithm,
)

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "AlgorithmState",
    "actor_critic",
    "continuing",
    "dqn",
    "imitation",
    "make_algorithm",
    "policy_gradient",
    "register_algorithm",
]
