"""Log of a run, task by task and decision by decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.systems.spark import decision
from decima.systems.spark.fields import PRESENT

if TYPE_CHECKING:
    import pandas

    from decima.systems.spark.state import ClusterState
    from decima.workload.jobs import Workload

# Columns of the decision log that are no whole numbers.
_NUMBERS = {"time_ms", *(part.column for part in decision.PARTS if not part.whole)}
WAVE_NAMES = ("fresh", "first", "rest")


@dataclass(frozen=True, eq=False)
class EpisodeLog:
    """Log of one run; a copy, independent of the state it came from."""

    job: np.ndarray  # int32 [tasks], in order of launch
    stage: np.ndarray  # int32 [tasks], index inside the job
    executor: np.ndarray  # int32 [tasks]
    wave: np.ndarray  # int32 [tasks], 0 fresh, 1 first, 2 rest
    start_ms: np.ndarray  # float64 [tasks]
    finish_ms: np.ndarray  # float64 [tasks]
    decisions: np.ndarray  # float64 [decisions, columns], columns of ``DECISION_COLUMNS``, -1 for none
    lost: np.ndarray | None = None  # bool [tasks], executor lost before the end; None: the cluster does not change
    killed: np.ndarray | None = None  # bool [tasks], the other copy had ended; None: tasks have no copies
    lives: np.ndarray | None = None  # float64 [n, 4], registrations of Spark executors: number, begin, end in ms, lost

    @classmethod
    def of_state(cls, state: ClusterState) -> EpisodeLog:
        """Copy the logs of a state that has run with both logs on."""
        count = state.num_tasks_logged
        stage = state.task_stage[:count]
        job = state.stage_job[stage]
        return cls(
            job=job,
            stage=stage - state.job_first_stage[job],
            executor=state.task_executor[:count].copy(),
            wave=state.task_wave[:count].copy(),
            start_ms=state.task_start_ms[:count].copy(),
            finish_ms=state.task_finish_ms[:count].copy(),
            decisions=state.logged_decisions.copy(),
            lost=state.task_lost[:count] == 1 if state.elastic else None,
            killed=state.task_lost[:count] == 2 if state.speculates else None,
            lives=_lives(state) if state.elastic else None,
        )

    def tasks(self) -> pandas.DataFrame:
        """Table of tasks: job, stage, executor, wave, start_s, finish_s; lost, killed where there are such."""
        import pandas

        return pandas.DataFrame(
            {
                "job": self.job,
                "stage": self.stage,
                "executor": self.executor,
                "wave": pandas.Categorical.from_codes(self.wave, WAVE_NAMES),
                "start_s": self.start_ms / 1000.0,
                "finish_s": self.finish_ms / 1000.0,
            }
            | ({} if self.lost is None else {"lost": self.lost.astype(int)})
            | ({} if self.killed is None else {"killed": self.killed.astype(int)})
        )

    def delays(self) -> pandas.DataFrame:
        """Table with one row per slot, in order of their beginning: job, stage, start_s, end_s.

        A slot ends when its time is over, also where the run was cut before.
        """
        import pandas

        rows = self.decisions[self.decisions[:, decision.PART_COLUMNS[decision.DELAY]] > 0.0]
        return pandas.DataFrame(
            {
                "job": rows[:, decision.JOB_COLUMN].astype(np.int64),
                "stage": rows[:, decision.PART_COLUMNS[decision.STAGE]].astype(np.int64),
                "start_s": rows[:, 0] / 1000.0,
                "end_s": (rows[:, 0] + rows[:, decision.PART_COLUMNS[decision.DELAY]]) / 1000.0,
            }
        )

    def decision_columns(self) -> tuple[str, ...]:
        """Columns of :meth:`decision_lists`, without trailing parts that no decision has."""
        present = decision.NUM_FIRST_COLUMNS
        for part in range(decision.LIMIT + 1, len(decision.PARTS)):
            if (self.decisions[:, decision.PART_COLUMNS[part]] != decision.DEFAULTS[part]).any():
                present = decision.PART_COLUMNS[part] + 1
        return decision.DECISION_COLUMNS[:present]

    def decision_lists(self) -> list[list]:
        """Decisions as the reference runs have them: lists, None for no job or stage."""
        columns = self.decision_columns()
        maybe = [name in decision.NONE_COLUMNS for name in columns]
        whole = [name not in _NUMBERS for name in columns]
        return [
            [
                None if none and value < 0 else int(value) if count else value
                for none, count, value in zip(maybe, whole, row, strict=True)
            ]
            for row in self.decisions[:, : len(columns)].tolist()
        ]


def _lives(state: ClusterState) -> np.ndarray:
    """Registrations that have ended, then those that last to the end (NaN)."""
    ended = state.life_rows[: 4 * state.num_lives_logged].reshape(-1, 4)
    present = np.flatnonzero(state.unit_state == PRESENT)
    blank = np.full(len(present), np.nan)
    lasting = np.column_stack([present, state.unit_since_ms[present], blank, np.zeros(len(present))])
    return np.concatenate([ended, lasting])


# ---- idle time of the executors of a run, by deliberate slots and otherwise -----------------------------------------


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
    rows = log.decisions[log.decisions[:, decision.PART_COLUMNS[decision.DELAY]] > 0.0]
    begin_ms = rows[:, 0]
    over_ms = begin_ms + rows[:, decision.PART_COLUMNS[decision.DELAY]]
    profiles = [job.profile for job in workload.jobs]
    places = rows[:, [decision.JOB_COLUMN, decision.PART_COLUMNS[decision.STAGE]]].astype(int).tolist()
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
