"""Simulated against real job durations (appendix D, Figure 18)."""

from __future__ import annotations

import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.plotting import style

REAL, SIMULATED = style.BLUE, style.ORANGE
# Where a profile comes from, as in the tables, and how that is drawn.
ORIGINS = {
    "held out": ("other repetitions", SIMULATED, "-"),
    "alone": ("queries alone", style.VERMILION, (0, (4, 1.5))),
    "training": ("all repetitions", style.GREY, (0, (1, 1.2))),
    "same run": ("the same run", style.BLACK, (0, (4, 1.5, 1, 1.5))),
    "other real repetitions": ("no simulation: the floor", REAL, "-"),
}


def query_labels(names) -> dict[str, str]:
    """Short labels of queries by profile name, in order of their numbers: ``q9-0.25g`` becomes ``9``."""
    numbers = {name: str(name).split("-")[0].lstrip("qQ") for name in dict.fromkeys(names)}
    return dict(sorted(numbers.items(), key=lambda pair: (int(pair[1]) if pair[1].isdigit() else 0, pair[0])))


@style.on_axes(style.PAGE, 2.0)
def duration_bars(runs: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Bars of the real duration by query, with deviation, and the simulated one.

    Args:
        runs: name, real_s, simulated_s of one executor count.

    Source: appendix D, Figure 18, upper part.
    """
    labels = query_labels(runs["name"])
    groups = runs.groupby("name")
    real = groups["real_s"].agg(["mean", "std"]).fillna(0.0).loc[list(labels)]
    position = np.arange(len(labels))
    axes.bar(
        position, real["mean"], 0.7, yerr=real["std"], color=REAL, alpha=0.75, label="real (± standard deviation)",
        error_kw={"linewidth": 0.8, "capsize": 1.5},
    )  # fmt: skip
    simulated = groups["simulated_s"].mean().loc[list(labels)]
    axes.plot(position, simulated, linestyle="none", marker="D", markersize=3.5, color=SIMULATED, label="simulated")
    axes.set_xticks(position, list(labels.values()))
    axes.set(ylabel="job duration (s)", xlim=(-0.7, len(labels) - 0.3), ylim=(0.0, None))
    axes.tick_params(axis="x", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize=7, borderaxespad=0.2)


@style.on_axes(style.PAGE, 1.6)
def error_ranges(runs: pandas.DataFrame, axes: Axes | None = None, *, paper_percent: float) -> None:
    """Ranges of the error by query that hold 95 % of the runs.

    Args:
        runs: name, error (simulated / real - 1).
        paper_percent: Mean error that the paper states, drawn as a band.

    Source: appendix D, Figure 18, lower part.
    """
    labels = query_labels(runs["name"])
    position = np.arange(len(labels))
    groups = (100.0 * runs["error"]).groupby(runs["name"])
    measures = (groups.quantile(0.025), groups.mean(), groups.quantile(0.975))
    low, mean, high = (measure.loc[list(labels)] for measure in measures)
    axes.axhspan(-paper_percent, paper_percent, color="0.92", zorder=0, label=f"paper's mean: ±{paper_percent:g} %")
    axes.bar(position, high - low, 0.5, bottom=low, color=SIMULATED, alpha=0.8, label="95 % of the runs")
    axes.plot(position, mean, linestyle="none", marker="_", markersize=8, color=style.BLACK, label="mean")
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    reach = 0.06 * float(high.max() - low.min())
    axes.set_ylim(min(low.min(), -paper_percent) - reach, max(high.max(), paper_percent) + reach)
    axes.set_xticks(position, list(labels.values()))
    axes.set(xlabel="query", ylabel="error (%)", xlim=(-0.7, len(labels) - 0.3))
    axes.tick_params(axis="x", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=7, borderaxespad=0.2)


@style.on_axes(style.COLUMN, 2.6)
def error_distributions(errors: pandas.DataFrame, axes: Axes | None = None, *, paper: tuple[float, float]) -> None:
    """Distribution of the error's size by origin of the profile, with the floor.

    Args:
        errors: profile, error.
        paper: Mean and 95th percentile of the paper in percent, drawn as lines.
    """
    sizes = 100.0 * errors["error"].abs()
    for origin, (label, color, line) in ORIGINS.items():
        values = sizes[errors["profile"] == origin]
        if len(values):
            axes.ecdf(values, color=color, linestyle=line, label=f"{label}: mean {values.mean():.1f} %")
    for percent, name, line in zip(paper, ("mean", "95th percentile"), ((0, (1, 2)), (0, (5, 3))), strict=True):
        label = f"the paper's {name}: {percent:g} %"
        axes.axvline(percent, color=style.BLACK, linewidth=0.7, linestyle=line, label=label)
    axes.set(xlabel="size of the error (%)", ylabel="share of runs", ylim=(0.0, 1.02))
    axes.set_xlim(0.0, max(1.2 * paper[1], float(sizes.quantile(0.98))))
    axes.legend(
        loc="lower right", fontsize=6.5, title="simulated with the durations of", title_fontsize=6.5, alignment="left"
    )


@style.on_axes(style.PAGE / 2, 2.4)
def ablation_bars(summary: pandas.DataFrame, axes: Axes | None = None, *, legend: bool = True) -> None:
    """Bars of the mean error's size by variant, with bias and 95th percentile.

    Args:
        summary: variant, mean_percent, p95_percent, bias_percent; rows from top to bottom.
        legend: Explain the marks.
    """
    position = np.arange(len(summary))
    colors = [REAL if name.startswith("other real") else SIMULATED for name in summary["variant"]]
    axes.barh(position, summary["mean_percent"], 0.65, color=colors, alpha=0.85, label="mean size of the error")
    for column, marker, size, color, label in (
        ("p95_percent", "|", 8, "0.4", "95th percentile"),
        ("bias_percent", "D", 3, style.BLACK, "bias"),
    ):
        axes.plot(summary[column], position, linestyle="none", marker=marker, markersize=size, color=color, label=label)
    beyond = summary[["mean_percent", "p95_percent"]].max(axis=1)
    for at, value, end in zip(position, summary["mean_percent"], beyond, strict=True):
        axes.annotate(f"{value:.1f}", (end, at), (4, 0), textcoords="offset points", fontsize=6.5, va="center")
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    axes.set_xlim(min(0.0, 1.1 * summary["bias_percent"].min()), 1.15 * beyond.max())
    style.label_rows(axes, list(summary["variant"]))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("error (%)")
    if legend:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=6.5, handletextpad=0.4)
