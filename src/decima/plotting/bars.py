"""Bars and points with error bars: schedulers, effects, switches, waves (§6.2)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas
import seaborn
from matplotlib.axes import Axes

from decima.core.objectives import axis_label
from decima.evaluation.statistics import mean_interval, paired_change
from decima.plotting import style

WAVES = {"fresh": "fresh\n(executor new\nto the job)", "first": "first\n(executor new\nto the stage)", "rest": "rest"}
SWITCHES = {
    "level_rule": "interpolation between levels",
    "reoffer": "idle executors offered again",
    "keep_warm": "idle executors stay warm",
    "job_limit": "limit on the job's executors",
    "commit_ahead": "no executors committed ahead",
    "runnable_only": "runnable stages only",
}


@style.on_axes(style.PAGE, 2.6, legend=style.legend_beside)
def scheduler_bars(scores: pandas.DataFrame, axes: Axes | None = None, *, group: str, value: str = "avg_jct_s") -> None:
    """Bars of means with 95 % intervals, one per scheduler in each group.

    Bars that would dwarf the others are cut off, with their mean above them.

    Args:
        scores: scheduler, the columns ``group`` and ``value`` (seconds); one row per seed.
        group: Column of the groups along the axis, in order of first appearance.
        value: Column of the height.
    """
    names = style.display_order(scores["scheduler"])
    groups = list(dict.fromkeys(scores[group]))
    width = 0.8 / len(names)
    summary = scores.groupby([group, "scheduler"])[value].agg(lambda column: mean_interval(column.to_numpy()))
    largest = style.largest_shown(each[0] for each in summary)
    for index, name in enumerate(names):
        mark = style.scheduler_style(name)
        places = [position for position, each in enumerate(groups) if (each, name) in summary.index]
        mean, _, low, high = np.array([summary[groups[position], name] for position in places]).T
        center, whole = np.array(places) + (index - (len(names) - 1) / 2) * width, mean <= largest
        axes.bar(
            center,
            np.where(whole, mean, 1.25 * largest),
            0.92 * width,
            yerr=np.where(whole, np.nan_to_num([mean - low, high - mean]), np.nan),
            color=mark.color,
            hatch=None if mark.linestyle == "-" else "////",
            edgecolor="white",
            linewidth=0.3,
            error_kw={"linewidth": 0.8, "capsize": 1.5},
            label=mark.label,
        )
        for at, number in zip(center[~whole], mean[~whole], strict=True):
            axes.text(at, 1.27 * largest, f"{number:,.0f}", ha="center", va="bottom", fontsize=6, rotation=90)
    wrap = textwrap.TextWrapper(16, break_long_words=False, break_on_hyphens=False)
    texts = [re.sub(r"(?<=\d) (?=\w{1,2}\b)", "\N{NO-BREAK SPACE}", str(group)) for group in groups]  # 25 s
    axes.set_xticks(range(len(groups)), [wrap.fill(text).replace("\N{NO-BREAK SPACE}", " ") for text in texts])
    axes.set(ylabel=axis_label(value), ylim=(0.0, None))
    if any(each[0] > largest for each in summary):
        axes.set_ylim(top=1.25 * largest)
    axes.tick_params(axis="x", length=0)


def changes_against(scores: pandas.DataFrame, column: str, baseline: str) -> pandas.DataFrame:
    """Paired change against a baseline in percent, with 95 % interval.

    Args:
        scores: scheduler, seed, avg_jct_s and ``column``.
        column: What differs from the baseline.
        baseline: Value of that column.

    Returns:
        ``column``, scheduler, change_percent, low, high; the baseline itself is left out.
    """
    rows = []
    for scheduler, group in scores.groupby("scheduler", sort=False):
        table = group.pivot_table(index="seed", columns=column, values="avg_jct_s", sort=False)
        for value in table.columns.drop(baseline):
            change = paired_change(table[value].to_numpy(), table[baseline].to_numpy())
            rows.append((value, scheduler, *change))
    return pandas.DataFrame(rows, columns=[column, "scheduler", "change_percent", "low", "high"])


@style.on_axes(4.6, 2.6, legend=style.legend_beside)
def change_points(changes: pandas.DataFrame, column: str, axes: Axes | None = None) -> None:
    """Points of the change in percent by a column, one per scheduler.

    Args:
        changes: As :func:`changes_against` returns it.
        column: The rows, from top to bottom in order of first appearance.
    """
    names = style.display_order(changes["scheduler"])
    rows = list(dict.fromkeys(changes[column]))
    step = min(0.16, 0.96 / len(names))
    for index, name in enumerate(names):
        mark = style.scheduler_style(name)
        chosen = changes[changes["scheduler"] == name].set_index(column).reindex(rows)
        change, position = chosen["change_percent"], np.arange(len(rows)) + (index - (len(names) - 1) / 2) * step
        reach = [change - chosen["low"], chosen["high"] - change]
        marks = {"linestyle": "none", "marker": mark.marker, "markersize": 4, "color": mark.color, "label": mark.label}
        axes.errorbar(change, position, xerr=reach, linewidth=1.0, capsize=1.5, **marks)
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    style.label_rows(axes, [SWITCHES.get(row, row) for row in rows])
    for row in range(1, len(rows)):
        axes.axhline(row - 0.5, color="0.85", linewidth=0.6)
    axes.set_xlabel("change of average JCT (%)")


@style.on_axes(4.6, 2.6)
def change_rows(
    changes: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    largest: float | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """A row per scheduler: its change in percent as a point, with its interval.

    Args:
        changes: scheduler, change_percent, low, high; one row each.
        largest: End of the axis; what is beyond stands there as a number.
        names: Schedulers of the rows; those of ``changes`` when omitted.
    """
    names = style.display_order(changes["scheduler"] if names is None else names)
    table = changes.set_index("scheduler")[["change_percent", "low", "high"]].reindex(names)
    for row, (name, change, low, high) in enumerate(table.itertuples()):
        mark = style.scheduler_style(name)
        if largest is not None and change > largest:
            axes.text(largest, row, f"{change:,.0f} % ▶", ha="right", va="center", fontsize=7, color=mark.color)
            continue
        drawn = {"marker": mark.marker, "markersize": 4, "color": mark.color, "linewidth": 1.0, "capsize": 2}
        axes.errorbar(change, row, xerr=[[change - low], [high - change]], **drawn, label=f"_{name}")
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    style.label_rows(axes, [style.scheduler_style(name).label for name in names])
    if largest is not None:
        axes.set_xlim(right=largest)


@style.styled
def paired_panels(scores: pandas.DataFrame, figure: style.Figure, *, group: str, against: str) -> None:
    """Paired change of every scheduler against one, with 95 % interval, a panel per group.

    Args:
        scores: scheduler, seed, avg_jct_s and the column ``group``.
        figure: Where to draw.
        group: Column of the panels, in order of first appearance.
        against: Scheduler that is 0 %.
    """
    parts = []
    for each, rows in scores.groupby(group, sort=False):
        wide = rows.pivot_table(index="seed", columns="scheduler", values="avg_jct_s", sort=False)
        changes = [(each, name, *paired_change(wide[name].to_numpy(), wide[against].to_numpy())) for name in wide]
        parts.append(pandas.DataFrame(changes, columns=[group, "scheduler", "change_percent", "low", "high"]))
    table = pandas.concat(parts)
    table = table[table["scheduler"] != against]
    groups, names = list(dict.fromkeys(table[group])), style.display_order(table["scheduler"])
    largest = 1.3 * style.largest_shown(table["change_percent"].abs())
    largest = largest if (table["change_percent"] > largest).any() else None
    wrap = textwrap.TextWrapper(max(12, 75 // len(groups)), break_long_words=False)
    label = f"{axis_label('avg_jct_s').partition(' (')[0]} against {style.scheduler_style(against).label} (%)"
    grid = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
    for letter, axes, each in zip("abcdefgh", grid, groups, strict=False):
        change_rows(table[table[group] == each], axes, largest=largest, names=names)
        axes.set_title(wrap.fill(f"({letter}) {each}" if len(groups) > 1 else str(each)), loc="left")
        axes.set_xlabel(wrap.fill(label))


def wave_ratios(waves: pandas.DataFrame) -> pandas.DataFrame:
    """Ratios of the mean duration in a wave to that in later waves.

    Args:
        waves: job, stage, level, wave, duration_s (mean).

    Returns:
        wave, ratio; one row per stage, level and wave, where the later waves were measured and took any time.
    """
    table = waves.pivot_table(index=["job", "stage", "level"], columns="wave", values="duration_s")
    table = table[table["rest"] > 0.0]
    ratios = table.div(table["rest"], axis=0).melt(value_name="ratio", ignore_index=False).reset_index()
    return ratios.loc[ratios["ratio"].notna() & (ratios["wave"] != "rest"), ["wave", "ratio"]].reset_index(drop=True)


def level_ratios(waves: pandas.DataFrame, wave: str = "rest") -> pandas.DataFrame:
    """Ratios of the mean duration at a level to that at the lowest.

    Returns:
        job, stage, level, ratio, without the lowest levels themselves.
    """
    rows = waves[(waves["wave"] == wave) & (waves["duration_s"] > 0.0)].sort_values(["job", "stage", "level"])
    group = rows.groupby(["job", "stage"])
    ratios = rows.assign(ratio=rows["duration_s"] / group["duration_s"].transform("first"))
    return ratios.loc[group.cumcount() > 0, ["job", "stage", "level", "ratio"]]


@style.on_axes(2.6, 2.6)
def wave_boxes(waves: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Boxes of task durations of fresh and first waves relative to later ones.

    Args:
        waves: job, stage, level, wave, duration_s.

    Source: §6.2, effect (1).
    """
    order = ["fresh", "first"]
    _boxes(wave_ratios(waves), "wave", order, axes)
    axes.set_xticks(range(len(order)), [WAVES[name] for name in order])
    axes.set(xlabel="wave", ylabel="relative task duration")


@style.on_axes(3.6, 2.6)
def level_boxes(waves: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Boxes of task durations of later waves by level, relative to the lowest.

    Args:
        waves: job, stage, level, wave, duration_s.

    Source: §6.2, effect (3).
    """
    ratios = level_ratios(waves)
    levels = sorted(ratios["level"].unique())
    _boxes(ratios, "level", levels, axes)
    axes.set_xticks(range(len(levels)), [f"{level}" for level in levels])
    axes.set(xlabel="profiled level (executors)", ylabel="relative task duration")


def _boxes(ratios: pandas.DataFrame, column: str, order: list, axes: Axes) -> None:
    seaborn.boxplot(
        ratios, x=column, y="ratio", order=order, ax=axes, width=0.55, color=style.SKY, whis=(5, 95), showfliers=False,
        linewidth=0.8,
    )  # fmt: skip
    axes.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle="--")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
