"""Search for a better plan by antithetic candidates around a search distribution's mean.

One run says little: the schedule of a run is chaotic, and its cost varies by as much as a good plan gains. So no single
candidate is chosen. Close to the best point the cost is taken for a bowl that is equally steep in all directions when
coordinates are measured in steps. Then the difference of the costs of two points that mirror each other says, but for
noise, how far the best point is from the middle between them along that line, and every pair of runs narrows the
distribution by the equations of Kalman, "A new approach to linear filtering and prediction problems" (1960). All runs
count, none by itself; where they have said little the plan stays close to the rule. How steep the bowl is and how large
the noise is are estimated along the way. The distribution is kept from plan to plan.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import numpy as np

#: Pairs of candidates after which the distribution is renewed, and the runs of a first such round.
PAIRS = 4
ROUND = 2 + 2 * PAIRS
# Plans whose advantage over the rule is looked at together.
_COMPARED = 4
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


class Budget(Protocol):
    """How much may be tried."""

    def take(self) -> bool:
        """Whether a further run may begin now; it counts as begun."""


class RunBudget:
    """Budget in runs of candidates.

    Args:
        runs: Their number.
    """

    def __init__(self, runs: int) -> None:
        self._left = runs

    def take(self) -> bool:
        """Whether a run is left."""
        self._left -= 1
        return self._left >= 0


class TimeBudget:
    """Budget in time; the longest run so far must fit into what is left.

    Args:
        ms: Milliseconds from now on.
        clock: Seconds; another one for tests.
    """

    def __init__(self, ms: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._end = clock() + ms / 1000.0
        self._longest = 0.0
        self._since: float | None = None

    def take(self) -> bool:
        """Whether there is time for a run."""
        now = self._clock()
        if self._since is not None:
            self._longest = max(self._longest, now - self._since)
        self._since = now
        return now + self._longest < self._end


class Trials:
    """Runs of candidates, one after the other.

    Args:
        cost: Cost of a point in a draw, by (index of the draw, point).
        draws: Number of draws.
        budget: How much may be tried.

    Attributes:
        draws: Number of draws.
        runs: Runs so far.
    """

    def __init__(self, cost: Callable[[int, np.ndarray], float], draws: int, budget: Budget) -> None:
        self.draws, self.runs = draws, 0
        self._cost, self._budget = cost, budget

    def costs(self, cases: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """Costs of (index of the draw, point), float64 [as many as the budget allows]."""
        costs: list[float] = []
        for draw, point in cases:
            if not self._budget.take():
                break
            costs.append(self._cost(draw, point))
        self.runs += len(costs)
        return np.array(costs)


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


class SearchDistribution:
    """Normal distribution of the best point, in steps, renewed by a Kalman filter.

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
        """Begin anew at the rule; what is known of the cost is kept."""
        self.mean = np.zeros(len(self._names))
        self.covariance = _FIRST**2 * np.eye(len(self._names))

    def go_on(self, jobs: Sequence[int]) -> None:
        """Change the jobs: drop those that left, start new ones at 0, widen the rest.

        Args:
            jobs: Jobs in the system, each with one coordinate.
        """
        names = self._names[: self._common] + [int(job) for job in jobs]
        if names == self._names:
            return
        index_of = {name: index for index, name in enumerate(self._names)}
        new = np.array([index for index, name in enumerate(names) if name in index_of], int)
        old = np.array([index_of[name] for name in names if name in index_of], int)
        mean, covariance = self.mean, self.covariance
        self._names = names
        self.forget()
        self.mean[new] = mean[old]
        self.covariance[np.ix_(new, new)] = covariance[np.ix_(old, old)] + _DRIFT**2 * np.eye(len(new))

    def learn_excess(self, excess: float) -> None:
        """Take in the relative excess of a pair's mean cost over that of its middle."""
        self._excess.add(excess)

    def learn(self, steps: np.ndarray, differences: np.ndarray) -> None:
        """Take in pairs of runs around the mean.

        Args:
            steps: Way from the mean to a candidate, standard normal, float64 [pairs, coordinates]; its mirror image is
                as far on the other side.
            differences: Cost of the candidate less that of the mirror image over the sum of both, float64 [pairs].
        """
        steepness = 2.0 * max(self._excess.value, _LEAST_EXCESS * _EXCESS) / len(self.mean)
        seen = -steepness * steps
        across = seen @ self.covariance
        expected = across @ seen.T
        for difference, variance in zip(differences, np.diag(expected), strict=True):
            self._noise.add(difference**2 - variance)
            self._squares.add(difference**2)
        noise = max(self._noise.value, _LEAST_NOISE * self._squares.value)
        total = expected + noise * np.eye(len(steps))
        gain = np.linalg.solve(total, across).T
        self.mean = self.mean + gain @ differences
        covariance = self.covariance - gain @ across
        self.covariance = (covariance + covariance.T) / 2.0


