"""Algorithms that train a policy; importing the package registers them."""

from decima.learning.algorithms import actor_critic, dqn, imitation, policy_gradient
from decima.learning.algorithms.interface import (
    Algorithm,
    AlgorithmState,
    configuration_of,
    list_algorithms,
    make_algorithm,
    register_algorithm,
    what_learns,
)

__all__ = [
    "Algorithm",
    "AlgorithmState",
    "actor_critic",
    "configuration_of",
    "dqn",
    "imitation",
    "list_algorithms",
    "make_algorithm",
    "policy_gradient",
    "register_algorithm",
    "what_learns",
]
