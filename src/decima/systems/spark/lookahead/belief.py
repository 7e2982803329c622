"""Where the best plan is believed to lie: a normal distribution that is kept from plan to plan.

Close to the best point the cost is taken for a bowl that is equally steep in all directions when coordinates are
measured in steps. Then the difference of the costs of two points that mirror each other tells, but for noise, how
far the best point is from the middle between them along that line, and every pair of runs makes the belief more exact
by the equations of Kalman, "A new approach to linear filtering and prediction problems" (1960). A single run is
noisier than what a plan gains, so all runs count, none by itself; where they have told little the plan stays
close to the rule. How steep the bowl is and how large the noise is are estimated along the way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

# Standard deviations in steps: of the best value of a coordinate around 0 at first, and of how it moves when jobs come
# or go.
_FIRST, _DRIFT = 0.8, 0.25
# What is assumed before runs tell: mean relative excess of the cost of candidates over that of the point amid them, and
# variance that noise adds to the relative difference between a candidate and its mirror image. They weigh as much as so
# many observations, and what was seen earlier is forgotten at these rates.
_EXCESS, _EXCESS_WEIGHT, _EXCESS_KEPT = 0.01, 10.0, 0.98
_NOISE, _NOISE_WEIGHT, _NOISE_KEPT = 0.0022**2, 8.0, 0.99
# Bounds: of the excess, as a part of what is assumed of it, and of the noise, as a part of the differences seen.
_LEAST_EXCESS, _LEAST_NOISE = 0.9, 0.6


class _Average:
    """Mean of numbers, the latest of which weigh most.

    Args:
        value: Mean before any number.
        weight: How many numbers that counts for.
        kept: Factor on all weights at every number.
    """

    def __init__(self, value: float, weight: float, kept: float) -> None:
        self.value, self._weight, self._kept = value, weight, kept

    def add(self, number: float) -> None:
        self._weight = self._kept * self._weight + 1.0
        self.value += (number - self.value) / self._weight


class Belief:
    """Normal distribution of the best point, in steps.

    Args:
        common: Number of the coordinates that are there at all times; those of jobs follow them.

    Attributes:
        mean: Float64 [coordinates].
        covariance: Float64 [coordinates, coordinates].
    """

    def __init__(self, common: int) -> None:
        self._names: list[Hashable] = [-1 - index for index in range(common)]
        self._common = common
        self._excess = _Average(_EXCESS, _EXCESS_WEIGHT, _EXCESS_KEPT)
        self._noise = _Average(_NOISE, _NOISE_WEIGHT, _NOISE_KEPT)
        self._squares = _Average(_NOISE, _NOISE_WEIGHT, _NOISE_KEPT)
        self.forget()

    def forget(self) -> None:
        """Believe again that the rule is best; what is known of the cost is kept."""
        self.mean = np.zeros(len(self._names))
        self.covariance = _FIRST**2 * np.eye(len(self._names))

    def move_to(self, jobs: Sequence[int]) -> None:
        """Go on to other jobs: those that are gone are dropped, new ones begin at 0, and every best value has moved.

        Args:
            jobs: Jobs in the system, each with one coordinate.
        """
        names = self._names[: self._common] + [int(job) for job in jobs]
        if names == self._names:
            return
        place = {name: index for index, name in enumerate(self._names)}
        new = np.array([index for index, name in enumerate(names) if name in place], int)
        old = np.array([place[name] for name in names if name in place], int)
        mean, covariance = self.mean, self.covariance
        self._names = names
        self.forget()
        self.mean[new] = mean[old]
        self.covariance[np.ix_(new, new)] = covariance[np.ix_(old, old)] + _DRIFT**2 * np.eye(len(new))

    def learn_excess(self, excess: float) -> None:
        """Take in the mean cost of a candidate and its mirror image, over that of the point amid them, less 1."""
        self._excess.add(excess)

    def learn(self, moves: np.ndarray, differences: np.ndarray) -> None:
        """Take in pairs of runs around the mean.

        Args:
            moves: Way from the mean to a candidate, standard normal, float64 [pairs, coordinates]; its mirror image is
                as far on the other side.
            differences: Cost of the candidate less that of the mirror image over the sum of both, float64 [pairs].
        """
        steepness = 2.0 * max(self._excess.value, _LEAST_EXCESS * _EXCESS) / len(self.mean)
        seen = -steepness * moves
        across = seen @ self.covariance
        expected = across @ seen.T
        for difference, variance in zip(differences, np.diag(expected), strict=True):
            self._noise.add(difference**2 - variance)
            self._squares.add(difference**2)
        noise = max(self._noise.value, _LEAST_NOISE * self._squares.value)
        total = expected + noise * np.eye(len(moves))
        gain = np.linalg.solve(total, across).T
        self.mean = self.mean + gain @ differences
        covariance = self.covariance - gain @ across
        self.covariance = (covariance + covariance.T) / 2.0
