"""Figures of Decima beside the heuristics: 3, 9, 10 and what is paired with them."""

from __future__ import annotations

import pandas

from decima.plotting import bars, curves, streams, style
from decima.plotting.gantt import gantt_panel
from decima.plotting.run import INTERVAL, Run, Tables, decima_mode, distinct
from decima.plotting.style import Figure, scheduler_style

# Rows of the tables that the figures leave to the tables.
_FIG09A = ("fifo", "sjf_cp", "fair", "naive_weighted_fair", "weighted_fair_arrival", "weighted_fair", "capped_srw",
           "decima", "decima_greedy", "decima_sampled")  # fmt: skip


def fig03_schedules(tables: Tables, run: Run) -> Figure:
    """Figure 3."""
    tasks = tables["fig03_tasks"]
    figure = gantt_panel(tasks, executors=run.executors)
    caption = (
        f"One batch of {distinct(tasks, 'job', 'job')}, 1 seed, {run.cluster}; policy {run.policies['batch']}, "
        f"{decima_mode(tables['fig03_summary'])}. A colour is a job, red lines are completions."
    )
    return style.entitle(figure, "Figure 3: one batch under four schedulers", caption, run.workload)


def fig03_mixes(tables: Tables, run: Run) -> Figure:
    """The comparison of Figure 3 over many batches."""
    table = tables["fig03_summary"]
    caption = f"{distinct(table, 'seed', 'batch')} of ten jobs, one seed each, {run.cluster}."
    return style.entitle(curves.cdf(table).figure, "Figure 3 over many batches", caption, run.workload)


def fig09a_batch(tables: Tables, run: Run) -> Figure:
    """Figure 9a."""
    table = tables["batch"]
    table = table[table["scheduler"].isin(_FIG09A)]
    caption = (
        f"{distinct(table, 'seed', 'batch')} of 20 jobs, one seed each, {run.cluster}; policy {run.policies['batch']}, "
        f"Decima: {decima_mode(table)}."
    )
    return style.entitle(curves.cdf(table).figure, "Figure 9a: batched arrivals", caption, run.workload)


def batch_changes(tables: Tables, run: Run) -> Figure:
    """Decima and capped SRW against other heuristics on batches, paired."""
    changes = tables["batch_changes"]
    figure = style.new_figure(style.PAGE, 2.4)
    bars.change_points(_against(changes), "against", figure.subplots())
    caption = (
        f"Paired by seed; bars: {INTERVAL}; {int(changes['seeds'].iloc[0])} batches of 20 jobs, {run.cluster}; policy "
        f"{run.policies['batch']}, Decima: {decima_mode(tables['batch'])}."
    )
    return style.entitle(figure, "Decima against the heuristics, batched arrivals", caption, run.workload)


def stream_changes(tables: Tables, run: Run) -> Figure:
    """Decima and capped SRW against other heuristics on streams, paired."""
    changes = tables["stream_changes"]
    gaps = sorted(changes["interarrival_s"].unique())
    figure = style.new_figure(style.PAGE, 2.8)
    grid = figure.subplots(1, len(gaps), sharey=True, squeeze=False)[0]
    for axes, gap in zip(grid, gaps, strict=True):
        rows = _against(changes[changes["interarrival_s"] == gap])
        bars.change_points(rows, "against", axes, legend=axes is grid[-1])
        axes.set_title(f"one job every {gap:g} s", loc="left")
    caption = (
        f"Paired by seed; bars: {INTERVAL}; {int(changes['seeds'].iloc[0])} streams per gap, {run.cluster}; policy "
        f"{run.policies['stream']}, Decima: {decima_mode(tables['stream'])}."
    )
    return style.entitle(figure, "Decima against the heuristics, continuous arrivals", caption, run.workload)


def _against(changes: pandas.DataFrame) -> pandas.DataFrame:
    return changes.assign(against=[f"against {scheduler_style(name).label}" for name in changes["against"]])


