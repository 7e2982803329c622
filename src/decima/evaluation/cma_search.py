"""Minimisation by CMA-ES that repeats exactly.

The search draws from a generator of its own, never from NumPy's global one. Given the seed it is a function of the
reported values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from decima.core.errors import ConfigError


@dataclass
class Minimum:
    """Outcome of a search."""

    x: np.ndarray  # float64, best point
    value: float = math.inf  # its value
    # One row per generation: evaluations so far, best so far, median of the generation, step size.
    curve: list[dict[str, float]] = field(default_factory=list)


def _strategy(x0, sigma, bounds, population, rng):
    import cma

    options = {
        "bounds": list(bounds),
        "popsize": population,
        "seed": np.nan,  # leaves NumPy's global generator alone
        "randn": lambda *shape: rng.standard_normal(shape),
        "verbose": -9,
        "verb_log": 0,
        "maxfevals": np.inf,
        "tolfun": 1e-9,
        "tolfunhist": 1e-9,
    }
    with warnings.catch_warnings():
        # cma remarks on several of its options; none of it concerns the caller.
        warnings.simplefilter("ignore")
        return cma.CMAEvolutionStrategy(x0, sigma, options)


def minimize(
    evaluate: Callable[[np.ndarray], np.ndarray],
    x0: Sequence[float],
    *,
    sigma: float,
    bounds: tuple[float, float],
    budget: int,
    seed: int,
    population: int | None = None,
    inject: Sequence[Sequence[float]] = (),
) -> Minimum:
    """Minimise a function of n numbers; the start itself is always among the points tried.

    Whenever the search has converged it starts anew from the best point with the first step size and twice the
    population, until the budget is used.

    Args:
        evaluate: float64 [N, n] -> float64 [N]; called once per generation, so it may use all cores.
        x0: Start.
        sigma: First step size, the same for all coordinates.
        bounds: Lower and upper bound of every coordinate.
        budget: Evaluations, at least; the last generation is completed.
        seed: Random seed.
        population: Points per generation, 4 + 3 ln n by default.
        inject: Further points of the first generation.

    Raises:
        ConfigError: The budget is below 1.

    Source: Hansen, The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.
    """
    if isinstance(budget, bool) or int(budget) != budget or budget < 1:
        raise ConfigError(f"budget must be a whole number of at least 1, got {budget!r}")
    start = np.array(x0, dtype=np.float64)
    # CMA-ES does not support a single coordinate; a second one without effect makes it work.
    inert = 1 if len(start) == 1 else 0
    middle = [0.5 * (bounds[0] + bounds[1])]
    padded = [np.concatenate([np.asarray(point, dtype=np.float64), middle * inert]) for point in (start, *inject)]
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    size = population or 4 + int(3 * math.log(len(start) + inert))
    best = Minimum(start)
    evaluations = 0
    strategy = _strategy(padded[0], sigma, bounds, size, rng)
    while evaluations < budget:
        points = [np.asarray(point) for point in strategy.ask()]
        if not evaluations:
            points[: len(padded)] = padded
        plain = np.array([point[: len(start)] for point in points])
        generation = [float(value) for value in evaluate(plain)]
        evaluations += len(generation)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # points put into the first generation by hand
            strategy.tell(points, generation)
        winner = int(np.argmin(generation))
        if generation[winner] < best.value:
            best.value, best.x = generation[winner], plain[winner].copy()
        best.curve.append(
            {
                "evaluations": evaluations,
                "best": best.value,
                "median": float(np.median(generation)),
                "step": float(strategy.sigma),
            }
        )
        if strategy.stop():
            size *= 2
            strategy = _strategy(np.concatenate([best.x, middle * inert]), sigma, bounds, size, rng)
    return best
