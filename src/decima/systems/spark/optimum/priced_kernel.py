"""Compiled part of the bound with prices: what a job costs at least, in time and executors, at given prices.

Times are in cells of a grid. Stages of a job are given as two lists. Those of its *chain* (a path of the DAG, in order)
run one after the other, between milestones: milestone i lies between the end of the chain's stage i and the start of
stage i + 1, the last one is the end of the job. Every *other* stage has to end before a milestone, less the time that
paths from it to there take. The milestones are chosen such that the sum is least, by dynamic programming.
"""

import numpy as np
from numba import njit

from decima.core.cache import cached

#: Marginal prices of a task that are tried in the dual of a stage.
MARGINS = 24
# Their range, in parts of the price of the longest task at the highest price.
_LEAST_MARGIN = 0.003


@cached(njit(cache=True, nogil=True))
def fill_margins(price, seconds, margins, sums):
    """Prepare the dual of a stage: what executors are worth above their price, summed from the start of the grid.

    Args:
        price: Price of an executor for one unit of time by cell, float64 [cells].
        seconds: Least time of a task that runs beside k - 1 others of its job, float64 [tasks at one time], ascending.
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
    """Most tasks of a stage that one executor can run in a time; 0 if there is no time for the stage."""
    window *= 1.0 + 1e-9
    if window < shape[1] or window < shape[4]:
        return 0.0
    if window - shape[1] >= shape[0] * shape[2]:
        return max(1.0, shape[0])
    return np.floor(1.0 + (window - shape[1]) / shape[2])


@njit
def _window_cost(shape, margins, sums, first, last, window, width, at_end):
    """Least price of the tasks of a stage in the cells from first to last; margin that shows it, and last cell used.

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


@cached(njit(cache=True, nogil=True))
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
        shapes: Of stages of all profiles, float64 [rows, 5], see :func:`_window_cost`.
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
    for place in range(length):
        if shapes[first_row + chain[place], 0] > shapes[first_row + chain[largest], 0]:
            largest = place
    for place in range(length):
        row = first_row + chain[place]
        shape = shapes[row]
        following = np.full(cells, np.inf)
        # The next stage of the chain, or the end of the job, cannot be earlier.
        least = arrival + (heads[chain[place + 1]] if place + 1 < length else path)
        for last in range(max(begun, int(least / width) - start), cells):
            best = np.inf
            at_end = place + 1 == length and (start + last) * width - arrival >= path
            for first in range(begun, last + 1):
                if values[first] >= best:
                    continue
                opening = max((start + first) * width, arrival + heads[chain[place]])
                window = (start + last + 1) * width - opening
                cost, _, _ = _window_cost(
                    shape, margins[row], sums[row], start + first, start + last, window, width, at_end
                )
                if place == largest and cost < np.inf:
                    cost += shape[0] / _per_executor(shape, window) * delay * cheapest[last]
                if values[first] + cost < best:
                    best = values[first] + cost
                    came_from[place, last] = first
            if best < np.inf:
                for stage in range(len(milestone)):
                    if milestone[stage] == place:
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
    for place in range(length - 1, -1, -1):
        for stage in range(len(milestone)):
            if milestone[stage] == place:
                row = first_row + stage
                _, chosen, first, end = _other_cost(
                    shapes, row, margins, sums, start, last, arrival + heads[stage], gaps[stage], width
                )
                if chosen >= 0:
                    _use(price, seconds[offset[row] : offset[row + 1]], margins[row, chosen], first, end, use)
        row = first_row + chain[place]
        first = came_from[place, last]
        at_end = place + 1 == length and (start + last) * width - arrival >= path
        opening = max((start + first) * width, arrival + heads[chain[place]])
        window = (start + last + 1) * width - opening
        _, chosen, end = _window_cost(
            shapes[row], margins[row], sums[row], start + first, start + last, window, width, at_end
        )
        if chosen >= 0:
            _use(price, seconds[offset[row] : offset[row + 1]], margins[row, chosen], start + first, end, use)
        if place == largest:
            moves = shapes[row, 0] / _per_executor(shapes[row], window)
            for cell in range(last + 1):
                if price[start + cell] <= cheapest[last]:
                    use[start + cell] += moves * delay / width
                    break
        last = first
    return cost


@njit
def _other_cost(shapes, row, margins, sums, start, last, opening, gap, width):
    """Price of a stage that has to end a time before a milestone; margin, first and last cell."""
    closing = (start + last + 1) * width - gap
    first, end = int(opening / width), int(closing / width)
    end = min(end, start + last)
    if closing <= opening or end < first:
        return np.inf, -1, first, end
    cost, chosen, _ = _window_cost(shapes[row], margins[row], sums[row], first, end, closing - opening, width, False)
    return cost, chosen, first, end
