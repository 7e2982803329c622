"""§6.2: the project's measured workload, the scaling model fitted to it, and its accuracy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas

from decima import plotting
from decima.workload import embedded, measured
from decima.workload.profile import WAVES, JobProfile
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables
from experiments.experiment import Context, Experiment, Profiles
from experiments.rooms import SPARK_ROOMS
from measure import scaling_fit as fitting
from measure.scaling_model import ScalingModel

AUTHORS = "authors"
# Levels of the authors' profiles that are compared with the model; the first is where theirs is set to ours.
COMPARED = (5, 10, 20, 40, 50, 60, 80, 100)


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables `measured_parameters`, `measured_residuals`, `measured_holdout`, `measured_slowdown` and `measured_jobs`.

    They are about the package's own data, whatever the workload of the run; the authors' profiles are compared with
    them where the run has these.
    """
    table = fitting.cells(measured.measured_profiles())
    model = fitting.fit(table, params["bootstrap"])
    authors = source.profiles("paper") if source.name == "tpch" else ()
    return {
        "measured_parameters": _parameters(model),
        "measured_residuals": fitting.residuals(model, table).drop(columns=["log_ms"]),
        "measured_holdout": _holdouts(table, params["bootstrap"]),
        "measured_slowdown": _slowdowns(table, model, authors),
        "measured_jobs": _jobs(authors),
    }


def _parameters(model: ScalingModel) -> pandas.DataFrame:
    rows = [
        {"effect": effect, "of": name, "query": "all", "exponent": one.mean, "low": one.low, "high": one.high,
         "spread": one.spread, "noise": one.noise}
        for effect, group in (("executors", model.parallelism), ("input size", model.size))
        for name, one in group.items()
    ]  # fmt: skip
    for effect, group in (("executors", model.parallelism), ("input size", model.size)):
        for name, one in group.items():
            for query, exponent in one.of_query.items():
                same = {"low": exponent, "high": exponent, "spread": 0.0, "noise": one.noise}
                rows.append({"effect": effect, "of": name, "query": f"q{query}", "exponent": exponent, **same})
    return pandas.DataFrame(rows)


def _holdouts(table: pandas.DataFrame, bootstrap: int) -> pandas.DataFrame:
    """Predictions of the largest executor count and scale, and of simpler methods."""
    rows = []
    for variable, what in (("level", "executors"), ("scale", "input size")):
        most = table[variable].max()
        known, asked = table[table[variable] < most], table[table[variable] == most]
        # The model itself knows no effect of the input size on a task.
        forms = ("model", "no effect") if variable == "level" else ("model",)
        model = fitting.fit(known, bootstrap)
        errors = fitting.predict(model, known, asked, variable, {"no effect": 0.0})
        for wave, mine in errors.groupby("wave"):
            for form in forms:
                rows.append({
                    "held_out": what, "value": most, "wave": wave, "form": form, "cells": len(mine),
                    "bias_percent": 100.0 * np.expm1(np.average(mine[form], weights=mine["weight"])),
                    "error_percent": 100.0 * np.average(np.abs(np.expm1(mine[form])), weights=mine["weight"]),
                })  # fmt: skip
    return pandas.DataFrame(rows)


def slowdown(table: pandas.DataFrame, levels: Iterable[int], reference: int) -> pandas.DataFrame:
    """Weighted geometric mean, per level, of duration over reference duration of equal query, stage, scale.

    Args:
        table: as of `measure.scaling_fit.cells`.
        levels: executor counts.
        reference: one of them.

    Returns:
        Columns level, slowdown, low, high (95 % interval over queries), stages.
    """
    keys = ["query", "stage", "scale"]
    base = table[table["level"] == reference].set_index(keys)[["log_ms", "weight"]]
    rows = []
    for level in levels:
        mine = table[table["level"] == level].merge(base, left_on=keys, right_index=True, suffixes=("", "_reference"))
        if not len(mine):
            continue
        mine = mine.assign(
            ratio=mine["log_ms"] - mine["log_ms_reference"], share=np.minimum(mine["weight"], mine["weight_reference"])
        )
        of_query = mine.assign(part=mine["ratio"] * mine["share"]).groupby("query")[["part", "share"]].sum()
        ratio = of_query["part"] / of_query["share"]
        mean, error = ratio.mean(), 1.96 * ratio.std(ddof=0) / np.sqrt(max(len(ratio) - 1, 1))
        rows.append((level, np.exp(mean), np.exp(mean - error), np.exp(mean + error), len(mine)))
    return pandas.DataFrame(rows, columns=["level", "slowdown", "low", "high", "stages"])


