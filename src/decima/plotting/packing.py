"""Plots of clusters with executors of several classes: scores over load, fragmentation, and who uses which class."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from decima.plotting import style


@style.styled
def score_over_load(scores: pandas.DataFrame, axes: Axes | None = None) -> Axes:
    """Mean of the average JCT over the nominal load, a line per scheduler, without a legend.

    Args:
        scores: load (a part of all executor time), scheduler, avg_jct_s.
        axes: Where to draw; a new figure when omitted.
    """
    axes = style.own_axes(axes)
    means = scores.groupby(["load", "scheduler"])["avg_jct_s"].mean().unstack("scheduler")
    for name in style.display_order(scores["scheduler"]):
        look = style.scheduler_style(name)
        axes.plot(100.0 * means.index, means[name], **look.line(), marker=look.marker, markersize=4)
    axes.set(xlabel="nominal load (%)", ylabel="average JCT (s)", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    style.plain_numbers(axes.yaxis)
    return axes


@style.styled
def score_over_fragmentation(scores: pandas.DataFrame, axes: Axes | None = None) -> Axes:
    """Mean of the average JCT over the mean fragmentation, a point per scheduler, without a legend.

    Args:
        scores: scheduler, avg_jct_s, fragmentation (a part of the memory held).
        axes: Where to draw; a new figure when omitted.
    """
    axes = style.own_axes(axes)
    means = scores.groupby("scheduler")[["avg_jct_s", "fragmentation"]].mean()
    for name in style.display_order(scores["scheduler"]):
        look = style.scheduler_style(name)
        at = (100.0 * means.loc[name, "fragmentation"], means.loc[name, "avg_jct_s"])
        axes.plot(*at, color=look.color, marker=look.marker, linestyle="", label=look.label, markersize=6)
    axes.set(xlabel="fragmentation (%)", ylabel="average JCT (s)", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    style.plain_numbers(axes.yaxis)
    return axes


@style.styled
def use_of_classes(uses: pandas.DataFrame, scheduler: str, against: str, axes: Axes | None = None) -> Axes:
    """Executor time of one scheduler over that of another, by size of jobs and class; no bar where the other has none.

    Args:
        uses: scheduler, size (0 for the smallest jobs), memory of the class, executor_s.
        scheduler: Whose time is shown.
        against: Whose time is 1.
        axes: Where to draw; a new figure when omitted.
    """
    axes = style.own_axes(axes)
    sums = uses.groupby(["scheduler", "size", "memory"])["executor_s"].sum()
    ours, theirs = (sums.loc[name].unstack("memory") for name in (scheduler, against))
    colors = (style.SKY, style.GREEN, style.ORANGE, style.VERMILION)
    width = 0.8 / len(ours.columns)
    for place, memory in enumerate(ours.columns):
        other = theirs[memory].to_numpy()
        ratio = np.divide(ours[memory].to_numpy(), other, out=np.zeros(len(other)), where=other > 0.0)
        at = ours.index + (place + 0.5) * width - 0.4
        axes.bar(at, ratio, width, label=f"{memory:g}", color=colors[place % len(colors)])
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    labels = [f"{100 * part // len(ours)}-{100 * (part + 1) // len(ours)}" for part in range(len(ours))]
    axes.set_xticks(ours.index, labels)
    axes.set(xlabel="jobs by work (% of jobs, small to large)", ylabel="executor time, ratio")
    return axes


@style.styled
def cost_of_parts(parts: pandas.DataFrame, axes: Axes | None = None) -> Axes:
    """Distance of the best combination of each kind from the best of all, a point per load, a row per kind.

    Args:
        parts: part, setting, above_best_percent.
        axes: Where to draw; a new figure when omitted.
    """
    axes = style.own_axes(axes, style.PAGE, 2.8)
    names = list(dict.fromkeys(parts["part"]))
    looks = zip((style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.BLACK), "osD^v", strict=True)
    for (setting, rows), (color, marker) in zip(parts.groupby("setting", sort=False), looks, strict=False):
        at = [names.index(name) for name in rows["part"]]
        axes.plot(rows["above_best_percent"], at, color=color, marker=marker, linestyle="", label=setting)
    style.label_rows(axes, names)
    axes.set(xlabel="average JCT above the best (%)")
    axes.legend(fontsize=7)
    return axes
