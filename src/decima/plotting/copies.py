"""Gantt charts of schedules on unequal executors, with copies of nodes and transfers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Patch

from decima.plotting import style
from decima.plotting.gantt import FEW_JOBS, job_colors

_FEW_NODES = 40  # up to so many copies have their names in the chart
_FEW_TRANSFERS = 300  # up to so many transfers are drawn unless asked for


@style.styled
def gantt(schedule: Any, axes: Axes | None = None, *, title: str | None = None, transfers: bool | None = None) -> Axes:
    """Gantt chart of a schedule: a row per executor, a colour per job (per node if there is one job).

    Further copies of a node are hatched. A grey line leads from where data leaves one executor to where and when it has
    arrived at another.

    Args:
        schedule: A valid :class:`decima.systems.unequal.Schedule`.
        axes: Where to draw; a new figure when omitted.
        title: Stands before the makespan; the scheduler's name when omitted.
        transfers: Whether transfers are drawn; only where there are few when omitted.

    Returns:
        The axes.
    """
    instance = schedule.instance
    rows = len(instance.cluster)
    axes = style.own_axes(axes, style.PAGE, min(9.0, 1.2 + 0.25 * max(rows, 4)))
    one = len(instance.jobs) == 1
    subject = schedule.node if one else instance.job_of_node[schedule.node]
    colors = job_colors(len(instance) if one else len(instance.jobs))
    low, high = schedule.executor - 0.42, schedule.executor + 0.42
    left, right = schedule.start_s, schedule.finish_s
    corners = np.stack([left, low, right, low, right, high, left, high], axis=-1).reshape(-1, 4, 2)
    for chosen, hatch in ((~schedule.duplicate, None), (schedule.duplicate, "////")):
        boxes = PolyCollection(
            corners[chosen],
            facecolors=[colors[each] for each in subject[chosen]],
            edgecolors="white",
            linewidths=0.4,
            hatch=hatch,
            zorder=2,
            gid="copies" if hatch is None else "duplicates",
        )
        axes.add_collection(boxes)
    sent = _transfers(schedule)
    if len(sent) and (transfers or (transfers is None and len(sent) <= _FEW_TRANSFERS)):
        axes.add_collection(LineCollection(sent, colors="0.45", linewidths=0.6, zorder=3, gid="transfers"))
    if len(schedule) <= _FEW_NODES:
        for copy, node in enumerate(schedule.node.tolist()):
            name = instance.jobs[instance.job_of_node[node]].nodes[
                node - instance.first_node[instance.job_of_node[node]]
            ]
            middle = (schedule.start_s[copy] + schedule.finish_s[copy]) / 2.0
            axes.text(middle, schedule.executor[copy], name, ha="center", va="center", fontsize=6, zorder=4)
    handles = [Patch(facecolor="0.8", hatch="////", edgecolor="white", label="further copy")]
    if not one and len(instance.jobs) <= FEW_JOBS:
        handles += [Patch(color=colors[job], label=each.name) for job, each in enumerate(instance.jobs)]
    if schedule.duplicate.any() or len(handles) > 1:
        style.legend_beside(axes, handles=handles, fontsize=7)
    name = schedule.scheduler if title is None else title
    axes.set_title(f"{name}: makespan {schedule.makespan_s:g} s", loc="left")
    end_s = float(schedule.finish_s.max())
    axes.set(xlabel="time (s)", ylabel="executor", xlim=(0.0, end_s or 1.0), ylim=(-0.6, rows - 0.4))
    if rows <= 12:
        axes.set_yticks(range(rows), instance.cluster.names)
    axes.grid(False)
    return axes


def _transfers(schedule: Any) -> np.ndarray:
    """Lines of the data that goes from one executor to another, float64 [transfers, 2, 2]: (time, executor) twice."""
    instance = schedule.instance
    start, parent, data = instance.parents
    lines = []
    for sender, receiver in schedule.sources():
        here, there = int(schedule.executor[sender]), int(schedule.executor[receiver])
        node = schedule.node[receiver]
        between = slice(start[node], start[node + 1])
        edge = start[node] + int(np.argmax(parent[between] == schedule.node[sender]))
        if here != there:
            begin_s = float(schedule.finish_s[sender])
            arrival_s = begin_s + instance.transfer_s(float(data[edge]), here, there)
            lines.append([(begin_s, here), (arrival_s, there)])
    return np.array(lines).reshape(-1, 2, 2)
