"""Figures of the project's own measurement on Spark: the scaling model and the jobs it gives."""

from __future__ import annotations

from decima.plotting import measured, style
from decima.plotting.run import Run, Tables
from decima.plotting.style import Figure
from decima.workload.measured import LABEL


def measured_slowdown(tables: Tables, run: Run) -> Figure:
    """§6.2, effect 3: tasks against the number of executors, measured, modelled and in the authors' profiles."""
    table = tables["measured_slowdown"]
    figure = style.new_figure(style.PAGE, 2.8)
    panels = figure.subplots(1, 3, sharey=True)
    for wave, axes in zip(("fresh", "first", "rest"), panels, strict=True):
        measured.slowdown(table, wave, axes)
    panels[0].set_ylabel("duration, one executor = 1")
    panels[1].legend(*_all_labels(panels), loc="upper left", fontsize=7)
    most = int(table.loc[table["source"] == "measured", "level"].max())
    caption = (
        f"Mean over queries of the ratio within a stage; bars and band: 95 % confidence interval. Measured on 1 to "
        f"{most} executors of one machine (grey); the rest is extrapolated. The authors' line begins on the model at 5."
    )
    return style.entitle(figure, "Task duration against executors", caption, LABEL)


def measured_residuals(tables: Tables, run: Run) -> Figure:
    """Residuals of the fit, and predictions of what was held out."""
    table, holdout = tables["measured_residuals"], tables["measured_holdout"]
    figure = style.new_figure(style.PAGE, 2.9)
    left, right = figure.subplots(1, 2)
    measured.residuals(table, left)
    measured.holdout(holdout, right)
    caption = (
        f"Left: {len(table):,} means per query, stage, scale, executor count and wave. Right: predicted from all "
        "smaller executor counts or scales; mean absolute error per mean."
    )
    return style.entitle(figure, "Residuals and hold-out errors of the scaling model", caption, LABEL)


def measured_jobs(tables: Tables, run: Run) -> Figure:
    """Work and tasks per query, measured, extrapolated, and the authors'."""
    table = tables["measured_jobs"]
    figure = style.new_figure(style.PAGE, 4.4)
    above, below = figure.subplots(2, 1, sharex=True)
    measured.jobs(table, "work_s", "work (s)", above)
    measured.jobs(table, "tasks", "tasks", below)
    below.set_xlabel("TPC-H query")
    above.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7)
    caption = "22 queries; work: tasks times mean duration over all profiled executor counts."
    return style.entitle(figure, "Jobs: measured, extrapolated and published", caption, LABEL)


def _all_labels(panels) -> tuple[list, list]:
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return list(found.values()), list(found)
