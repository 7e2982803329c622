"""Plots over the load of a stream: scores of schedulers, gaps."""

from __future__ import annotations

from collections.abc import Iterable

import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from decima.core.objectives import AVG_JCT
from decima.plotting import style

# Change in percent up to which the scale stays linear where some scheduler is overrun.
LINEAR_TO = 100.0
# Meaning of load -> (label, colour, line style, marker).
_MEANINGS = {
    "nominal": ("nominal work that arrives", style.GREY, (0, (1, 1.2)), "s"),
    "busy": ("executors running tasks", style.GREEN, "-", "D"),
    "held": ("executors held by a job or moving", style.INDIGO, (0, (4, 1.5)), "^"),
}


@style.on_axes(style.PAGE, 2.8, legend=style.label_ends)
def score_over_gap(scores: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean average JCT over the mean gap between arrivals, a line per scheduler.

    Args:
        scores: interarrival_s, scheduler, avg_jct_s.
    """
    means = scores.groupby(["interarrival_s", "scheduler"])["avg_jct_s"].mean().unstack("scheduler")
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        axes.plot(means[name], **mark.line(), marker=mark.marker, markersize=4)
    axes.set(ylabel=AVG_JCT.axis_label, yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    style.plain_numbers(axes.yaxis)
    _gap_axis(axes, means.index)


@style.on_axes(style.PAGE, 2.0, legend=style.label_ends)
def change_over_gap(changes: pandas.DataFrame, against: str, axes: Axes | None = None) -> None:
    """Paired change over the mean gap between arrivals, with 95 % intervals.

    Where a scheduler is overrun by jobs the scale is logarithmic from a change of :data:`LINEAR_TO` on.

    Args:
        changes: interarrival_s, scheduler, change_percent, low and high, of one baseline.
        against: The baseline.
    """
    for mark, rows in style.by_scheduler(changes):
        rows = rows.sort_values("interarrival_s")
        change = rows["change_percent"]
        axes.plot(rows["interarrival_s"], change, **mark.line(), marker=mark.marker, markersize=4)
        axes.fill_between(rows["interarrival_s"], rows["low"], rows["high"], color=mark.color, alpha=0.2, linewidth=0)
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set(ylabel=f"average JCT against\n{style.scheduler_style(against).label} (%)")
    if changes["high"].max() > 5.0 * LINEAR_TO:
        axes.set_yscale("symlog", linthresh=LINEAR_TO, linscale=2.0)
        axes.set_yticks([0.0, 50.0, 100.0, 1000.0, 10000.0], ["0", "50", "100", "1,000", "10,000"])
        axes.set_ylim(bottom=min(changes["low"].min(), 0.0) - 0.1 * LINEAR_TO)
        axes.minorticks_off()
    _gap_axis(axes, sorted(changes["interarrival_s"].unique()))


@style.on_axes(style.PAGE, 2.0, legend=style.label_ends)
def loads_over_gap(loads: pandas.DataFrame, wanted: float, axes: Axes | None = None) -> None:
    """Three meanings of load over the mean gap between arrivals, means over streams.

    Args:
        loads: interarrival_s, seed, nominal, busy and held as parts of all executor time.
        wanted: Load drawn as a line for comparison.
    """
    means = loads.groupby("interarrival_s")[list(_MEANINGS)].mean()
    for name, (label, color, dashes, marker) in _MEANINGS.items():
        axes.plot(100.0 * means[name], label=label, color=color, linestyle=dashes, marker=marker, markersize=4)
    axes.axhline(100.0 * wanted, color=style.BLACK, linewidth=0.8, label=f"the paper's {100.0 * wanted:.0f} %")
    axes.set(ylabel="load (%)", ylim=(0.0, None))
    axes.set_xlabel("mean time between arrivals (s); the load grows to the right")
    _gap_axis(axes, means.index)


def _gap_axis(axes: Axes, gaps_s: Iterable[float]) -> None:
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set_xticks(list(gaps_s))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


@style.styled
def change_by_case(changes: pandas.DataFrame, axes: Axes | None = None) -> Axes:
    """Paired change with its 95 % confidence interval, a row per case.

    Args:
        changes: case, base (the rule), change_percent, low and high.
        axes: Where to draw; a new figure when omitted.
    """
    axes = style.axes_or_new(axes, style.PAGE, 0.9 + 0.35 * len(changes))
    position = range(len(changes))
    reach = [changes["change_percent"] - changes["low"], changes["high"] - changes["change_percent"]]
    axes.errorbar(
        changes["change_percent"], position, xerr=reach, linestyle="none", color=style.VERMILION, marker="X", capsize=2
    )
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    rules = [style.scheduler_style(text.partition(":")[0]).label for text in changes["base"]]
    style.label_rows(axes, [f"{case}\n{rule}" for case, rule in zip(changes["case"], rules, strict=True)])
    axes.set_xlabel("change of average JCT (%)")
    return axes
