"""Schedules to explore in a browser.

The interactive counterpart of :mod:`decima.plotting.gantt`, in the same colours: glyphs, hover tools and linked ranges
of Bokeh. Tasks of a job that follow each other are painted as one block and by WebGL, and what the pointer shows is
computed beforehand, so that 50,000 tasks stay fluid. One file holds everything, the library included.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas
from bokeh.embed import file_html
from bokeh.layouts import column, row
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CrosshairTool,
    Div,
    GroupFilter,
    HoverTool,
    LinearColorMapper,
    Select,
    Span,
    Toolbar,
    UIElement,
    WheelZoomTool,
)
from bokeh.models.ranges import Range1d
from bokeh.plotting import figure
from bokeh.resources import INLINE

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from decima.plotting import style, words
from decima.plotting.dag import layered_positions
from decima.plotting.gantt import FEW_JOBS, blocks_of, job_colors, slots_of, tasks_of
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    from decima.core.system import RunResult

_HATCH = "right_diagonal_line"  # of deliberate idle slots
_FONT = "'DejaVu Sans', Verdana, sans-serif"
_MOST_OUTLINED = 1500  # runs of at most this many tasks show the outline of each
_LEAST_WIDTH = 330  # of schedules, in pixels
_NO_JOB = "no job"
_TASK = """<b>@name</b>, stage @stage, executor @executor<br>
task @rank of @tasks: @left{0.00} s to @right{0.00} s (@length{0.00} s)<br>
@cause; it then waited @waited{0.00} s for an executor, @moved{0.00} s of it for the move"""
_IDLE = "<b>idle</b>, executor @executor, @left{0.00} s to @right{0.00} s (@length{0.00} s)"
_STAGE = "<b>@name</b><br>stage @stage, @tasks tasks<br>@spans"


class Explorer:
    """Schedules of runs of the same jobs over one time axis.

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

    def page(self, modifiers: Mapping[str, bool] = MappingProxyType({})) -> str:
        """HTML of the page, with numbers for the random names of elements.

        Args:
            modifiers: Keys with which the wheel zooms; without them it scrolls what the page is in.
        """
        for tool in self.layout.select({"type": WheelZoomTool}):
            tool.modifiers = dict(modifiers)
        page = file_html(self.layout, INLINE, title=self.title)
        # Where Bokeh puts them; quotes inside of texts are escaped, so that no name of a job stands there.
        uuid = r"[0-9a-zA-Z][0-9a-f]{7}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
        drawn = re.findall(rf'(?:id="|"docid":"|"roots":{{"p\d+":")({uuid})"', page)
        for number, name in enumerate(dict.fromkeys(drawn)):
            page = page.replace(name, f"schedule-{number}")
        return page

    def save(self, path: str | Path) -> None:
        """Write the page: 1.5 MB for the library and about 150 bytes per task."""
        atomic_write_text(path, self.page())

    def _repr_html_(self) -> str:
        content = html.escape(self.page(modifiers={"ctrl": True}))  # the wheel alone scrolls the notebook
        return f'<iframe srcdoc="{content}" width="100%" height="{self.height + 30}" style="border:0"></iframe>'


def explore(*results: RunResult) -> Explorer:
    """Make the schedules of runs of the same jobs explorable; see :class:`Explorer`."""
    return Explorer(results)


def _label(result: RunResult) -> str:
    return style.scheduler_style(result.scheduler).label


