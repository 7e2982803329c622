"""Search for a better plan: pairs of candidates around what is believed best, and what they tell.

One run says little: the schedule of a run is chaotic, and its cost varies by as much as a good plan gains. So no single
candidate is believed, and none is chosen: see :mod:`decima.systems.spark.lookahead.belief`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from decima.systems.spark.lookahead.belief import Belief

#: Pairs of candidates after which the belief is renewed, and the runs of a first such round.
PAIRS = 4
ROUND = 2 + 2 * PAIRS
# Plans whose advantage over the rule is looked at together.
_COMPARED = 4


class Budget(Protocol):
    """How much may be tried."""

    def take(self, runs: int) -> int:
        """How many of so many runs may begin now, at the same time; they count as begun."""


class RunBudget:
    """Budget in runs of candidates.

    Args:
        runs: Their number.
    """

    def __init__(self, runs: int) -> None:
        self._left = runs

    def take(self, runs: int) -> int:
        """As many as are left."""
        taken = min(runs, self._left)
        self._left -= taken
        return taken


class TimeBudget:
    """Budget in time: no run begins if one as long as the longest so far would end too late.

    Args:
        ms: Milliseconds from now on.
        clock: Seconds; another one for tests.
    """

    def __init__(self, ms: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._end = clock() + ms / 1000.0
        self._longest = 0.0
        self._since: float | None = None

    def take(self, runs: int) -> int:
        """All or none."""
        now = self._clock()
        if self._since is not None:
            self._longest = max(self._longest, now - self._since)
        self._since = now
        return runs if now + self._longest < self._end else 0


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

    def costs(self, cases: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
        """Costs of (index of the draw, point), float64 [those that the budget allows]: of the first ones."""
        found: list[float] = []
        for first in range(0, len(cases), self._threads):
            wanted = cases[first : first + self._threads]
            some = wanted[: self._budget.take(len(wanted))]
            if len(some) == 1:
                found.append(self._cost(*some[0], 0))
            else:
                jobs = [self._pool.submit(self._cost, *case, thread) for thread, case in enumerate(some)]
                found += [job.result() for job in jobs]
            if len(some) < len(wanted):
                break
        self.runs += len(found)
        return np.array(found)


class Search:
    """Search that goes on from plan to plan.

    Args:
        common: Number of the coordinates that are not of jobs.
        rng: Source of candidates.
    """

    def __init__(self, common: int, rng: np.random.Generator) -> None:
        self._belief = Belief(common)
        self._rng = rng
        self._losses: deque[float] = deque(maxlen=_COMPARED)

    def improve(self, trials: Trials, jobs: Sequence[int]) -> np.ndarray:
        """Improve the plan; it is given up for the rule if the last plans have not done better than that.

        Args:
            trials: Runs of candidates.
            jobs: Jobs in the system.

        Returns:
            The point believed best, in steps, float64 [coordinates]; zeros are the rule.
        """
        belief = self._belief
        belief.move_to(jobs)
        draw, first, complete = 0, True, True  # in the first round the rule itself is run, too
        while complete:
            moves = self._rng.standard_normal((PAIRS, len(belief.mean)))
            points = [belief.mean, *(belief.mean + sign * move for move in moves for sign in (1.0, -1.0))]
            draws = [(draw + max(0, index - 1) // 2) % trials.draws for index in range(len(points))]
            cases = list(zip(draws, points, strict=True))
            if first:
                cases.insert(0, (draw, np.zeros(len(belief.mean))))
            costs = trials.costs(cases)
            complete = len(costs) == len(cases)
            if first and len(costs) > 1 and self._loses(costs[1], costs[0]):
                belief.forget()
            else:
                self._learn(moves, costs[int(first) :])
            draw, first = draw + PAIRS, False
        return belief.mean

    def _loses(self, cost: float, base: float) -> bool:
        """Whether the last plans were worse than the rule, given the costs of both in one draw."""
        if not self._belief.mean.any():
            return False
        self._losses.append(cost / base - 1.0 if 0.0 < base < np.inf else 0.0)
        loses = _is_loss(self._losses)
        if loses:
            self._losses.clear()
        return loses

    def _learn(self, moves: np.ndarray, costs: np.ndarray) -> None:
        """Take in a round: the cost of the mean, then those of pairs."""
        pairs = costs[1 : 1 + 2 * ((len(costs) - 1) // 2)].reshape(-1, 2)
        sums = pairs.sum(axis=1)
        known = np.isfinite(sums) & (sums > 0.0)
        if len(pairs) and known[0] and 0.0 < costs[0] < np.inf:
            self._belief.learn_excess(sums[0] / 2.0 / costs[0] - 1.0)
        if known.any():
            differences = (pairs[known, 0] - pairs[known, 1]) / sums[known]
            self._belief.learn(moves[: len(pairs)][known], differences)


def _is_loss(losses: Sequence[float]) -> bool:
    """Whether there are several numbers, and they are above 0 by more than the standard error of their mean."""
    if not np.isfinite(losses).all():
        return True
    return len(losses) > 1 and float(np.mean(losses)) > float(np.std(losses, ddof=1)) / np.sqrt(len(losses))
