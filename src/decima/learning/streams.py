"""Stretches of long streams: requests, and jobs at equal times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Pause:
    """A stream that was stopped between two events; any worker can continue it."""

    time_s: float
    jobs: int  # in the system
    last_arrival_s: float
    memory: np.ndarray  # uint8, all that the run has changed


@dataclass(frozen=True, eq=False)
class StretchJob:
    """One stretch of a stream; its outcome also depends on task and weights."""

    sequence: Any  # jobs, a hashable description in the words of the system
    seed: int  # random seed of task durations and of the policy
    until_s: float | None = None  # end; None: when all jobs are done
    begin: Pause | None = None  # where it begins; None: at time 0
    step_s: float | None = None  # time between two samples; None: there are none
    width: int | None = None  # inputs of a job in a sample; None: all but embeddings
    crowd: int | None = None  # no more samples once there are more jobs than this
    record: bool = False  # whether the decisions are wanted
    keep: bool = False  # whether the end is wanted as a :class:`Pause`


@dataclass(frozen=True, eq=False)
class Samples:
    """The jobs in the system at T equal times, the first at the beginning."""

    first: np.ndarray  # int64 [T + 1], jobs at time t are entries ``first[t]:first[t + 1]``
    job: np.ndarray  # int32 [M], numbers of the jobs
    inputs: np.ndarray  # float32 [M, K], what a critic sees of them; column 0 is 0 for a job without work
    area_s: np.ndarray  # float64 [T], integral of the number of jobs since time 0, job-seconds

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of values per job, float64 [M], at each time; float64 [T]."""
        totals = np.concatenate([[0.0], np.cumsum(values)])
        return totals[self.first[1:]] - totals[self.first[:-1]]


@dataclass(frozen=True, eq=False)
class Stretch:
    """What came of a stretch."""

    record: Any  # decisions, as the agent's other records; None if not wanted
    samples: Samples | None
    finish_s: np.ndarray  # float64 [J], when jobs finished; NaN for those that did not
    pause: Pause | None