def _layout(results: Sequence[RunResult]) -> tuple[UIElement, int]:
    """Figures and what links them, and their height in pixels."""
    jobs = _Jobs(results)
    runs = [_Run(result, jobs) for result in results]
    end_s = max(run.end_s for run in runs)
    across = Range1d(0.0, end_s, bounds=(-0.02 * end_s, 1.02 * end_s), min_interval=1e-6 * end_s)
    height = 420 if len(results) == 1 else max(180, 540 // len(results))
    # The job that is brought out; views of all figures share the filter.
    chosen = GroupFilter(column_name="name", group=_NO_JOB)
    charts = [_chart(index, run, jobs, across, height, chosen) for index, run in enumerate(runs)]
    count = _jobs_in_system(results, across)
    cursor = Span(dimension="height", line_color="#444444", line_dash="dotted")
    for plot in (*charts, count):
        plot.add_tools(CrosshairTool(overlay=cursor, dimensions="height"))
    select = Select(title="bring out a job", value=_NO_JOB, options=[_NO_JOB, *jobs.names], width=320, name="job")
    select.js_link("value", chosen, "group")
    beside = column(select, _graph(jobs, runs, chosen)) if jobs.graphs else select
    # On a narrow screen the DAG stands below the schedules, which keep a width that can be read.
    left = column(*charts, count, sizing_mode="stretch_width", min_width=_LEAST_WIDTH)
    both = row(left, beside, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"})
    body = column(_heading(results, jobs), both, sizing_mode="stretch_width")
    return body, 70 + sum(plot.height for plot in (*charts, count))


def _slots(result: RunResult) -> np.ndarray:
    """Begin and end of the deliberate idle slots of a run, float64 [slot, 2]; seconds."""
    slots = slots_of(result)
    return np.empty((0, 2)) if slots is None else slots[["start_s", "end_s"]].to_numpy(np.float64)


def _completions_s(result: RunResult) -> np.ndarray:
    """When jobs of a run completed, float64 [completed jobs]; seconds."""
    completion_s = result.outcome.completion_ms / 1000.0
    return completion_s[~np.isnan(completion_s)]


def _union(spans: np.ndarray, end_s: float) -> np.ndarray:
    """Union of spans of time until an end, float64 [span, 2]."""
    joined: list[list[float]] = []
    for begin, end in np.minimum(spans, end_s):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return np.array(joined).reshape(-1, 2)


class _Jobs:
    """Names, colours and DAGs of the jobs that all runs share.

    Attributes:
        names: Of every job, with its number, so that no two are equal.
        colors: The number of colours in the static chart, which knows the jobs of the tasks only.
        arrival_s: float64 [jobs].
        graphs: Profile of every job; empty for systems whose jobs have none.
        first: Number of the first stage of every job, and of all stages, int64 [jobs + 1].
    """

    def __init__(self, results: Sequence[RunResult]) -> None:
        workload = results[0].workload
        number = len(workload)
        self.arrival_s = np.asarray(workload.arrival_ms, dtype=np.float64) / 1000.0
        tasks = [tasks_of(result) for result in results]
        if isinstance(workload, Workload):
            self.graphs = [job.profile for job in workload.jobs]
            self.labels = [words.job_label(job.name) for job in workload.jobs]
            stages = np.array([len(profile.stages) for profile in self.graphs])
        else:
            self.graphs = []
            self.labels = [f"job {job}" for job in range(number)]
            stages = np.zeros(number, dtype=np.int64)
            for frame in tasks:
                np.maximum.at(stages, frame["job"].to_numpy(), frame["stage"].to_numpy() + 1)
        self.names = [f"{label} (job {job})" for job, label in enumerate(self.labels)]
        self.colors = job_colors(1 + max(int(frame["job"].max()) for frame in tasks))
        self.first = np.concatenate([[0], np.cumsum(stages)])

    def stage_name(self, job: int, stage: int) -> str:
        """Number of a stage, and its name where that says more."""
        name = self.graphs[job].stages[stage].name if self.graphs else str(stage)
        return str(stage) if name == str(stage) else f"{stage} ({name})"


class _Run:
    """Tasks, idle time and stages of one run, in seconds.

    Attributes:
        tasks: A row per task by executor and start: what the pointer shows of it.
        idle: A row per gap between tasks of an executor.
        ready_s: When the parents of every stage had finished, float64 [stages of all jobs]; inf for never.
        begun_s: When its first task started, likewise.
        done_s: When its last task finished, likewise.
    """

    def __init__(self, result: RunResult, jobs: _Jobs) -> None:
        frame = tasks_of(result).sort_values(["executor", "start_s"], kind="stable")
        self.result, self.frame = result, frame
        job, stage = frame["job"].to_numpy(), frame["stage"].to_numpy()
        start_s, finish_s = frame["start_s"].to_numpy(np.float64), frame["finish_s"].to_numpy(np.float64)
        self.end_s = float(finish_s.max())
        key = jobs.first[job] + stage
        self._stages(jobs, key, start_s, finish_s)
        settings = result.settings
        self.moving_s = settings.moving_delay_ms / 1000.0 if getattr(settings, "startup", False) else 0.0
        moved_s = np.where(frame["kind"] == "fresh", self.moving_s, 0.0)  # the executor had to join the job first
        rank = np.empty(len(frame), dtype=np.int32)
        order = np.lexsort((start_s, key))
        rank[order] = 1 + np.arange(len(order)) - np.searchsorted(key[order], key[order])
        stages = set(zip(key.tolist(), job.tolist(), stage.tolist(), strict=True))
        names = {each: jobs.stage_name(one, other) for each, one, other in stages}
        waited_s = np.maximum(start_s - self.ready_s[key], 0.0)
        self.tasks = pandas.DataFrame(
            {
                "left": start_s,
                "right": finish_s,
                "length": finish_s - start_s,
                "executor": frame["executor"].to_numpy(np.int32),
                "job": job.astype(np.int32),
                "name": [jobs.names[each] for each in job],
                "stage": [names[each] for each in key.tolist()],
                "rank": rank,
                "tasks": self.num_tasks[key].astype(np.int32),
                "cause": [self.causes[each] for each in key.tolist()],
                "waited": waited_s,
                "moved": np.minimum(moved_s, waited_s),
            }
        )
        self.idle = self._idle()

    def _stages(self, jobs: _Jobs, key: np.ndarray, start_s: np.ndarray, finish_s: np.ndarray) -> None:
        number = int(jobs.first[-1])
        launched = np.bincount(key, minlength=number)
        self.begun_s, self.done_s = np.full(number, np.inf), np.full(number, -np.inf)
        np.minimum.at(self.begun_s, key, start_s)
        np.maximum.at(self.done_s, key, finish_s)
        tasks = [stage.num_tasks for profile in jobs.graphs for stage in profile.stages]
        self.num_tasks = np.array(tasks) if jobs.graphs else launched
        self.done_s[launched < self.num_tasks] = np.inf
        self.ready_s = np.repeat(jobs.arrival_s, np.diff(jobs.first))
        self.causes = [f"its job arrived at {_seconds(since)}" for since in self.ready_s]
        for job, profile in enumerate(jobs.graphs):
            first = jobs.first[job]
            for index, stage in enumerate(profile.stages):
                last = max(stage.parents, key=lambda parent: self.done_s[first + parent], default=None)
                if last is not None and self.done_s[first + last] > self.ready_s[first + index]:
                    self.ready_s[first + index] = since = self.done_s[first + last]
                    self.causes[first + index] = (
                        f"its stage waited for stage {jobs.stage_name(job, last)} until {_seconds(since)}"
                    )

    def _idle(self) -> pandas.DataFrame:
        """Idle time of executors: before every task of an executor, and after its last one."""
        tasks, lanes = self.tasks, np.arange(self.result.num_executors)
        lane = np.concatenate([lanes, tasks["executor"]])
        left = np.concatenate([np.zeros(len(lanes)), tasks["right"]])
        order = np.lexsort((left, lane))
        # Of one executor the next row is the next task; that of the last one begins another executor.
        begins = np.concatenate([np.full(len(lanes), self.end_s), tasks["left"]])[order]
        right = np.append(begins[1:], self.end_s)
        table = pandas.DataFrame({"left": left[order], "right": right, "executor": lane[order].astype(np.int32)})
        table["length"] = table["right"] - table["left"]
        return table[table["length"] > 1e-9].reset_index(drop=True)


def _seconds(value: float) -> str:
    return f"{value:.{2 if abs(value) < 100.0 else 1}f} s"


def _chart(index: int, run: _Run, jobs: _Jobs, across: Range1d, height: int, chosen: GroupFilter) -> figure:
    """Gantt chart of a run, whose chosen job stands out."""
    result, executors = run.result, run.result.num_executors
    jct = result.outcome.jct_ms
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
        output_backend="webgl",
        name=f"gantt {index}",
    )
    rows = {"bottom": -0.5, "top": executors - 0.5}
    chart.quad(left=0.0, right=run.end_s, **rows, fill_color=style.IDLE, line_alpha=0.0, name=f"idle {index}")
    if len(slots := _union(_slots(result), run.end_s)):
        # Tasks are drawn on top, so that only what is idle shows the hatching.
        chart.quad(
            left=slots[:, 0], right=slots[:, 1], **rows, fill_alpha=0.0, line_alpha=0.0,
            hatch_pattern=_HATCH, hatch_color=style.GREY, hatch_scale=8.0, hatch_weight=1.0, name=f"slots {index}",
        )  # fmt: skip
    lane = {"y": "executor", "left": "left", "right": "right", "height": 1.0}
    mapper = LinearColorMapper(palette=jobs.colors, low=-0.5, high=len(jobs.colors) - 0.5)
    color = {"fill_color": {"field": "job", "transform": mapper}, "line_color": None}
    blocks = blocks_of(run.frame, "job").rename(columns={"start_s": "left", "finish_s": "right"})
    chart.hbar(**lane, **color, source=ColumnDataSource(blocks), name=f"blocks {index}")
    veil = ColumnDataSource({"name": jobs.names, "left": [0.0] * len(jobs.names)})
    chart.quad(
        left="left", right=run.end_s, **rows, source=veil, view=CDSView(filter=chosen), fill_color="white",
        fill_alpha=0.75, line_color=None, name=f"veil {index}",
    )  # fmt: skip
    tasks = ColumnDataSource(run.tasks)
    chart.hbar(**lane, **color, source=tasks, view=CDSView(filter=chosen), name=f"chosen {index}")
    few = len(run.tasks) <= _MOST_OUTLINED
    pointed = {"hover_fill_color": "white", "hover_fill_alpha": 0.25, "hover_line_color": "black"}
    drawn = chart.hbar(
        **lane, fill_alpha=0.0, line_color="white" if few else None, line_width=0.6, source=tasks,
        name=f"tasks {index}", **pointed,
    )  # fmt: skip
    gaps = chart.hbar(
        **lane, fill_alpha=0.0, line_color=None, source=ColumnDataSource(run.idle), name=f"gaps {index}", **pointed
    )
    completion_s = _completions_s(result)
    chart.segment(
        x0=completion_s, x1=completion_s, y0=-0.5, y1=executors - 0.5, line_color=style.COMPLETION, line_width=1.2,
        name="completions",
    )  # fmt: skip
    for renderer, text in ((drawn, _TASK), (gaps, _IDLE)):
        chart.add_tools(HoverTool(renderers=[renderer], tooltips=text, point_policy="follow_mouse"))
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
        mark = style.scheduler_style(result.scheduler)
        plot.step(
            times[kept][order], np.cumsum(steps[kept][order]), mode="after", line_color=mark.color, line_width=1.6,
            legend_label=mark.label,
        )  # fmt: skip
    plot.y_range.start = 0
    plot.legend.visible = len(results) > 1
    plot.legend.label_text_font_size = "9px"
    plot.legend.padding = plot.legend.margin = 2
    _dress(plot)
    return plot


def _graph(jobs: _Jobs, runs: Sequence[_Run], chosen: GroupFilter) -> figure:
    """DAG of the chosen job, with the times of its stages in every run."""
    plot = figure(
        title="DAG of the job", width=330, height=430, tools="pan,wheel_zoom,reset", active_scroll="wheel_zoom",
        x_range=Range1d(-0.15, 1.15), y_range=Range1d(-0.15, 1.15), name="dag",
    )  # fmt: skip
    nodes: dict[str, list] = {
        name: [] for name in ("name", "x", "y", "size", "job", "label", "stage", "tasks", "spans")
    }
    edges: dict[str, list] = {name: [] for name in ("name", "x0", "y0", "x1", "y1")}
    for job, profile in enumerate(jobs.graphs):
        positions = layered_positions(profile.graph)
        places = np.array([positions[stage] for stage in range(len(profile.stages))], dtype=np.float64)
        low, high = places.min(axis=0), places.max(axis=0)
        x, y = np.where(high > low, (places - low) / np.where(high > low, high - low, 1.0), 0.5).T
        most = max(stage.num_tasks for stage in profile.stages)
        for index, stage in enumerate(profile.stages):
            spans = "<br>".join(_span(run, int(jobs.first[job]) + index) for run in runs)
            values = (
                jobs.names[job], x[index], y[index], 9.0 + 13.0 * np.sqrt(stage.num_tasks / most), job, str(index),
                jobs.stage_name(job, index), stage.num_tasks, spans,
            )  # fmt: skip
            for column_values, value in zip(nodes.values(), values, strict=True):
                column_values.append(value)
            for parent in stage.parents:
                ends = (jobs.names[job], x[parent], y[parent], x[index], y[index])
                for column_values, value in zip(edges.values(), ends, strict=True):
                    column_values.append(value)
    view = CDSView(filter=chosen)
    plot.segment("x0", "y0", "x1", "y1", source=ColumnDataSource(edges), view=view, line_color="#999999", name="edges")
    source = ColumnDataSource(nodes)
    view = CDSView(filter=chosen)
    mapper = LinearColorMapper(palette=jobs.colors, low=-0.5, high=len(jobs.colors) - 0.5)
    drawn = plot.scatter(
        "x", "y", size="size", fill_color={"field": "job", "transform": mapper}, line_color="#444444", source=source,
        view=view, name="stages",
    )  # fmt: skip
    plot.text(
        "x", "y", text="label", source=source, view=view, x_offset=13, text_baseline="middle", text_font_size="10px"
    )
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=_STAGE.replace("@spans", "@spans{safe}")))
    plot.axis.visible = False
    plot.grid.visible = False
    _dress(plot)
    return plot


