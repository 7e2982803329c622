"""States of a workload and settings, their generators, and the loop over decisions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import DeadlockError
from decima.systems.spark import engine
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


def offers(state: ClusterState, again: bool = False) -> Iterator[None]:
    """Run from decision to decision; the caller answers by :meth:`decima.systems.spark.state.ClusterState.decide`.

    Where executors are offered but no stage can be chosen, they are left idle without asking.

    Args:
        state: The state.
        again: Offer all executors again where every one is parked, as the Gymnasium environment does.

    Yields:
        None, whenever executors are offered and a stage can be chosen.

    Raises:
        InvalidDecisionError: The answer cannot be carried out.
        DeadlockError: Every executor is parked and jobs are unfinished.
    """
    rescued = not again
    while True:
        try:
            if not state.advance():
                return
        except DeadlockError:
            if rescued:
                raise
            rescued = True
            engine.offer_all(state.address)
            continue
        if state.num_frontier == 0:
            state.decide(-1)
        else:
            rescued = not again
            yield


# ---- one seed, several independent random generators --------------------------------------------------------------


def spawn_generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for task durations and for the scheduler, from one seed.

    Raises:
        ConfigError: The seed is not a whole number of at least 0.
    """
    check_whole("seed", seed, least=0)
    durations, policy = np.random.SeedSequence(int(seed)).spawn(2)
    return np.random.default_rng(durations), np.random.default_rng(policy)
