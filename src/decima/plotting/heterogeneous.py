"""Schedulers of heterogeneous executors over jobs and communication: lines, points, panels."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from decima.plotting import style


def _panels(table: pandas.DataFrame, column: str, figure: style.Figure, columns: int) -> list[tuple[str, Axes]]:
    """One axes per value of a column, in the order of the table."""
    values = list(dict.fromkeys(table[column]))
    rows = -(-len(values) // columns)
    axes = figure.subplots(rows, min(columns, len(values)), squeeze=False)
    flat = list(axes.flat)
    for empty in flat[len(values) :]:
        empty.set_axis_off()
    return list(zip(values, flat, strict=False))


def _ccr_title(ccr: str) -> str:
    return f"CCR {ccr}"


def _legend(figure: style.Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="x-small")


@style.styled
def lines(table: pandas.DataFrame, across: str, value: str, label: str, axes: Axes, *, legend: bool = True) -> Axes:
    """One line per scheduler.

    Args:
        table: Columns scheduler, ``across`` and ``value``.
        across: Column of the horizontal axis.
        value: Column of the vertical axis.
        label: Text of the vertical axis.
        axes: Where to draw.
        legend: Whether the axes get a legend.
    """
    for mark, rows in style.by_scheduler(table):
        axes.plot(rows[across], rows[value], marker=mark.marker, markersize=3.0, linewidth=1.0, **mark.line())
    axes.set_xlabel(across)
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if legend:
        axes.legend(fontsize="x-small")
    return axes


@style.styled
def lines_by_ccr(
    table: pandas.DataFrame, across: str, value: str, label: str, figure: style.Figure, *, near: float = 0.02
) -> None:
    """One panel of lines per CCR, in the order of the table; see :func:`lines`.

    Lines that are nowhere as far as ``near`` from Lachesis' would hide each other: the panel names them instead.
    """
    panels = _panels(table, "ccr", figure, 3)
    for ccr, axes in panels:
        rows = table[table["ccr"] == ccr]
        wide = rows.pivot(index=across, columns="scheduler", values=value)
        distance = wide.div(wide["lachesis"], axis=0).sub(1.0).abs().max()
        hidden = [name for name in style.display_order(wide) if name != "lachesis" and distance[name] < near]
        named = label if axes.get_subplotspec().is_first_col() else ""
        lines(rows[~rows["scheduler"].isin(hidden)], across, value, named, axes, legend=False)
        axes.set_title(_ccr_title(ccr))
        if hidden:
            names = ", ".join(style.scheduler_style(name).label for name in hidden)
            text = textwrap.fill(f"within {100 * near:g} % of Lachesis: {names}", 36, break_on_hyphens=False)
            axes.set_xlabel(f"{across}\n{text}", fontsize=6.5)
    pairs = [pair for _, axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in pairs}
    labels = [style.scheduler_style(name).label for name in style.display_order(table["scheduler"])]
    labels = [label for label in labels if label in handles]
    empty = figure.axes[len(panels) :]
    owner, where = (empty[0], "center") if empty else (figure, "outside right center")
    owner.legend([handles[label] for label in labels], labels, loc=where, fontsize="x-small")


@style.styled
def settings_points(
    table: pandas.DataFrame,
    across: str,
    value: str,
    label: str,
    figure: style.Figure,
    *,
    panels: str = "ccr",
    intervals: bool = False,
) -> None:
    """Points of every scheduler for each value of a setting.

    Args:
        table: Columns scheduler, ``across``, ``panels``, ``value``; low and high with intervals.
        across: Column of the setting.
        value: Column of the vertical axis.
        label: Text of the vertical axis.
        figure: Where to draw.
        panels: Column of the panels.
        intervals: Whether there are intervals.
    """
    last = None
    for panel, axes in _panels(table, panels, figure, 5):
        part = table[table[panels] == panel]
        settings = list(dict.fromkeys(part[across]))
        number = part["scheduler"].nunique()
        for position, (mark, rows) in enumerate(style.by_scheduler(part)):
            rows = rows.set_index(across).loc[settings]
            x = [index + 0.7 * ((position + 0.5) / number - 0.5) for index in range(len(settings))]
            bars = None
            if intervals:
                bars = [(rows[value] - rows["low"]).to_numpy(), (rows["high"] - rows[value]).to_numpy()]
            axes.errorbar(
                x, rows[value], yerr=bars, fmt=mark.marker, color=mark.color, label=mark.label, markersize=3.5,
                linewidth=0.8,
            )  # fmt: skip
        axes.set_xticks(range(len(settings)), settings, rotation=0 if across == "ccr" else 90)
        axes.set_xlabel("CCR" if across == "ccr" else across)
        axes.set_title(_ccr_title(panel) if panels == "ccr" else str(panel))
        axes.set_ylabel(label if last is None else "")
        last = axes
    _legend(figure, last)


@style.styled
def change_panels(table: pandas.DataFrame, across: str, figure: style.Figure) -> None:
    """Changes in percent over a number, a panel per CCR.

    Args:
        table: Columns scheduler, ccr, ``across``, change_percent, low, high.
        across: Column of the horizontal axis.
        figure: Where to draw.
    """
    last = None
    for ccr, axes in _panels(table, "ccr", figure, 5):
        for mark, one in style.by_scheduler(table[table["ccr"] == ccr]):
            bars = [(one["change_percent"] - one["low"]).to_numpy(), (one["high"] - one["change_percent"]).to_numpy()]
            axes.errorbar(
                one[across], one["change_percent"], yerr=bars, marker=mark.marker, markersize=3.0, linewidth=1.0,
                **mark.line(),
            )  # fmt: skip
        axes.axhline(0.0, color=style.GREY, linewidth=0.6)
        axes.set_title(_ccr_title(ccr))
        axes.set_xlabel(across)
        axes.set_ylabel("change of makespan (%)" if last is None else "")
        last = axes
    _legend(figure, last)


@style.styled
def learning(table: pandas.DataFrame, scores: Mapping[str, float], label: str, axes: Axes) -> Axes:
    """Mean scores of trainings by iteration, with a band from least to largest.

    Args:
        table: Columns scheduler, iteration and val_greedy, a row per training and iteration.
        scores: Scores of schedulers, drawn as dashed lines.
        label: Text of the vertical axis.
        axes: Where to draw.
    """
    for name, rows in table.groupby("scheduler", sort=False):
        over = rows.groupby("iteration")["val_greedy"].agg(["mean", "min", "max"])
        mark = style.scheduler_style(name)
        axes.plot(over.index, over["mean"], linewidth=1.0, **mark.line())
        axes.fill_between(over.index, over["min"], over["max"], color=mark.color, alpha=0.2, linewidth=0)
    for name, score in scores.items():
        mark = style.scheduler_style(name)
        axes.axhline(score, color=mark.color, linewidth=0.8, linestyle="--", label=mark.label)
    axes.set_xlabel("iteration")
    axes.set_ylabel(label)
    axes.legend(fontsize="x-small")
    return axes
