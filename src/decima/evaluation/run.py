"""Run schedulers on workloads: one run with all its detail, or many runs for one number each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decima.schedulers import CompiledScheduler, Observation, Scheduler, make_scheduler
from decima.schedulers.interface import decision_parts
from decima.simulator.result import Result
from decima.simulator.seeding import spawn_generators
from decima.simulator.settings import Settings
from decima.simulator.state import ClusterState
from decima.simulator.tables import WorkloadTables
from decima.workload.jobs import Workload


def run_state(state: ClusterState, scheduler: Scheduler, seed: int) -> None:
    """Run a state from time 0 to the end.

    A compiled scheduler runs inside the core, any other through ``decide``; an empty frontier is idled through without
    asking the latter. Both ways give the same run for the same decisions.

    Raises:
        SchedulerError: The scheduler returned something that is no decision.
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
    while state.advance():
        if state.num_frontier == 0:
            state.decide(-1)
            continue
        state.decide(*decision_parts(scheduler.decide(observation)))


def simulate(
    jobs: Workload | str | Path,
    scheduler: str | Scheduler = "fair",
    executors: int = 50,
    seed: int = 0,
    *,
    mode: str = "paper",
    log: bool = False,
    parameters: dict[str, float] | None = None,
    **settings,
) -> Result:
    """Run one scheduler on one workload.

    Args:
        jobs: A workload, or the path of a job file for ``decima.load``.
        scheduler: Registered name, or any object with ``name``, ``reset`` and ``decide``.
        executors: Executors of the cluster.
        seed: Source of task durations and of the scheduler's chance.
        mode: ``"paper"``, ``"released"`` or ``"simplified"``.
        log: Keep every task and decision.
        parameters: Parameters of the scheduler, for a scheduler given by name.
        **settings: Further fields of :class:`decima.simulator.settings.Settings`.

    Raises:
        DecimaError: Bad input; the message says what and where.
    """
    if not isinstance(jobs, Workload):
        from decima.workload import load

        jobs = load(jobs)
    scheduler = make_scheduler(scheduler, **(parameters or {}))
    cluster = Settings.of_mode(mode, executors=executors, **settings)
    state = ClusterState(WorkloadTables(jobs, cluster), cluster, log_tasks=log, log_decisions=log)
    run_state(state, scheduler, seed)
    return Result.of_state(state, jobs, scheduler.name, seed)


def mean_jct_s(state: ClusterState) -> float:
    """Average JCT in seconds of the finished jobs of a state that has run, NaN if there is none."""
    jct_ms = (state.job_finish_ms - state.job_arrival_ms)[~np.isnan(state.job_finish_ms)]
    return float(np.mean(jct_ms)) / 1000.0 if len(jct_ms) else float("nan")


def makespan_s(state: ClusterState) -> float:
    """Completion of the last job in seconds; NaN if one is unfinished."""
    return float(np.max(state.job_finish_ms)) / 1000.0


METRICS: dict[str, Callable[[ClusterState], float]] = {"avg_jct_s": mean_jct_s, "makespan_s": makespan_s}


def score_matrix(
    workloads: Sequence[Workload],
    schedulers: Sequence[Scheduler],
    settings: Settings,
    *,
    seeds: Sequence[int] | None = None,
    metric: str = "avg_jct_s",
    threads: int | None = None,
    progress: str | None = None,
) -> np.ndarray:
    """Score every scheduler on every workload, on all cores.

    Args:
        workloads: What to run, W of them.
        schedulers: S schedulers. Compiled ones run in threads, others one run after the other.
        settings: The cluster.
        seeds: One seed per workload, 0..W-1 by default. All schedulers meet the same seed on a workload.
        metric: Name in ``METRICS``.
        threads: Workers, all cores by default. The result does not depend on it.
        progress: Label of a progress bar; None for no bar.

    Returns:
        float64 [S, W].
    """
    from decima.evaluation.pool import RunPool

    pool = RunPool(workloads, settings, seeds=seeds, threads=threads, keep=False)
    return pool.measure(schedulers, (metric,), progress=progress)[metric]
