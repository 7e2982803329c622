"""The measured workload and the scaling model: slow-down, residuals, jobs."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.plotting import style

_MARKS = {
    "measured": {"color": style.VERMILION, "marker": "o", "linestyle": "none", "label": "measured"},
    "model": {"color": style.BLACK, "linestyle": "-", "label": "model"},
    "authors": {"color": style.BLUE, "marker": "s", "linestyle": ":", "label": "authors' cluster"},
    "extrapolated": {"color": style.BLACK, "marker": "^", "linestyle": "none", "label": "extrapolated"},
}
_WAVE_NAMES = {"fresh": "fresh executor", "first": "first wave", "rest": "later waves"}


@style.on_axes(style.COLUMN, 2.4)
def slowdown(table: pandas.DataFrame, wave: str, axes: Axes | None = None) -> None:
    """Slow-down of tasks over executors; right of the grey it is extrapolated.

    Args:
        table: wave, source (measured, model, authors), level, slowdown, low, high.
        wave: The wave to draw.
    """
    axes.axvspan(0.9, 4 * 1.1, color="0.92", zorder=0)
    for source, part in table[table["wave"] == wave].groupby("source", sort=False):
        part = part.sort_values("level")
        mark = _MARKS[source]
        axes.plot(part["level"], part["slowdown"], markersize=3.5, **mark)
        if source == "model":
            axes.fill_between(part["level"], part["low"], part["high"], color=mark["color"], alpha=0.15, linewidth=0)
        else:
            bars = (part["slowdown"] - part["low"], part["high"] - part["slowdown"])
            axes.errorbar(part["level"], part["slowdown"], bars, fmt="none", ecolor=mark["color"], elinewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="executors", title=_WAVE_NAMES[wave])
    axes.set_yticks([1, 2, 4, 8])
    style.plain_numbers(axes.xaxis, axes.yaxis)


@style.on_axes(style.COLUMN, 2.4)
def residuals(table: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Distribution of measured over fitted mean task durations, a line per wave.

    Args:
        table: wave, residual (natural logarithm).
    """
    colors = {"fresh": style.SKY, "first": style.VERMILION, "rest": style.BLACK}
    for wave, part in table.groupby("wave", sort=False):
        percent = 100.0 * np.expm1(part["residual"].to_numpy())
        label = f"{_WAVE_NAMES[wave]}: half within ±{np.median(np.abs(percent)):.0f} %"
        axes.ecdf(percent, color=colors[wave], label=label)
    axes.set(xlabel="measured over fitted (%)", ylabel="CDF", xlim=(-60, 60), ylim=(0.0, 1.02))
    style.legend_above(axes)


@style.on_axes(style.COLUMN, 2.4)
def holdout(table: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Bars of the mean error of held-out predictions, with and without model.

    Args:
        table: held_out, value, wave, form, error_percent.
    """
    groups = list(dict.fromkeys(zip(table["held_out"], table["value"], table["wave"], strict=True)))
    for form, color, shift in (("model", style.BLACK, -0.2), ("no effect", style.GREY, 0.2)):
        part = table[table["form"] == form]
        at = [groups.index(key) + shift for key in zip(part["held_out"], part["value"], part["wave"], strict=True)]
        axes.barh(at, part["error_percent"], height=0.36, color=color, label=form)
    units = {"executors": "{:g} executors", "input size": "{:g} GB"}
    labels = [f"{units[what].format(value)}, {_WAVE_NAMES[wave]}" for what, value, wave in groups]
    axes.set_yticks(range(len(groups)), labels)
    axes.invert_yaxis()
    axes.set(xlabel="mean error (%)")
    axes.grid(axis="y", visible=False)
    style.legend_above(axes, ncols=2)


@style.on_axes(style.PAGE, 2.4)
def jobs(table: pandas.DataFrame, column: str, label: str, axes: Axes | None = None) -> None:
    """One number per query: extrapolated, the authors', and measured.

    Args:
        table: source, query, size_gb and the column.
        column: Column of the number.
        label: Label of the axis.
    """
    for source, part in table.groupby("source", sort=False):
        part = part[part["size_gb"] == part["size_gb"].max()]
        name = f"{_MARKS[source]['label']}, {part['size_gb'].max():g} GB"
        axes.plot(part["query"], part[column], markersize=4, **{**_MARKS[source], "linestyle": "none", "label": name})
    axes.set(yscale="log", ylabel=label, xticks=range(1, 23))
    style.plain_numbers(axes.yaxis)
