"""§7.2, continuous arrivals: Poisson streams of jobs (Figures 9b and 10)."""

from __future__ import annotations

import numpy as np
import pandas

from decima.evaluation.alpha import alpha_sweep
from decima.evaluation.experiments.learned import BASELINES, learned_schedulers
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import paired_changes, score_table
from decima.evaluation.experiments.tuning import SHOWN, tuned_schedulers, weighted_fair_by_arrival
from decima.evaluation.run import simulate
from decima.schedulers import make_scheduler
from decima.simulator.result import Result
from decima.workload.sources import WorkloadSource

UNTUNED = ("fifo", "sjf_cp", "fair", "naive_weighted_fair")
# Whose tasks are looked at one by one (Figure 10d and e).
EXECUTED = ("weighted_fair", "decima")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``stream``, ``stream_changes``, ``alpha_stream``; of the first stream ``stream_jobs``, ``stream_series``.

    ``stream_executed`` holds the executor time that jobs of the first stream took, for the schedulers in ``EXECUTED``.
    """
    seeds = list(range(params["streams"]))
    learned = learned_schedulers(context, "stream")
    scores, changes, curves, jobs, series, executed = [], [], [], [], [], []
    for gap_s in params["interarrival_s"]:
        kind = f"stream-{gap_s}s"
        workloads = source.streams(seeds, params["jobs"], gap_s)
        schedulers = {name: make_scheduler(name) for name in UNTUNED} | tuned_schedulers(context, kind)
        schedulers |= {"weighted_fair_arrival": weighted_fair_by_arrival(context, kind)}
        schedulers |= learned
        gap = {"interarrival_s": gap_s}
        table = score_table(schedulers, workloads, seeds, context.settings(), context, f"streams, {gap_s} s", **gap)
        scores.append(table)
        changes.append(paired_changes(table, ["capped_srw", *learned], BASELINES).assign(**gap))
        few = params["alpha_streams"]
        sweep = alpha_sweep(
            workloads[:few],
            context.settings(),
            variants=SHOWN,
            seeds=seeds[:few],
            threads=context.threads,
            progress=context.bar("alpha"),
        )
        curves.append(sweep.table.assign(**gap))
        for name, scheduler in schedulers.items():
            result = simulate(workloads[0], scheduler, context.executors, seeds[0], log=name in EXECUTED)
            columns = {"scheduler": name, "seed": seeds[0]} | gap
            jobs.append(result.jobs.assign(job=np.arange(len(workloads[0])), **columns))
            series.append(_active_jobs(result, params["series_step_s"]).assign(**columns))
            if name in EXECUTED:
                executed.append(executed_work(result).assign(**columns))
    return {
        "stream": pandas.concat(scores),
        "stream_changes": pandas.concat(changes),
        "alpha_stream": pandas.concat(curves),
        "stream_jobs": pandas.concat(jobs),
        "stream_series": pandas.concat(series),
        "stream_executed": pandas.concat(executed),
    }


def executed_work(result: Result) -> pandas.DataFrame:
    """What each job of a logged run took.

    Returns:
        job; executed_s, the duration of all its tasks, in executor seconds; executors, how many of them ran its tasks
        on average between the start of its first task and its completion.
    """
    log = result.log
    number = len(result.workload)
    executed_s = np.bincount(log.job, weights=log.finish_ms - log.start_ms, minlength=number) / 1000.0
    first_ms = np.full(number, np.inf)
    np.minimum.at(first_ms, log.job, log.start_ms)
    running_s = (result.completion_ms - first_ms) / 1000.0
    executors = np.divide(executed_s, running_s, out=np.zeros(number), where=running_s > 0.0)
    return pandas.DataFrame({"job": np.arange(number), "executed_s": executed_s, "executors": executors})


def _active_jobs(result: Result, step_s: float) -> pandas.DataFrame:
    """Jobs in the system at regular times."""
    times = np.arange(0.0, result.end_ms / 1000.0 + step_s, step_s)
    arrived = np.searchsorted(np.sort(result.workload.arrival_ms / 1000.0), times, side="right")
    finished = np.searchsorted(np.sort(result.completion_ms / 1000.0), times, side="right")
    return pandas.DataFrame({"time_s": times, "active_jobs": arrived - finished})
