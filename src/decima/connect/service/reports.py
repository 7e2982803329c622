"""What clients report of a cluster, against what schedulers read of it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from decima.core.errors import ConfigError
from decima.systems.spark.fields import FIELDS
from decima.systems.spark.schedulers.interface import GAP, RUNNING, CompiledScheduler, Observation, Scheduler
from decima.systems.spark.state import ClusterState

#: Fields of the state that a mirror fills from the messages, as a simulation of a fixed cluster of one class does.
REPORTED = frozenset(
    {
        # The cluster, and the decision that is asked for.
        *("num_executors", "moving_delay_ms", "job_limit", "reoffer", "commit_ahead", "runnable_only", "job_bound"),
        *("elastic", "num_classes", "num_groups", "class_memory", "class_cpu", "class_executors", "class_offers"),
        *("group_fits", "job_class_kept", "now_ms", "num_active", "num_frontier", "num_jobs_unsaturated"),
        *("num_source", "source_job", "action", "no_answer", "rule_record", "policy_record"),
        *("policy_rng", "policy_next"),
        # Graphs of jobs.
        *("active", "job_state", "job_first_stage", "job_arrival_ms", "job_work_ms", "stage_job", "stage_row"),
        *("stage_tasks", "stage_group", "stage_memory", "stage_cpu", "parent", "parent_offset", "child"),
        *("child_offset", "row_level", "row_nominal_ms", "row_path_work_ms", "row_path_ms"),
        # States of jobs and stages.
        *("job_attached", "job_moving", "job_commit", "job_outgoing", "job_unsaturated", "job_frontier"),
        *("job_unexhausted", "job_unfinished", "runnable_head", "runnable_tail", "runnable_next", "runnable_prev"),
        *("stage_next", "stage_finished_tasks", "stage_commit", "stage_moving", "stage_executors"),
        *("stage_unsaturated_parents", "stage_unfinished_parents", "stage_saturated", "stage_in_frontier"),
        *("stage_runnable", "stage_slot", "slot_end_ms"),
    }
)
#: Fields that a mirror fills where the client reports what runs; executors have other numbers than in a simulation.
OF_RUNNING = frozenset(
    {
        *("executor_stage", "executor_start_ms", "executor_destination", "executor_pool", "executor_moving"),
        *("free_executors", "heap_size", "num_free", "source", "next_arrival", "arrival_order"),
    }
)
#: Settings that follow from the mode of a session, unless its client says that they do not.
UNLIKE = ("reoffer", "commit_ahead", "runnable_only", "job_bound")
#: Words of schedulers -> field of an `OpenRequest` by which a client says that it reports this.
BY_REQUEST = {RUNNING: "running", GAP: "interarrival_ms"}


def reports_of(running: bool, hint_ms: float) -> frozenset[str]:
    """What a client reports.

    Args:
        running: Whether it lists running tasks.
        hint_ms: Mean interarrival time that it names, or 0.
    """
    more = {word for word, there in ((RUNNING, running), (GAP, hint_ms > 0.0)) if there}
    return REPORTED | more


def require_reported(scheduler: Scheduler, reports: AbstractSet[str]) -> None:
    """Check that a client reports what a scheduler says that it reads.

    Raises:
        ConfigError: It does not.
    """
    if unknown := sorted(getattr(scheduler, "reads", frozenset()) - reports):
        raise ConfigError(f"scheduler {scheduler.name} reads {' and '.join(unknown)}, which {_who(unknown)}")


def _who(unknown: list[str]) -> str:
    """End of a refusal: who does not report this."""
    where = BY_REQUEST | dict.fromkeys(UNLIKE, "unlike")
    if set(unknown) <= where.keys():
        return f"this client does not report ({', '.join(f'OpenRequest.{where[word]}' for word in unknown)})"
    return "no client reports"


class _ReportedState:
    """State of a mirror for schedulers in Python, who may read reported fields only."""

    def __init__(self, state: ClusterState, name: str, reports: AbstractSet[str]) -> None:
        self._state, self._name, self._reports = state, name, reports

    def __getattr__(self, field: str):
        if field in FIELDS and field not in self._reports:
            raise ConfigError(f"scheduler {self._name} reads {field}, which no client reports")
        return getattr(self._state, field)


class MirrorObservation(Observation):
    """What a client reports of a cluster, at a decision.

    Args:
        state: State of the mirror.
        scheduler: Who looks; if it declares ``RUNNING``, it may read the fields of what runs.
        reports: What the client reports.
    """

    def __init__(self, state: ClusterState, scheduler: Scheduler, reports: AbstractSet[str]) -> None:
        fields = reports | OF_RUNNING if RUNNING in getattr(scheduler, "reads", ()) else reports
        super().__init__(_ReportedState(state, scheduler.name, fields))
        self._reports = reports

    def admit(self, scheduler: CompiledScheduler) -> None:
        """Refuse a compiled scheduler, asked by one in Python, that reads more.

        Raises:
            ConfigError: It does.
        """
        require_reported(scheduler, self._reports)