def _slowdowns(table: pandas.DataFrame, model: ScalingModel, authors: tuple[JobProfile, ...]) -> pandas.DataFrame:
    """Slowdown relative to one executor: measured, modelled, and the authors', which start on the model."""
    parts = []
    theirs = fitting.cells(authors) if authors else None
    for wave in WAVES:
        of_wave = table[table["wave"] == wave]
        first = int(of_wave["level"].min())
        one = model.parallelism[wave]
        scale = first**one.mean
        measured_part = slowdown(of_wave, sorted(of_wave["level"].unique()), first)
        measured_part[["slowdown", "low", "high"]] *= scale
        parts.append(measured_part.assign(wave=wave, source="measured"))
        levels = np.array([1, 2, 3, 4, *embedded.LEVELS[2:]], dtype=float)
        columns = {"slowdown": levels**one.mean, "low": levels**one.low, "high": levels**one.high}
        same = {"stages": 0, "wave": wave, "source": "model"}
        parts.append(pandas.DataFrame({"level": levels.astype(int), **columns, **same}))
        if theirs is not None:
            part = slowdown(theirs[theirs["wave"] == wave], COMPARED, COMPARED[0])
            part[["slowdown", "low", "high"]] *= COMPARED[0] ** one.mean
            parts.append(part.assign(wave=wave, source=AUTHORS))
    return pandas.concat(parts, ignore_index=True)


def _jobs(authors: tuple[JobProfile, ...]) -> pandas.DataFrame:
    """Row per profile: largest measured scale, the paper's sizes extrapolated, and the authors'."""
    groups = {
        "measured": measured.measured_profiles(f"{measured.scales()[-1]:g}g"),
        "extrapolated": embedded.embedded_profiles("paper"),
        AUTHORS: authors,
    }
    rows = []
    for group, profiles in groups.items():
        for profile in profiles:
            query, size = measured.parse_name(profile.name)
            rows.append({
                "source": group, "query": query, "size_gb": size, "stages": len(profile.stages),
                "tasks": profile.num_tasks, "work_s": profile.work_ms / 1000.0,
                "critical_path_s": profile.critical_path_ms / 1000.0,
            })  # fmt: skip
    return pandas.DataFrame(rows)


def measured_slowdown(tables: Tables, run: Run) -> plotting.style.Figure:
    """§6.2, effect 3: task durations by executors, measured, modelled and in the authors' profiles."""
    table = tables["measured_slowdown"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.8)
    panels = figure.subplots(1, 3, sharey=True)
    for wave, axes in zip(("fresh", "first", "rest"), panels, strict=True):
        plotting.measured.slowdown(table, wave, axes)
    panels[0].set_ylabel("duration, one executor = 1")
    panels[1].legend(*_all_labels(panels), loc="upper left", fontsize=7)
    most = int(table.loc[table["source"] == "measured", "level"].max())
    caption = (
        f"Mean over queries of the ratio within a stage; bars and band: 95 % confidence interval. Measured on 1 to "
        f"{most} executors of one machine (grey); the rest is extrapolated. The authors' line begins on the model at 5."
    )
    return plotting.style.entitle(figure, "Task duration against executors", caption, measured.LABEL)


def measured_residuals(tables: Tables, run: Run) -> plotting.style.Figure:
    """Residuals of the fit, and predictions of what was held out."""
    table, holdout = tables["measured_residuals"], tables["measured_holdout"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 2.9)
    left, right = figure.subplots(1, 2)
    plotting.measured.residuals(table, left)
    plotting.measured.holdout(holdout, right)
    caption = (
        f"Left: {len(table):,} means per query, stage, scale, executor count and wave. Right: predicted from all "
        "smaller executor counts or scales; mean absolute error per mean."
    )
    return plotting.style.entitle(figure, "Residuals and hold-out errors of the scaling model", caption, measured.LABEL)


def measured_jobs(tables: Tables, run: Run) -> plotting.style.Figure:
    """Work and tasks per query, measured, extrapolated, and the authors'."""
    table = tables["measured_jobs"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 4.4)
    above, below = figure.subplots(2, 1, sharex=True)
    plotting.measured.jobs(table, "work_s", "work (s)", above)
    plotting.measured.jobs(table, "tasks", "tasks", below)
    below.set_xlabel("TPC-H query")
    above.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7)
    caption = "22 queries; work: tasks times mean duration over all profiled executor counts."
    return plotting.style.entitle(figure, "Jobs: measured, extrapolated and published", caption, measured.LABEL)


def _all_labels(panels) -> tuple[list, list]:
    marks = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return list(marks.values()), list(marks)


EXPERIMENT = Experiment(
    "measured",
    "§6.2",
    compute,
    rooms=(*SPARK_ROOMS, "measure/scaling_fit.py", "measure/scaling_model.py"),
    figures=(measured_slowdown, measured_residuals, measured_jobs),
    inputs=(Profiles(),),
    tiny={"bootstrap": 20},
)
