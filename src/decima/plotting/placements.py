"""Charts of executor placement: VMs over time, a row per executor slot, one chart per rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from decima.plotting import style
from decima.plotting.gantt import gantt_of
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.systems.cloud.result import PlacementResult


@style.styled
def placement_gantt(result: PlacementResult, axes: Axes | None = None) -> Axes:
    """Gantt chart of an episode: every VM has as many rows as it has executors at one time, lines part the VMs.

    Args:
        result: An episode.
        axes: Where to draw; a new figure when omitted.

    Raises:
        ConfigError: No job was placed.
    """
    axes = gantt_of(result, style.own_axes(axes, style.PAGE, 2.8))
    rows, cluster = result.vm_rows(), result.settings.cluster
    axes.hlines(rows[1:-1] - 0.5, *axes.get_xlim(), color="white", linewidth=1.2, zorder=4, gid="vms")
    axes.set_yticks((rows[:-1] + rows[1:] - 1) / 2.0, cluster.names, fontsize=6)
    axes.set(ylabel="VM")
    money = f"cost {result.cost:.3f} {cluster.currency}, mean duration {result.mean_duration_s:.1f} s"
    title = style.scheduler_style(result.scheduler).label
    axes.set_title(f"{title}: {money}", loc="left")
    return axes


def placements_figure(results: Sequence[PlacementResult]) -> style.Figure:
    """Episodes of the same jobs above each other, over the same time axis.

    Raises:
        ConfigError: No job of an episode was placed.
    """
    figure = style.new_figure(style.PAGE, 0.5 + 2.8 * len(results))
    rows = figure.subplots(len(results), 1, sharex=True, squeeze=False)[:, 0]
    for axes, result in zip(rows, results, strict=True):
        placement_gantt(result, axes)
    for axes in rows[:-1]:
        axes.set_xlabel("")
    rows[0].set_xlim(float(results[0].arrival_s.min()), max(axes.get_xlim()[1] for axes in rows))
    first = results[0]
    caption = f"{count(len(first.workload), 'job')}, {first.settings.label}, seed {first.seed}"
    return style.entitle(figure, "Executors on VMs over time", caption, first.workload.label)
