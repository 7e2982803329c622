"""Batches on heterogeneous executors (Figures 7, 8): makespan, speedup, SLR, decision time, all schedulers."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.heterogeneous import ROOMS
from experiments.heterogeneous.instances import (
    BATCH_POLICIES,
    PAPER,
    SCHEDULERS,
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
# What the figures compare, and with what.
REFERENCE, COMPARED = "high_rank_up_deft", ("fifo_deft", "heft", "tdca", "decima_deft", "lachesis")
# Rules of the paper that decide when an executor is free, as Lachesis decides and places; in tables only.
PLANNED = {f"{name}/plan": f"{name}:decision=plan,slots=insertion" for name in ("fifo_deft", "sjf_deft", "hrrn_deft")}


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``heterogeneous_batch`` (means), with this prefix ``changes`` (paired) and ``best``."""
    rows: list[dict] = []
    grid = [(ccr, jobs) for ccr in params["ccr"] for jobs in (*params["small"], *params["large"])]
    texts = {name: text(name) for name in SCHEDULERS} | WARM_START | PLANNED
    for ccr, jobs in points(context, "batches", grid):
        count = params["workloads"] if jobs in params["small"] else params["large_workloads"]
        instances = drawn(source, jobs, ccr, count, context.executors)
        rows += schedule_rows(instances, texts, ccr=str(ccr), jobs=jobs)
    table = pandas.DataFrame(rows)
    averages, paired = means(table, KEYS), changes(table, KEYS)
    counts = table.groupby(list(KEYS), sort=False)["seed"].nunique().rename("workloads").reset_index()
    return {
        "heterogeneous_batch": averages.merge(counts, on=list(KEYS)),
        "heterogeneous_batch_changes": paired,
        "heterogeneous_batch_best": best_other(averages, paired, KEYS, PAPER),
    }


def _lines(tables: Tables, run: Run, value: str, label: str, title: str) -> plotting.style.Figure:
    table = tables["heterogeneous_batch"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.9)
    label = f"{label} against\n{plotting.style.scheduler_style(REFERENCE).label} (%)"
    plotting.heterogeneous.change_of_means(table, "jobs", value, label, figure, reference=REFERENCE, names=COMPARED)
    counts = table["workloads"]
    seeds = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
    caption = (
        f"Change of the mean over {seeds} batches per point, whose jobs all arrive at 0; {run.cluster}. CCR: transfer "
        "over execution time. Lachesis and Decima-DEFT: PPO from scratch, on 20 to 60 jobs at CCR 1 "
        "to 10. Logarithmic beyond 5 %. The tables have all schedulers of the paper, and paired intervals."
    )
    return plotting.style.entitle(figure, title, caption, run.workload)


def heterogeneous_batch_makespan(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound, by number of jobs and CCR."""
    return _lines(tables, run, "makespan_s", "makespan", "Makespan of batches (Figures 7a and 8a)")


def heterogeneous_batch_speedup(tables: Tables, run: Run) -> plotting.style.Figure:
    """Speedup (Eq. 13), by number of jobs and CCR."""
    return _lines(tables, run, "speedup", "speedup", "Speedup of batches (Figures 7b and 8b)")


def heterogeneous_batch_slr(tables: Tables, run: Run) -> plotting.style.Figure:
    """Schedule length ratio (Eq. 14), by number of jobs and CCR."""
    return _lines(tables, run, "slr", "SLR", "Schedule length ratio of batches (Figures 7c and 8c)")


EXPERIMENT = Experiment(
    "heterogeneous_batch",
    "Luo et al., Figures 7 and 8",
    compute,
    rooms=ROOMS,
    figures=(heterogeneous_batch_makespan, heterogeneous_batch_speedup, heterogeneous_batch_slr),
    inputs=(Profiles(), Policies(BATCH_POLICIES)),
    tiny={"ccr": ["measured", 5], "small": [1, 2], "large": [3], "workloads": 2, "large_workloads": 2},
)
