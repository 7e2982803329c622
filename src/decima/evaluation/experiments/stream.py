"""§7.2, continuous arrivals: Poisson streams of jobs (Figures 9b and 10a)."""

from __future__ import annotations

import numpy as np
import pandas

from decima.evaluation.alpha import alpha_sweep
from decima.evaluation.experiments.batch import SHOWN
from decima.evaluation.experiments.sources import Source
from decima.evaluation.experiments.store import Context
from decima.evaluation.experiments.tidy import score_table
from decima.evaluation.experiments.tuning import tuned_schedulers
from decima.evaluation.run import simulate
from decima.schedulers import make_scheduler
from decima.simulator.result import Result

UNTUNED = ("fifo", "sjf_cp", "fair", "naive_weighted_fair")


def compute(source: Source, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``stream``, ``alpha_stream``, and of the first stream ``stream_jobs`` and ``stream_series``."""
    seeds = list(range(params["streams"]))
    scores, curves, jobs, series = [], [], [], []
    for gap_s in params["interarrival_s"]:
        workloads = source.streams(seeds, params["jobs"], gap_s)
        schedulers = {name: make_scheduler(name) for name in UNTUNED}
        schedulers |= tuned_schedulers(context, f"stream-{gap_s}s")
        gap = {"interarrival_s": gap_s}
        scores.append(
            score_table(schedulers, workloads, seeds, context.settings(), context, f"streams, {gap_s} s", **gap)
        )
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
            result = simulate(workloads[0], scheduler, context.executors, seeds[0])
            columns = {"scheduler": name, "seed": seeds[0]} | gap
            jobs.append(result.jobs.assign(job=np.arange(len(workloads[0])), **columns))
            series.append(_active_jobs(result, params["series_step_s"]).assign(**columns))
    return {
        "stream": pandas.concat(scores),
        "alpha_stream": pandas.concat(curves),
        "stream_jobs": pandas.concat(jobs),
        "stream_series": pandas.concat(series),
    }


def _active_jobs(result: Result, step_s: float) -> pandas.DataFrame:
    """Jobs in the system at regular times."""
    times = np.arange(0.0, result.end_ms / 1000.0 + step_s, step_s)
    arrived = np.searchsorted(np.sort(result.workload.arrival_ms / 1000.0), times, side="right")
    finished = np.searchsorted(np.sort(result.completion_ms / 1000.0), times, side="right")
    return pandas.DataFrame({"time_s": times, "active_jobs": arrived - finished})
