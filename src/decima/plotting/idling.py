"""Plots of deliberate idling: the optimal gain over the mix of jobs."""

from __future__ import annotations

import pandas
from matplotlib.axes import Axes

from decima.plotting import style

_LENGTHS = (
    (style.BLUE, "-", "o"),
    (style.VERMILION, (0, (4, 1.5)), "s"),
    (style.GREEN, (0, (1, 1.2)), "^"),
    (style.PINK, (0, (4, 1.5, 1, 1.5)), "D"),
)


@style.styled
def gain_over_share(gains: pandas.DataFrame, axes: Axes | None = None, *, legend: bool = True) -> Axes:
    """Gain of the best rule that may idle over the share of long jobs, a line per length of these.

    Args:
        gains: long_s, share (parts of 1) and gain_percent, of one number of executors and one load.
        axes: Where to draw; a new figure when omitted.
        legend: Name the lengths.
    """
    axes = style.own_axes(axes, style.COLUMN, 2.4)
    for (long_s, rows), (color, dashes, marker) in zip(gains.groupby("long_s"), _LENGTHS, strict=False):
        ordered = rows.sort_values("share")
        look = {"color": color, "linestyle": dashes, "marker": marker, "markersize": 4}
        axes.plot(100.0 * ordered["share"], ordered["gain_percent"], **look, label=f"long jobs of {long_s:g} s")
    axes.set(xlabel="long jobs (% of all)", ylabel="gain (% of average JCT)", xlim=(0.0, None))
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    if legend:
        axes.legend()
    return axes
