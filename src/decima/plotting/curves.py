"""Curves: parallelism (Figure 2), distributions (9), streams (10), alpha, learning (19), deliberate idling."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from decima.core.objectives import AVG_JCT, axis_label
from decima.plotting import style, words

# Schemes of message passing (appendix E), from the one that learns best.
_SCHEMES = {
    "two_level": "two levels, f and g (Decima)",
    "one_level_perceptron": "one level, perceptron as readout",
    "one_level": "one level, f only",
}
_REMARK = {"ha": "right", "va": "top", "fontsize": 7, "color": style.GREY}
# What tells variants of weighted fair scheduling apart.
VARIANT = ["sticky", "stage_rule", "order"]
STAGE_RULES = ("runnable stages first", "runnable first, critical path", "critical path first")


def sweet_spot(runtime_s: pandas.Series, slack: float = 0.1) -> int:
    """Fewest executors whose runtime (indexed by executors) is within ``slack`` of the best."""
    good = runtime_s[runtime_s <= (1.0 + slack) * runtime_s.min()]
    return int(good.index.min())


@style.on_axes(style.COLUMN, 2.4, legend=Axes.legend)
def parallelism(runtimes: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Runtime of single jobs over executors, with deviation and sweet spot.

    Args:
        runtimes: job, executors, seed, runtime_s.

    Source: §2.2, Figure 2.
    """
    for index, (job, rows) in enumerate(runtimes.groupby("job", sort=False)):
        color, dashes, marker = style.LINES[index % len(style.LINES)]
        runtime = rows.groupby("executors")["runtime_s"].agg(["mean", "std"])
        mean, spread = runtime["mean"], runtime["std"].fillna(0.0)
        axes.plot(mean, color=color, linestyle=dashes, marker=marker, markersize=3.5, label=words.job_label(job))
        spot = sweet_spot(mean)
        axes.plot(spot, mean[spot], marker="o", markersize=9, markerfacecolor="none", color=color)
        axes.fill_between(mean.index, mean - spread, mean + spread, color=color, alpha=0.25, linewidth=0)
    axes.set(xlabel="degree of parallelism (executors)", ylabel="job runtime (s)", xlim=(0.0, None), yscale="log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


@style.on_axes(5.4, 2.6)
def cdf(
    scores: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    value: str = "avg_jct_s",
    log: bool = False,
    legend: str = "beside",
) -> None:
    """Cumulative distribution per scheduler; the legend gives the means, best first.

    Args:
        scores: scheduler and the column ``value`` in seconds, one row per experiment (or per job).
        value: ``"avg_jct_s"`` or ``"jct_s"``.
        log: Logarithmic time axis.
        legend: ``"beside"`` the axes, or ``"below"``.

    Source: §7.2, Figures 9a and 9b.
    """
    means = scores.groupby("scheduler")[value].mean().sort_values(kind="stable")
    for name, mean in means.items():
        mark = style.scheduler_style(name)
        rows = scores["scheduler"] == name
        axes.ecdf(scores.loc[rows, value], **mark.line() | {"label": f"{mark.label}: {mean:.1f} s"})
    axes.set(xlabel=axis_label(value, "JCT (s)"), ylabel="CDF", ylim=(0.0, 1.02))
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_xlim(left=0.0)
    if legend == "beside":
        style.legend_beside(axes, title="mean", alignment="left")
    else:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), title="mean", alignment="left")


