"""Plots of executor classes: scores over load, fragmentation, use of classes."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from decima.plotting import style


@style.on_axes()
def score_over_load(scores: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean average JCT over the nominal load, a line per scheduler.

    Schedulers that would dwarf the others are left out, with their values below the axes.

    Args:
        scores: load (a part of all executor time), scheduler, avg_jct_s.
    """
    means = scores.groupby(["load", "scheduler"])["avg_jct_s"].mean().unstack("scheduler")
    largest = means.apply(style.largest_shown, axis=1)
    beyond = []
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        if (means[name] > largest).any():
            beyond.append(f"{mark.label}: {' to '.join(f'{value:,.0f}' for value in means[name])} s")
        else:
            axes.plot(100.0 * means.index, means[name], **mark.line(), marker=mark.marker, markersize=4)
    axes.set(xlabel="nominal load (%)", ylabel="average JCT (s)", yscale="log")
    axes.set_xticks(100.0 * means.index, [f"{100.0 * load:.0f}" for load in means.index])
    axes.yaxis.set_major_locator(LogLocator(subs=range(1, 10)))
    style.plain_numbers(axes.yaxis)
    if beyond:
        axes.set_xlabel("\n".join(["nominal load (%)", "far above:", *beyond]), fontsize=7)


@style.on_axes()
def score_over_fragmentation(scores: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean average JCT over the mean fragmentation, a point per scheduler.

    Args:
        scores: scheduler, avg_jct_s, fragmentation (a part of the memory held).
    """
    means = scores.groupby("scheduler")[["avg_jct_s", "fragmentation"]].mean()
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        at = (100.0 * means.loc[name, "fragmentation"], means.loc[name, "avg_jct_s"])
        axes.plot(*at, color=mark.color, marker=mark.marker, linestyle="", label=mark.label, markersize=6)
    axes.set(xlabel="fragmentation (%)", ylabel="average JCT (s)", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    style.plain_numbers(axes.yaxis)


@style.on_axes()
def use_of_classes(
    uses: pandas.DataFrame,
    scheduler: str,
    against: str,
    axes: Axes | None = None,
    *,
    value: str = "executor_s",
    label: str = "executor time, ratio",
) -> None:
    """Use of each class relative to another scheduler, by size of jobs.

    Args:
        uses: scheduler, size (0 for the smallest jobs), memory of the class, the column ``value``; several rows of a
            scheduler count as their mean.
        scheduler: Whose use is shown.
        against: Whose use is 1.
        value: Column that is compared.
        label: Label of the height.

    Source: §7.3, Figure 12b; appendix G, Figure 21.
    """
    means = uses.groupby(["scheduler", "size", "memory"])[value].mean()
    ours, theirs = (means.loc[name].unstack("memory") for name in (scheduler, against))
    colors = (style.SKY, style.GREEN, style.ORANGE, style.VERMILION)
    width = 0.8 / len(ours.columns)
    for position, memory in enumerate(ours.columns):
        other = theirs[memory].to_numpy()
        ratio = np.divide(ours[memory].to_numpy(), other, out=np.zeros(len(other)), where=other > 0.0)
        at = ours.index + (position + 0.5) * width - 0.4
        axes.bar(at, ratio, width, label=f"{memory:g}", color=colors[position % len(colors)])
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    axes.set_xticks(ours.index, _shares(len(ours)))
    axes.set(xlabel="jobs by work (% of jobs, small to large)", ylabel=label)


@style.on_axes()
def change_by_size(jobs: pandas.DataFrame, scheduler: str, against: str, axes: Axes | None = None) -> None:
    """Change of the mean JCT between two schedulers by size of jobs.

    Args:
        jobs: scheduler, training, size (0 for the smallest jobs), avg_jct_s of jobs of that size; points are the
            training runs of ``scheduler``.
        scheduler: Whose JCT is shown.
        against: Whose JCT is 0 %.

    Source: §7.3, Figure 12a.
    """
    means = jobs.pivot_table(index="size", columns=["scheduler", "training"], values="avg_jct_s")
    ours, theirs = means[scheduler], means[against].mean(axis=1)
    total = 100.0 * (ours.mean(axis=1) / theirs - 1.0)
    axes.bar(total.index, total, 0.7, color=style.scheduler_style(scheduler).color, alpha=0.5)
    for each in ours.columns:
        points = 100.0 * (ours[each] / theirs - 1.0)
        axes.plot(points.index, points, color=style.BLACK, linestyle="", marker="o", markersize=2.5)
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set_xticks(total.index, _shares(len(total)))
    axes.set(xlabel="jobs by work (% of jobs, small to large)", ylabel="change of the average JCT (%)")


def _shares(parts: int) -> list[str]:
    """Labels of equal parts of the jobs, in percent."""
    return [f"{100 * part // parts}-{100 * (part + 1) // parts}" for part in range(parts)]


@style.on_axes(style.PAGE, 2.8)
def cost_of_parts(parts: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Distance of each setting's best combination from the best of all.

    Args:
        parts: part, setting, above_best_percent.
    """
    names = list(dict.fromkeys(parts["part"]))
    marks = zip((style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.BLACK), "osD^v", strict=True)
    for (setting, rows), (color, marker) in zip(parts.groupby("setting", sort=False), marks, strict=False):
        at = [names.index(name) for name in rows["part"]]
        axes.plot(rows["above_best_percent"], at, color=color, marker=marker, linestyle="", label=setting)
    style.label_rows(axes, names)
    axes.set(xlabel="average JCT above the best (%)")
    axes.legend(fontsize=7)
