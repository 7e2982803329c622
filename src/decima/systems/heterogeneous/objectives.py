"""Objectives and metrics of schedules on heterogeneous executors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.core.objectives import Outcome, objective_at_end
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.workload import Instance


@dataclass(frozen=True)
class Metrics:
    """Numbers about one schedule."""

    makespan_s: float  # from time 0 until the last job completes
    speedup: float  # Eq. 13: all nodes one after the other on the best executor, over the makespan
    slr: float  # Eq. 14: makespan over the longest path with the smallest times; NaN where jobs arrive later than 0
    avg_jct_s: float  # mean time from arrival to completion of a job
    utilisation: float  # part of executors x finish of the last copy that nodes are executed in, 0 to 1
    duplicates: int  # copies beyond one per node
    duplicated: float  # part of the executed time that further copies take, 0 to 1
    transferred: float  # data sent between executors, each copy reading the copy whose data arrives first


@dataclass(frozen=True, eq=False)
class HeterogeneousOutcome(Outcome):
    """Outcome of a schedule with its metrics and a lower bound."""

    metrics: Metrics
    bound_s: float  # no schedule of the instance is shorter


OBJECTIVES = (
    objective_at_end(
        "above_bound",
        "makespan over the lower bound",
        "",
        lambda run: _over(run.metrics.makespan_s, run.bound_s),
        digits=3,
    ),
    objective_at_end("speedup", "speedup", "", lambda run: run.metrics.speedup, "max"),
    objective_at_end("slr", "schedule length ratio", "", lambda run: run.metrics.slr),
    objective_at_end("utilisation", "utilisation", "", lambda run: run.metrics.utilisation, "max"),
    objective_at_end("duplicates", "further copies", "", lambda run: float(run.metrics.duplicates)),
    objective_at_end("transferred", "data sent", "", lambda run: run.metrics.transferred),
)


def metrics(schedule: Schedule) -> Metrics:
    """Compute the metrics of a valid schedule; all copies count as work."""
    instance = schedule.instance
    makespan_s = schedule.makespan_s
    busy = schedule.finish_s - schedule.start_s
    reads = schedule.sources()
    return Metrics(
        makespan_s=makespan_s,
        speedup=_over(sequential_s(instance), makespan_s),
        slr=_over(makespan_s, critical_path_s(instance)) if instance.arrival_s.max() == 0.0 else float("nan"),
        avg_jct_s=float(np.mean(schedule.completion_s - [job.arrival_s for job in instance.jobs])),
        utilisation=_over(float(busy.sum()), len(instance.cluster) * float(schedule.finish_s.max())),
        duplicates=int(schedule.duplicate.sum()),
        duplicated=_over(float(busy[schedule.duplicate].sum()), float(busy.sum())),
        transferred=_transferred(schedule, reads),
    )


def sequential_s(instance: Instance) -> float:
    """Sequential time in seconds of all nodes on the best executor (Eq. 13); NaN if none can execute all."""
    cluster = instance.cluster
    if cluster.costs is not None:
        alone_s = float(cluster.costs.sum(axis=0).min())
        return alone_s if np.isfinite(alone_s) else float("nan")
    return float(instance.work.sum() / cluster.speeds.max())


def critical_path_s(instance: Instance) -> float:
    """Longest path in seconds with smallest times and no transfers (Eq. 14)."""
    return float(instance.longest_down(instance.least_time_s).max())


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else float("nan")


def _transferred(schedule: Schedule, reads: np.ndarray) -> float:
    start, _, data = schedule.instance.parents
    # Reads come copy by copy, in the order of each node's parents.
    edges = [np.arange(start[node], start[node + 1]) for node in schedule.node]
    sent = data[np.concatenate(edges)] if edges else np.zeros(0)
    apart = schedule.executor[reads[:, 0]] != schedule.executor[reads[:, 1]]
    return float(sent[apart].sum())