@style.on_axes(style.PAGE, 2.2, legend=style.legend_beside)
def concurrent_jobs(
    series: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    value: str = "active_jobs",
    label: str = "jobs in the system",
    points: int = 250,
) -> None:
    """Number of jobs in the system, or another number, over time, a line per scheduler.

    Args:
        series: scheduler, time_s, the column ``value``, at regular times.
        value: Column of the height.
        label: Label of the height.
        points: A longer series is averaged over this many intervals, to remain readable.

    Source: §7.2, Figure 10a.
    """
    end_s = series["time_s"].max()
    unit_s, unit = style.time_unit(end_s)
    if series.groupby("scheduler").size().max() > points:
        interval_s = end_s / points
        start_s = (series["time_s"] // interval_s).clip(upper=points - 1) * interval_s
        series = series.assign(time_s=start_s).groupby(["scheduler", "time_s"], as_index=False)[value].mean()
    for mark, rows in style.by_scheduler(series):
        rows = rows.sort_values("time_s")
        # Dashes turn a jagged line into noise: the colour alone tells these lines apart, and the order in the legend.
        line = mark.line() | {"linewidth": 1.0, "linestyle": "-"}
        axes.step(rows["time_s"] / unit_s, rows[value], where="post", **line)
    axes.set(xlabel=f"time ({unit})", ylabel=label, xlim=(0.0, None), ylim=(0.0, None))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def variant_label(sticky: int, stage_rule: int, order: int = 0) -> str:
    """Name of a variant of weighted fair scheduling."""
    shares = "sticky shares" if sticky else "strict shares"
    return f"{shares}, {STAGE_RULES[int(stage_rule)]}{', small jobs first' if order else ''}"


def alpha_means(sweep: pandas.DataFrame) -> pandas.DataFrame:
    """Mean and standard error over seeds, a row per variant and alpha."""
    return sweep.groupby([*VARIANT, "alpha"])["avg_jct_s"].agg(mean="mean", sem="sem").reset_index()


def _best(means: pandas.DataFrame) -> pandas.Series:
    return means.loc[means["mean"].idxmin()]


@style.on_axes(style.PAGE / 2, 2.2)
def alpha_curve(sweep: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Average JCT over alpha: the best variant, the range of the others.

    Args:
        sweep: alpha, sticky, stage_rule, order, seed, avg_jct_s.

    Source: §7.1 (5), §7.2.
    """
    means = alpha_means(sweep)
    best = _best(means)
    chosen = (means[VARIANT] == best[VARIANT]).all(axis=1)
    mine, others = means[chosen], means[~chosen].groupby("alpha")["mean"].agg(["min", "max"])
    axes.fill_between(others.index, others["min"], others["max"], color="0.88", linewidth=0, label="other variants")
    axes.plot(mine["alpha"], mine["mean"], color=style.GREEN, label=variant_label(*map(int, best[VARIANT])))
    low, high = mine["mean"] - mine["sem"].fillna(0.0), mine["mean"] + mine["sem"].fillna(0.0)
    axes.fill_between(mine["alpha"], low, high, color=style.GREEN, alpha=0.25, linewidth=0)
    star = {"marker": "*", "markersize": 9, "color": style.BLACK, "linestyle": "none", "zorder": 4}
    axes.plot(best["alpha"], best["mean"], label=f"best: α = {_signed(best['alpha'])}, {best['mean']:.1f} s", **star)
    axes.set(xlabel="α (0: fair, 1: naive weighted fair)", ylabel=AVG_JCT.axis_label)
    axes.set_ylim(0.9 * means["mean"].min(), 3.0 * means["mean"].min())
    axes.margins(x=0.0)
    axes.legend(loc="upper left", fontsize=7)


def _signed(alpha: float) -> str:
    return f"{alpha:+.1f}".replace("-", "−") if alpha else "0"


@style.on_axes(5.4, 2.6)
def expressiveness(accuracy: pandas.DataFrame, guess: float, axes: Axes | None = None) -> None:
    """Accuracy over iterations of training, mean and range over seeds per scheme of message passing.

    Args:
        accuracy: scheme, seed, iteration, accuracy.
        guess: Accuracy of a guess, drawn as a line.

    Source: appendix E, Figure 19.
    """
    for (scheme, label), (color, dashes, _) in zip(_SCHEMES.items(), style.LINES, strict=False):
        by_iteration = accuracy[accuracy["scheme"] == scheme].groupby("iteration")["accuracy"]
        mean, low, high = by_iteration.mean(), by_iteration.min(), by_iteration.max()
        axes.plot(mean.index, mean, color=color, linestyle=dashes, label=label)
        axes.fill_between(mean.index, low, high, color=color, alpha=0.25, linewidth=0)
    axes.axhline(guess, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 1.5)))
    axes.text(0.99, guess, "guess among stages without parents", transform=axes.get_yaxis_transform(), **_REMARK)
    axes.set(xlabel="training iterations", ylabel="accuracy on unseen DAGs", ylim=(0.0, 1.02))
    axes.set_xlim(0, accuracy["iteration"].max())
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.28))


@style.on_axes(style.PAGE, 2.0, legend=style.legend_beside)
def jct_over_time(jobs: pandas.DataFrame, axes: Axes | None = None, *, windows: int = 24) -> None:
    """Mean JCT of the jobs that arrive in each window, by scheduler.

    Args:
        jobs: scheduler, arrival_s, jct_s.
        windows: Windows of equal length between the first and the last arrival.

    Source: §7.2, Figure 10b.
    """
    scale, unit = style.time_unit(jobs["arrival_s"].max())
    edges = np.linspace(0.0, jobs["arrival_s"].max(), windows + 1)
    middle = (edges[1:] + edges[:-1]) / 2.0
    position = np.clip(np.searchsorted(edges, jobs["arrival_s"], side="right") - 1, 0, windows - 1)
    means = jobs.groupby([position, "scheduler"])["jct_s"].mean().unstack("scheduler").reindex(range(windows))
    for name in style.display_order(jobs["scheduler"]):
        mark = style.scheduler_style(name)
        axes.plot(middle / scale, means[name], **mark.line() | {"linestyle": "-"}, marker=mark.marker, markersize=3)
    axes.set(xlabel=f"time of arrival ({unit})", ylabel="mean JCT (s)", xlim=(0.0, None), ylim=(0.0, None))


@style.on_axes(style.COLUMN, 2.6, legend=Axes.legend)
def against_work(jobs: pandas.DataFrame, axes: Axes | None = None, *, value: str, label: str, log: bool = True) -> None:
    """One number per job over its work, with medians by scheduler.

    Args:
        jobs: scheduler, work_s, the column ``value``.
        value: Column of the height, above 0.
        label: Label of the height, with its unit.
        log: Logarithmic height.

    Source: §7.2, Figure 10c and d.
    """
    for mark, rows in style.by_scheduler(jobs):
        axes.scatter(
            rows["work_s"], rows[value], s=3.5, marker=mark.marker, color=mark.color, alpha=0.3, linewidths=0.0,
            rasterized=True,
        )  # fmt: skip
        tenth = pandas.qcut(rows["work_s"], 10, duplicates="drop")
        median = rows.groupby(tenth, observed=True)[["work_s", value]].median()
        axes.plot(median["work_s"], median[value], **mark.line(), zorder=3)
    axes.set(xlabel="work of the job (executor s)", ylabel=label, xscale="log")
    style.plain_numbers(axes.xaxis)
    if log:
        axes.set_yscale("log")
        style.plain_numbers(axes.yaxis)
    else:
        axes.set_ylim(bottom=0.0)


@style.on_axes(style.COLUMN, 2.6)
def executed_against(jobs: pandas.DataFrame, axes: Axes | None = None, *, across: str, up: str) -> None:
    """Executor time that each job took under two schedulers.

    Args:
        jobs: scheduler, job, executed_s.
        across: Scheduler along the x axis.
        up: Scheduler along the y axis.

    Source: §7.2, Figure 10e.
    """
    table = jobs.pivot(index="job", columns="scheduler", values="executed_s")
    first, second = style.scheduler_style(across), style.scheduler_style(up)
    low, high = table.to_numpy().min(), table.to_numpy().max()
    axes.plot([low, high], [low, high], color=style.GREY, linewidth=0.8, zorder=1)
    axes.scatter(
        table[across], table[up], s=3.5, marker=second.marker, color=second.color, alpha=0.4, linewidths=0.0,
        rasterized=True, zorder=2,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel=f"{first.label}\n(executor s)", ylabel=f"{second.label} (executor s)")
    style.plain_numbers(axes.xaxis, axes.yaxis)


@style.on_axes(style.COLUMN, 2.4, legend=Axes.legend)
def gain_over_share(gains: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Gain of the best idling rule over the share of long jobs.

    Args:
        gains: long_s, share (parts of 1) and gain_percent, of one number of executors and one load.
    """
    _by_length(gains.assign(percent=100.0 * gains["share"]), "percent", "gain_percent", "long jobs of {:g} s", axes)
    axes.set(xlabel="long jobs (% of all)", ylabel="gain (% of average JCT)", xlim=(0.0, None))
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def jct_percentiles(percentiles: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Cumulative distribution of the JCT, a line per scheduler.

    Args:
        percentiles: scheduler, percent and jct_s, of one load; those up to 98 are shown.
    """
    for mark, rows in style.by_scheduler(percentiles):
        rows = rows[rows["percent"] <= 98]
        axes.plot(rows["jct_s"], rows["percent"] / 100.0, **mark.line())
    axes.set(xlabel="JCT (s)", ylabel="CDF", xlim=(0.0, None), ylim=(0.0, 1.02))


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def score_over_jobs(scores: pandas.DataFrame, column: str, axes: Axes | None = None) -> None:
    """Mean score over the number of jobs, a line per scheduler.

    Args:
        scores: jobs, scheduler and the score.
        column: The score, in seconds.
    """
    means = scores.groupby(["jobs", "scheduler"])[column].mean().unstack("scheduler")
    for name in style.display_order(scores["scheduler"]):
        mark = style.scheduler_style(name)
        axes.plot(means[name], **mark.line(), marker=mark.marker, markersize=4)
    axes.set(xlabel="jobs", ylabel=axis_label(column, column))


@style.on_axes(style.PAGE, 2.4, legend=style.legend_beside)
def slot_over_gap(slots: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean slot over the gap between arrivals, a line per length of long jobs.

    Args:
        slots: long_s, gap_s and mean_slot_s.
    """
    _by_length(slots, "gap_s", "mean_slot_s", "μ = {:g} s", axes)
    axes.set(xlabel="mean gap between arrivals (s)", ylabel="mean slot (s)", xlim=(0.0, None), ylim=(0.0, None))


def _by_length(table: pandas.DataFrame, x: str, y: str, label: str, axes: Axes) -> None:
    """A line per length of long jobs (column long_s)."""
    for (long_s, rows), (color, dashes, marker) in zip(table.groupby("long_s"), style.LINES, strict=False):
        ordered = rows.sort_values(x)
        mark = {"color": color, "linestyle": dashes, "marker": marker, "markersize": 4}
        axes.plot(ordered[x], ordered[y], **mark, label=label.format(long_s))
