"""Outcome of one run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from decima.core.display import ShownRun
from decima.core.errors import ConfigError
from decima.core.objectives import Objective, Outcome, Progress, get_objective, objective_at_end
from decima.systems.spark.log import EpisodeLog, IdleTime, idle_time
from decima.systems.spark.settings import Settings
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas

    from decima.systems.spark.state import ClusterState


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
            num_events={
                "task": state.task_events,
                "job": state.job_events,
                "executor": state.executor_events,
            },
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
