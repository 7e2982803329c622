"""The loop over the decisions of a run, and the one place that makes a state of a workload and settings."""

from __future__ import annotations

from collections.abc import Iterator

from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Workload


def new_state(
    workload: Workload | WorkloadTables,
    settings: Settings,
    *,
    log_tasks: bool = False,
    log_decisions: bool = False,
) -> ClusterState:
    """Memory for runs of a workload, one after the other.

    Args:
        workload: The jobs, or their tables, which several states may share.
        settings: The cluster; tables must have been made with the same settings.
        log_tasks: Keep every task.
        log_decisions: Keep every decision.
    """
    tables = workload if isinstance(workload, WorkloadTables) else WorkloadTables(workload, settings)
    return ClusterState(tables, settings, log_tasks=log_tasks, log_decisions=log_decisions)


def offers(state: ClusterState) -> Iterator[None]:
    """Run from one decision to the next until the end; the caller answers each by :meth:`ClusterState.decide`.

    Where executors are offered but no stage can be chosen, they are left idle without asking.

    Yields:
        None, whenever executors are offered and a stage can be chosen.

    Raises:
        InvalidDecisionError: The answer cannot be carried out.
        DeadlockError: Every executor is parked and jobs are unfinished.
    """
    while state.advance():
        if state.num_frontier == 0:
            state.decide(-1)
        else:
            yield
