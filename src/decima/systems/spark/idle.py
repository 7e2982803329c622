"""Idle time of the executors of a run: what deliberate slots leave idle, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.systems.spark.decision import DELAY, JOB_COLUMN, PART_COLUMNS, STAGE

if TYPE_CHECKING:
    from decima.systems.spark.log import EpisodeLog
    from decima.workload.jobs import Workload


@dataclass(frozen=True)
class IdleTime:
    """Executor time without a task, up to the end of a run."""

    deliberate_s: float  # while a slot withheld a stage that could have used the executor
    forced_s: float  # all other: no stage could run, or the executor moved, waited for a stage, was left idle


def idle_time(log: EpisodeLog, workload: Workload, executors: int, end_ms: float) -> IdleTime:
    """Split the idle time of a run.

    At any time the deliberate part is the smaller of the number of idle executors and the tasks of the stages withheld.

    Args:
        log: Tasks and decisions of the run.
        workload: Its jobs.
        executors: Executors of the cluster.
        end_ms: End of the run.
    """
    rows = log.decisions[log.decisions[:, PART_COLUMNS[DELAY]] > 0.0]
    begin_ms = rows[:, 0]
    over_ms = begin_ms + rows[:, PART_COLUMNS[DELAY]]
    profiles = [job.profile for job in workload.jobs]
    places = rows[:, [JOB_COLUMN, PART_COLUMNS[STAGE]]].astype(int).tolist()
    tasks = np.array([profiles[job].stages[stage].num_tasks for job, stage in places], dtype=np.int64)
    ones = np.ones(len(log.start_ms), dtype=np.int64)
    times = np.concatenate([log.start_ms, log.finish_ms, begin_ms, over_ms, [0.0, end_ms]])
    busy = np.concatenate([ones, -ones, 0 * tasks, 0 * tasks, [0, 0]])
    withheld = np.concatenate([0 * ones, 0 * ones, tasks, -tasks, [0, 0]])
    order = np.argsort(times, kind="stable")
    lengths = np.diff(np.minimum(times[order], end_ms))
    idle = executors - np.cumsum(busy[order])[:-1]
    deliberate = np.minimum(idle, np.cumsum(withheld[order])[:-1])
    deliberate_ms = float(deliberate @ lengths)
    return IdleTime(deliberate_ms / 1000.0, (float(idle @ lengths) - deliberate_ms) / 1000.0)
