"""Algorithms that train a policy; the registry imports the modules of this package when it is asked for a name."""

from decima.learning.algorithms.interface import (
    ALGORITHMS,
    Algorithm,
    AlgorithmState,
    make_algorithm,
    register_algorithm,
)

__all__ = ["ALGORITHMS", "Algorithm", "AlgorithmState", "make_algorithm", "register_algorithm"]
