"""Plots of deliberate idling: optimal gain, distributions, what slots depend on."""

from __future__ import annotations

import pandas
from matplotlib.axes import Axes

from decima.core.objectives import axis_label
from decima.plotting import style


@style.on_axes(style.COLUMN, 2.4, legend=Axes.legend)
def gain_over_share(gains: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Gain of the best idling rule over the share of long jobs.

    Args:
        gains: long_s, share (parts of 1) and gain_percent, of one number of executors and one load.
    """
    for (long_s, rows), (color, dashes, marker) in zip(gains.groupby("long_s"), style.LINES, strict=False):
        ordered = rows.sort_values("share")
        mark = {"color": color, "linestyle": dashes, "marker": marker, "markersize": 4}
        axes.plot(100.0 * ordered["share"], ordered["gain_percent"], **mark, label=f"long jobs of {long_s:g} s")
    axes.set(xlabel="long jobs (% of all)", ylabel="gain (% of average JCT)", xlim=(0.0, None))
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def jct_percentiles(percentiles: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Cumulative distribution of the JCT, a line per scheduler.

    Args:
        percentiles: scheduler, percent and jct_s, of one load; those up to 98 are shown.
    """
    for mark, rows in style.by_scheduler(percentiles):
        rows = rows[rows["percent"] <= 98]
        axes.plot(rows["jct_s"], rows["percent"] / 100.0, **mark.line())
    axes.set(xlabel="JCT (s)", ylabel="CDF", xlim=(0.0, None), ylim=(0.0, 1.02))


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def score_over_jobs(scores: pandas.DataFrame, column: str, axes: Axes | None = None) -> None:
    """Mean score over the number of jobs, a line per scheduler.

    Args:
        scores: jobs, scheduler and the score.
        column: The score, in seconds.
    """
    means = scores.groupby(["jobs", "scheduler"])[column].mean().unstack("scheduler")
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        axes.plot(means[name], **mark.line(), marker=mark.marker, markersize=4)
    axes.set(xlabel="jobs", ylabel=axis_label(column, column))


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def slot_over_gap(slots: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean slot over the gap between arrivals, a line per length of long jobs.

    Args:
        slots: long_s, gap_s and mean_slot_s.
    """
    for (long_s, rows), (color, dashes, marker) in zip(slots.groupby("long_s"), style.LINES, strict=False):
        ordered = rows.sort_values("gap_s")
        mark = {"color": color, "linestyle": dashes, "marker": marker, "markersize": 4}
        axes.plot(ordered["gap_s"], ordered["mean_slot_s"], **mark, label=f"μ = {long_s:g} s")
    axes.set(xlabel="mean gap between arrivals (s)", ylabel="mean slot (s)", xlim=(0.0, None), ylim=(0.0, None))
