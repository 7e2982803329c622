"""One sweep of value iteration, for the model of `idle_value`.

A state is a row of remaining steps per executor, in descending order, and two queues: short jobs and long jobs that
wait. Rows are numbered; values are float64 [rows, short + 1, long + 1]. Where an executor is free no short job waits,
so of such rows only the entries without one mean anything.
"""

from collections import namedtuple

from decima.core.cache import cached
from decima.core.jit import njit

# Ways to start jobs, the first index of tables: as a step ends, and during it, rounded down and up to whole steps.
AT_END, EARLY, LATE = 0, 1, 2
#: Row one step later, int64 [rows]; free executors, int64 [rows]; row after a short job was started in each way,
#: int64 [ways, rows], -1 where none can be; row after 0, 1, ... long jobs were, int64 [ways, rows, executors + 1];
#: probability that one more job arrives in the step after 0, 1, ... did, float64 [most]; probability that a job is
#: long.
Model = namedtuple("Model", ["elapse", "free", "short_starts", "long_starts", "following", "part_long"])
#: Whether what costs least is chosen, and kept, or the choices are given; long jobs to start when the step is over,
#: int64 [rows, long + 1]; the same after the first, second, ... arrival of a step, that of a long job (0), which is
#: counted, or of a short one (1), which was started, int64 [most, 2, rows, long + 1].
Rule = namedtuple("Rule", ["search", "at_end", "at_once"])


@njit
def _choose(value, long_starts, one, two, row, other, long, search, choice):
    """Value after the free executors of a row began long jobs.

    Args:
        value: Values after that.
        long_starts: Rows after starts.
        one: Way to start, by which the job may be ...
        two: ... or with the same probability by this.
        row: Row in the first case.
        other: Row in the second case.
        long: Long jobs that wait.
        search: Choose what costs least; of equal ones what starts most, so that nothing waits that gains nothing.
        choice: The choice of every number that waits, int64 [long + 1].
    """
    if not search:
        started = choice[long]
        left = long - started
        return 0.5 * (value[long_starts[one, row, started], 0, left] + value[long_starts[two, other, started], 0, left])
    best = 1e300
    for started in range(min(long, long_starts.shape[2] - 1), -1, -1):
        if long_starts[one, row, started] < 0:
            continue
        left = long - started
        cost = 0.5 * (value[long_starts[one, row, started], 0, left] + value[long_starts[two, other, started], 0, left])
        if cost < best - 1e-12 * abs(best):  # what differs by rounding alone is equal
            best = cost
            choice[long] = started
    return best


@cached(njit(cache=True, nogil=True))
def sweep(values, model, prices, rule):
    """Advance every value by one step of time.

    Args:
        values: Float64 [rows, short + 1, long + 1] each: values at the beginning, memory for values when the step is
            over and nothing arrived, memory, and where the new values go.
        model: :class:`Model`.
        prices: Cost of a job in the system per step, and of one that is turned away; float64 [2].
        rule: :class:`Rule`.

    Returns:
        Least and largest difference of ``new`` and ``value`` over all states that can be.
    """
    value, passed, work, new = values
    elapse, free, short_starts, long_starts, following, part_long = model
    search, at_end, at_once = rule
    rows, shorts, longs = value.shape
    executors = long_starts.shape[2] - 1
    holding, turned = prices
    # The end of the step: executors that became free take short jobs, then the rule gives long ones.
    for row in range(rows):
        for long in range(longs):
            work[row, 0, long] = value[row, 0, long]
            if free[row] > 0:
                work[row, 0, long] = _choose(
                    value, long_starts, AT_END, AT_END, row, row, long, search, at_end[row]
                )  # fmt: skip
    for row in range(rows):
        for short in range(shorts):
            if short > 0 and free[row] > 0:
                break
            left, reached = short, elapse[row]
            while left > 0 and free[reached] > 0:
                reached = short_starts[AT_END, reached]
                left -= 1
            if free[reached] == 0:
                for long in range(longs):
                    passed[row, short, long] = value[reached, left, long]
            else:
                for long in range(longs):
                    passed[row, short, long] = work[reached, 0, long]
    # Arrivals during the step, the last one first: each is seen alone, and decided upon before the next is.
    source, target = work, new
    source[:] = passed
    for number in range(len(following) - 1, -1, -1):
        more = following[number]
        none = 1.0 - more
        to_long, to_short = more * part_long, more * (1.0 - part_long)
        for row in range(rows):
            if free[row] == 0:
                for short in range(shorts):
                    next_short, fee = short + 1, 0.0
                    if next_short == shorts:
                        next_short, fee = short, to_short * turned
                    for long in range(longs - 1):
                        target[row, short, long] = (
                            none * passed[row, short, long] + fee
                            + to_short * source[row, next_short, long] + to_long * source[row, short, long + 1]
                        )  # fmt: skip
                    last = longs - 1
                    target[row, short, last] = (
                        none * passed[row, short, last] + fee + to_short * source[row, next_short, last]
                        + to_long * (source[row, short, last] + turned)
                    )  # fmt: skip
                continue
            early, late = short_starts[EARLY, row], short_starts[LATE, row]
            for long in range(longs):
                if free[late] > 0:
                    of_short = _choose(
                        source, long_starts, EARLY, LATE, early, late, long, search, at_once[number, 1, row]
                    )  # fmt: skip
                else:
                    of_short = 0.5 * (source[early, 0, long] + source[late, 0, long])
                after, fee = long + 1, 0.0
                if after == longs:
                    after, fee = long, turned
                of_long = fee + _choose(
                    source, long_starts, EARLY, LATE, row, row, after, search, at_once[number, 0, row]
                )  # fmt: skip
                target[row, 0, long] = none * passed[row, 0, long] + to_short * of_short + to_long * of_long
        source, target = target, source
    least, largest = 1e300, -1e300
    for row in range(rows):
        busy = executors - free[row]
        for short in range(shorts):
            if short > 0 and free[row] > 0:
                break
            for long in range(longs):
                result = source[row, short, long] + holding * (busy + short + long)
                new[row, short, long] = result
                change = result - value[row, short, long]
                least = min(least, change)
                largest = max(largest, change)
    return least, largest
