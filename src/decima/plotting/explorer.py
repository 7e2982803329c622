"""Schedules to explore in a browser: zoom and pan, tasks under the pointer, the DAG of a job, jobs in the system.

What :mod:`decima.plotting.gantt` draws for paper, in the same colours, as an interactive page of Bokeh. One file holds
everything: tasks as arrays, the library, and ``explorer.mjs``, which draws what a screen can show of them and looks the
task under the pointer up in the arrays, so that the number of tasks slows neither down.
"""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.embed import file_html
from bokeh.events import DocumentReady, MouseLeave, MouseMove, Tap
from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, CustomJS, Div, HoverTool, Span, Toolbar, UIElement
from bokeh.models.ranges import Range1d
from bokeh.plotting import figure
from bokeh.resources import INLINE

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from decima.plotting import style, words
from decima.plotting.dag import layered_positions
from decima.plotting.gantt import FEW_JOBS, job_colors, slots_of, tasks_of
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

if TYPE_CHECKING:
    from decima.core.system import RunResult

_SCRIPT = Path(__file__).with_name("explorer.mjs")
_HATCH = "right_diagonal_line"  # of deliberate idle slots
_FONT = "'DejaVu Sans', Verdana, sans-serif"


class Explorer:
    """Schedules of one or more runs of the same jobs, one above the other over one time axis.

    A notebook shows it where it is returned; :meth:`save` writes a page that needs no network.

    Args:
        results: Runs that kept their log, all of the same workload.

    Raises:
        ConfigError: No run is given, one kept no log or launched no task, or their jobs differ.
    """

    def __init__(self, results: Sequence[RunResult]) -> None:
        if not results:
            raise ConfigError("no run given; expected at least one")
        first = results[0].workload
        for result in results[1:]:
            if result.workload is not first and result.workload.signature() != first.signature():
                raise ConfigError(
                    f"runs of different jobs cannot share a time axis: got {first.label!r} and "
                    f"{result.workload.label!r}; expected runs of one workload"
                )
        self.title = f"{first.label}: {' and '.join(_label(result) for result in results)}"
        self.layout, self.height = _layout(results)

    def page(self) -> str:
        """HTML of the page; equal schedules give equal text within one version of the libraries."""
        page = file_html(self.layout, INLINE, title=self.title)
        # Names that Bokeh gives at random, in order of appearance.
        names: dict[str, str] = {}
        pattern = r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b"
        return re.sub(
            pattern, lambda found: names.setdefault(found[0], str(uuid.UUID(int=len(names), version=4))), page
        )

    def save(self, path: str | Path) -> None:
        """Write the page: 1.5 MB for the library and 40 bytes per task at most."""
        atomic_write_text(path, self.page())

    def _repr_html_(self) -> str:
        content = html.escape(self.page())
        return f'<iframe srcdoc="{content}" width="100%" height="{self.height + 30}" style="border:0"></iframe>'


def explore(*results: RunResult) -> Explorer:
    """Make the schedules of runs of the same jobs explorable; see :class:`Explorer`."""
    return Explorer(results)


def _label(result: RunResult) -> str:
    return style.scheduler_style(result.scheduler).label


