"""Search for a better plan: candidates around the plan in force, successive halving, recombination of the best.

One run says little: the schedule of a run is chaotic, and its cost varies by as much as a good plan gains. So no
single candidate is believed. Those that survive the halving are averaged, which is how evolution strategies cope with
noise (Beyer and Schwefel, "Evolution strategies: a comprehensive introduction", 2002), and steps are cut in half.
Every rung of the halving has another draw, which all its candidates share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

#: Candidates of a generation, how many halvings they go through, and the part of the recombined step that is taken.
GENERATION = 16
RUNGS = 2
STEP = 0.5
# Draws on which what was found is compared with the base rule.
COMPARED = 4


class Budget(Protocol):
    """How much may be tried."""

    def allows(self, runs: int, leaving: int) -> bool:
        """Whether so many runs may be begun, such that as many as are to be left fit behind them; if so they count."""

    def over(self) -> bool:
        """Whether no further run may be begun although it was allowed; asked before each."""


class RunBudget:
    """Budget in runs of candidates.

    Args:
        runs: Their number.
    """

    def __init__(self, runs: int) -> None:
        self._left = runs

    def allows(self, runs: int, leaving: int) -> bool:
        """Whether so many runs are left, and some behind them; if so they count."""
        if runs + leaving > self._left:
            return False
        self._left -= runs
        return True

    def over(self) -> bool:
        """False: what was allowed is done."""
        return False


class TimeBudget:
    """Budget in time.

    No run is begun if one as long as the longest so far would end too late, and no series of runs if it would at the
    mean length of those so far.

    Args:
        ms: Milliseconds from now on.
        threads: Runs at the same time.
        clock: Seconds; another one for tests.
    """

    def __init__(self, ms: float, threads: int = 1, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._threads = clock, threads
        self._end = clock() + ms / 1000.0
        self._longest = self._total = 0.0
        self._rounds = 0
        self._since: float | None = None

    def _now(self) -> float:
        now = self._clock()
        if self._since is not None:
            self._longest = max(self._longest, now - self._since)
            self._total += now - self._since
            self._rounds += 1
            self._since = None
        return now

    def allows(self, runs: int, leaving: int) -> bool:
        """Whether there is time for so many runs, and some behind them."""
        rounds = -(-runs // self._threads) + -(-leaving // self._threads)
        return self._now() + rounds * self._total / max(1, self._rounds) < self._end

    def over(self) -> bool:
        """Whether there is no time for another run; if there is, it begins now."""
        now = self._now()
        self._since = now
        return now + self._longest >= self._end


class Trials:
    """Runs of candidates, in threads.

    Args:
        cost: Cost of a point in a draw, by (index of the draw, point, index of the thread).
        draws: Number of draws.
        budget: How much may be tried.
        threads: Candidates at the same time; costs do not depend on it.
        pool: Where threads come from; needed for more than one.

    Attributes:
        draws: Number of draws.
        runs: Runs so far.
    """

    def __init__(
        self,
        cost: Callable[[int, np.ndarray, int], float],
        draws: int,
        budget: Budget,
        threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self.draws, self.runs = draws, 0
        self._cost, self._budget, self._threads, self._pool = cost, budget, threads, pool

    def costs(self, draw: int, points: Sequence[np.ndarray], leaving: int = 0) -> np.ndarray | None:
        """Costs of points in one draw, float64 [points]; None if the budget does not allow that.

        Args:
            draw: Index of the draw.
            points: The points.
            leaving: Runs that must be possible afterwards.
        """
        if not self._budget.allows(len(points), leaving):
            return None
        found = np.empty(len(points))
        for first in range(0, len(points), self._threads):
            if self._budget.over():
                return None
            some = range(first, min(first + self._threads, len(points)))
            self.runs += len(some)
            if len(some) == 1:
                found[first] = self._cost(draw, points[first], 0)
            else:
                jobs = [self._pool.submit(self._cost, draw, points[index], index - first) for index in some]
                found[first : some.stop] = [job.result() for job in jobs]
        return found


def improve(
    trials: Trials, base: np.ndarray, start: np.ndarray, steps: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Search from a point; what is found is given up for the base rule if that does better in a last comparison.

    Args:
        trials: Runs of candidates.
        base: The point that is the base rule, float64 [numbers].
        start: Where to begin, float64 [numbers]; the plan in force.
        steps: Standard deviations of candidates around the point searched from, float64 [numbers].
        rng: Source of candidates.

    Returns:
        The point chosen, float64 [numbers]; the start if the budget is too small for a generation.
    """
    compared = min(trials.draws, COMPARED)
    point, draw = start, 0
    while (found := _generation(trials, 2 * compared, point, steps, draw, rng)) is not None:
        point = found
        draw += RUNGS
    if point is start:
        return start
    losses = []
    for draw in range(compared):
        costs = trials.costs(draw, [base, point])
        if costs is None:
            break
        both = np.isfinite(costs).all()
        losses.append(costs[1] - costs[0] if both else np.inf if costs[1] > costs[0] else 0.0)
    return base if _is_loss(losses) else point


def _is_loss(losses: Sequence[float]) -> bool:
    """Whether numbers are above 0 by more than the standard error of their mean."""
    if len(losses) < 2 or not np.isfinite(losses).all():
        return any(loss > 0.0 for loss in losses)
    return float(np.mean(losses)) > float(np.std(losses, ddof=1)) / np.sqrt(len(losses))


def _generation(
    trials: Trials, leaving: int, point: np.ndarray, steps: np.ndarray, draw: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Point moved towards the best candidates around it; None if the budget ends before."""
    half = rng.standard_normal((GENERATION // 2, len(point))) * steps
    moves = np.concatenate([half, -half])
    left, totals = np.arange(GENERATION), np.zeros(GENERATION)
    for rung in range(RUNGS):
        behind = leaving + sum(GENERATION >> later for later in range(rung + 1, RUNGS))
        costs = trials.costs((draw + rung) % trials.draws, [point + moves[index] for index in left], behind)
        if costs is None:
            return None
        totals[left] += costs
        left = left[np.argsort(totals[left], kind="stable")][: max(1, len(left) // 2)]
    weights = np.log(len(left) + 0.5) - np.log(np.arange(1, len(left) + 1))
    return point + STEP * (weights / weights.sum()) @ moves[left]
