"""Heterogeneous executors as a system for comparisons, pools, tuning and Gantt charts.

:func:`plan` schedules jobs with one scheduler and returns the schedule itself.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.extras import MissingExtraError
from decima.core.objectives import Objective
from decima.core.system import Best, register_system
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.optimum.bounds import lower_bound, whole_bound_s
from decima.systems.heterogeneous.result import OBJECTIVES, HeterogeneousOutcome, HeterogeneousResult, Schedule, metrics
from decima.systems.heterogeneous.schedulers.registry import (
    PlanScheduler,
    list_schedulers,
    make_scheduler,
    schedule_with,
)
from decima.systems.heterogeneous.settings import Settings
from decima.systems.heterogeneous.sources import InstanceText
from decima.systems.heterogeneous.workload import Instance, Job

PROVED_NODES = 10  # of instances whose optimum is proved within seconds


@dataclass(frozen=True)
class Tables:
    """An instance with what all its runs share."""

    instance: Instance
    settings: Settings
    bound_s: float  # no schedule is shorter
    ideal_ms: np.ndarray  # float64 [jobs], longest path with the smallest times and no transfers


@dataclass
class State:
    """The schedule of the last run."""

    tables: Tables
    schedule: Schedule | None = None


class HeterogeneousExecutors:
    """DAG jobs on executors of different speed; see :class:`decima.core.system.System` for the methods."""

    name = "heterogeneous"
    label = "heterogeneous executors"
    settings_type = Settings
    workload_type = Instance
    scored = ("makespan", "avg_jct", *(objective.name for objective in OBJECTIVES))

    def read_jobs(self, text: str) -> InstanceText:
        """Instances of a source or a file; see :func:`decima.systems.heterogeneous.sources.read_instance`."""
        return InstanceText(text)

    def tables(self, workload: Instance, settings: Settings) -> Tables:
        """Build the instance on the settings' executors, its bound and ideal durations."""
        instance = workload
        if settings.cluster is not None:
            instance = Instance(workload.jobs, settings.cluster, workload.label)
        lengths = instance.longest_down(instance.least_time_s)
        ideal_ms = 1000.0 * np.maximum.reduceat(lengths, instance.first_node[:-1])
        return Tables(instance, settings, lower_bound(instance), ideal_ms)

    def state(self, tables: Tables, settings: Settings, *, log: bool = False) -> State:
        """Holder of a schedule, which always keeps every copy."""
        return State(tables)

    def give(self, state: State, arrays: Mapping[str, np.ndarray]) -> NoReturn:
        """Refuse arrays: no scheduler here reads any.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(f"schedulers of heterogeneous executors read no arrays; got {', '.join(arrays)}")

    def run(self, state: State, scheduler: PlanScheduler, seed: int) -> None:
        """Schedule all nodes; what comes from outside of the package is validated."""
        state.schedule = schedule_with(scheduler, state.tables.instance, seed)

    def outcome(self, state: State) -> HeterogeneousOutcome:
        """Arrivals, completions and the metrics of the schedule."""
        tables, schedule = state.tables, state.schedule
        instance = tables.instance
        return HeterogeneousOutcome(
            instance.arrival_ms,
            1000.0 * schedule.completion_s,
            tables.ideal_ms,
            metrics(schedule),
            tables.bound_s,
            drawn=False,
        )

    def result(self, state: State, scheduler: str, seed: int) -> HeterogeneousResult:
        """The schedule with its outcome."""
        return HeterogeneousResult(state.schedule, state.tables.settings, scheduler, seed, self.outcome(state))

    def make_scheduler(self, scheduler: str | PlanScheduler, **parameters: Any) -> PlanScheduler:
        """A scheduler by name; see :func:`decima.systems.heterogeneous.schedulers.registry.make_scheduler`."""
        return make_scheduler(scheduler, **parameters)

    def list_schedulers(self) -> list[str]:
        """Names of all registered schedulers."""
        return list_schedulers()

    def objectives(self) -> list[str | Objective]:
        """Objectives of every system that apply, and those of schedules."""
        return ["makespan", "avg_jct", "slowdown", "p50_jct", "p90_jct", "p95_jct", "p99_jct", *OBJECTIVES]


HETEROGENEOUS_EXECUTORS = register_system(HeterogeneousExecutors())


def result_of(schedule: Schedule, seed: int = 0) -> HeterogeneousResult:
    """A schedule as the result of a run."""
    tables = HETEROGENEOUS_EXECUTORS.tables(schedule.instance, Settings())
    return HETEROGENEOUS_EXECUTORS.result(State(tables, schedule), schedule.scheduler, seed)


def best_run(workload: Instance, settings: Settings, budget: int, seed: int) -> Best:
    """Shortest known schedule and the lower bound, proved if OR-Tools is installed and needs seconds."""
    from decima.systems.heterogeneous.optimum import exact

    tables = HETEROGENEOUS_EXECUTORS.tables(workload, settings)
    schedule = exact.search(tables.instance, budget, seed).schedule
    floor_s = tables.bound_s
    if len(tables.instance) <= exact.MOST_NODES:
        floor_s = whole_bound_s(tables.instance, floor_s)
    proved = schedule.makespan_s <= floor_s * (1.0 + 1e-9)
    if not proved and len(tables.instance) <= PROVED_NODES:
        with contextlib.suppress(exact.NotProvedError, MissingExtraError):
            schedule, proved = exact.optimum(tables.instance).schedule, True
    result = HETEROGENEOUS_EXECUTORS.result(State(tables, schedule), schedule.scheduler, seed)
    return Best(result, "makespan", schedule.makespan_s, floor_s, proved)


def plan(
    jobs: Instance | Iterable[Job],
    cluster: Cluster | None = None,
    scheduler: str | PlanScheduler = "heft",
    *,
    seed: int = 0,
    **settings: Any,
) -> Schedule:
    """Schedule jobs on a cluster.

    Example:
        >>> etl = Job("etl", work=[8, 4, 6, 2], edges=[(0, 1), (0, 2), (1, 3), (2, 3)], data=[50, 80, 10, 20])
        >>> plan([etl], Cluster(speeds=[1.0, 2.0], rate=125.0)).makespan_s
        9.48

    Args:
        jobs: Jobs, or an instance, which has its cluster.
        cluster: The cluster; omitted for an instance.
        scheduler: A name with settings such as ``"high_rank_up_deft:slots=insertion"``, or a scheduler.
        seed: Random seed, 0 or more.
        **settings: Settings of the scheduler by name.

    Raises:
        WorkloadError: Jobs or cluster are not as expected.
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A setting is unknown or out of range.
        SchedulerError: A scheduler of one's own fails, or returns something else than a schedule.
        InvalidScheduleError: The schedule of a scheduler of one's own breaks a rule of the model.
    """
    check_whole("seed", seed, least=0)
    if isinstance(jobs, Instance):
        if cluster is not None:
            raise ConfigError("an instance has its cluster; expected jobs, or an instance alone")
        instance = jobs
    else:
        instance = Instance([jobs] if isinstance(jobs, Job) else list(jobs), cluster)
    return schedule_with(make_scheduler(scheduler, **settings), instance, seed)
