"""Benefit of learning and copies (on, off, dropped): gain, headroom, optima by CCR, executors, jobs."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.evaluation.statistics import paired_change
from decima.plotting.words import count
from decima.systems.heterogeneous import make_scheduler, search
from decima.systems.heterogeneous.generators import random_dag
from decima.systems.heterogeneous.optimum.exact import NotProvedError, optimum
from decima.workload.sources import WorkloadSource
from experiments.captions import INTERVAL, Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.heterogeneous import ROOMS
from experiments.heterogeneous.instances import (
    BATCH_POLICIES,
    BOUND,
    OURS,
    WARM_START,
    drawn,
    points,
    schedule_rows,
    text,
)

BASE = "high_rank_up_deft"
MAP = ("heft", BASE, "discounted_rank", "linear_rank", "decima_deft", OURS)
COPIES = ("high_rank_up_deft", "discounted_rank", "linear_rank", OURS)
KINDS = {"copies": "", "no copies": "duplicate=false", "unread dropped": "drop_unread=true"}
SMALL = ("heft", BASE, "discounted_rank", "linear_rank", OURS)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``heterogeneous_map``, ``heterogeneous_copies`` and ``heterogeneous_optimum``."""
    grid = [
        (ccr, executors, jobs) for ccr in params["ccr"] for executors in params["executors"] for jobs in params["jobs"]
    ]
    entries = []
    for ccr, executors, jobs in points(context, "map", grid):
        instances = drawn(source, jobs, ccr, params["workloads"], executors)
        where = {"ccr": str(ccr), "executors": executors, "jobs": jobs, "batches": len(instances)}
        table = pandas.DataFrame(schedule_rows(instances, {name: text(name) for name in MAP} | WARM_START))
        wide = table.pivot(index="seed", columns="scheduler", values="makespan_s")
        wide["search"] = [search(each, params["budget"], seed).makespan_s for seed, each in enumerate(instances)]
        for name in (*(name for name in MAP if name != BASE), *WARM_START, "search", BOUND):
            change = paired_change(wide[name].to_numpy(), wide[BASE].to_numpy())
            entries.append(
                where | {"scheduler": name, **dict(zip(("change_percent", "low", "high"), change, strict=True))}
            )
    return {
        "heterogeneous_map": pandas.DataFrame(entries),
        "heterogeneous_copies": _copies(source, params, context),
        "heterogeneous_optimum": _optima(params, context),
    }


def _copies(source: WorkloadSource, params: dict, context: Context) -> pandas.DataFrame:
    """Makespan with copies, without, and with unread ones dropped, against without duplicates."""
    rows = []
    for (ccr,) in points(context, "copies", [(ccr,) for ccr in params["ccr"]]):
        instances = drawn(source, params["copied_jobs"], ccr, params["workloads"], context.executors)
        texts = {f"{name}/{variant}": text(name, setting) for name in COPIES for variant, setting in KINDS.items()}
        table = pandas.DataFrame(schedule_rows(instances, texts))
        wide = table.pivot(index="seed", columns="scheduler", values="makespan_s")
        for name in COPIES:
            for variant in ("copies", "unread dropped"):
                change = paired_change(wide[f"{name}/{variant}"].to_numpy(), wide[f"{name}/no copies"].to_numpy())
                rows.append((str(ccr), name, variant, len(instances), *change))
    return pandas.DataFrame(rows, columns=["ccr", "scheduler", "copies", "batches", "change_percent", "low", "high"])


def _optima(params: dict, context: Context) -> pandas.DataFrame:
    """Distance from the proved optimum with copies, on random DAGs of a few nodes."""
    rows = []
    for ccr, nodes, executors in points(context, "optima", [tuple(each) for each in params["small"]]):
        gaps: dict[str, list[float]] = {name: [] for name in (*SMALL, "search")}
        proved = 0
        for seed in range(params["small_instances"]):
            instance = random_dag(nodes, executors, ccr=ccr, seed=seed)
            try:
                best_s = optimum(instance, time_limit_s=params["limit_s"]).makespan_s
            except NotProvedError:
                continue
            proved += 1
            for name in SMALL:
                gaps[name].append(100.0 * (make_scheduler(text(name)).schedule(instance).makespan_s / best_s - 1.0))
            best = search(instance, params["budget"], seed)
            gaps["search"].append(100.0 * (best.makespan_s / best_s - 1.0))
        for name, values in gaps.items():
            if values:
                mean = sum(values) / len(values)
                rows.append((ccr, nodes, executors, name, proved, mean, max(values)))
    columns = ["ccr", "nodes", "executors", "scheduler", "proved", "gap_percent", "largest_percent"]
    return pandas.DataFrame(rows, columns=columns)


def heterogeneous_headroom(tables: Tables, run: Run) -> plotting.style.Figure:
    """Change against HighRankUp-DEFT over CCR and jobs at the largest cluster, with search and bound."""
    table = tables["heterogeneous_map"]
    table = table[(table["executors"] == table["executors"].max()) & ~table["scheduler"].isin(WARM_START)]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.2)
    plotting.heterogeneous.change_panels(table, "jobs", figure)
    caption = (
        f"Makespan against HighRankUp-DEFT, paired over {count(table['batches'].max(), 'batch')} per point, one seed "
        f"each; bars: {INTERVAL}. Lachesis and Decima-DEFT: trained from scratch. Search tries priorities of one "
        f"instance; no schedule is below the bound. "
        f"{table['executors'].max()} executors."
    )
    return plotting.style.entitle(figure, "Gain and headroom", caption, run.workload)


def heterogeneous_copies(tables: Tables, run: Run) -> plotting.style.Figure:
    """What copies change, as they are and with unread ones dropped."""
    table = tables["heterogeneous_copies"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.0)
    plotting.heterogeneous.settings_points(
        table, "ccr", "change_percent", "change of makespan (%)", figure, panels="copies", intervals=True
    )
    caption = (
        f"Against the same scheduler without duplicates, paired over {count(table['batches'].max(), 'batch')}, "
        f"one seed "
        f"each; bars: {INTERVAL}; {run.cluster}."
    )
    return plotting.style.entitle(figure, "Effect of task duplication", caption, run.workload)


EXPERIMENT = Experiment(
    "heterogeneous_map",
    "Luo et al., section V",
    compute,
    rooms=ROOMS,
    figures=(heterogeneous_headroom, heterogeneous_copies),
    inputs=(Profiles(), Policies((*BATCH_POLICIES, "decima-deft-batch"))),  # the exact search starts from all
    tiny={
        "ccr": [0.1, 5], "executors": [4], "jobs": [2], "workloads": 2, "budget": 20, "copied_jobs": 3,
        "small": [[1.0, 6, 2]], "small_instances": 2, "limit_s": 20,
    },
)  # fmt: skip
