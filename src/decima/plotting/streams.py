"""Plots of the jobs of a stream under two schedulers (Figure 10b to e)."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.plotting import style


@style.on_axes(style.PAGE, 2.0, legend=style.legend_beside)
def jct_over_time(jobs: pandas.DataFrame, axes: Axes | None = None, *, windows: int = 24) -> None:
    """Mean JCT of the jobs that arrive in each window, by scheduler.

    Args:
        jobs: scheduler, arrival_s, jct_s.
        windows: Windows of equal length between the first and the last arrival.

    Source: §7.2, Figure 10b.
    """
    scale, unit = style.time_unit(jobs["arrival_s"].max())
    edges = np.linspace(0.0, jobs["arrival_s"].max(), windows + 1)
    middle = (edges[1:] + edges[:-1]) / 2.0
    position = np.clip(np.searchsorted(edges, jobs["arrival_s"], side="right") - 1, 0, windows - 1)
    means = jobs.groupby([position, "scheduler"])["jct_s"].mean().unstack("scheduler").reindex(range(windows))
    for name in style.display_order(jobs["scheduler"]):
        mark = style.scheduler_style(name)
        axes.plot(middle / scale, means[name], **mark.line() | {"linestyle": "-"}, marker=mark.marker, markersize=3)
    axes.set(xlabel=f"time of arrival ({unit})", ylabel="mean JCT (s)", xlim=(0.0, None), ylim=(0.0, None))


@style.on_axes(style.COLUMN, 2.6, legend=Axes.legend)
def against_work(jobs: pandas.DataFrame, axes: Axes | None = None, *, value: str, label: str, log: bool = True) -> None:
    """One number per job over its work, with medians by scheduler.

    Args:
        jobs: scheduler, work_s, the column ``value``.
        value: Column of the height, above 0.
        label: Label of the height, with its unit.
        log: Logarithmic height.

    Source: §7.2, Figure 10c and d.
    """
    for mark, rows in style.by_scheduler(jobs):
        axes.scatter(
            rows["work_s"], rows[value], s=3.5, marker=mark.marker, color=mark.color, alpha=0.3, linewidths=0.0,
            rasterized=True,
        )  # fmt: skip
        tenth = pandas.qcut(rows["work_s"], 10, duplicates="drop")
        median = rows.groupby(tenth, observed=True)[["work_s", value]].median()
        axes.plot(median["work_s"], median[value], **mark.line(), zorder=3)
    axes.set(xlabel="work of the job (executor s)", ylabel=label, xscale="log")
    style.plain_numbers(axes.xaxis)
    if log:
        axes.set_yscale("log")
        style.plain_numbers(axes.yaxis)
    else:
        axes.set_ylim(bottom=0.0)


@style.on_axes(style.COLUMN, 2.6)
def executed_against(jobs: pandas.DataFrame, axes: Axes | None = None, *, across: str, up: str) -> None:
    """Executor time that each job took under two schedulers.

    Args:
        jobs: scheduler, job, executed_s.
        across: Scheduler along the x axis.
        up: Scheduler along the y axis.

    Source: §7.2, Figure 10e.
    """
    table = jobs.pivot(index="job", columns="scheduler", values="executed_s")
    first, second = style.scheduler_style(across), style.scheduler_style(up)
    low, high = table.to_numpy().min(), table.to_numpy().max()
    axes.plot([low, high], [low, high], color=style.GREY, linewidth=0.8, zorder=1)
    axes.scatter(
        table[across], table[up], s=3.5, marker=second.marker, color=second.color, alpha=0.4, linewidths=0.0,
        rasterized=True, zorder=2,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel=f"{first.label}\n(executor s)", ylabel=f"{second.label} (executor s)")
    style.plain_numbers(axes.xaxis, axes.yaxis)
