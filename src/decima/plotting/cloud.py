"""Plots of executor placement on cloud VMs: measures, cost, training, switches."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.plotting import style

#: Measures of a placement by column, as axes name them.
MEASURES = {
    "cost": "cost ($)",
    "duration_s": "mean duration (s)",
    "response_s": "mean response time (s)",
    "good": "good placements",
}


@style.on_axes(style.PAGE, 2.4, legend=style.label_ends)
def over_beta(scores: pandas.DataFrame, measure: str, axes: Axes | None = None) -> None:
    """A measure over the weight of cost, a line per scheduler.

    A scheduler that the weight does not change is a point at the right.

    Args:
        scores: beta, scheduler and the measure, one row each.
        measure: A column of :data:`MEASURES`.
    """
    table = scores.pivot_table(index="beta", columns="scheduler", values=measure)
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        points = table[name].dropna()
        if points.nunique() == 1:
            points.index = points.index + 0.05 * (table.index.max() - table.index.min())
            points = points.iloc[-1:]
        axes.plot(points, **mark.line(), marker=mark.marker, markersize=4, clip_on=False)
    axes.set(xlabel="weight of cost β", ylabel=MEASURES[measure])
    axes.set_xticks(table.index, [f"{beta:g}" for beta in table.index])
    axes.margins(x=0.02)


@style.on_axes(style.COLUMN, 2.6, legend=style.legend_beside)
def cost_and_time(scores: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Cost against mean duration, a point per weight of cost and scheduler.

    A line joins what no other weight of the scheduler beats in both; points of the others are hollow.

    Args:
        scores: beta, scheduler, cost in dollars, duration_s.
    """
    for mark, rows in style.by_scheduler(scores):
        points = rows[["duration_s", "cost"]].drop_duplicates().sort_values(["duration_s", "cost"])
        best = points["cost"] < points["cost"].cummin().shift(fill_value=np.inf)
        axes.plot(*points[best].to_numpy().T, **mark.line(), marker=mark.marker, markersize=4)
        beaten = {"linestyle": "none", "marker": mark.marker, "markersize": 4, "fillstyle": "none", "color": mark.color}
        axes.plot(*points[~best].to_numpy().T, **beaten)
    axes.set(xlabel=MEASURES["duration_s"], ylabel=MEASURES["cost"])


@style.on_axes(style.PAGE / 2, 2.4)
def last_reached(curves: pandas.DataFrame, axes: Axes | None = None) -> None:
    """R_epi at the end of training, a row per learner: mean and range.

    Args:
        curves: learner, seed, iteration, decisions_seen, reached in percent.
    """
    ends = curves.sort_values("iteration").groupby(["learner", "seed"]).tail(1)
    labels = []
    for row, (mark, mine) in enumerate(style.by_scheduler(ends, "learner")):
        mean, low, high = (getattr(mine["reached"], name)() for name in ("mean", "min", "max"))
        drawn = {"marker": mark.marker, "markersize": 5, "color": mark.color, "capsize": 2, "label": f"_{row}"}
        axes.errorbar(mean, row, xerr=[[mean - low], [high - mean]], **drawn)
        seen = f"{mean:.0f} % after {mine['decisions_seen'].mean():,.0f}"
        where = {"xytext": (6 if mean < 50.0 else -6, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
        axes.annotate(seen, (mean, row), ha="left" if mean < 50.0 else "right", **where)
        labels.append(mark.label)
    style.label_rows(axes, labels)
    axes.set(xlabel="$R_{epi}$ reached (%)", xlim=(-3.0, 103.0))


#: What is drawn over the iterations of training runs, as axes name it.
TRAINED = {
    "reached": "$R_{epi}$ reached (%)",
    "steps": "actions per episode",
    "complete": "share that places all jobs",
    "reward": "mean return",
}


@style.on_axes(style.COLUMN, 2.4, legend=style.legend_beside)
def training_band(curves: pandas.DataFrame, measure: str, axes: Axes | None = None) -> None:
    """A measure over iterations, mean and range of a learner's runs.

    Args:
        curves: learner, beta, seed, iteration and the measure; runs may be of different lengths.
        measure: A column of :data:`TRAINED`.
    """
    for mark, rows in style.by_scheduler(curves, "learner"):
        runs = rows.groupby("iteration")[measure].agg(["mean", "min", "max"]).dropna()
        axes.plot(runs["mean"], **mark.line(), marker=mark.marker, markersize=3)
        axes.fill_between(runs.index, runs["min"], runs["max"], color=mark.color, alpha=0.2, linewidth=0)
    axes.set(xlabel="iteration", ylabel=TRAINED[measure])
    if measure == "reached":
        axes.set_ylim(-2.0, 100.0)


@style.on_axes(style.COLUMN, 2.4, legend=style.label_ends)
def training_by_beta(curves: pandas.DataFrame, measure: str, axes: Axes | None = None) -> None:
    """Running medians of nine validations over iterations, a line per weight of cost.

    Args:
        curves: beta, seed, iteration and the measure; runs may be of different lengths.
        measure: A column of :data:`TRAINED`.
    """
    betas = sorted(curves["beta"].unique())
    for color, beta in zip(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(betas))), betas, strict=True):
        rows = curves[curves["beta"] == beta].groupby("iteration")[measure].mean().dropna()
        axes.plot(rows.rolling(9, center=True, min_periods=1).median(), color=color, label=f"β = {beta:g}")
    axes.set(xlabel="iteration", ylabel=TRAINED[measure])


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def bars(table: pandas.DataFrame, group: str, value: str, label: str, axes: Axes | None = None) -> None:
    """Bars of a value by a column, one per scheduler.

    Args:
        table: scheduler, the columns ``group`` and ``value``, one row each.
        group: Column of the groups, in order of first appearance.
        value: Column of the heights.
        label: Of the axis, with its unit.
    """
    names, groups = style.display_order(table["scheduler"]), list(dict.fromkeys(table[group]))
    wide = table.pivot_table(index=group, columns="scheduler", values=value).reindex(groups)
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        mark = style.scheduler_style(name)
        position = np.arange(len(groups)) + (index - (len(names) - 1) / 2.0) * width
        axes.bar(position, wide[name], width, color=mark.color, label=mark.label, hatch="///" if index % 2 else "")
    axes.set_xticks(range(len(groups)), groups)
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set_ylabel(label)
