"""Schedulers of heterogeneous executors over jobs and communication: lines, points, panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from decima.plotting import style


def _panels(
    table: pandas.DataFrame, column: str, figure: style.Figure, columns: int, **subplots
) -> list[tuple[str, Axes]]:
    """One axes per value of a column, in the order of the table."""
    values = list(dict.fromkeys(table[column]))
    rows = -(-len(values) // columns)
    axes = figure.subplots(rows, min(columns, len(values)), squeeze=False, **subplots)
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
def change_of_means(
    table: pandas.DataFrame,
    across: str,
    value: str,
    label: str,
    figure: style.Figure,
    *,
    reference: str,
    names: Sequence[str],
) -> None:
    """Means against those of a reference scheduler, in percent, a panel per CCR.

    Where changes exceed 5 %, the vertical axis is logarithmic beyond, so that small and large ones can be seen.

    Args:
        table: Columns scheduler, ccr, ``across`` and ``value``; one mean each.
        across: Column of the horizontal axis, logarithmic where it covers more than a factor of ten.
        value: Column that is compared.
        label: Text of the vertical axis.
        figure: Where to draw.
        reference: Scheduler that is 0 %.
        names: Schedulers that are shown.
    """
    panels = _panels(table, "ccr", figure, 5, sharey=True)
    for ccr, axes in panels:
        wide = table[table["ccr"] == ccr].pivot(index=across, columns="scheduler", values=value)
        change = 100.0 * (wide.div(wide[reference], axis=0) - 1.0)
        for name in style.display_order(each for each in names if each in change):
            mark = style.scheduler_style(name)
            axes.plot(change[name], marker=mark.marker, markersize=3.0, linewidth=1.0, **mark.line())
        axes.axhline(0.0, color=style.GREY, linewidth=0.8)
        axes.set(title=_ccr_title(ccr), xlabel=across)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        if change.index.max() > 10 * change.index.min():
            axes.set_xscale("log")
            style.plain_numbers(axes.xaxis)
    panels[0][1].set_ylabel(label)
    if max(map(abs, panels[0][1].get_ylim())) > 5.0:
        panels[0][1].set_yscale("symlog", linthresh=5.0, linscale=1.5)
        panels[0][1].yaxis.set_major_locator(FixedLocator([-100, -50, -20, -10, -5, 0, 5, 10, 20, 50, 100, 200]))
        style.plain_numbers(panels[0][1].yaxis)
    style.label_ends(panels[-1][1])


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
    for panel, axes in _panels(table, panels, figure, 5, sharey=True):
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
        axes.axhline(0.0, color=style.GREY, linewidth=0.8)
        axes.set_xticks(range(len(settings)), settings)
        axes.set_xlim(-0.6, len(settings) - 0.4)
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
    """Mean scores of training runs by iteration, with a band from minimum to maximum.

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
