"""Gain of deliberate idling: the best rule for two classes of jobs.

The model: jobs arrive as a Poisson process; a given part of them is long, the others are short, each is one task of a
fixed length, and a task that runs is not interrupted. Short jobs never wait while an executor is free. A rule sees the
jobs that wait and the remaining times of the tasks that run, and decides at every moment whether a free executor takes
a long job or stays idle. *Without idling* it takes one whenever one waits: shortest job first. The *best rule* is found
by value iteration for the average number of jobs in the system, from which Little's law gives the average JCT.

Time goes in steps. A job that arrives during a step is decided upon before the next one is seen. If it starts at once,
its length is rounded to a whole step down or up with equal probability, so that starting at once and waiting for the
end of the step differ by half a step as they do in truth, and nothing is gained by the steps themselves. All JCTs then
count half a step too little, which is added. What remains is of second order: a quarter of it at half the step.

Three errors are reported. Value iteration gives a lower and an upper bound of the optimum of the model in steps. Queues
are cut where jobs would be turned away, and grow until that happens to almost none. The same with the longest possible
step shows the effect of the step.

Source: Duan and Wu, "Improving Learning-Based DAG Scheduling by Inserting Deliberate Idle Slots", whose question this
is; they give no optimum. The model and the steps are ours.

A state is a row of remaining steps per executor, in descending order, and two queues: short jobs and long jobs that
wait. Rows are numbered; values are float64 [rows, short + 1, long + 1]. Where an executor is free no short job waits,
so of such rows only the entries without one mean anything.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from decima.core.checks import is_number, is_whole
from decima.core.errors import ConfigError
from decima.core.interrupts import check_stop
from decima.core.jit import njit
from decima.core.progress import progress_bar

if TYPE_CHECKING:
    import pandas

MOST_EXECUTORS = 4
MOST_STATES = 30_000_000  # eight bytes each, five times
MOST_LOAD = 0.95
TOLERANCE = 2e-4
TURNED_AWAY = 1e-6
# Jobs of each class that may wait at first, and how much longer the queues become where that is too few.
FIRST_QUEUES = (16, 8)
GROWTH = 1.5
_SETTLE = 100  # sweeps after which values, which grow by the same amount all the time, are brought back


@dataclass(frozen=True)
class TwoClassCluster:
    """Two classes of jobs and the executors that serve them.

    Raises:
        ConfigError: A number is out of range.
    """

    executors: int = 2  # identical ones, 1 to ``MOST_EXECUTORS``
    long_s: float = 200.0  # length of a long job in seconds
    short_s: float = 10.0  # length of a short job in seconds, not above that of a long one
    share: float = 0.1  # part of the jobs that are long, 0 to 1
    load: float = 0.6  # arrival rate x mean length / executors, above 0

    def __post_init__(self) -> None:
        if not is_whole(self.executors) or not 1 <= self.executors <= MOST_EXECUTORS:
            raise ConfigError(f"executors is {self.executors!r}; expected a whole number from 1 to {MOST_EXECUTORS}")
        if not is_number(self.short_s) or not 0.0 < self.short_s < math.inf:
            raise ConfigError(f"short_s is {self.short_s!r}; expected a number of seconds above 0")
        if not is_number(self.long_s) or not self.short_s <= self.long_s < math.inf:
            raise ConfigError(f"long_s is {self.long_s!r}; expected seconds, no less than short_s ({self.short_s:g})")
        if not is_number(self.share) or not 0.0 <= self.share <= 1.0:
            raise ConfigError(f"share is {self.share!r}; expected the part of jobs that are long, from 0 to 1")
        if not is_number(self.load) or not 0.0 < self.load <= MOST_LOAD:
            raise ConfigError(
                f"load is {self.load!r}; expected a number above 0 and up to {MOST_LOAD:g}, of which 1 is all that the "
                "executors can do"
            )

    @property
    def rate(self) -> float:
        """Jobs that arrive per second."""
        return self.load * self.executors / (self.share * self.long_s + (1.0 - self.share) * self.short_s)


@dataclass(frozen=True, eq=False)
class IdleValue:
    """Average JCT without idling and with the best rule."""

    cluster: TwoClassCluster  # jobs and executors
    step_s: float  # step of time
    without_s: float  # average JCT when no executor idles beside a job
    with_s: float  # average JCT of the best rule
    residual_s: float  # largest distance of both from their optima in the model, by the bounds of value iteration
    coarse_step_s: float  # the step that was used to find the length of the queues
    coarse_without_s: float  # average JCT without idling by that step
    coarse_with_s: float  # average JCT of the best rule by that step
    turned_away: float  # upper bound of the part of the jobs that found a full queue, by that step
    queues: tuple[int, int]  # most short and most long jobs that can wait
    states: int  # states of the model
    sweeps: int  # sweeps of value iteration over them
    remaining: np.ndarray = field(repr=False)  # int64 [rows, executors], remaining steps of every row, descending
    starts: np.ndarray = field(repr=False)  # int64 [rows, long + 1], long jobs that the best rule starts

    @property
    def gain_percent(self) -> float:
        """What idling takes off the average JCT, in percent of it."""
        return 100.0 * (1.0 - self.with_s / self.without_s)

    @property
    def coarse_gain_percent(self) -> float:
        """The same by the coarse step."""
        return 100.0 * (1.0 - self.coarse_with_s / self.coarse_without_s)

    def rule(self, most_waiting: int | None = None) -> pandas.DataFrame:
        """Table of the best rule, a row per situation with a choice.

        Args:
            most_waiting: Most waiting long jobs to list; all that the model has when omitted.

        Returns:
            waiting_long, free (executors), remaining_1_s, ... (of the tasks that run, descending; 0 for none) and
            started: how many long jobs begin; the other free executors stay idle.
        """
        import pandas

        most = self.starts.shape[1] - 1 if most_waiting is None else min(most_waiting, self.starts.shape[1] - 1)
        free = np.count_nonzero(self.remaining == 0, axis=1)
        # Longer ones are states inside a step only.
        rows = np.flatnonzero((free > 0) & (self.remaining[:, 0] * self.step_s <= self.cluster.long_s * (1 + 1e-9)))
        table = {"waiting_long": np.repeat(np.arange(1, most + 1), len(rows)), "free": np.tile(free[rows], most)}
        for number in range(self.cluster.executors - 1):
            table[f"remaining_{number + 1}_s"] = np.tile(self.remaining[rows, number] * self.step_s, most)
        table["started"] = self.starts[rows, 1 : most + 1].T.ravel()
        return pandas.DataFrame(table)

    def as_dict(self) -> dict[str, float]:
        """Numbers by name, for tables and files."""
        names = ("without_s", "with_s", "gain_percent", "residual_s", "step_s", "coarse_step_s", "coarse_without_s")
        names += ("coarse_with_s", "coarse_gain_percent", "turned_away", "states", "sweeps")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return (
            f"average JCT {self.without_s:.2f} s without idling, {self.with_s:.2f} s with the best rule: idling gains "
            f"{self.gain_percent:.2f} % (steps of {self.step_s:g} s; {self.coarse_gain_percent:.2f} % with steps of "
            f"{self.coarse_step_s:g} s)"
        )


def idle_value(
    cluster: TwoClassCluster,
    *,
    step_s: float | None = None,
    tolerance: float = TOLERANCE,
    turned_away: float = TURNED_AWAY,
    progress: str | None = None,
) -> IdleValue:
    """Find the best rule that may idle, and its gain.

    Args:
        cluster: Jobs and executors.
        step_s: Step of time in seconds, of which both lengths are whole multiples; half a short job when omitted.
        tolerance: Width of the bounds of value iteration, relative to the number of jobs in the system.
        turned_away: Largest part of the jobs that may find a full queue.
        progress: Label of a progress bar; None for no bar.

    Raises:
        ConfigError: A number is out of range, or the model would have too many states.
    """
    step_s = 0.5 * cluster.short_s if step_s is None else step_s
    for name, value, most in (("tolerance", tolerance, 0.1), ("turned_away", turned_away, 0.01)):
        if not is_number(value) or not 0.0 < value <= most:
            raise ConfigError(f"{name} is {value!r}; expected a number above 0 and up to {most:g}")
    if not is_number(step_s) or not 0.0 < step_s <= cluster.short_s:
        raise ConfigError(f"step_s is {step_s!r}; expected seconds above 0 and no longer than a short job")
    with progress_bar(progress, 1.0, share=True) as bar:
        coarse = _Model(cluster, _coarsest(cluster, step_s), FIRST_QUEUES)
        shown = 0.0
        while True:
            without, best = coarse.solve(tolerance)
            cut = max(coarse.turned_away(each, turned_away) for each in (without, best))
            bar.update(0.5 * (0.3 - shown))
            shown += 0.5 * (0.3 - shown)
            if cut <= turned_away:
                break
            coarse = coarse.with_queues(tuple(math.ceil(GROWTH * most) for most in coarse.queues))
        model, values = coarse, (without, best)
        if step_s < coarse.step_s:
            model = _Model(cluster, step_s, coarse.queues, started_by=coarse)
            values = model.solve(tolerance)
        bar.update(1.0 - shown)
    return IdleValue(
        cluster=cluster,
        step_s=float(step_s),
        without_s=values[0].jct_s,
        with_s=values[1].jct_s,
        residual_s=max(each.residual_s for each in values),
        coarse_step_s=coarse.step_s,
        coarse_without_s=without.jct_s,
        coarse_with_s=best.jct_s,
        turned_away=cut,
        queues=coarse.queues,
        states=model.states,
        sweeps=model.sweeps + (coarse.sweeps if model is not coarse else 0),
        remaining=model.remaining,
        starts=values[1].at_end,
    )


@dataclass(frozen=True, eq=False)
class _Solved:
    jct_s: float
    residual_s: float
    at_end: np.ndarray  # what it starts as a step ends
    at_once: np.ndarray  # ... after arrivals during one


def _coarsest(cluster: TwoClassCluster, step_s: float) -> float:
    """Longest multiple of ``step_s`` that divides both lengths."""
    counts = []
    for name in ("short_s", "long_s"):
        length_s = getattr(cluster, name)
        count = round(length_s / step_s)
        if abs(count * step_s - length_s) > 1e-9 * length_s:
            raise ConfigError(f"step_s is {step_s:g}; expected a whole part of {name}, {length_s:g} s")
        counts.append(count)
    return float(step_s * math.gcd(*counts))


class _Model:
    """The cluster in steps, with queues of bounded lengths.

    Attributes:
        step_s: Step of time in seconds.
        queues: Most short and most long jobs that can wait.
        remaining: Remaining steps of every row, int64 [rows, executors].
        states: Number of states.
        sweeps: Sweeps made so far.
    """

    def __init__(
        self, cluster: TwoClassCluster, step_s: float, queues: tuple[int, int], *, started_by: _Model | None = None
    ) -> None:
        self.cluster, self.step_s, self.queues = cluster, float(step_s), queues
        executors = cluster.executors
        short, long = round(cluster.short_s / step_s), round(cluster.long_s / step_s)
        rows = math.comb(long + 1 + executors, executors)
        self.states = rows * (queues[0] + 1) * (queues[1] + 1)
        self.sweeps = 0
        if self.states > MOST_STATES:
            raise ConfigError(
                f"the model would have {self.states:,} states (steps of {step_s:g} s, queues of {queues[0]} short and "
                f"{queues[1]} long jobs); expected at most {MOST_STATES:,}: fewer executors, a longer step, a shorter "
                "long job or a lower load"
            )
        # Up to one step more than a long job has: one that began in the step before, rounded up.
        listed = [each[::-1] for each in itertools.combinations_with_replacement(range(long + 2), executors)]
        number = {row: index for index, row in enumerate(listed)}

        def row_after(row: tuple[int, ...], steps: int, count: int) -> int:
            """Row after ``count`` jobs began; -1 without that many free executors."""
            if row.count(0) < count:
                return -1
            kept = row[: executors - count]  # free executors are the last
            return number[tuple(sorted((*kept, *[steps] * count), reverse=True))]

        self.remaining = np.array(listed, dtype=np.int64)
        self._free = np.count_nonzero(self.remaining == 0, axis=1)
        # Ways to start: as a step ends, and during it rounded down and up (the step itself is still to pass).
        self._tables = (
            np.array([number[tuple(max(steps - 1, 0) for steps in row)] for row in listed]),
            self._free,
            np.array([[row_after(row, short + more, 1) for row in listed] for more in (0, 0, 1)]),
            np.array([
                [[row_after(row, long + more, count) for count in range(executors + 1)] for row in listed]
                for more in (0, 0, 1)
            ]),
        )  # fmt: skip
        self._following = _following(cluster.rate * self.step_s)
        self._values: list[np.ndarray | None] = [None, None]
        if started_by is not None:
            # The row of the other model whose tasks end next after those of this one.
            ratio = self.step_s / started_by.step_s
            top = started_by.remaining.max()
            theirs = {tuple(row): index for index, row in enumerate(started_by.remaining.tolist())}
            ends = np.minimum(np.ceil(self.remaining * ratio - 1e-9).astype(np.int64), top)
            like = [theirs[tuple(row)] for row in ends.tolist()]
            self._values = [values[like] for values in started_by._values]

    def with_queues(self, queues: tuple[int, int]) -> _Model:
        """The same with longer queues, whose values continue those of this one."""
        longer = _Model(self.cluster, self.step_s, queues)
        more = [(0, 0), *((0, new - old) for new, old in zip(queues, self.queues, strict=True))]
        longer._values = [np.pad(values, more, mode="reflect", reflect_type="odd") for values in self._values]
        longer.sweeps = self.sweeps
        return longer

    def solve(self, tolerance: float) -> tuple[_Solved, _Solved]:
        """Average JCT and rule without idling, and of the best rule."""
        solved = []
        for index, search in enumerate((False, True)):
            longs = np.arange(self.queues[1] + 1)
            at_end = np.minimum(self._free[:, None], longs)
            # After a short job one executor less is free.
            after_short = np.minimum(np.maximum(self._free - 1, 0)[:, None], longs)
            at_once = np.repeat(np.stack([at_end, after_short])[None], len(self._following), axis=0)
            start = self._values[index]
            if start is None:
                start = self._values[0] if search else np.zeros((len(self._free), *(most + 1 for most in self.queues)))
            prices = np.array([self.step_s, 0.0])

            def narrow(low: float, high: float) -> bool:
                return high - low <= tolerance * 0.5 * (high + low)

            self._values[index], low, high = self._iterate(start, prices, search, at_end, at_once, narrow)
            # Jobs in the system, and by Little's law their mean time there.
            per_job = 1.0 / (self.step_s * self.cluster.rate)
            solved.append(
                _Solved(0.5 * (low + high) * per_job + 0.5 * self.step_s, 0.5 * (high - low) * per_job, at_end, at_once)
            )
        return solved[0], solved[1]

    def turned_away(self, rule: _Solved, target: float) -> float:
        """Upper bound of the share of jobs that find a full queue."""
        jobs = self.cluster.rate * self.step_s
        start = np.zeros((len(self._free), *(most + 1 for most in self.queues)))

        def known(low: float, high: float) -> bool:
            return high <= target * jobs or low > target * jobs or high - low <= 0.1 * high

        _, _, high = self._iterate(start, np.array([0.0, 1.0]), False, rule.at_end, rule.at_once, known)
        return high / jobs

    def _iterate(self, start, prices, search, at_end, at_once, enough) -> tuple[np.ndarray, float, float]:
        """Sweep until the bounds are ``enough``; values, lower and upper bound."""
        value = start.copy()
        passed, work, new = np.zeros((3, *value.shape))
        model = Model(*self._tables, self._following, float(self.cluster.share))
        while True:
            check_stop()
            low, high = sweep((value, passed, work, new), model, prices, Rule(search, at_end, at_once))
            value, new = new, value
            self.sweeps += 1
            if enough(low, high):
                return value, low, high
            if self.sweeps % _SETTLE == 0:
                value -= value[0, 0, 0]


def _following(mean: float) -> np.ndarray:
    """Probabilities of a further arrival in a step after 0, 1, ..., float64."""
    chances, total = [math.exp(-mean)], math.exp(-mean)
    while 1.0 - total > 1e-10:
        chances.append(chances[-1] * mean / len(chances))
        total += chances[-1]
    at_least = np.cumsum(chances[::-1])[::-1]
    return at_least[1:] / at_least[:-1]


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


@njit(cache=True, nogil=True)
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
