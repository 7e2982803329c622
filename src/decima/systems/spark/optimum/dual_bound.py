"""Lower bound on the average JCT from dual prices of executor time.

For any prices of executor time that depend on the time of day, the sum over jobs of (time in the system + price of the
executors used) less the price of all executors is at most the sum of times in the system of any schedule: what jobs
use is never more than there is. With prices the jobs part, and each can be bounded on its own. Prices that give a large
bound are sought by ascent along (executors used - executors there are); every price gives a valid bound.

What a job costs alone, rests on the facts of :mod:`decima.systems.spark.optimum.bounds`, and on these:

- A task that runs with k - 1 others of its job takes at least the shortest duration with k or more executors. So does
  a part of a task: the k-th of the tasks that run at one time advances at most at that rate.
- The first task of every executor in a stage is a first or fresh one. An executor runs N tasks at most in a time that
  is given to a stage, so that per task at least 1 + (first / later - 1) / N times the shortest duration is needed,
  first / later being the least ratio over numbers of executors.
- Stages on a path run one after the other; where one ends and the next begins is chosen such that the cost is least.
- A job uses at least as many executors as one of its stages needs in its time, and each of them has to move to it.

Prices are those of fractions of tasks, so the bound is one of linear programming (Lagrangian relaxation of a
time-indexed program; Held and Karp 1971 for the method, Dyer and Wolsey 1990 for the program). The combination is ours.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np

from decima.core.jit import njit
from decima.systems.spark.optimum.pieces import Pieces, StageFacts, shortest_remaining_work

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
    """Arguments of :func:`job_cost` that belong to a job; times in seconds."""

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
        _, ends = shortest_remaining_work(self._arrival_s, pieces.job_work_ms / 1000.0 / self._executors)
        ends_s = np.array([ends[job] for job in range(len(ends))])
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
        """Initial prices: the number of jobs that a second of delay holds up."""
        at = (np.arange(self._grid) + 0.5) * self._width
        slower = self._arrival_s + 1.4 * (ends_s - self._arrival_s)
        there = (at[:, None] >= self._arrival_s) & (at[:, None] < slower)
        return there.sum(axis=1) / self._executors

    def evaluate(self, price: np.ndarray) -> tuple[float, np.ndarray]:
        """Bound on the sum of times in the system in s, and use by cell."""
        for row in range(len(self._shapes)):
            seconds = self._seconds[self._offset[row] : self._offset[row + 1]]
            fill_margins(price, seconds, self._margins[row], self._sums[row])
        use = np.zeros(self._grid)
        total = 0.0
        tables = (self._seconds, self._offset, self._margins, self._sums, use)
        for job, arrival_s, path_s in zip(self._jobs, self._arrival_s, self._path_s, strict=True):
            times = (arrival_s, path_s, self._delay_s)
            total += job_cost(price, self._width, *times, self._cells, self._shapes, *job, *tables)
        return float(total * (1.0 - _ROUNDING) - self._executors * self._width * price.sum()), use

    def improve(self, rounds: int) -> float:
        """Improve the prices; returns the bound on the sum of times, s."""
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
    """Numbers of a stage for the kernel; very short tasks take no executor."""
    least_s = stage.at_least_ms[0] / 1000.0
    tasks = stage.tasks if least_s >= _SHORTEST_S else 0
    return tasks, stage.cold_ms / 1000.0, least_s, stage.ratio if tasks else 1.0, stage.span_ms / 1000.0


def _profile(first_row: int, stages: Sequence[StageFacts]) -> _Profile:
    """Choose the chain of a job, and the milestones of its other stages."""
    count = len(stages)
    work = np.array([stage.tasks * stage.at_least_ms[0] for stage in stages])
    heaviest, before = work.copy(), np.full(count, -1)
    order = list(TopologicalSorter({index: stage.parents for index, stage in enumerate(stages)}).static_order())
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
    position = {stage: number for number, stage in enumerate(chain)}
    milestone, gaps = np.full(count, len(chain) - 1), np.array([stage.below_ms for stage in stages])
    for index in reversed(order):
        # The first stage of the chain below, and the longest way to its start.
        for child in children[index]:
            if child in position:
                ends = (position[child] - 1, 0.0)
            elif milestone[child] < len(chain) - 1:
                ends = (milestone[child], gaps[child] + stages[child].span_ms)
            else:
                continue
            if ends[0] < milestone[index]:
                milestone[index], gaps[index] = ends
            elif ends[0] == milestone[index] < len(chain) - 1:
                gaps[index] = max(gaps[index], ends[1])
    milestone[chain] = -1
    heads = np.array([stage.head_ms for stage in stages])
    return _Profile(first_row, heads / 1000.0, gaps / 1000.0, milestone, np.array(chain))


# ---- compiled part: what a job costs at least, in time and executors, at given prices -------------------------------

# Times are in cells of a grid. Stages of a job are in two lists. Those of its *chain* (a path of the DAG, in order) run
# one after the other, between milestones: milestone i lies between the end of the chain's stage i and the start of
# stage i + 1, the last one is the end of the job. Every *other* stage has to end before a milestone, less the time that
# paths from it to there take. The milestones are chosen such that the sum is least, by dynamic programming.


#: Marginal prices of a task that are tried in the dual of a stage.
MARGINS = 24
# Their range, in parts of the price of the longest task at the highest price.
_LEAST_MARGIN = 0.003


@njit(cache=True, nogil=True)
def fill_margins(price, seconds, margins, sums):
    """Prepare the dual of a stage: executors' worth above their price, cumulated.

    Args:
        price: Price of an executor for one unit of time by cell, float64 [cells].
        seconds: Least time of a task that runs with k - 1 others of its job, float64 [tasks at one time], ascending.
        margins: Receives marginal prices of a task, float64 [``MARGINS``].
        sums: Receives the sums up to each cell, in cells x executors x price, float64 [cells + 1, ``MARGINS``].
    """
    highest = np.max(price) * seconds[-1]
    for index in range(MARGINS):
        margins[index] = highest * _LEAST_MARGIN ** (1.0 - (index + 1.0) / MARGINS)
    sums[0] = 0.0
    for cell in range(len(price)):
        for index in range(MARGINS):
            total = sums[cell, index]
            for second in seconds:
                worth = margins[index] / second - price[cell]
                if worth <= 0.0:
                    break
                total += worth
            sums[cell + 1, index] = total


@njit
def _per_executor(shape, window):
    """Most tasks of a stage that one executor can run in a time."""
    window *= 1.0 + 1e-9
    if window < shape[1] or window < shape[4]:
        return 0.0
    if window - shape[1] >= shape[0] * shape[2]:
        return max(1.0, shape[0])
    return np.floor(1.0 + (window - shape[1]) / shape[2])


@njit
def _window_cost(shape, margins, sums, first, last, window, width, at_end):
    """Least price of a stage in some cells, its margin and last cell.

    Args:
        shape: The stage: tasks; least time of an executor's first task and of any; the least ratio of both; least time
            of the stage.
        margins: See :func:`fill_margins`.
        sums: See there.
        first: Cell in which the stage may begin.
        last: Cell in which it may end.
        window: Time between, in the same units as times of tasks.
        width: Of a cell.
        at_end: Whether the job ends with the stage, in the last cell: the part of it that the stage uses passes for the
            job as well, and is added to the price. For every margin the least is at the start or the end of the cell.
    """
    most = _per_executor(shape, window)
    if most < 1.0:
        return np.inf, -1, last
    needed = shape[0] * (1.0 + (shape[3] - 1.0) / most)
    best, chosen, end = 0.0, -1, last
    for index in range(MARGINS):
        value = margins[index] * needed - (sums[last + 1, index] - sums[first, index]) * width
        used = last
        if at_end:
            gain = (sums[last + 1, index] - sums[last, index]) * width
            value += min(gain, width)
            used = last if gain > width else last - 1
        if value > best:
            best, chosen, end = value, index, used
    return best, chosen, end


@njit
def _use(price, seconds, margin, first, last, use):
    """Count the executors that the dual of a stage takes at a margin."""
    for cell in range(first, last + 1):
        for second in seconds:
            if margin / second <= price[cell]:
                break
            use[cell] += 1.0


@njit(cache=True, nogil=True)
def job_cost(
    price, width, arrival, path, delay, cells, shapes, first_row, heads, gaps, milestone, chain, seconds, offset,
    margins, sums, use,
):  # fmt: skip
    """Least time in the system plus price of executors of one job.

    Args:
        price: Price of an executor for one unit of time by cell, float64 [cells of the grid].
        width: Of a cell, in units of time.
        arrival: Of the job.
        path: Least time of the job in the system.
        delay: Time that an executor needs to join a job.
        cells: Cells behind the arrival that are looked at.
        shapes: Of stages of all profiles, float64 [rows, 5], see ``_window_cost``.
        first_row: Of the job's stages.
        heads: Least time from the arrival to the start of a stage, float64 [stages].
        gaps: For other stages, least time from their end to their milestone, float64 [stages].
        milestone: For other stages their milestone; -1 for stages of the chain, int64 [stages].
        chain: Stages of the chain in order, int64 [chain].
        seconds: Times of tasks of all rows, see :func:`fill_margins`.
        offset: Where those of a row begin, int64 [rows + 1].
        margins: Of all rows, float64 [rows, ``MARGINS``].
        sums: Of all rows, float64 [rows, cells + 1, ``MARGINS``].
        use: Executors taken by cell; what this job takes is added, float64 [cells of the grid].
    """
    start = int(arrival / width)
    cells = min(cells, len(price) - start)
    begun = int((arrival + delay) / width) - start
    length = len(chain)
    values = np.full(cells, np.inf)
    values[begun] = 0.0
    came_from = np.zeros((length, cells), np.int64)
    cheapest = np.empty(cells)
    low = np.inf
    for cell in range(cells):
        low = min(low, price[start + cell])
        cheapest[cell] = low
    largest = 0
    for position in range(length):
        if shapes[first_row + chain[position], 0] > shapes[first_row + chain[largest], 0]:
            largest = position
    for position in range(length):
        row = first_row + chain[position]
        shape = shapes[row]
        following = np.full(cells, np.inf)
        # The next stage of the chain, or the end of the job, cannot be earlier.
        least = arrival + (heads[chain[position + 1]] if position + 1 < length else path)
        for last in range(max(begun, int(least / width) - start), cells):
            best = np.inf
            at_end = position + 1 == length and (start + last) * width - arrival >= path
            for first in range(begun, last + 1):
                if values[first] >= best:
                    continue
                opening = max((start + first) * width, arrival + heads[chain[position]])
                window = (start + last + 1) * width - opening
                cost, _, _ = _window_cost(
                    shape, margins[row], sums[row], start + first, start + last, window, width, at_end
                )
                if position == largest and cost < np.inf:
                    cost += shape[0] / _per_executor(shape, window) * delay * cheapest[last]
                if values[first] + cost < best:
                    best = values[first] + cost
                    came_from[position, last] = first
            if best < np.inf:
                for stage in range(len(milestone)):
                    if milestone[stage] == position:
                        opening = arrival + heads[stage]
                        best += _other_cost(
                            shapes, first_row + stage, margins, sums, start, last, opening, gaps[stage], width
                        )[0]
            following[last] = best
        values = following
    cost, last = (start + cells) * width - arrival, -1
    for cell in range(cells):
        value = values[cell] + max((start + cell) * width - arrival, path)
        if value < cost:
            cost, last = value, cell
    if last < 0:
        return cost
    for position in range(length - 1, -1, -1):
        for stage in range(len(milestone)):
            if milestone[stage] == position:
                row = first_row + stage
                _, chosen, first, end = _other_cost(
                    shapes, row, margins, sums, start, last, arrival + heads[stage], gaps[stage], width
                )
                if chosen >= 0:
                    _use(price, seconds[offset[row] : offset[row + 1]], margins[row, chosen], first, end, use)
        row = first_row + chain[position]
        first = came_from[position, last]
        at_end = position + 1 == length and (start + last) * width - arrival >= path
        opening = max((start + first) * width, arrival + heads[chain[position]])
        window = (start + last + 1) * width - opening
        _, chosen, end = _window_cost(
            shapes[row], margins[row], sums[row], start + first, start + last, window, width, at_end
        )
        if chosen >= 0:
            _use(price, seconds[offset[row] : offset[row + 1]], margins[row, chosen], start + first, end, use)
        if position == largest:
            executors_moved = shapes[row, 0] / _per_executor(shapes[row], window)
            for cell in range(last + 1):
                if price[start + cell] <= cheapest[last]:
                    use[start + cell] += executors_moved * delay / width
                    break
        last = first
    return cost


@njit
def _other_cost(shapes, row, margins, sums, start, last, opening, gap, width):
    """Price of a stage before a milestone; margin, first and last cell."""
    closing = (start + last + 1) * width - gap
    first, end = int(opening / width), int(closing / width)
    end = min(end, start + last)
    if closing <= opening or end < first:
        return np.inf, -1, first, end
    cost, chosen, _ = _window_cost(shapes[row], margins[row], sums[row], first, end, closing - opening, width, False)
    return cost, chosen, first, end