def _span(run: _Run, stage: int) -> str:
    """When a stage could start and ran, as HTML."""
    ready_s, begun_s, done_s = (float(each[stage]) for each in (run.ready_s, run.begun_s, run.done_s))
    ran = f", ran {_seconds(begun_s)} to {_seconds(done_s)}" if np.isfinite(begun_s) else ", did not run"
    ready = f"could start from {_seconds(ready_s)}" if np.isfinite(ready_s) else "could never start"
    return f"{html.escape(_label(run.result))}: {ready}{ran.replace('inf s', 'the end, unfinished')}"


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


def _heading(results: Sequence[RunResult], jobs: _Jobs) -> Div:
    """Workload, cluster, what the colours are."""
    first = results[0]
    lines = [
        f"<b>{html.escape(first.workload.label)}</b>, {words.count(len(first.workload), 'job')}, "
        f"{html.escape(first.settings.label)}, seed {first.seed}"
    ]
    keys = [(style.IDLE, "idle"), (style.COMPLETION, "a job completes")]
    if len(jobs.labels) <= FEW_JOBS:
        keys = list(zip(jobs.colors, jobs.labels, strict=False)) + keys
    if any(len(_slots(result)) for result in results):
        hatched = f"repeating-linear-gradient(135deg, {style.IDLE} 0 3px, {style.GREY} 3px 4px)"
        keys.append((hatched, "idle while a stage is withheld"))
    lines.append(
        " ".join(
            '<span style="white-space:nowrap">'
            f'<span style="background:{color};border:1px solid {style.GREY}">&emsp;</span> {html.escape(name)}</span>'
            for color, name in keys
        )
    )
    lines.append(
        "Wheel (in a notebook Ctrl and wheel): zoom; drag: pan; point at tasks, idle time and stages; choose a job to "
        "bring it out."
    )
    return Div(text="<br>".join(lines), styles={"font-family": _FONT, "font-size": "11px"}, name="heading")
