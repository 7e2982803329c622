"""Algorithms that train a policy; their registry imports the modules of this package."""

from decima.learning.algorithms.interface import (
    ALGORITHMS,
    Algorithm,
    AlgorithmState,
    make_algorithm,
    register_algorithm,
)

__all__ = ["ALGORITHMS", "Algorithm", "AlgorithmState", "make_algorithm", "register_algorithm"]
