"""What a plan assumes of jobs to come: nothing, or a Poisson process like the arrivals that were seen."""

from __future__ import annotations

import numpy as np

from decima.systems.spark.fields import ARRIVING
from decima.systems.spark.lookahead.copies import NO_FUTURE, Future
from decima.systems.spark.state import ClusterState

NONE, POISSON = "none", "poisson"
ARRIVALS = (NONE, POISSON)
# Without a horizon jobs are assumed to come for so many times the time that the work in the system takes; there are at
# most so many of them.
_WINDOW = 1.5
_MOST = 32


def draw_future(
    state: ClusterState, arrivals: str, work_ms: float, horizon_ms: float, rng: np.random.Generator
) -> Future:
    """Draw jobs that may come.

    Args:
        state: The cluster; of its tables only jobs that have arrived are looked at.
        arrivals: One of ``ARRIVALS``. ``"poisson"``: gaps have the mean of those seen since time 0, jobs are like any
            that has arrived, with equal probability; none come before two have come after time 0.
        work_ms: Remaining work of the jobs in the system, executor time in ms.
        horizon_ms: Simulated time that is looked ahead, ms; infinity without a bound.
        rng: Source of chance.
    """
    if arrivals == NONE:
        return NO_FUTURE
    seen = np.flatnonzero(state.job_state != ARRIVING)
    later = int(np.count_nonzero(state.job_arrival_ms[seen] > 0.0))
    if later < 2:
        return NO_FUTURE
    window_ms = min(horizon_ms, _WINDOW * work_ms / state.num_executors)
    times_ms = np.cumsum(rng.exponential(state.now_ms / later, _MOST))
    times_ms = times_ms[times_ms < window_ms]
    return Future(rng.choice(seen, len(times_ms)).astype(np.int32), state.now_ms + times_ms)
