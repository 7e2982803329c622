"""Batches on unequal executors (Figures 7, 8): makespan, speedup, SLR, decision time, all schedulers."""

from __future__ import annotations

import time

import pandas

from decima import plotting
from decima.systems.unequal.policy.planner import PolicyPlanner
from decima.systems.unequal.policy.scheduler import load
from decima.systems.unequal.settings import Rules
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.unequal.instances import (
    BATCH_POLICIES,
    LEARNED,
    PAPER,
    SCHEDULERS,
    SHOWN,
    WARM_START,
    best_other,
    changes,
    drawn,
    means,
    points,
    schedule_rows,
    text,
)

KEYS = ("ccr", "jobs")


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``unequal_batch`` (means), ``unequal_batch_changes`` (paired), ``unequal_batch_best``, ``_decisions``."""
    rows: list[dict] = []
    grid = [(ccr, jobs) for ccr in params["ccr"] for jobs in (*params["small"], *params["large"])]
    texts = {name: text(name) for name in SCHEDULERS} | WARM_START
    for ccr, jobs in points(context, "batches", grid):
        count = params["workloads"] if jobs in params["small"] else params["large_workloads"]
        instances = drawn(source, jobs, ccr, count, context.executors)
        rows += schedule_rows(instances, texts, ccr=str(ccr), jobs=jobs)
    table = pandas.DataFrame(rows)
    averages, paired = means(table, KEYS), changes(table, KEYS)
    counts = table.groupby(list(KEYS), sort=False)["seed"].nunique().rename("workloads").reset_index()
    decisions = [
        {"scheduler": name, "jobs": jobs, "decision_us": microseconds}
        for jobs in (*params["small"][-1:], *params["large"])
        for name, microseconds in _decision_times(source, jobs, context)
    ]
    return {
        "unequal_batch": averages.merge(counts, on=list(KEYS)),
        "unequal_batch_changes": paired,
        "unequal_batch_best": best_other(averages, paired, KEYS, PAPER),
        "unequal_batch_decisions": pandas.DataFrame(decisions),
    }


def _decision_times(source: WorkloadSource, jobs: int, context: Context):
    """Mean decision time of each network, with its executor choice, in microseconds, best of three."""
    (instance,) = drawn(source, jobs, 1.0, 1, context.executors)
    for name, policy in LEARNED.items():
        stored = load(policy)
        planner = PolicyPlanner(instance, Rules(slots="insertion"), stored.architecture)
        planner.run(stored.weights)
        seconds = []
        for _ in range(3):
            before = time.perf_counter()
            planner.run(stored.weights)
            seconds.append(time.perf_counter() - before)
        yield name, 1e6 * min(seconds) / len(instance)


def _lines(tables: Tables, run: Run, value: str, label: str, title: str) -> plotting.style.Figure:
    table = tables["unequal_batch"]
    table = table[table["scheduler"].isin(SHOWN)]
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.4)
    plotting.unequal.lines_by_ccr(table, "jobs", value, label, figure)
    counts = table["workloads"]
    seeds = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
    caption = (
        f"{seeds} batches per point on {run.cluster}, all arriving at 0; CCR: transfer over execution time. FIFO, SJF, "
        "HRRN decide a node when an executor is free, the others plan; these three and HighRankUp append, the others "
        "fill gaps. Lachesis and Decima-DEFT learned by PPO from random weights, on 20 to 60 jobs at CCR 1 to 10."
    )
    return plotting.style.entitle(figure, title, caption, run.workload)


def unequal_batch_makespan(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound, by number of jobs and CCR."""
    return _lines(tables, run, "above_bound", "makespan / lower bound", "Makespan of batches (Figures 7a and 8a)")


def unequal_batch_speedup(tables: Tables, run: Run) -> plotting.style.Figure:
    """Speedup (Eq. 13), by number of jobs and CCR."""
    return _lines(tables, run, "speedup", "speedup", "Speedup of batches (Figures 7b and 8b)")


def unequal_batch_slr(tables: Tables, run: Run) -> plotting.style.Figure:
    """Schedule length ratio (Eq. 14), by number of jobs and CCR."""
    return _lines(tables, run, "slr", "SLR", "Schedule length ratio of batches (Figures 7c and 8c)")


def unequal_batch_decisions(tables: Tables, run: Run) -> plotting.style.Figure:
    """Time of a decision, by number of jobs."""
    figure = plotting.style.new_figure(plotting.style.COLUMN, 2.4)
    table, label = tables["unequal_batch_decisions"], "time of a decision (µs)"
    plotting.unequal.lines(table, "jobs", "decision_us", label, figure.subplots())
    caption = "Mean over all decisions of one batch, node and executor; paper: 98 % below 14 and 30 ms."
    return plotting.style.entitle(figure, "Time of a decision (Figures 7d, 8d)", caption, run.workload)


EXPERIMENT = Experiment(
    "unequal_batch",
    "Luo et al., Figures 7 and 8",
    compute,
    figures=(unequal_batch_makespan, unequal_batch_speedup, unequal_batch_slr, unequal_batch_decisions),
    inputs=(Profiles(), Policies(BATCH_POLICIES)),
    tiny={"ccr": ["measured", 5], "small": [1, 2], "large": [3], "workloads": 2, "large_workloads": 2},
    may_differ={"unequal_batch_decisions": ("decision_us",)},
)
