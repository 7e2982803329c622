"""Capacity planning: time and cost over the size of the cluster, parts, one page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas
from matplotlib.axes import Axes

from decima.core.system import RunResult
from decima.plotting import style
from decima.plotting.gantt import colors_of_largest, gantt, tasks_of

#: What the parts of a job's time are called, with their colours.
PARTS = {
    "work": ("parallel work", style.BLUE),
    "few_tasks": ("too few tasks", style.ORANGE),
    "uneven_tasks": ("uneven tasks", style.VERMILION),
    "driver": ("driver", style.GREY),
    "waiting": ("waiting for a slot", style.PINK),
    "unexplained": ("unexplained", style.BLACK),
}
MEASURES = {"run_s": "run time", "mean_s": "mean JCT", "p50_s": "median JCT", "p95_s": "95th percentile of JCT"}


def _curves(points: pandas.DataFrame) -> Iterable[tuple[str, pandas.DataFrame]]:
    several = points.load.nunique() > 1
    for (scheduler, load), rows in points.groupby(["scheduler", "load"], sort=False):
        label = rows["label"].iloc[0] if "label" in rows else scheduler  # schedulers are called as they were asked for
        yield (f"{label}, load {load:g}" if several else str(label)), rows.sort_values("executors")


@style.on_axes(style.PAGE, 2.8, legend=style.legend_beside)
def time_curve(
    points: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    measure: str,
    recorded: Sequence[tuple[int, float]] = (),
    chosen: int | None = None,
    floor_s: float | None = None,
) -> None:
    """Time over executors, a line per scheduler and load with interval and error.

    Args:
        points: scheduler, load, executors, error_percent, the measure (dark band: with `_low` and `_high`, the interval
            over draws; light band: the error).
        measure: Column of the time in s.
        recorded: Executors and time in s of recorded runs.
        chosen: Executors that were chosen.
        floor_s: Time with unlimited executors.
    """
    for index, (label, rows) in enumerate(_curves(points)):
        color = style.scheduler_style(rows.scheduler.iloc[0]).color
        dashes = ("-", "--", ":", "-.")[index % 4]
        axes.plot(rows.executors, rows[measure], color=color, linestyle=dashes, label=label)
        low, high = rows[f"{measure}_low"], rows[f"{measure}_high"]
        axes.fill_between(rows.executors, low, high, color=color, alpha=0.3, linewidth=0)
        reach = rows[measure] * rows.error_percent / 100.0
        axes.fill_between(rows.executors, rows[measure] - reach, rows[measure] + reach, color=color, alpha=0.1, lw=0)
    if recorded:
        axes.plot(*zip(*recorded, strict=True), "x", color=style.BLACK, markersize=5, label="recorded")
    if chosen is not None:
        axes.axvline(chosen, color=style.BLACK, linewidth=0.8, linestyle=":", label="chosen")
    if floor_s is not None:
        axes.axhline(floor_s, color=style.GREY, linewidth=0.8, label="critical path")
    axes.set(xlabel="executors", ylabel=f"{MEASURES[measure]} (s)", ylim=(0.0, None))


@style.on_axes(style.PAGE, 2.6, legend=style.legend_beside)
def cost_curve(
    points: pandas.DataFrame,
    axes: Axes | None = None,
    *,
    measure: str,
    others: pandas.DataFrame | None = None,
    floor_s: float | None = None,
) -> None:
    """Time over cost, or over executor hours without a price.

    Args:
        points: scheduler, load, executors, cost, executor_hours and the measure; `label` instead of the scheduler.
        measure: Column of the time in s.
        others: cluster, scheduler, executor_hours and the measure of clusters whose size changes.
        floor_s: Least possible time.
    """
    column, label = ("executor_hours", "executor hours") if points.cost.isna().all() else ("cost", "cost")
    for index, (name, rows) in enumerate(_curves(points)):
        color = style.scheduler_style(rows.scheduler.iloc[0]).color
        axes.plot(rows[column], rows[measure], marker="o", markersize=2.5, color=color, label=name)
        for row in rows.iloc[:: max(1, len(rows) // 6)].itertuples() if index == 0 else ():  # the others have the same
            at = getattr(row, column), getattr(row, measure)
            axes.annotate(str(row.executors), at, (3, 3), textcoords="offset points", fontsize=7)
    for index, (cluster, rows) in enumerate(() if others is None else others.groupby("cluster", sort=False)):
        mark = "X*P"[index % 3]
        colors = [style.scheduler_style(name).color for name in rows.scheduler]
        axes.scatter(rows[column], rows[measure], marker=mark, s=45, color=colors, edgecolor="white", lw=0.4, zorder=3)
        axes.plot([], [], mark, color=style.GREY, label=cluster)
    if floor_s is not None:
        axes.axhline(floor_s, color=style.GREY, linewidth=0.8, label="lower bound")
    axes.set(xlabel=label, ylabel=f"{MEASURES[measure]} (s)", ylim=(0.0, None))


@style.on_axes(style.PAGE, 2.2, legend=style.legend_beside)
def part_bars(parts: Mapping[str, pandas.DataFrame], axes: Axes | None = None) -> None:
    """Shares of the parts in the time of all jobs, a bar per point.

    Args:
        parts: By label, a table with a column per part of :data:`PARTS`, such as `work_s`.
    """
    left = np.zeros(len(parts))
    there = {part: words for part, words in PARTS.items() if all(f"{part}_s" in table for table in parts.values())}
    totals = np.array([sum(float(table[f"{part}_s"].sum()) for part in there) for table in parts.values()])
    for part, (label, color) in there.items():
        sums = [float(table[f"{part}_s"].sum()) for table in parts.values()]
        share = 100.0 * np.array(sums) / np.maximum(totals, 1e-12)
        axes.barh(range(len(parts)), share, left=left, color=color, label=label)
        left = left + share
    style.label_rows(axes, list(parts))
    axes.set(xlabel="share of the time (%)", xlim=(0.0, 100.0))


@style.on_axes(legend=Axes.legend)
def predicted_sums(sums: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Predicted and recorded time of applications over executors, a line per source size.

    Args:
        sums: source, slots, predicted_s, recorded_s; a row per predicted application.
    """
    for number, (source, rows) in enumerate(sums.groupby("source")):
        color = (style.BLUE, style.ORANGE, style.GREEN, style.PINK)[number % 4]
        axes.plot(rows.groupby("slots")["predicted_s"].mean(), marker="o", color=color, label=f"from {source}")
    axes.plot(sums.slots, sums.recorded_s, "x", color=style.BLACK, markersize=5, label="recorded")
    axes.set(xlabel="executors", ylabel="run time (s)", ylim=(0.0, None), xticks=sorted(set(sums.slots)))


