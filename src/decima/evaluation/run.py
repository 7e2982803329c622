"""Runs of schedulers on workloads: one in detail, or a score of each of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import ConfigError
from decima.core.objectives import Objective
from decima.core.system import (
    OPTIMA,
    Best,
    RunResult,
    System,
    SystemScheduler,
    SystemSettings,
    SystemWorkload,
    chosen_settings,
    objective_of,
    require_workload,
    system_of,
)
from decima.evaluation.pool import RunPool


def simulate(
    jobs: SystemWorkload | str | Path,
    scheduler: str | SystemScheduler = "fair",
    executors: int | None = None,
    seed: int = 0,
    *,
    mode: str | None = None,
    cluster: SystemSettings | None = None,
    system: str | None = None,
    log: bool = False,
    parameters: dict[str, float] | None = None,
    **settings,
) -> RunResult:
    """Run one scheduler on one workload.

    Example:
        >>> result = simulate("embedded:n=3", "fair", executors=10)
        >>> round(result.avg_jct_s, 1)
        178.9

    Args:
        jobs: A workload; or a text of the system, the name of a source with options or the path of a file.
        scheduler: Registered name, or an object that decides as the system's schedulers do.
        executors: Executors of the cluster, 50 by default.
        seed: Random seed for task durations and for the scheduler.
        mode: ``"paper"`` (the default), ``"released"`` or ``"simplified"``.
        cluster: Settings of the cluster, or of another system, instead of ``executors``, ``mode`` and further fields.
        system: Name of the system where neither jobs nor ``cluster`` say it; ``"spark"`` when omitted.
        log: Keep every task and decision.
        parameters: Parameters of the scheduler, for a scheduler given by name.
        **settings: Further fields of the system's settings, such as :class:`decima.systems.spark.settings.Settings`.

    Returns:
        Of the Spark cluster a :class:`decima.systems.spark.result.Result`.

    Raises:
        DecimaError: Bad input; the message has the input and the place.
    """
    chosen = chosen_settings(jobs, cluster, mode, system, executors=executors, **settings)
    runs, jobs = _read(jobs, chosen, seed)
    parameters = {} if parameters is None else parameters
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise ConfigError(f"parameters must be values by name, got {parameters!r:.60}")
    policy = runs.make_scheduler(scheduler, **parameters)
    state = runs.state(runs.tables(jobs, chosen), chosen, log=log)
    runs.run(state, policy, seed)
    return runs.result(state, policy.name, seed)


def optimum(
    jobs: SystemWorkload | str | Path,
    executors: int | None = None,
    seed: int = 0,
    *,
    budget: int = 2000,
    mode: str | None = None,
    cluster: SystemSettings | None = None,
    system: str | None = None,
    **settings,
) -> Best:
    """Find the best offline schedule (all jobs known in advance) and a lower bound.

    On the Spark cluster a search for the least average JCT and its lower bound, for heterogeneous executors the
    least makespan, for placement the greatest reward; the last two are proved where the instance is small enough.

    Example:
        >>> best = optimum("embedded:n=1", executors=5, budget=2)
        >>> best.bound <= best.value
        True

    Args:
        jobs: As in :func:`simulate`.
        executors: As in :func:`simulate`.
        seed: Random seed of drawn jobs, of sampled durations, which the search knows, and of the search.
        budget: Schedules to try, at least 1.
        mode: As in :func:`simulate`.
        cluster: As in :func:`simulate`.
        system: As in :func:`simulate`.
        **settings: As in :func:`simulate`.

    Raises:
        DecimaError: Bad input; the message has the input and the place.
    """
    check_whole("budget", budget, least=1)
    chosen = chosen_settings(jobs, cluster, mode, system, executors=executors, **settings)
    runs, jobs = _read(jobs, chosen, seed)
    return OPTIMA.find(runs.name)(jobs, chosen, budget, seed)


def _read(jobs: SystemWorkload | str | Path, settings: SystemSettings, seed: int) -> tuple[System, SystemWorkload]:
    """System of settings, and its workload; a text is read."""
    system = system_of(settings)
    if isinstance(jobs, (str, Path)):
        jobs = system.read_jobs(str(jobs)).workload(seed)
    require_workload(system, jobs)
    return system, jobs


def score_matrix(
    workloads: Sequence[SystemWorkload],
    schedulers: Sequence[SystemScheduler],
    settings: SystemSettings,
    *,
    seeds: Sequence[int] | None = None,
    metric: str | Objective = "avg_jct",
    workers: int | None = None,
    backend: str | None = None,
    progress: str | None = None,
) -> np.ndarray:
    """Score every scheduler on every workload; see :class:`decima.evaluation.pool.RunPool` for the arguments.

    Returns:
        float64 [schedulers, workloads].
    """
    with RunPool(workloads, settings, seeds=seeds, workers=workers, backend=backend, keep=False) as pool:
        return pool.measure(schedulers, (metric,), progress=progress)[objective_of(pool.system, metric).column]
