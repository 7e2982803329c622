"""Outcome of one run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from decima.core.display import ShownRun
from decima.core.errors import ConfigError
from decima.core.objectives import Objective, Outcome, Progress, get_objective, objective_at_end
from decima.systems.spark import decision
from decima.systems.spark.fields import PRESENT
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas

    from decima.systems.spark.state import ClusterState
    from decima.workload.jobs import Workload


def _executor_hours(outcome: Outcome) -> float:
    """Hours that Spark executors were registered; NaN where nobody counted them."""
    return float("nan") if outcome.executor_ms is None else outcome.executor_ms / 3.6e6


EXECUTOR_HOURS = objective_at_end("executor_hours", "executor hours", "h", _executor_hours)


def outcome_of(state: ClusterState) -> Outcome:
    """Copy arrivals and completions, which objectives score, out of a state that has run."""
    end_ms = state.now_ms if state.truncated else None
    times = state.job_arrival_ms, state.job_finish_ms.copy(), state.tables.workload.ideal_ms
    return Outcome(*times, end_ms=end_ms, drawn=state.drawn, executor_ms=state.executor_ms)


def progress_of(state: ClusterState) -> Progress:
    """Progress of a run for objectives; valid until the state runs on."""
    # An executor may still be moving after the last job.
    over = state.num_done == state.num_jobs
    return Progress(
        arrival_ms=state.job_arrival_ms,
        completion_ms=state.job_finish_ms,
        ideal_ms=state.tables.workload.ideal_ms,
        time_ms=float(state.job_finish_ms.max()) if over else state.now_ms,
        area_ms=state.area_ms + state.num_active * (state.now_ms - state.area_time_ms),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Result(ShownRun):
    """Outcome of one run; times in ms unless the name ends in ``_s``."""

    workload: Workload  # what ran
    settings: Settings  # on which cluster
    scheduler: str  # name of the scheduler
    seed: int  # seed of durations and scheduler
    completion_ms: np.ndarray  # float64 [jobs], NaN where a run was cut before
    completion_order: np.ndarray  # jobs in order of completion
    stage_finish_ms: list[np.ndarray]  # one float64 array per job
    num_decisions: int  # decisions taken, idling included
    num_events: dict[str, int]  # counts of task completions, job arrivals and executor arrivals
    busy_ms: float  # sum of all task durations
    end_ms: float  # completion of the last job, or the time limit that cut the run
    truncated: bool  # the time limit ended the run
    executor_ms: float  # time that Spark executors were registered, summed
    losses: dict[str, int]  # units lost, tasks that ran on them, outputs computed again; copies of tasks launched
    log: EpisodeLog | None = None  # every task and decision, if asked for

    @classmethod
    def of_state(cls, state: ClusterState, workload: Workload, scheduler: str, seed: int) -> Result:
        """Copy the outcome out of a state that has run."""
        return cls(
            workload=workload,
            settings=state.settings,
            scheduler=scheduler,
            seed=seed,
            completion_ms=state.job_finish_ms.copy(),
            completion_order=state.completion_order[: state.num_done].copy(),
            stage_finish_ms=np.split(state.stage_finish_ms.copy(), state.job_first_stage[1:-1]),
            num_decisions=state.num_decisions,
            num_events={"task": state.task_events, "job": state.job_events, "executor": state.executor_events},
            busy_ms=state.busy_ms,
            end_ms=state.now_ms if state.truncated else float(np.max(state.job_finish_ms)),
            truncated=bool(state.truncated),
            executor_ms=state.executor_ms,
            losses={"executors": state.lost_units, "tasks": state.lost_tasks, "outputs": state.lost_outputs}
            | ({"copies": state.num_copies} if state.speculates else {}),
            log=EpisodeLog.of_state(state) if state.log_tasks else None,
        )

    def __str__(self) -> str:
        from decima.plotting.words import count

        jobs = count(len(self.workload), "job") + (f", {self.num_unfinished} unfinished" if self.num_unfinished else "")
        makespan = "" if self.num_unfinished else f", makespan {self.makespan_s:.1f} s"
        if len(self.completion_order):
            finished = " of the finished jobs" if self.num_unfinished else ""
            outcome = f"average JCT{finished} {self.avg_jct_s:.2f} s{makespan}"
        else:
            outcome = f"no job finished in {self.end_ms / 1000.0:.1f} s"
        return (
            f"{self.scheduler} on {self.workload.label} ({jobs}, {count(self.settings.executors, 'executor')}, "
            f"mode {self.settings.mode}, {self.settings.durations} durations): {outcome}, "
            f"{count(sum(self.num_events.values()), 'event')}"
        )

    @property
    def jct_ms(self) -> np.ndarray:
        """float64 [jobs], completion less arrival; NaN for unfinished jobs."""
        return self.completion_ms - self.workload.arrival_ms

    @property
    def outcome(self) -> Outcome:
        """Arrivals, completions and critical paths of the jobs, which objectives score."""
        end_ms = self.end_ms if self.truncated else None
        times = self.workload.arrival_ms, self.completion_ms, self.workload.ideal_ms
        return Outcome(*times, end_ms=end_ms, executor_ms=self.executor_ms)

    @property
    def executor_hours(self) -> float:
        """Time in hours that Spark executors were registered, summed."""
        return self.executor_ms / 3.6e6

    def score(self, objective: str | Objective) -> float:
        """Score this run by an objective; one that was cut as :meth:`decima.core.objectives.Objective.measure` does.

        Whether that bounds the score of the whole run, its :meth:`mark` says.

        Raises:
            ConfigError: There is no objective of that name.
        """
        return get_objective(objective).measure(self.outcome)

    def mark(self, objective: str | Objective) -> str:
        """Sign before that score, see :meth:`decima.core.objectives.Objective.mark`."""
        outcome = self.outcome
        return get_objective(objective).mark(outcome.num_unfinished, outcome.num_to_come)

    @property
    def num_unfinished(self) -> int:
        """Number of jobs that the time limit left unfinished."""
        return len(self.completion_ms) - len(self.completion_order)

    @property
    def avg_jct_ms(self) -> float:
        """Mean JCT of the finished jobs, NaN if there is none."""
        finished = self.jct_ms[~np.isnan(self.completion_ms)]
        return float(np.mean(finished)) if len(finished) else float("nan")

    @property
    def avg_jct_s(self) -> float:
        """Mean JCT of the finished jobs in seconds."""
        return self.avg_jct_ms / 1000.0

    @property
    def makespan_ms(self) -> float:
        """Completion of the last job; NaN if one is unfinished."""
        return float(np.max(self.completion_ms))

    @property
    def makespan_s(self) -> float:
        """Completion of the last job in seconds."""
        return self.makespan_ms / 1000.0

    @property
    def utilization(self) -> float:
        """Share of executor time spent on tasks (of a cut run: launched tasks count whole)."""
        slot_ms = self.settings.executor_cores * self.executor_ms
        return self.busy_ms / slot_ms if slot_ms > 0 else 0.0

    @property
    def num_executors(self) -> int:
        """Executors of the cluster."""
        return self.settings.executors

    def task_frame(self) -> pandas.DataFrame:
        """Table of tasks: job, stage, executor, start_s, finish_s, wave (fresh, first or rest).

        Raises:
            ConfigError: The run kept no log.
        """
        if self.log is None:
            raise ConfigError("the run kept no log of its tasks; simulate with log=True")
        tasks = self.log.tasks().rename(columns={"wave": "kind"})
        return tasks[["job", "stage", "executor", "start_s", "finish_s", "kind"]]

    @property
    def executor_class(self) -> np.ndarray:
        """Class of each executor, int64 [executors]; 0 where there is one class."""
        counts = [each.executors for each in self.settings.classes] or [self.settings.executors]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def fragmentation(self) -> float:
        """Share of held memory not requested: 1 - sum(request x time) / sum(held x time).

        Raises:
            ConfigError: The run kept no log, or its executors have no classes.

        Source: appendix F, memory fragmentation.
        """
        if self.log is None or not self.settings.classes:
            raise ConfigError("fragmentation is of a run with classes of executors and a log (log=True)")
        log = self.log
        memory = np.array([each.memory for each in self.settings.classes])[self.executor_class[log.executor]]
        asked = self.workload.requests[self.workload.first_stage[log.job] + log.stage, 0]
        time_ms = log.finish_ms - log.start_ms
        return 1.0 - float(asked @ time_ms) / float(memory @ time_ms)

    def class_usage(self) -> pandas.DataFrame:
        """Table by job and class: job, executor_class, executors, executor_s, tasks.

        Raises:
            ConfigError: The run kept no log.
        """
        import pandas

        tasks = self.task_frame()
        tasks["executor_class"] = self.executor_class[self.log.executor]
        tasks["executor_s"] = tasks["finish_s"] - tasks["start_s"]
        groups = tasks.groupby(["job", "executor_class"])
        sums = groups.agg(
            executors=("executor", "nunique"), executor_s=("executor_s", "sum"), tasks=("executor", "size")
        )
        kinds = range(max(1, len(self.settings.classes)))
        places = pandas.MultiIndex.from_product([range(len(self.workload)), kinds], names=sums.index.names)
        return sums.reindex(places, fill_value=0).reset_index()

    def idle_time(self) -> IdleTime:
        """Idle executor time, split into what deliberate slots leave idle and the rest.

        Raises:
            ConfigError: The run kept no log.
        """
        if self.log is None:
            raise ConfigError("the run kept no log of its tasks; simulate with log=True")
        return idle_time(self.log, self.workload, self.num_executors, self.end_ms)

    @cached_property
    def jobs(self) -> pandas.DataFrame:
        """Table with one row per job: name, arrival_s, completion_s, jct_s, stages, tasks, work_s."""
        table = self.workload.describe()
        table["completion_s"] = self.completion_ms / 1000.0
        table["jct_s"] = self.jct_ms / 1000.0
        return table


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
