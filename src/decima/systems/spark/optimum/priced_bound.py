"""Lower bound on the average JCT from prices of executor time: what every job costs at least, each on its own.

For any prices of executor time that depend on the time of day, the sum over jobs of (time in the system + price of the
executors used) less the price of all executors is at most the sum of times in the system of any schedule: what jobs
use is never more than there is. With prices the jobs part, and each can be bounded on its own. Prices that give a large
bound are sought by ascent along (executors used - executors there are); every price gives a valid bound.

What a job costs alone, rests on the facts of :mod:`decima.systems.spark.optimum.bounds`, and on these:

- A task that runs beside k - 1 others of its job takes at least the shortest duration with k or more executors. So does
  a part of a task: the k-th of the tasks that run at one time advances at most at that rate.
- The first task of every executor in a stage is a first or fresh one. An executor runs N tasks at most in a time that
  is given to a stage, so that per task at least 1 + (first / later - 1) / N times the shortest duration is needed,
  first / later being the least ratio over numbers of executors.
- Stages on a path run one after the other; where one ends and the next begins is chosen such that the cost is least.
- A job uses at least as many executors as one of its stages needs in its time, and each of them has to move to it.

Prices are those of fractions of tasks, so the bound is one of linear programming (Lagrangian relaxation of a
time-indexed program; Held and Karp 1971 for the method, Dyer and Wolsey 1990 for the program). The combination is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decima.systems.spark.optimum.priced_kernel import MARGINS, fill_margins, job_cost

if TYPE_CHECKING:
    from decima.systems.spark.optimum.pieces import Pieces, StageFacts

# Cells behind an arrival that are looked at, and the time they span, in parts of the longest time that a job would take
# if work were divisible at will.
CELLS = 200
SPAN = 1.8
# Most cells before the last arrival.
LONGEST = 2000
# First step of the ascent, in parts of the mean price.
FIRST_STEP = 0.2
_SHORTEST_S = 1e-6
# Part of the bound that is given up to rounding.
_ROUNDING = 1e-9


class _Profile(NamedTuple):
    """A job as the kernel wants it; times in seconds."""

    first_row: int
    heads: np.ndarray
    gaps: np.ndarray
    milestone: np.ndarray
    chain: np.ndarray


class PricedBound:
    """Bound with prices for the jobs of one workload.

    Args:
        pieces: What is known of the jobs.
        cells: Cells behind an arrival; more are tighter.

    Attributes:
        price: The best prices found, per executor and second by cell, float64 [cells].
        value_s: The bound on the sum of times in the system that they give, s.
    """

    def __init__(self, pieces: Pieces, cells: int = CELLS) -> None:
        self._arrival_s, self._path_s = pieces.arrival_ms / 1000.0, pieces.job_path_ms / 1000.0
        self._delay_s, self._executors, self._cells = pieces.delay_ms / 1000.0, pieces.executors, cells
        profiles: dict[int, _Profile] = {}
        shapes, times = [], []
        for row, stages in pieces.facts.items():
            profiles[row] = _profile(len(shapes), stages)
            shapes += [_shape(each) for each in stages]
            times += [np.maximum(each.at_least_ms[: each.tasks] / 1000.0, _SHORTEST_S) for each in stages]
        self._jobs = [profiles[row] for row in pieces.first_row]
        self._shapes, self._seconds = np.array(shapes), np.concatenate(times)
        self._offset = np.cumsum([0, *map(len, times)])
        ends_s = _served_in_order(self._arrival_s, pieces.job_work_ms / 1000.0 / self._executors)
        longest_s = float((ends_s - self._arrival_s).max())
        # Short jobs at late times have wider cells, since the grid begins at time 0.
        self._width = max(
            (SPAN * longest_s + float(self._path_s.max())) / cells, float(self._arrival_s.max()) / LONGEST, _SHORTEST_S
        )
        self._grid = int(self._arrival_s.max() / self._width) + cells + 1
        self._margins = np.zeros((len(shapes), MARGINS))
        self._sums = np.zeros((len(shapes), self._grid + 1, MARGINS))
        self.price = self._first_price(ends_s)
        self.value_s = -np.inf

    def _first_price(self, ends_s: np.ndarray) -> np.ndarray:
        """Prices with which to begin: a job delayed by a second costs one, and so do all that wait behind it."""
        at = (np.arange(self._grid) + 0.5) * self._width
        slower = self._arrival_s + 1.4 * (ends_s - self._arrival_s)
        there = (at[:, None] >= self._arrival_s) & (at[:, None] < slower)
        return there.sum(axis=1) / self._executors

    def evaluate(self, price: np.ndarray) -> tuple[float, np.ndarray]:
        """Bound in s on the sum of times in the system, and executors used by cell, at some prices."""
        for row in range(len(self._shapes)):
            seconds = self._seconds[self._offset[row] : self._offset[row + 1]]
            fill_margins(price, seconds, self._margins[row], self._sums[row])
        use = np.zeros(self._grid)
        total = 0.0
        for job, arrival_s, path_s in zip(self._jobs, self._arrival_s, self._path_s, strict=True):
            total += job_cost(
                price,
                self._width,
                arrival_s,
                path_s,
                self._delay_s,
                self._cells,
                self._shapes,
                job.first_row,
                job.heads,
                job.gaps,
                job.milestone,
                job.chain,
                self._seconds,
                self._offset,
                self._margins,
                self._sums,
                use,
            )
        return float(total * (1.0 - _ROUNDING) - self._executors * self._width * price.sum()), use

    def improve(self, rounds: int) -> float:
        """Seek prices that give a large bound; returns the bound on the sum of times in the system, s."""
        price, direction = self.price, np.zeros(self._grid)
        for number in range(1, rounds + 1):
            value, use = self.evaluate(price)
            if value > self.value_s:
                self.value_s, self.price = value, price
            if not price.any():
                break
            direction = 0.7 * direction + 0.3 * (use / self._executors - 1.0) * (price > 0.0)
            step = FIRST_STEP / np.sqrt(number) * float(price[price > 0.0].mean())
            price = np.maximum(0.0, price + step * direction)
        return self.value_s


def _shape(stage: StageFacts) -> tuple[float, ...]:
    """A stage as the kernel wants it; tasks that hardly last take no executor at any price."""
    least_s = stage.at_least_ms[0] / 1000.0
    tasks = stage.tasks if least_s >= _SHORTEST_S else 0
    return tasks, stage.cold_ms / 1000.0, least_s, stage.ratio if tasks else 1.0, stage.span_ms / 1000.0


def _profile(first_row: int, stages: Sequence[StageFacts]) -> _Profile:
    """Choose the chain of a job, its path with most work, and where the other stages have to end."""
    count = len(stages)
    work = np.array([stage.tasks * stage.at_least_ms[0] for stage in stages])
    heaviest, before = work.copy(), np.full(count, -1)
    order = _in_order(stages)
    children: list[list[int]] = [[] for _ in stages]
    for index in order:
        for parent in stages[index].parents:
            children[parent].append(index)
            if heaviest[parent] + work[index] > heaviest[index]:
                heaviest[index], before[index] = heaviest[parent] + work[index], parent
    chain = [int(np.argmax(heaviest))]
    while before[chain[-1]] >= 0:
        chain.append(int(before[chain[-1]]))
    chain.reverse()
    place = {stage: number for number, stage in enumerate(chain)}
    milestone, gaps = np.full(count, len(chain) - 1), np.array([stage.below_ms for stage in stages])
    for index in reversed(order):
        # The first stage of the chain below, and the longest way to its start.
        for child in children[index]:
            if child in place:
                found = (place[child] - 1, 0.0)
            elif milestone[child] < len(chain) - 1:
                found = (milestone[child], gaps[child] + stages[child].span_ms)
            else:
                continue
            if found[0] < milestone[index]:
                milestone[index], gaps[index] = found
            elif found[0] == milestone[index] < len(chain) - 1:
                gaps[index] = max(gaps[index], found[1])
    milestone[chain] = -1
    heads = np.array([stage.head_ms for stage in stages])
    return _Profile(first_row, heads / 1000.0, gaps / 1000.0, milestone, np.array(chain))


def _in_order(stages: Sequence[StageFacts]) -> list[int]:
    """Stages such that parents come before children."""
    ordered: dict[int, None] = {}

    def visit(index: int) -> None:
        for parent in stages[index].parents:
            if parent not in ordered:
                visit(parent)
        ordered[index] = None

    for index in range(len(stages)):
        if index not in ordered:
            visit(index)
    return list(ordered)


def _served_in_order(arrival_s: np.ndarray, size_s: np.ndarray) -> np.ndarray:
    """When jobs end on one machine with preemption that serves the shortest remaining work, float64 [jobs]."""
    left, ends, now = size_s.copy(), np.zeros(len(size_s)), 0.0
    while np.isfinite(left).any():
        ready = np.flatnonzero((arrival_s <= now) & np.isfinite(left))
        later = arrival_s[arrival_s > now]
        event = float(later.min()) if len(later) else np.inf
        if not len(ready):
            now = event
            continue
        job = ready[np.argmin(left[ready])]
        if now + left[job] > event:
            left[job] -= event - now
            now = event
        else:
            now += left[job]
            ends[job], left[job] = now, np.inf
    return ends
