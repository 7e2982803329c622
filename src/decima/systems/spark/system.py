"""The simulated Spark cluster as a system: schedulers run in the simulator."""

from collections.abc import Mapping

import numpy as np

from decima.core.objectives import Objective, Outcome, list_objectives
from decima.core.system import register_system
from decima.systems.spark.result import EXECUTOR_HOURS, Result, outcome_of
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import CompiledScheduler, Observation, Scheduler, decision_parts
from decima.systems.spark.schedulers.registry import list_schedulers, make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState, new_state, offers, spawn_generators
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload
from decima.workload.sources import JobSpec, parse_jobs


def run_state(state: ClusterState, scheduler: Scheduler, seed: int) -> None:
    """Run a state from time 0 to the end.

    A compiled scheduler runs inside the core, any other through ``decide``; an empty frontier is idled through without
    asking the latter. Both ways give the same run for the same decisions.

    Raises:
        SchedulerError: The scheduler did not return a `Decision`.
        Exception: Whatever ``decide`` raised, with a note that says at which decision.
        InvalidDecisionError: The scheduler chose something that cannot be done.
        DeadlockError: The scheduler parked every executor.
    """
    rng, policy_rng = spawn_generators(seed)
    if isinstance(scheduler, CompiledScheduler):
        scheduler.bind(state)
        state.start(rng, policy_rng, scheduler.decision.address)
        state.advance()
        return
    state.start(rng, policy_rng)
    scheduler.reset(policy_rng)
    observation = Observation(state)
    for _ in offers(state, getattr(scheduler, "offered_again", False)):
        try:
            parts = decision_parts(scheduler.decide(observation))
        except Exception as error:
            when = f"in decision {state.num_decisions} at {state.now_ms / 1000:.3f} s"
            error.add_note(f"{when} of scheduler {scheduler.name}, seed {seed}")
            raise
        state.decide(*parts)


class SparkCluster:
    """The Spark cluster of the paper (§6.2); see :class:`decima.core.system.System` for the methods."""

    name = "spark"
    label = "Spark cluster"
    settings_type = Settings
    workload_type = Workload
    scored = ("avg_jct", "makespan")

    def read_jobs(self, text: str) -> JobSpec:
        """Jobs of a source or a file; see :func:`decima.workload.sources.parse_jobs`."""
        return parse_jobs(text)

    def tables(self, workload: Workload, settings: Settings) -> WorkloadTables:
        """Stages, edges and durations of the jobs."""
        return WorkloadTables(workload, settings)

    def state(self, tables: WorkloadTables, settings: Settings, *, log: bool = False) -> ClusterState:
        """Memory of the simulator."""
        return new_state(tables, settings, log_tasks=log, log_decisions=log)

    def give(self, state: ClusterState, arrays: Mapping[str, np.ndarray]) -> None:
        """Bind arrays of :mod:`.fields` that heuristics read; all others are 0 again."""
        record = rule_record(state)
        record.release(*record.bound - arrays.keys())
        for name, values in arrays.items():
            record.bind(name, values)

    def run(self, state: ClusterState, scheduler: Scheduler, seed: int) -> None:
        """Run to the end; see :func:`run_state`."""
        run_state(state, scheduler, seed)

    def outcome(self, state: ClusterState) -> Outcome:
        """Arrivals, completions and critical paths of the jobs."""
        return outcome_of(state)

    def result(self, state: ClusterState, scheduler: str, seed: int) -> Result:
        """Outcome in detail, with the log if the state kept one."""
        return Result.of_state(state, state.tables.workload, scheduler, seed)

    def make_scheduler(self, scheduler: str | Scheduler, **parameters) -> Scheduler:
        """A scheduler by name; see :func:`decima.systems.spark.schedulers.make_scheduler`."""
        return make_scheduler(scheduler, **parameters)

    def list_schedulers(self) -> list[str]:
        """Names of all registered schedulers."""
        return list_schedulers()

    def objectives(self) -> list[str | Objective]:
        """All registered objectives, and hours of executors."""
        return [*list_objectives(), EXECUTOR_HOURS]


SPARK_CLUSTER = register_system(SparkCluster())