def _layout(results: Sequence[RunResult]) -> tuple[UIElement, int]:
    """Figures and what links them, and their height in pixels."""
    workload = results[0].workload
    runs = [_run_data(result) for result in results]
    jobs = _job_data(workload, runs)
    end_s = max(float(run["finish"].max()) for run in runs)
    across = Range1d(0.0, end_s, bounds=(-0.02 * end_s, 1.02 * end_s), min_interval=1e-6 * end_s)
    height = 420 if len(results) == 1 else max(180, 540 // len(results))
    charts = [_chart(index, result, across, height) for index, result in enumerate(results)]
    count = _jobs_in_system(results, across)
    graph, nodes, edges = _graph()
    graph.visible = bool(jobs["graphs"])
    spans = [Span(dimension="height", line_color="#444444", line_dash="dotted", visible=False) for _ in (*charts, 0)]
    for plot, span in zip((*charts, count), spans, strict=True):
        plot.add_layout(span)
    link = CustomJS.from_file(
        _SCRIPT,
        runs=runs,
        jobs=jobs,
        across=across,
        charts=charts,
        views=[chart.select_one({"name": f"tasks {index}"}).data_source for index, chart in enumerate(charts)],
        cursors=[chart.select_one({"name": f"cursor {index}"}).data_source for index, chart in enumerate(charts)],
        spans=spans,
        graph=graph,
        nodes=nodes,
        edges=edges,
    )
    for plot in (*charts, count, graph):
        plot.js_on_event(MouseMove, link)
        plot.js_on_event(MouseLeave, link)
        plot.js_on_event(Tap, link)
    for chart in charts:
        for name in ("start", "end"):
            chart.y_range.js_on_change(name, link)
        chart.js_on_change("inner_width", link)
    for name in ("start", "end"):
        across.js_on_change(name, link)
    left = column(*charts, count, sizing_mode="stretch_width")
    body = column(_heading(results, jobs), row(left, graph, sizing_mode="stretch_width"), sizing_mode="stretch_width")
    body.js_on_event(DocumentReady, link)
    return body, 70 + sum(plot.height for plot in (*charts, count))


def _slots(result: RunResult) -> np.ndarray:
    """Begin and end of the deliberate idle slots of a run in order of their begin, float64 [slot, 2]; seconds."""
    slots = slots_of(result)
    if slots is None:
        return np.empty((0, 2))
    return slots[["start_s", "end_s"]].to_numpy(np.float64)


def _union(spans: np.ndarray, end_s: float) -> np.ndarray:
    """Spans of time in which there is at least one of some others, until an end; float64 [span, 2]."""
    joined: list[list[float]] = []
    for begin, end in np.minimum(spans, end_s):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return np.array(joined).reshape(-1, 2)


def _run_data(result: RunResult) -> dict[str, Any]:
    """Tasks of one run as arrays, by executor and start; seconds."""
    tasks = tasks_of(result).sort_values(["executor", "start_s"], kind="stable")
    executors = result.num_executors
    arrival_s = np.sort(result.outcome.arrival_ms / 1000.0)
    completion_s = result.outcome.completion_ms / 1000.0
    settings = result.settings
    moves = getattr(settings, "startup", False)
    return {
        "label": _label(result),
        "executors": executors,
        "first": np.searchsorted(tasks["executor"], np.arange(executors + 1)).astype(np.int32),
        "job": tasks["job"].to_numpy(np.int32),
        "stage": tasks["stage"].to_numpy(np.int32),
        "start": tasks["start_s"].to_numpy(np.float64),
        "finish": tasks["finish_s"].to_numpy(np.float64),
        # Whether the executor had to join the job first.
        "fresh": (tasks["kind"] == "fresh").to_numpy(np.uint8),
        "arrivals": arrival_s,
        "completions": np.sort(completion_s[~np.isnan(completion_s)]),
        "completion": np.where(np.isnan(completion_s), -1.0, completion_s),
        "moving": settings.moving_delay_ms / 1000.0 if moves else 0.0,
        "slots": np.ascontiguousarray(_slots(result).T).ravel(),  # all begins, then all ends
    }


def _job_data(workload: Any, runs: list[dict]) -> dict[str, Any]:
    """Names, colours and graphs of the jobs; graphs are drawn once per profile."""
    number = len(workload)
    known = isinstance(workload, Workload)
    names = [words.job_label(job.name) for job in workload.jobs] if known else [f"job {job}" for job in range(number)]
    graphs: list[dict] = []
    graph_of = [-1] * number
    if known:
        index: dict[JobProfile, int] = {}
        for job, profile in enumerate(each.profile for each in workload.jobs):
            if profile not in index:
                index[profile] = len(graphs)
                graphs.append(_graph_data(profile))
            graph_of[job] = index[profile]
        stages = np.array([len(job.profile.stages) for job in workload.jobs])
    else:
        stages = np.zeros(number, dtype=np.int64)
        for run in runs:
            np.maximum.at(stages, run["job"], run["stage"] + 1)
    return {
        "names": names,
        # As many as in the static chart, which knows the jobs of the tasks only.
        "colors": job_colors(1 + max(int(run["job"].max()) for run in runs)),
        "arrival": workload.arrival_ms / 1000.0,
        "stages": np.concatenate([[0], np.cumsum(stages)]).astype(np.int32),
        "graph": np.array(graph_of, dtype=np.int32),
        "graphs": graphs,
    }


def _graph_data(profile: JobProfile) -> dict[str, Any]:
    positions = layered_positions(profile.graph)
    places = np.array([positions[stage] for stage in range(len(profile.stages))], dtype=np.float64)
    return {
        "x": places[:, 0],
        "y": places[:, 1],
        "names": [stage.name for stage in profile.stages],
        "tasks": [stage.num_tasks for stage in profile.stages],
        "parents": [list(stage.parents) for stage in profile.stages],
    }


def _chart(index: int, result: RunResult, across: Range1d, height: int) -> figure:
    """Empty Gantt chart of a run: the script fills the sources of its tasks and of what the pointer is on."""
    executors = result.num_executors
    outcome = result.outcome
    jct = outcome.jct_ms
    measure = f"average JCT {jct.mean() / 1000.0:.1f} s" if len(jct) else "no job finished"
    chart = figure(
        title=f"{_label(result)}: {measure}",
        x_range=across,
        y_range=Range1d(-0.5, executors - 0.5, bounds=(-0.5, executors - 0.5), min_interval=1.0),
        y_axis_label="executor",
        height=height,
        sizing_mode="stretch_width",
        tools="pan,xwheel_zoom,wheel_zoom,box_zoom,reset,save",
        active_drag="pan",
        active_scroll="xwheel_zoom",
        name=f"gantt {index}",
    )
    end_s = float(result.task_frame()["finish_s"].max())
    idle = {"left": 0.0, "right": end_s, "bottom": -0.5, "top": executors - 0.5}
    chart.quad(**idle, fill_color=style.IDLE, line_alpha=0.0, name=f"idle {index}")
    if len(slots := _union(_slots(result), end_s)):
        # Tasks are drawn on top, so that only what is idle shows the hatching.
        chart.quad(
            left=slots[:, 0], right=slots[:, 1], bottom=-0.5, top=executors - 0.5, fill_alpha=0.0, line_alpha=0.0,
            hatch_pattern=_HATCH, hatch_color="white", hatch_scale=8.0, hatch_weight=1.0, name=f"slots {index}",
        )  # fmt: skip
    columns = ("left", "right", "bottom", "top", "color", "line")
    chart.quad(
        left="left", right="right", bottom="bottom", top="top", fill_color="color",
        line_color="white", line_width="line", source=ColumnDataSource({name: [] for name in columns}),
        name=f"tasks {index}",
    )  # fmt: skip
    completion_s = outcome.completion_ms / 1000.0
    completion_s = completion_s[~np.isnan(completion_s)]
    chart.segment(
        x0=completion_s, x1=completion_s, y0=-0.5, y1=executors - 0.5, line_color=style.COMPLETION, line_width=1.2,
        name="completions",
    )  # fmt: skip
    cursor = chart.quad(
        left="left", right="right", bottom="bottom", top="top", fill_color="white", fill_alpha=0.25,
        line_color="black", line_width=1.5, name=f"cursor {index}",
        source=ColumnDataSource({name: [] for name in ("left", "right", "bottom", "top", "text")}),
    )  # fmt: skip
    chart.add_tools(HoverTool(renderers=[cursor], tooltips="@text{safe}", point_policy="follow_mouse"))
    _dress(chart)
    return chart


def _jobs_in_system(results: Sequence[RunResult], across: Range1d) -> figure:
    plot = figure(
        x_range=across, x_axis_label="time (s)", y_axis_label="jobs in system", height=150, toolbar_location=None,
        sizing_mode="stretch_width", tools="pan,xwheel_zoom", active_drag="pan", active_scroll="xwheel_zoom",
        name="jobs in system",
    )  # fmt: skip
    for result in results:
        times = np.concatenate([result.outcome.arrival_ms, result.outcome.completion_ms]) / 1000.0
        steps = np.repeat([1, -1], len(result.outcome.arrival_ms))
        kept = ~np.isnan(times)
        order = np.argsort(times[kept], kind="stable")
        look = style.scheduler_style(result.scheduler)
        plot.step(
            times[kept][order], np.cumsum(steps[kept][order]), mode="after", line_color=look.color, line_width=1.6,
            legend_label=look.label,
        )  # fmt: skip
    plot.y_range.start = 0
    plot.legend.visible = len(results) > 1
    plot.legend.label_text_font_size = "9px"
    plot.legend.padding = plot.legend.margin = 2
    _dress(plot)
    return plot


def _graph() -> tuple[figure, ColumnDataSource, ColumnDataSource]:
    """Empty DAG of the job under the pointer, and the sources of its stages and edges."""
    plot = figure(
        title="point at a task to see its job\n ", width=330, height=430, tools="pan,wheel_zoom,reset,tap",
        active_scroll="wheel_zoom", x_range=Range1d(-1, 1), y_range=Range1d(-1, 1), name="dag",
    )  # fmt: skip
    edges = ColumnDataSource({"xs": [], "ys": []})
    plot.multi_line("xs", "ys", source=edges, line_color="#999999", line_width=1.0, name="edges")
    columns = ("x", "y", "size", "color", "line", "width", "text", "label")
    nodes = ColumnDataSource({name: [] for name in columns})
    drawn = plot.scatter(
        "x", "y", size="size", fill_color="color", line_color="line", line_width="width", source=nodes, name="stages",
        selection_fill_alpha=1.0, nonselection_fill_alpha=1.0, nonselection_line_alpha=1.0,
    )  # fmt: skip
    plot.text("x", "y", text="label", source=nodes, x_offset=13, text_baseline="middle", text_font_size="10px")
    plot.add_tools(HoverTool(renderers=[drawn], tooltips="@text{safe}"))
    plot.axis.visible = False
    plot.grid.visible = False
    _dress(plot)
    return plot, nodes, edges


def _dress(plot: figure) -> None:
    plot.title.text_font = _FONT
    plot.title.text_font_size = "12px"
    plot.axis.axis_label_text_font = plot.axis.major_label_text_font = _FONT
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "11px"
    plot.grid.grid_line_alpha = 0.4
    plot.min_border_left = 55  # time axes of figures above each other are equally long
    if isinstance(plot.toolbar, Toolbar):
        plot.toolbar.logo = None


def _heading(results: Sequence[RunResult], jobs: dict[str, Any]) -> Div:
    """Workload, cluster, what the colours are."""
    first = results[0]
    lines = [
        f"<b>{html.escape(first.workload.label)}</b>, {words.count(len(first.workload), 'job')}, "
        f"{html.escape(first.settings.label)}, seed {first.seed}"
    ]
    keys = [(style.IDLE, "idle"), (style.COMPLETION, "a job completes")]
    if len(jobs["names"]) <= FEW_JOBS:
        keys = list(zip(jobs["colors"], jobs["names"], strict=False)) + keys
    if any(len(_slots(result)) for result in results):
        hatched = f"repeating-linear-gradient(135deg, {style.IDLE} 0 3px, white 3px 4px)"
        keys.append((hatched, "idle while a stage is withheld"))
    lines.append(
        " ".join(
            f'<span style="white-space:nowrap"><span style="background:{color}">&emsp;</span> '
            f"{html.escape(name)}</span>"
            for color, name in keys
        )
    )
    lines.append("Wheel: zoom; drag: pan; click a task or a stage: keep its job, click idle time: let it go.")
    return Div(text="<br>".join(lines), styles={"font-family": _FONT, "font-size": "11px"}, name="heading")