class Search:
    """Search that goes on from plan to plan.

    Args:
        common: Number of the coordinates that are not of jobs.
        rng: Source of candidates.
    """

    def __init__(self, common: int, rng: np.random.Generator) -> None:
        self._distribution = SearchDistribution(common)
        self._rng = rng
        self._losses: deque[float] = deque(maxlen=_COMPARED)

    def improve(self, trials: Trials, jobs: Sequence[int]) -> np.ndarray:
        """Improve the plan; go back to the rule if the last plans were worse.

        Args:
            trials: Runs of candidates.
            jobs: Jobs in the system.

        Returns:
            The mean of the distribution, in steps, float64 [coordinates]; zeros are the rule.
        """
        distribution = self._distribution
        distribution.go_on(jobs)
        draw, first, complete = 0, True, True  # in the first round the rule itself is run, too
        while complete:
            steps = self._rng.standard_normal((PAIRS, len(distribution.mean)))
            points = [distribution.mean, *(distribution.mean + sign * step for step in steps for sign in (1.0, -1.0))]
            draws = [(draw + max(0, index - 1) // 2) % trials.draws for index in range(len(points))]
            cases = list(zip(draws, points, strict=True))
            if first:
                cases.insert(0, (draw, np.zeros(len(distribution.mean))))
            costs = trials.costs(cases)
            complete = len(costs) == len(cases)
            if first and len(costs) > 1 and self._loses(costs[1], costs[0]):
                distribution.forget()
            else:
                self._learn(steps, costs[int(first) :])
            draw, first = draw + PAIRS, False
        return distribution.mean

    def _loses(self, cost: float, base: float) -> bool:
        """Whether the last plans were worse than the rule, by costs in one draw."""
        if not self._distribution.mean.any():
            return False
        self._losses.append(cost / base - 1.0 if 0.0 < base < np.inf else 0.0)
        loses = _is_loss(self._losses)
        if loses:
            self._losses.clear()
        return loses

    def _learn(self, steps: np.ndarray, costs: np.ndarray) -> None:
        """Take in a round: the cost of the mean, then those of pairs."""
        pairs = costs[1 : 1 + 2 * ((len(costs) - 1) // 2)].reshape(-1, 2)
        sums = pairs.sum(axis=1)
        known = np.isfinite(sums) & (sums > 0.0)
        if len(pairs) and known[0] and 0.0 < costs[0] < np.inf:
            self._distribution.learn_excess(sums[0] / 2.0 / costs[0] - 1.0)
        if known.any():
            differences = (pairs[known, 0] - pairs[known, 1]) / sums[known]
            self._distribution.learn(steps[: len(pairs)][known], differences)


def _is_loss(losses: Sequence[float]) -> bool:
    """Whether the mean of several numbers exceeds 0 by its standard error."""
    if not np.isfinite(losses).all():
        return True
    return len(losses) > 1 and float(np.mean(losses)) > float(np.std(losses, ddof=1)) / np.sqrt(len(losses))
