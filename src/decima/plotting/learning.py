"""Plots of training and of the time that decisions take (Figures 7, 15)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from decima.core.appearance import Appearance
from decima.core.objectives import AVG_JCT
from decima.plotting import style

GREEDY, SAMPLED = "val_greedy", "val_sampled"
# Schedulers by the variant of a recipe that trains them; other variants look like schedulers without an appearance.
_TRAINED_BY = {
    "limit as output": "decima_output",
    "limit per stage": "decima_stage",
    "entry costs seen": "decima_entry",
    "Algorithm 1, entropy bonus of the recipe": "decima_reinforce",
    "Algorithm 1 (REINFORCE)": "decima_reinforce",
}
_UNITS = {"wall_s": (60.0, "wall time (min)"), "cpu_s": (60.0, "CPU time (min)"), "iteration": (1.0, "iteration")}


def variant_style(variant: str, recipe: str = "decima") -> Appearance:
    """Appearance of the policy that a variant of a recipe trains; ``"recipe"`` itself trains ``recipe``."""
    return style.scheduler_style(recipe if variant == "recipe" else _TRAINED_BY.get(variant, variant))


@style.on_axes(style.PAGE, 2.8, legend=style.legend_beside)
def learning_curves(
    curves: pandas.DataFrame,
    references: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    over: str = "iteration",
    values: Sequence[str] = (GREEDY, SAMPLED),
    levels: Sequence[str] | None = None,
    recipe: str = "decima",
) -> None:
    """Validation scores over training, with heuristics as level lines.

    Args:
        curves: run, variant, ``over``, ``values`` (average JCT in seconds).
        references: scheduler, avg_jct_s.
        over: ``"iteration"``, ``"wall_s"`` or ``"cpu_s"``.
        values: Which scores; a sampled one is dotted.
        levels: Heuristics that are drawn, in the order of the legend; all of ``references`` when omitted.
        recipe: The scheduler whose name the variant ``recipe`` has in the legend.

    Source: §7.4, Figure 15a.
    """
    scale, label = _UNITS[over]
    named = set()
    for (variant, _), rows in curves.groupby(["variant", "run"], sort=False):
        rows = rows.sort_values(over)
        for value in values:
            sampled = value == SAMPLED
            known = variant == "recipe" or variant in _TRAINED_BY
            name = variant_style(variant, recipe).label if known else variant
            name += ", sampled" if sampled else ""
            color = variant_style(variant, recipe).color
            mark = {"color": color, "linestyle": (0, (1, 1.2)) if sampled else "-", "linewidth": 0.9}
            axes.plot(rows[over] / scale, rows[value], label=name if name not in named else None, **mark)
            named.add(name)
    level = references.set_index("scheduler")["avg_jct_s"]
    for name in (
        style.display_order(level.index) if levels is None else (each for each in levels if each in level.index)
    ):
        mark = style.scheduler_style(name)
        axes.axhline(level[name], color=mark.color, linestyle=mark.linestyle, linewidth=1.0, label=mark.label, zorder=1)
    # A policy that knows nothing yet is far above; what matters is the neighbourhood of the heuristics.
    shown = curves[list(values)].to_numpy()
    top = min(np.nanmax(shown), 1.5 * level.max())
    axes.set(xlabel=label, ylabel=AVG_JCT.axis_label, ylim=(0.95 * min(np.nanmin(shown), level.min()), top))
    axes.margins(x=0.0)


@style.on_axes(4.6, 2.2)
def part_points(parts: pandas.DataFrame, value: str, largest: float, axes: Axes | None = None) -> None:
    """A row per part: a point per training without it, a line at their mean.

    Args:
        parts: part and ``value``, a change in percent; a row per training.
        value: Column of the horizontal axis.
        largest: End of the axis; a row beyond has its mean there as a number.
    """
    means = parts.groupby("part", sort=False)[value].mean()
    color = style.scheduler_style("decima_entry").color
    for row, (part, mean) in enumerate(means.items()):
        if mean > largest:
            axes.text(largest, row, f"{mean:+,.0f} % ▶", ha="right", va="center", fontsize=7, color=color)
            continue
        points = parts.loc[parts["part"] == part, value]
        axes.plot(points, np.full(len(points), row), "o", color=color, markersize=4, alpha=0.7)
        axes.vlines(mean, row - 0.3, row + 0.3, "black")
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    style.label_rows(axes, list(means.index))
    axes.set_xlim(right=largest)


def extreme_sequences(returns: pandas.DataFrame, shared_s: float) -> tuple[int, int]:
    """Sequences with the worst and the best mean return from ``shared_s`` on."""
    table = returns[returns["time_s"] == shared_s].groupby("sequence")["return_s"].mean()
    return int(table.idxmin()), int(table.idxmax())


@style.styled
def sequence_penalties(
    arrivals: pandas.DataFrame, returns: pandas.DataFrame, shared_s: float, horizon_s: float
) -> style.Figure:
    """Job sizes and penalties over time of two arrival sequences with the same beginning.

    Args:
        arrivals: sequence, arrival_s, work_s.
        returns: sequence, rollout, time_s, active_jobs, return_s, at regular times.
        shared_s: Time up to which the sequences agree.
        horizon_s: End of the time axis.

    Source: §5.3, Figure 7.
    """
    figure = style.new_figure(style.PAGE, 3.4)
    grid = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1, 1.4))
    for column, (sequence, color) in enumerate(
        zip(extreme_sequences(returns, shared_s), (style.VERMILION, style.BLUE), strict=True)
    ):
        sizes, penalty = grid[:, column]
        jobs = arrivals[arrivals["sequence"] == sequence]
        sizes.vlines(jobs["arrival_s"], 0.0, jobs["work_s"], color=color, linewidth=1.2)
        sizes.set_title(f"job sequence {column + 1}", loc="left")
        rows = returns[returns["sequence"] == sequence]
        active = rows.groupby("time_s")["active_jobs"].agg(["mean", "min", "max"])
        penalty.fill_between(active.index, active["min"], active["max"], color=color, alpha=0.25, linewidth=0)
        penalty.plot(active.index, active["mean"], color=color)
        from_t = rows[rows["time_s"] == shared_s]["return_s"]
        text = f"return from t on: {from_t.mean():,.0f} ± {from_t.std():,.0f} job s".replace("-", "−")
        penalty.set_title(text, loc="left", fontsize=8)
        penalty.set(xlabel="time (s)", xlim=(0.0, horizon_s), ylim=(0.0, None))
        for axes in (sizes, penalty):
            axes.axvline(shared_s, color=style.BLACK, linewidth=0.8, linestyle="--")
        sizes.annotate("t", (shared_s, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -8),
                       textcoords="offset points", fontsize=8)  # fmt: skip
    grid[0, 0].set(ylabel="job size\n(executor s)", ylim=(0.0, None))
    grid[1, 0].set_ylabel("jobs in the system\n(penalty per s)")
    grid[1, 0].yaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


@style.on_axes(style.PAGE, 2.2)
def baseline_spread(explained: pandas.DataFrame, shared_s: float, axes: Axes | None = None) -> None:
    """Standard deviation of the return around two baselines over time.

    Args:
        explained: time_s, time_baseline_s, input_baseline_s.
        shared_s: Time up to which the sequences agree.

    Source: §5.3, challenge 2.
    """
    time_s = explained["time_s"]
    axes.plot(time_s, explained["time_baseline_s"], color=style.ORANGE, label="mean of all episodes at that time")
    axes.plot(
        time_s, explained["input_baseline_s"], color=style.INDIGO, linestyle=(0, (4, 1.5)),
        label="mean of the same sequence's episodes\n(input-dependent)",
    )  # fmt: skip
    axes.axvline(shared_s, color=style.BLACK, linewidth=0.8, linestyle="--", label="t: sequences part")
    axes.set(xlabel="time of the action (s)", ylabel="spread of the return\n(s.d., job s)", ylim=(0.0, None))
    axes.margins(x=0.0)
    style.legend_beside(axes, title="baseline", alignment="left")


@style.on_axes(style.COLUMN, 2.6)
def delay_cdf(latency_ms: np.ndarray, interval_s: np.ndarray, axes: Axes | None = None) -> None:
    """Distributions of decision times and of times between scheduling events.

    Args:
        latency_ms: float64 [decisions], wall clock.
        interval_s: float64 [events - 1], simulated time.

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
def latency_over_jobs(table: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Time per decision over jobs in the system: median and 95th percentile.

    Args:
        table: jobs (of the batch), active_jobs, latency_ms.
    """
    color = style.BLACK
    groups = table.groupby("jobs")
    active = groups["active_jobs"].median()
    median, high = groups["latency_ms"].median(), groups["latency_ms"].quantile(0.95)
    axes.plot(active, median, color=color, marker="o", markersize=3, label="median")
    axes.plot(active, high, color=color, linestyle=(0, (1, 1.2)), marker="v", markersize=3, label="95th percentile")
    axes.axhline(15.0, color=style.GREY, linewidth=0.8, linestyle="--", label="paper, mean: 15 ms")
    axes.set(xscale="log", yscale="log", xlabel="jobs in the system", ylabel="time per decision (ms)")
    style.plain_numbers(axes.xaxis, axes.yaxis)
    style.legend_above(axes, ncols=2)
