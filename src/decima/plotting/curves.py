"""Curves: parallelism (Figure 2), distributions (9), jobs over time (10a), alpha, learning (19)."""

from __future__ import annotations

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
