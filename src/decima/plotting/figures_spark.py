"""Figures of the experiment on real Spark: Figure 3 on a real cluster, beside the simulator's."""

from __future__ import annotations

import pandas

from decima.plotting import bars, gantt, style
from decima.plotting.run import INTERVAL, Run, Tables
from decima.plotting.style import Figure, count

WORKLOAD = "TPC-H on Spark"
TITLES = {"avg_jct_s": "average JCT", "makespan_s": "makespan"}


def real_spark_gantt(tables: Tables, run: Run) -> Figure:
    """Figure 3 on real Spark, and the same batch in simulation."""
    tasks, plan = tables["real_spark_tasks"], tables["real_spark_plan"].iloc[0]
    figure = gantt.gantt_grid(tasks, executors=int(plan["executors"]))
    caption = (
        f"One batch of {plan['queries']:g} queries at scale factor {plan['scale']:g}, all submitted at once, "
        f"{_executors(plan)}. Left: one measured run each, from Spark's event log; right: one simulated run each with "
        "the measured profiles and the same arrivals. Red: a job completes; purple: idle."
    )
    return style.entitle(figure, "Figure 3 on real Spark, and simulated", caption, WORKLOAD)


def real_spark_bars(tables: Tables, run: Run) -> Figure:
    """Average JCT and makespan, measured and simulated."""
    table = tables["real_spark"]
    figure = style.new_figure(style.PAGE, 2.7)
    for axes, (metric, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        last = metric == list(TITLES)[-1]
        bars.scheduler_bars(table, axes, group="where", value=metric, legend=last)
        axes.set_title(title, loc="left")
        axes.set_ylabel(f"{title} (s)")
    caption = f"{_runs(tables)}; bars: {INTERVAL} over runs, {_executors(tables['real_spark_plan'].iloc[0])}."
    return style.entitle(figure, "Schedulers on real Spark and in simulation", caption, WORKLOAD)


def real_spark_changes(tables: Tables, run: Run) -> Figure:
    """Paired differences between schedulers, measured and simulated."""
    table = tables["real_spark_changes"]
    figure = style.new_figure(style.PAGE, 2.6)
    grid = figure.subplots(1, 2, sharey=True)
    for axes, (metric, title) in zip(grid, TITLES.items(), strict=True):
        part = table[(table["metric"] == metric) & (table["against"] == "fifo") & (table["scheduler"] != "fifo")]
        bars.change_points(part, "where", axes, legend=metric == list(TITLES)[-1])
        axes.set_xlabel(f"change of {title}\nagainst FIFO (%)")
    grid[1].tick_params(labelleft=False)
    caption = f"Paired by run: {_runs(tables)}; bars: {INTERVAL}."
    return style.entitle(figure, "Differences between schedulers, real and simulated", caption, WORKLOAD)


def real_spark_jobs(tables: Tables, run: Run) -> Figure:
    """JCT of every job: simulated over measured."""
    table = tables["real_spark_jobs"]
    kinds = list(dict.fromkeys(table["where"]))
    end = 1.05 * float(max(table["real_s"].max(), table["simulated_s"].max()))
    figure = style.new_figure(style.PAGE, 3.2)
    grid = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind in zip(grid, kinds, strict=True):
        for name in style.display_order(table["scheduler"]):
            look, part = style.scheduler_style(name), table[(table["scheduler"] == name) & (table["where"] == kind)]
            marks = {"s": 14, "color": look.color, "marker": look.marker, "label": look.label}
            axes.scatter(part["real_s"], part["simulated_s"], **marks)
        axes.plot([0.0, end], [0.0, end], color=style.GREY, linewidth=0.8, zorder=1)
        axes.set(xlabel="JCT on real Spark (s)", xlim=(0.0, end), ylim=(0.0, end), aspect="equal")
        axes.set_title(kind, loc="left")
    grid[0].set_ylabel("JCT simulated (s)")
    grid[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    caption = f"One point per job of a batch and scheduler, mean over runs: {_runs(tables)}."
    return style.entitle(figure, "Completion of every job, real and simulated", caption, WORKLOAD)


def _runs(tables: Tables) -> str:
    table, plan = tables["real_spark"], tables["real_spark_plan"].iloc[0]
    real = table[table["where"] == "real Spark"].groupby("scheduler").size()
    fewest, most = int(real.min()), int(real.max())
    runs = count(most, "run") if fewest == most else f"{fewest} to {count(most, 'run')}"
    return (
        f"{count(int(plan['batches']), 'batch')} of {plan['queries']:g} queries, {runs} per scheduler on Spark, "
        f"each simulated with {count(int(plan['seeds']), 'seed')}"
    )


def _executors(plan: pandas.Series) -> str:
    return f"{plan['executors']:g} one-core executors on one machine"