def fig09b_stream(tables: Tables, run: Run) -> Figure:
    """Figure 9b: JCT of the jobs of one stream, per mean interarrival time."""
    jobs = tables["stream_jobs"]
    gaps = sorted(jobs["interarrival_s"].unique())
    figure = style.new_figure(style.PAGE, 0.5 + 2.5 * len(gaps))
    for axes, gap in zip(figure.subplots(len(gaps), 1, squeeze=False)[:, 0], gaps, strict=True):
        curves.cdf(jobs[jobs["interarrival_s"] == gap], axes, value="jct_s", log=True)
        axes.set_title(f"one job every {gap:g} s", loc="left")
    caption = f"{_one_stream(jobs, run)} Policy {run.policies['stream']}, Decima: {decima_mode(jobs)}."
    return style.entitle(figure, "Figure 9b: continuous arrivals", caption, run.workload)


def fig09b_mean(tables: Tables, run: Run) -> Figure:
    """The means behind Figure 9b over all streams."""
    table = tables["stream"]
    groups = table.assign(gap=[f"every {gap:g} s" for gap in table["interarrival_s"]])
    figure = bars.scheduler_bars(groups, group="gap").figure
    caption = (
        f"{distinct(table, 'seed', 'stream')} of {distinct(tables['stream_jobs'], 'job', 'job')} per gap; bars: "
        f"{INTERVAL}; {run.cluster}; policy {run.policies['stream']}, Decima: {decima_mode(table)}."
    )
    return style.entitle(figure, "Figure 9b over several streams", caption, run.workload)


def fig10_stream(tables: Tables, run: Run) -> Figure:
    """Figure 10, all panels, for the busiest stream."""
    executed = tables["stream_executed"]
    gap = executed["interarrival_s"].min()
    names = list(executed["scheduler"].unique())
    series, jobs, executed = (_busiest(tables[name], gap, names) for name in
                              ("stream_series", "stream_jobs", "stream_executed"))  # fmt: skip
    jobs = jobs.merge(executed[["scheduler", "job", "executed_s", "executors"]], on=["scheduler", "job"])
    figure = style.new_figure(style.PAGE, 6.6)
    grid = figure.subplot_mosaic([["a", "a", "a"], ["b", "b", "b"], ["c", "d", "e"]], height_ratios=(1, 1, 1.35))
    curves.concurrent_jobs(series, grid["a"], legend=False)
    streams.jct_over_time(jobs, grid["b"], legend=False)
    streams.against_work(jobs, grid["c"], value="jct_s", label="JCT (s)", legend=False)
    streams.against_work(jobs, grid["d"], value="executors", label="executors", log=False, legend=False)
    streams.executed_against(jobs, grid["e"], across="weighted_fair", up="decima")
    grid["a"].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(names), borderaxespad=0.2)
    titles = {"a": "jobs in the system", "b": "JCT by time of arrival", "c": "JCT by size", "d": "executors by size",
              "e": "executed work"}  # fmt: skip
    for panel, title in titles.items():
        grid[panel].set_title(f"({panel}) {title}", loc="left")
    caption = (
        f"One job every {gap:g} s; {_one_stream(jobs, run)} Points: jobs; lines in (c) and (d): median per tenth of "
        f"the jobs; (d): executor time of its tasks over the time from its first task to its end. Policy "
        f"{run.policies['stream']}, {decima_mode(tables['stream'])}."
    )
    return style.entitle(figure, "Figure 10: a stream in detail", caption, run.workload)


def _busiest(table: pandas.DataFrame, gap: float, names: list[str]) -> pandas.DataFrame:
    return table[(table["interarrival_s"] == gap) & table["scheduler"].isin(names)]


def _one_stream(jobs: pandas.DataFrame, run: Run) -> str:
    return f"1 stream of {distinct(jobs, 'job', 'job')}, 1 seed, {run.cluster}."
