"""Time that decisions take, by events and number of jobs (Figure 15b)."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from decima.plotting import style


@style.on_axes(style.COLUMN, 2.6)
def delay_cdf(latency_ms: np.ndarray, interval_s: np.ndarray, axes: Axes | None = None) -> None:
    """Distributions of decision times and of times between scheduling events.

    Args:
        latency_ms: float64 [decisions], wall clock.
        interval_s: float64 [events - 1], simulated time.
        axes: Where to draw; a new figure when omitted.

    Source: §7.4, Figure 15b.
    """
    axes.ecdf(latency_ms, color=style.BLACK, label=f"decision: mean {np.mean(latency_ms):.2g} ms")
    interval_ms = 1000.0 * interval_s
    label = f"interval: mean {np.mean(interval_s):.2g} s"
    axes.ecdf(interval_ms, color=style.BLUE, linestyle=(0, (4, 1.5)), label=label)
    axes.set(xscale="log", xlabel="time (ms)", ylabel="CDF", ylim=(0.0, 1.02))
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    style.plain_numbers(axes.xaxis)
    style.legend_above(axes)


@style.on_axes(style.COLUMN, 2.6)
def latency_over_jobs(table: pandas.DataFrame, axes: Axes | None = None, *, paper_ms: float = 15.0) -> None:
    """Time per decision over jobs in the system: median and 95th percentile.

    Args:
        table: jobs (of the batch), active_jobs, latency_ms.
        axes: Where to draw; a new figure when omitted.
        paper_ms: Mean delay that the paper states.
    """
    color = style.BLACK
    groups = table.groupby("jobs")
    active = groups["active_jobs"].median()
    median, high = groups["latency_ms"].median(), groups["latency_ms"].quantile(0.95)
    axes.plot(active, median, color=color, marker="o", markersize=3, label="median")
    axes.plot(active, high, color=color, linestyle=(0, (1, 1.2)), marker="v", markersize=3, label="95th percentile")
    axes.axhline(paper_ms, color=style.GREY, linewidth=0.8, linestyle="--", label=f"paper, mean: {paper_ms:g} ms")
    axes.set(xscale="log", yscale="log", xlabel="jobs in the system", ylabel="time per decision (ms)")
    style.plain_numbers(axes.xaxis, axes.yaxis)
    style.legend_above(axes, ncols=2)
