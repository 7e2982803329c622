"""Plots of what a policy computes: embeddings, probabilities (Figures 5 and 6)."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Patch

from decima.plotting import style, words
from decima.plotting.dag import dag
from decima.plotting.gantt import job_colors

# Colours of the steps of message passing, first to last: light to dark, told apart in print.
_STEPS = "YlGnBu"


def step_colors(steps: int) -> list[str]:
    """Colours of the steps of message passing, leaves first."""
    shades = matplotlib.colormaps[_STEPS](np.linspace(0.12, 0.85, steps))
    return [matplotlib.colors.to_hex(shade) for shade in shades]


@style.styled
def embeddings(
    stages: pandas.DataFrame, edges: pandas.DataFrame, nodes: pandas.DataFrame, summaries: pandas.DataFrame
) -> style.Figure:
    """Graphs of jobs by step of message passing, with features and embeddings.

    Args:
        stages: job, name, stage, tasks, duration_s, finished (1: no longer in the graph).
        edges: job, parent, child.
        nodes: job, stage, level, features x0.., embedding e0..
        summaries: job (-1: the cluster), embedding v0..

    Source: §5.1, Figure 5.
    """
    jobs = list(dict.fromkeys(stages["job"]))
    groups = [nodes[nodes["job"] == job].sort_values(["level", "stage"], ascending=[False, True]) for job in jobs]
    figure = style.new_figure(style.PAGE, 6.4)
    widths = [len(group) + 1 for group in groups] + [1]
    top, bottom = figure.subplots(
        2, len(widths), height_ratios=(1, 1.25), width_ratios=[width + 0.6 for width in widths]
    )
    colors = step_colors(int(nodes["level"].max()) + 1)
    features = [name for name in nodes if name.startswith("x")]
    width = sum(name.startswith("e") for name in nodes)
    values = [nodes.filter(regex=r"^[xe]\d").to_numpy().ravel(), summaries.drop(columns="job").to_numpy().ravel()]
    reach = float(np.quantile(np.abs(np.concatenate(values)), 0.97)) or 1.0
    norm = Normalize(-reach, reach)
    for column, (job, group) in enumerate(zip(jobs, groups, strict=True)):
        _graph(stages[stages["job"] == job], edges[edges["job"] == job], group, colors, top[column])
        y = summaries[summaries["job"] == job].drop(columns="job").to_numpy()[0]
        labels = [*group["stage"].astype(str), "y"]
        table = np.full((len(features) + width, len(labels)), np.nan)
        table[: len(features), :-1] = group[features].to_numpy().T
        table[len(features) :, :-1] = group[[f"e{k}" for k in range(width)]].to_numpy().T
        table[len(features) :, -1] = y
        image = _strip(table, labels, len(features), norm, bottom[column])
        if column:
            bottom[column].set_yticklabels([])
    z = np.full((len(features) + width, 1), np.nan)
    z[len(features) :, 0] = summaries[summaries["job"] == -1].drop(columns="job").to_numpy()[0]
    _strip(z, ["z"], len(features), norm, bottom[-1])
    bottom[-1].set_yticklabels([])
    top[-1].set_axis_off()
    handles = [Patch(color=color, label=f"{step + 1}") for step, color in enumerate(colors)]
    handles.append(Patch(facecolor="white", edgecolor="0.6", label="finished"))
    figure.legend(handles=handles, title="step", loc="outside right upper", fontsize=7, title_fontsize=7)
    bottom[0].set_ylabel("feature x, embedding e")
    bar = figure.colorbar(image, ax=bottom[-1], shrink=0.8, extend="both")
    bar.set_label("value")
    return figure


def _graph(
    stages: pandas.DataFrame, edges: pandas.DataFrame, nodes: pandas.DataFrame, colors: list[str], axes: Axes
) -> None:
    level = nodes.set_index("stage")["level"]
    shown = [colors[level[stage]] if stage in level.index else "white" for stage in stages["stage"]]
    dag(stages.drop(columns="name"), edges, axes, colors=shown, labels=[f"{stage}" for stage in stages["stage"]])
    axes.set_title(f"job {stages['job'].iloc[0]}: {words.job_label(stages['name'].iloc[0])}", fontsize=8)


def _strip(table: np.ndarray, labels: list[str], features: int, norm: Normalize, axes: Axes):
    """Draw columns of values; a line divides features from embeddings."""
    image = axes.imshow(table, cmap="RdBu_r", norm=norm, aspect="auto", interpolation="nearest")
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    rows = [f"x{k}" for k in range(features)] + [f"e{k}" for k in range(len(table) - features)]
    axes.set_yticks(range(len(rows)), rows, fontsize=6)
    axes.axhline(features - 0.5, color=style.BLACK, linewidth=0.8)
    axes.tick_params(length=0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    return image


@style.on_axes(style.COLUMN, 2.6)
def stage_probabilities(candidates: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Bars of the probability of every candidate stage, with its score q.

    Args:
        candidates: job, stage, q, probability, chosen.

    Source: §5.2, Eq. 2, Figure 6.
    """
    colors = job_colors(int(candidates["job"].max()) + 1)
    position = np.arange(len(candidates))
    bars = axes.bar(position, candidates["probability"], 0.7, color=[colors[job] for job in candidates["job"]])
    for bar, row in zip(bars, candidates.itertuples(), strict=True):
        if row.chosen:
            bar.set(edgecolor=style.BLACK, linewidth=1.6)
        text = f"{row.q:.2f}".replace("-", "−")
        axes.annotate(text, (bar.get_x() + 0.35, row.probability), xytext=(0, 2), textcoords="offset points",
                      ha="center", fontsize=6.5)  # fmt: skip
    axes.set_xticks(position, [f"{row.job}.{row.stage}" for row in candidates.itertuples()])
    axes.set(xlabel="job.stage that can be chosen", ylabel="probability")
    axes.set_ylim(0.0, 1.15 * candidates["probability"].max())
    handles = [Patch(color=colors[job], label=f"job {job}") for job in sorted(candidates["job"].unique())]
    handles.append(Patch(facecolor="white", edgecolor=style.BLACK, linewidth=1.6, label="chosen"))
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(handles), fontsize=7,
                handlelength=1.0, columnspacing=1.0)  # fmt: skip


@style.on_axes(style.COLUMN, 2.6)
def limit_probabilities(limits: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Bars of the probability of every limit; shaded: the saturating ones.

    Args:
        limits: limit, w, probability, used.

    Source: §5.2, Figure 6.
    """
    most = int(limits["used"].max())
    same = limits[limits["used"] == most]
    axes.axvspan(same["limit"].min() - 0.5, same["limit"].max() + 0.5, color="0.9", linewidth=0, zorder=0)
    axes.bar(limits["limit"], limits["probability"], 0.8, color=style.BLACK)
    axes.set(xlabel="limit on the job's executors", ylabel="probability")
    axes.margins(x=0.01)
    text = f"grey: limits that allow all {words.count(most, 'executor')} which the\nstage can use now (together "
    text += f"{100.0 * same['probability'].sum():.0f} %)"
    axes.set_title(text, fontsize=7, loc="left")
