"""Distance from the best schedule: appendix A, heuristics against exhaustive search (appendix H), bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.core.objectives import AVG_JCT
from decima.evaluation.statistics import mean_interval
from decima.plotting import style
from decima.plotting.gantt import gantt, job_colors, jobs_legend


@style.styled
def example_schedules(
    tasks: pandas.DataFrame, names: Mapping[int, str] | None = None, colors: Mapping[int, str] | None = None
) -> style.Figure:
    """Gantt charts of one small DAG, a colour per stage.

    Args:
        tasks: case, stage, executor, start_s, finish_s, and job (one).
        names: What to call the stages in the legend, by stage.
        colors: Colours by stage; chosen when omitted.

    Source: appendix A, Figure 16.
    """
    cases = style.display_order(tasks["case"])
    stages = sorted(tasks["stage"].unique())
    colors = colors or dict(zip(stages, job_colors(len(stages)), strict=True))
    figure = style.new_figure(style.PAGE, 0.9 + 1.15 * len(cases))
    rows = figure.subplots(len(cases), 1, sharex=True, squeeze=False)[:, 0]
    for axes, case in zip(rows, cases, strict=True):
        chosen = tasks[tasks["case"] == case]
        gantt(chosen, axes, color_by="stage", colors=colors, each_task=True)
        makespan = chosen["finish_s"].max()
        axes.set_title(f"{style.scheduler_style(case).label}: makespan {makespan:.2f} s", loc="left")
        axes.set_yticks(range(int(tasks["executor"].max()) + 1))
        axes.axvline(makespan, color=style.COMPLETION, linewidth=1.0, zorder=3)
    for axes in rows[:-1]:
        axes.set_xlabel("")
    rows[0].set_xlim(0.0, 1.02 * float(tasks["finish_s"].max()))
    jobs_legend(figure, {stage: (names or {}).get(stage, f"stage {stage}") for stage in stages}, colors)
    return figure


def relative_to(scores: pandas.DataFrame, instance: str, reference: str) -> pandas.DataFrame:
    """Ratio of the average JCT to that of a reference policy on the same instance.

    Args:
        scores: policy, avg_jct_s and the column ``instance``.
        instance: What a comparison is made inside of.
        reference: Policy that is 1.

    Returns:
        The rows of ``scores`` with the column ``ratio``.
    """
    base = scores[scores["policy"] == reference].set_index(instance)["avg_jct_s"]
    return scores.assign(ratio=scores["avg_jct_s"] / scores[instance].map(base))


@style.on_axes(style.COLUMN, 2.6)
def ratio_bars(scores: pandas.DataFrame, axes: Axes | None = None, *, reference: str, instance: str = "batch") -> None:
    """Bars of the average JCT per policy relative to a reference policy.

    Args:
        scores: policy, avg_jct_s and the column ``instance``.
        reference: Policy that is 1.
        instance: Column of the instances.

    Source: appendix H, Figure 22.
    """
    axes.axvline(1.0, color=style.BLACK, linewidth=0.8, linestyle="--")
    axes.set_xlabel(f"average JCT / {style.scheduler_style(reference).label}")
    scores = relative_to(scores, instance, reference)
    order = scores.groupby("policy")["avg_jct_s"].mean().sort_values(ascending=False, kind="stable").index
    number = scores[instance].nunique()
    spread = np.linspace(-0.2, 0.2, number) if number > 1 else np.zeros(1)
    names = []
    for position, name in enumerate(order):
        mark = style.scheduler_style(name)
        each = scores[scores["policy"] == name].sort_values(instance)["ratio"].to_numpy()
        mean, _, low, high = mean_interval(each)
        axes.barh(position, mean, 0.7, color=mark.color, alpha=0.75, label=mark.label)
        if len(each) >= 3:  # of two, the interval says nothing
            axes.errorbar(
                mean, position, xerr=[[mean - low], [high - mean]], color=style.BLACK, linewidth=1.0, capsize=3
            )
        axes.scatter(each, position + spread, s=8, color="white", edgecolors=style.BLACK, linewidths=0.6, zorder=3)
        names.append(f"{mark.label}: {mean:.2f}")
    style.label_rows(axes, names)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0.0)


@style.on_axes(5.0, 2.8, legend=style.legend_beside)
def distance_from_floor(bounds: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Average JCT of policies, of the search and of the bound, by instance.

    The grey line runs from the lower bound to the search: no schedule is left of it, the optimum lies on it.

    Args:
        bounds: instance, policy (also ``"search"``, by which rows are sorted, and ``"lower_bound"``), avg_jct_s.
    """
    table = bounds.pivot_table(index="instance", columns="policy", values="avg_jct_s").sort_values("search")
    position = np.arange(len(table))
    axes.hlines(position, table["lower_bound"], table["search"], color="0.75", linewidth=4, zorder=1)
    for name in style.display_order(table.columns):
        mark = style.scheduler_style(name)
        marker = "|" if name == "lower_bound" else mark.marker
        axes.plot(
            table[name], position, linestyle="none", marker=marker, markersize=9 if marker == "|" else 5,
            color=mark.color, label=mark.label,
        )  # fmt: skip
    style.label_rows(axes, [f"{instance}" for instance in table.index])
    axes.set(xlabel=AVG_JCT.axis_label, ylabel="instance", xlim=(0.0, None))