@style.on_axes()
def error_matrix(errors: pandas.DataFrame, axes: Axes | None = None) -> None:
    """Mean error in %, by size of the logs and predicted size.

    Args:
        errors: source, slots, query_percent.
    """
    table = errors.pivot(index="source", columns="slots", values="query_percent")
    axes.imshow(table, cmap="Blues", vmin=0.0, vmax=2.0 * float(np.nanmax(table)))
    for row, column in np.ndindex(table.shape):
        axes.text(column, row, f"{table.iat[row, column]:.0f} %", ha="center", va="center", fontsize=7)
    axes.grid(False)
    axes.set_xticks(range(table.shape[1]), table.columns)
    axes.set_yticks(range(table.shape[0]), table.index)
    axes.set(xlabel="executors that are predicted", ylabel="executors of the logs")


@style.styled
def schedule(result: RunResult, title: str) -> style.Figure:
    """Gantt chart of a run, a colour per job or query of an application."""
    tasks = tasks_of(result)
    if len(result.workload) == 1:
        names = [stage.name.partition("/")[0] for stage in result.workload.jobs[0].profile.stages]
        query, _ = pandas.factorize(np.array(names, dtype=object))
        tasks = tasks.assign(query=query[tasks.stage])
    else:
        tasks = tasks.assign(query=tasks.job)
    colors = colors_of_largest((tasks.finish_s - tasks.start_s).groupby(tasks["query"]).sum())
    figure = style.new_figure(style.PAGE, 2.4)
    shown = {"executors": result.num_executors, "arrival_s": pandas.Series(result.workload.arrival_ms / 1000.0)}
    gantt(tasks, figure.subplots(), color_by="query", colors=colors, title=title, **shown)
    return figure


def table_of(rows: pandas.DataFrame) -> str:
    """HTML of a table; numbers have four digits."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows.columns)
    lines = []
    for row in rows.itertuples(index=False):
        cells = [
            f"<td class=n>{value:.4g}</td>" if isinstance(value, float) else f"<td>{html.escape(str(value))}</td>"
            for value in row
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


_STYLE = (
    "body{font:14px/1.45 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
    "td,th{padding:.15em .7em;border-bottom:1px solid #ddd;text-align:left}td.n{text-align:right}"
    "svg{max-width:100%;height:auto}div.t{overflow-x:auto;max-height:30em}"
)


def page(title: str, sections: Sequence[tuple[str, Sequence[str | pandas.DataFrame | style.Figure]]]) -> str:
    """One HTML page that needs no other file.

    Args:
        title: Title of the page.
        sections: Headings, and what stands below them: sentences, tables and figures.
    """
    body = []
    for heading, parts in sections:
        body.append(f"<h2>{html.escape(heading)}</h2>")
        for part in parts:
            if isinstance(part, str):
                body.append(f"<p>{html.escape(part)}</p>")
            elif isinstance(part, pandas.DataFrame):
                body.append(f"<div class=t>{table_of(part)}</div>")
            else:
                body.append(_drawing(part, len(body)))
    text = html.escape(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{text}</title><style>{_STYLE}</style>'
        f"</head><body><h1>{text}</h1>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _drawing(figure: style.Figure, number: int) -> str:
    """A figure as SVG inside a page; its names begin with a number."""
    drawing = style.image(figure, "svg").decode("utf-8")
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
    drawing = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>f{number}-", drawing)
    return f"<figure>{drawing}</figure>"
