"""Streams on heterogeneous executors (Figure 9), with nodes decided at three different times."""

from __future__ import annotations

import pandas

from decima import plotting
from decima.systems.heterogeneous.generators import PAPER_GAP_S
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Policies, Profiles
from experiments.heterogeneous import ROOMS
from experiments.heterogeneous.instances import (
    BATCH_POLICIES,
    OURS,
    WARM_START,
    best_other,
    changes,
    drawn,
    means,
    points,
    schedule_rows,
    text,
)

KEYS = ("ccr", "jobs", "decision")
PAPER = ("fifo_deft", "sjf_deft", "hrrn_deft", "high_rank_up_deft", "decima_deft")
ALL = (*PAPER, "linear_rank", "discounted_rank", OURS)
# Weights that were trained on streams, where the others were trained on batches; in tables only.
TRAINED_ON_STREAMS = {"lachesis/stream": "lachesis-stream", "decima_deft/stream": "decima-deft-stream"}
REFERENCE = "high_rank_up_deft"  # of what is drawn


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables ``heterogeneous_stream`` (means), with this prefix ``changes``, ``best``, ``dense``, ``dense_best``.

    The last two have streams so dense that jobs wait; nodes are decided for free executors there.
    """
    table = _schedules(source, params, context, PAPER_GAP_S, params["decisions"])
    dense = _schedules(source, params, context, params["dense_gap_s"], ["idle"])
    averages, paired, dense_averages = means(table, KEYS), changes(table, KEYS), means(dense, KEYS)
    return {
        "heterogeneous_stream": averages.assign(streams=params["streams"]),
        "heterogeneous_stream_changes": paired,
        "heterogeneous_stream_best": best_other(averages, paired, KEYS, PAPER),
        "heterogeneous_stream_dense": dense_averages.assign(gap_s=params["dense_gap_s"]),
        "heterogeneous_stream_dense_best": best_other(dense_averages, changes(dense, KEYS), KEYS, PAPER),
    }


def _schedules(
    source: WorkloadSource, params: dict, context: Context, gap_s: float, decisions: list[str]
) -> pandas.DataFrame:
    """Rows of every stream, scheduler and time of decision at one mean gap."""
    rows: list[dict] = []
    grid = [(ccr, jobs) for ccr in params["ccr"] for jobs in params["jobs"]]
    for ccr, jobs in points(context, f"streams, {gap_s:g} s", grid):
        instances = drawn(source, jobs, ccr, params["streams"], context.executors, gap_s)
        for decision in decisions:
            slots = "insertion" if decision == "plan" else "append"
            settings = f"decision={decision},slots={slots}"
            texts = {name: text(name, settings) for name in ALL}
            texts |= {name: f"{scheduler}:{settings}" for name, scheduler in WARM_START.items()}
            for name, policy in TRAINED_ON_STREAMS.items():
                texts[name] = f"{name.partition('/')[0]}:{settings},policy={policy}"
            rows += schedule_rows(instances, texts, ccr=str(ccr), jobs=jobs, decision=decision)
    return pandas.DataFrame(rows)


def heterogeneous_stream_makespan(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan over the lower bound by jobs and CCR, for decisions at idle executors."""
    table = tables["heterogeneous_stream"]
    table = table[table["decision"] == "idle"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.6)
    plotting.heterogeneous.change_of_means(
        table,
        "jobs",
        "makespan_s",
        f"makespan against\n{plotting.style.scheduler_style(REFERENCE).label} (%)",
        figure,
        reference=REFERENCE,
        names=ALL,
    )
    caption = (
        f"Change of the mean over {table['streams'].max()} streams per point on {run.cluster}, with a mean time "
        "between arrivals of 45 s. A node is assigned when its parents have finished and an executor is free. Lachesis "
        "and Decima-DEFT: trained on batches from scratch. The tables have paired intervals."
    )
    return plotting.style.entitle(figure, "Makespan of streams (Figure 9a)", caption, run.workload)


def heterogeneous_decisions(tables: Tables, run: Run) -> plotting.style.Figure:
    """Makespan by time of decision, against decisions ahead, at the largest number of jobs."""
    table = tables["heterogeneous_stream"]
    table = table[(table["jobs"] == table["jobs"].max()) & table["scheduler"].isin(ALL)]
    wide = table.pivot(index=["ccr", "scheduler"], columns="decision", values="makespan_s")
    change = 100.0 * (wide.div(wide["plan"], axis=0) - 1.0)
    later = table[table["decision"] != "plan"]
    later = later.assign(change=[change.loc[(row.ccr, row.scheduler), row.decision] for row in later.itertuples()])
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.9)
    label = "makespan against\nassignment ahead (%)"
    plotting.heterogeneous.settings_points(later, "decision", "change", label, figure)
    caption = (
        f"Change of the mean over {table['streams'].max()} streams of {table['jobs'].max()} jobs per point, "
        f"{run.cluster}. Reference: a node is assigned as soon as its parents are assigned. Event: when its parents "
        "have finished. Idle: when also an executor is free."
    )
    return plotting.style.entitle(figure, "Effect of the time of the decision", caption, run.workload)


EXPERIMENT = Experiment(
    "heterogeneous_stream",
    "Luo et al., Figure 9",
    compute,
    rooms=ROOMS,
    figures=(heterogeneous_stream_makespan, heterogeneous_decisions),
    inputs=(Profiles(), Policies((*BATCH_POLICIES, *TRAINED_ON_STREAMS.values()))),
    tiny={"ccr": [0.1, 5], "jobs": [2, 4], "streams": 2, "decisions": ["plan", "event", "idle"], "dense_gap_s": 5},
)
