"""Gantt charts (Figure 3) of executors, VMs or machines."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from decima.core.errors import ConfigError
from decima.plotting import style, words

if TYPE_CHECKING:
    from decima.core.system import RunResult

# Not white, which is idle; neighbours differ in lightness as well as in hue.
_FEW_COLORS = (
    style.BLUE,
    style.YELLOW,
    style.GREEN,
    style.ORANGE,
    style.SKY,
    "#5B3A1E",
    "#B8E0A0",
    "#333333",
    "#D9C7A0",
    "#17A2A2",
    "#C0C0C0",
    "#8A6D00",
)


# Up to so many jobs have colours that differ at a glance, and a legend.
FEW_JOBS = len(_FEW_COLORS)
_LUMINANCE = np.array([0.299, 0.587, 0.114])  # of red, green and blue
_FEW_NODES = 40  # up to so many copies have their names in the chart
_FEW_TRANSFERS = 300  # up to so many transfers are drawn


def job_colors(number: int) -> list[str]:
    """Colours for jobs: a fixed list, or three shades from yellow to blue."""
    if number <= FEW_JOBS:
        return list(_FEW_COLORS[:number])
    # Golden-ratio steps keep jobs that follow each other far apart.
    hues = 0.09 + 0.53 * (np.arange(number) * 0.618034 % 1.0)
    shades = ((0.35, 0.75), (0.55, 0.65), (0.75, 0.6))
    colors = [colorsys.hls_to_rgb(hue, *shades[index % 3]) for index, hue in enumerate(hues)]
    return ["#" + "".join(f"{round(255 * channel):02x}" for channel in color) for color in colors]


def colors_of_largest(work: pandas.Series) -> dict[int, str]:
    """Colours by job, largest first: ten that differ at a glance, greys for the others.

    Args:
        work: Executor time by job.
    """
    jobs = work.sort_values(ascending=False, kind="stable").index
    greys = [f"#{shade:02x}{shade:02x}{shade:02x}" for shade in (200, 150, 225, 175)]
    few = job_colors(min(len(jobs), FEW_JOBS - 2))
    return dict(zip(jobs, [*few, *(greys[rank % 4] for rank in range(len(jobs) - len(few)))], strict=True))


def blocks_of(tasks: pandas.DataFrame, key: str) -> pandas.DataFrame:
    """Merge tasks of one job that follow each other on an executor."""
    ordered = tasks.sort_values(["executor", "start_s"], kind="stable")
    gap = ordered["start_s"].to_numpy()[1:] - ordered["finish_s"].to_numpy()[:-1] > 1e-9
    other = (np.diff(ordered["executor"]) != 0) | (np.diff(pandas.factorize(ordered[key])[0]) != 0)
    block = np.concatenate([[0], np.cumsum(gap | other)])
    return ordered.groupby(block).agg({"executor": "first", key: "first", "start_s": "first", "finish_s": "last"})


def _rectangles(tasks: pandas.DataFrame, key: str, colors: Mapping, each_task: bool) -> PolyCollection:
    blocks = tasks if each_task else blocks_of(tasks, key)
    left, right = blocks["start_s"].to_numpy(), blocks["finish_s"].to_numpy()
    low = blocks["executor"].to_numpy() - 0.5
    corners = np.stack([left, low, right, low, right, low + 1.0, left, low + 1.0], axis=-1)
    # Blocks are drawn without smoothing, which would let the idle colour through, and as an image inside a pdf.
    return PolyCollection(
        corners.reshape(-1, 4, 2),
        facecolors=[colors[value] for value in blocks[key]],
        edgecolors="white",
        linewidths=0.4 if each_task else 0.0,
        antialiased=each_task,
        rasterized=not each_task,
        zorder=2,
        gid="tasks",
    )


@style.styled
def gantt(
    run: Any,
    axes: Axes | None = None,
    *,
    color_by: str = "job",
    colors: Mapping | None = None,
    executors: int | None = None,
    title: str | None = None,
    arrival_s: pandas.Series | None = None,
    each_task: bool = False,
    slots: pandas.DataFrame | None = None,
) -> Axes:
    """Gantt chart of a run of any system.

    A row is an executor, a colour a job; idle time is white, completions are black lines. Deliberate idle slots are
    hatched.
    On cloud VMs a VM has as many rows as it needs. Of heterogeneous executors the further copies of a node are hatched,
    and a grey line leads from where data leaves an executor to where and when it arrives, where these are few.

    Args:
        run: A result that kept its log, a :class:`decima.systems.heterogeneous.Schedule`, or one row per task: job,
            stage, executor, start_s, finish_s. Twelve thousand take a fraction of a second.
        axes: Where to draw; a new figure when omitted.
        color_by: Column that chooses the colour: ``"job"`` or ``"stage"``.
        colors: Colour by value of that column; chosen when omitted.
        executors: Executors of the cluster; the largest number seen plus one when omitted.
        title: Stands before what was measured; the scheduler of a result when omitted.
        arrival_s: Arrival by job; those of a result, or time 0, when omitted.
        each_task: Draw the outline of every task, for few tasks; else tasks of a job that follow each other merge.
        slots: Deliberate idle slots, one row each: start_s, end_s; those of a result when omitted.

    Raises:
        ConfigError: The run kept no log, or no task ran.

    Example:
        >>> import decima
        >>> from decima.plotting.gantt import gantt
        >>> result = decima.simulate(decima.workload.embedded_batch(n=3, seed=0), "fair", executors=5, log=True)
        >>> gantt(result).get_xlabel()
        'time (s)'

    Source: §2.3, Figure 3.
    """
    schedule = getattr(run, "schedule", run)
    if hasattr(schedule, "duplicate"):
        return _copies(schedule, axes, title)
    rows_of_vms = getattr(run, "vm_rows", None)
    tasks = run
    if not isinstance(run, pandas.DataFrame):
        tasks, executors, slots = tasks_of(run), run.num_executors, slots_of(run)
        arrival_s = pandas.Series(run.workload.arrival_ms / 1000.0)
        title = style.scheduler_style(run.scheduler).label if title is None else title
    axes = style.axes_or_new(axes, style.PAGE, 2.2 if rows_of_vms is None else 2.8)
    values = sorted(tasks[color_by].unique())
    if colors is None:
        colors = dict(zip(range(max(values) + 1), job_colors(max(values) + 1), strict=True))
    executors = int(tasks["executor"].max()) + 1 if executors is None else executors
    end_s = float(tasks["finish_s"].max())
    axes.add_patch(Rectangle((0.0, -0.5), end_s, executors, color=style.IDLE, linewidth=0, zorder=1, gid="idle"))
    if slots is not None and len(slots):
        # Tasks are drawn on top, so that only what is idle shows the hatching.
        spans = [(start, min(end, end_s) - start) for start, end in zip(slots["start_s"], slots["end_s"], strict=True)]
        hatched = {"facecolors": "none", "edgecolors": style.GREY, "hatch": "////", "linewidth": 0}
        axes.broken_barh(spans, (-0.5, executors), **hatched, zorder=1.5, gid="slots")
    axes.add_collection(_rectangles(tasks, color_by, colors, each_task))
    ends = tasks.groupby("job")["finish_s"].max()
    if color_by == "job":
        # Lines of many completions would hide the tasks: those begin near the top.
        bottom = -0.5 if len(ends) <= FEW_JOBS else 0.9 * executors - 0.5
        line = {"color": style.COMPLETION, "linewidth": 0.9, "linestyle": (0, (1, 1.2)), "zorder": 3}
        axes.vlines(ends, bottom, executors - 0.5, **line, gid="completions")
    arrivals = 0.0 if arrival_s is None else arrival_s.reindex(ends.index)
    average = float((ends - arrivals).mean())
    measure = f"average JCT {average:.1f} s" if len(ends) > 1 else f"JCT {average:.1f} s"
    axes.set(xlabel="time (s)", ylabel="executor", xlim=(0.0, end_s), ylim=(-0.5, executors - 0.5))
    axes.grid(False)
    if rows_of_vms is not None:
        rows, cluster = rows_of_vms(), run.settings.cluster
        axes.hlines(rows[1:-1] - 0.5, *axes.get_xlim(), color="white", linewidth=1.2, zorder=4, gid="vms")
        axes.set_yticks((rows[:-1] + rows[1:] - 1) / 2.0, cluster.names, fontsize=6)
        axes.set_ylabel("VM")
        measure = f"cost {run.cost:.3f} {cluster.currency}, mean duration {run.mean_duration_s:.1f} s"
    axes.set_title(f"{title}: {measure}" if title else measure, loc="left")
    return axes


def tasks_of(result: RunResult) -> pandas.DataFrame:
    """Tasks of a run that can be drawn, as :meth:`decima.core.system.RunResult.task_frame` has them.

    Raises:
        ConfigError: The run kept no log, or no task ran.
    """
    tasks = result.task_frame()
    if tasks.empty:
        raise ConfigError("there is nothing to draw: no task was launched")
    return tasks


def slots_of(result: RunResult) -> pandas.DataFrame | None:
    """Deliberate idle slots of a run (start_s, end_s); None without slots."""
    delays = getattr(getattr(result, "log", None), "delays", None)
    return None if delays is None else delays()


@style.styled
def gantt_stack(results: Sequence[RunResult]) -> style.Figure:
    """Gantt charts of runs of the same jobs above each other, over one time axis.

    Args:
        results: Runs of any system that kept their log.

    Raises:
        ConfigError: A run kept no log, or no task of it ran.
    """
    first = results[0]
    rows = first.num_executors if hasattr(first, "schedule") else 10
    figure = style.new_figure(style.PAGE, 0.4 + min(9.0, max(2.8, 1.2 + 0.25 * rows)) * len(results))
    charts = figure.subplots(len(results), 1, sharex=True, squeeze=False)[:, 0]
    for axes, result in zip(charts, results, strict=True):
        gantt(result, axes)
    for axes in charts[:-1]:
        axes.set_xlabel("")
    start_s = float(np.min(first.workload.arrival_ms)) / 1000.0 if hasattr(first, "vm_rows") else 0.0
    charts[0].set_xlim(start_s, max(axes.get_xlim()[1] for axes in charts))
    seed = f"seed {first.seed}"
    caption = ", ".join(filter(None, (words.count(len(first.workload.arrival_ms), "job"), first.settings.label, seed)))
    return style.entitle(figure, "Executors over time", caption, first.workload.label)


@style.styled
def gantt_grid(tasks: pandas.DataFrame, *, executors: int | None = None) -> style.Figure:
    """Gantt charts by scheduler (rows) and by where they ran (columns), over one time axis.

    Args:
        tasks: As for :func:`gantt`, with the columns scheduler and, for several columns, where, of which a pair may be
            missing; job_name for the legend of up to a dozen jobs.
        executors: Executors of the cluster; the largest number seen plus one when omitted.
    """
    names = style.display_order(tasks["scheduler"])
    kinds = list(dict.fromkeys(tasks["where"])) if "where" in tasks else [None]
    executors = int(tasks["executor"].max()) + 1 if executors is None else executors
    colors = dict(enumerate(job_colors(int(tasks["job"].max()) + 1)))
    several = len(kinds) > 1
    figure = style.new_figure(style.PAGE, 1.2 + 0.95 * len(names) if several else 0.9 + 1.45 * len(names))
    grid = figure.subplots(len(names), len(kinds), sharex=True, sharey=several, squeeze=False)
    for number, name in enumerate(names):
        label = style.scheduler_style(name).label
        for axes, where in zip(grid[number], kinds, strict=True):
            part = tasks[tasks["scheduler"] == name]
            if several:
                part = part[part["where"] == where]
            if len(part):
                title = f"{label}, {where}" if several else f"({chr(ord('a') + number)}) {label}"
                gantt(part, axes, colors=colors, executors=executors, title=title)
                if several:
                    axes.set_title(axes.get_title(loc="left"), loc="left", fontsize=7)
            else:
                axes.set_axis_off()
            if number < len(names) - 1:
                axes.set_xlabel("")
            if where != kinds[0]:
                axes.set_ylabel("")
    grid[0, 0].set_xlim(0.0, float(tasks["finish_s"].max()))
    if len(colors) <= FEW_JOBS:
        _legend(figure, tasks, colors)
    return figure


def _legend(figure: style.Figure, tasks: pandas.DataFrame, colors: Mapping[int, str]) -> None:
    names = tasks.drop_duplicates("job").set_index("job")["job_name"].sort_index()
    jobs_legend(figure, {job: words.job_label(name) for job, name in names.items()}, colors, "jobs")


def jobs_legend(
    figure: style.Figure, labels: Mapping[int, str], colors: Mapping[int, str], title: str | None = None
) -> None:
    """List jobs or stages and their colours, both by number, next to the charts."""
    handles = [Patch(color=colors[each], label=label) for each, label in labels.items()]
    handles.append(Patch(facecolor=style.IDLE, edgecolor="0.6", linewidth=0.5, label="idle"))
    figure.legend(
        handles=handles, loc="outside right center", fontsize=7, handlelength=1.0, title=title, title_fontsize=7
    )


def _copies(schedule: Any, axes: Axes | None, title: str | None) -> Axes:
    """Chart of a schedule on heterogeneous executors."""
    instance = schedule.instance
    rows = len(instance.cluster)
    axes = style.axes_or_new(axes, style.PAGE, min(9.0, 1.2 + 0.25 * max(rows, 4)))
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
    if 0 < len(sent) <= _FEW_TRANSFERS:
        axes.add_collection(LineCollection(sent, colors="0.45", linewidths=0.6, zorder=3, gid="transfers"))
    if len(schedule) <= _FEW_NODES:
        for copy, node in enumerate(schedule.node.tolist()):
            name = instance.jobs[instance.job_of_node[node]].nodes[
                node - instance.first_node[instance.job_of_node[node]]
            ]
            middle = (schedule.start_s[copy] + schedule.finish_s[copy]) / 2.0
            dark = to_rgb(colors[subject[copy]]) @ _LUMINANCE < 0.45
            where = {"ha": "center", "va": "center", "fontsize": 6, "zorder": 4, "color": "white" if dark else "black"}
            axes.text(middle, schedule.executor[copy], name, **where)
    handles = [Patch(facecolor="0.8", hatch="////", edgecolor="white", label="further copy")]
    if not one and len(instance.jobs) <= FEW_JOBS:
        handles += [Patch(color=colors[job], label=each.name) for job, each in enumerate(instance.jobs)]
    if schedule.duplicate.any() or len(handles) > 1:
        style.legend_beside(axes, handles=handles, fontsize=7)
    name = style.scheduler_style(schedule.scheduler).label if title is None else title
    axes.set_title(f"{name}: makespan {schedule.makespan_s:g} s", loc="left")
    end_s = float(schedule.finish_s.max())
    axes.set(xlabel="time (s)", ylabel="executor", xlim=(0.0, end_s or 1.0), ylim=(-0.6, rows - 0.4))
    if rows <= 12:
        axes.set_yticks(range(rows), instance.cluster.names)
    axes.grid(False)
    return axes


def _transfers(schedule: Any) -> np.ndarray:
    """Lines of data transfers, float64 [transfers, 2, 2]: (time, executor) twice."""
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
