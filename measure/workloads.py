"""Workloads of the package from measured runs, without contended ones."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.cluster import tpch_tables
from decima.connect.eventlog.profiles import profiles_of
from decima.connect.eventlog.report import USED
from decima.core.errors import DataUnavailableError
from decima.workload import embedded, measured
from decima.workload.measured import profile_name
from decima.workload.profile import JobProfile
from measure.alone import KINDS
from measure.logs import read_log
from measure.records import AloneRun, read_alone_runs
from measure.scaling_fit import cells, fit
from measure.scaling_model import MODEL_PATH, ScalingModel, extrapolated_profiles, read_model, write_arrays, write_model

if TYPE_CHECKING:
    from decima.connect.eventlog.application import Application

SOURCE = "spark"


def write_workloads(folder: Path, out: Path, notes: Mapping[str, str], most_durations: int) -> ScalingModel:
    """Write the files of the package from measured runs: measured profiles, scaling model, extrapolated profiles.

    Args:
        folder: what `decima spark profile` wrote.
        out: gets the files.
        notes: facts about the measurement to store besides those the runs tell: machine, versions.
        most_durations: as in `measured_from`.

    Returns:
        The fitted model.

    Raises:
        DataUnavailableError: as in `measured_from`.
        DecimaError: as in `measured_from`.
    """
    profiles, overhead_ms, facts = measured_from(folder, most_durations)
    model = replace(fit(cells(profiles)), overhead_ms=overhead_ms)
    conditions = {**facts, **notes}
    write_arrays(profiles, out / measured.PATH.name, conditions)
    write_model(model, out / MODEL_PATH.name)
    extrapolated = extrapolated_profiles(read_model(out / MODEL_PATH.name), profiles)
    write_arrays(extrapolated, out / embedded.PATH.name, conditions)
    return model


def measured_from(folder: Path, most_durations: int) -> tuple[list[JobProfile], float, dict[str, str]]:
    """Make profiles of all queries and scales in a folder of `decima spark profile`.

    Tasks of a wave `fresh` come from the runs on new executors, `first` and `rest` from those on warm ones. (On new
    executors later tasks are also slow, while the JVM still compiles; there are such runs at some levels only, and they
    would look like an effect of parallelism.)

    Args:
        folder: with `runs.csv` and `events/`.
        most_durations: per stage, level and wave; of more, evenly spaced quantiles are kept.

    Returns:
        The profiles; mean time in ms that a later task of a warm run takes besides running; what the runs tell of
        themselves.

    Raises:
        DataUnavailableError: there are no runs, or a log is missing.
        DecimaError: a log is not one.
    """
    runs = [run for run in read_alone_runs(folder) if not run.contended]
    if not runs:
        raise DataUnavailableError(f"{folder} holds no run that can be used")
    profiles, overheads, versions = [], [], set()
    for scale in sorted({run.scale for run in runs}):
        of_scale = [run for run in runs if run.scale == scale]
        logs = {name: read_log(folder, name) for name in sorted({run.log for run in of_scale})}
        warm, fresh = (
            profiles_of(
                logs.values(),
                [{run.id for run in of_scale if (run.log, run.kind) == (name, temperature)} for name in logs],
            )
            for temperature in KINDS
        )
        overheads += [_overheads_ms(log) for log in logs.values()]
        versions |= {log.spark_version for log in logs.values()}
        for query in sorted(warm):
            name = profile_name(int(query.removeprefix("q")), scale)
            profiles.append(_join(name, warm[query], fresh.get(query), most_durations))
    facts = _facts(runs) | {"spark": ", ".join(sorted(map(str, versions)))}
    facts["durations"] = f"at most {most_durations} per stage, executor count and wave; quantiles of more"
    return profiles, float(np.mean(np.concatenate(overheads))), facts


def _overheads_ms(application: Application) -> np.ndarray:
    """Overheads of later tasks in ms: duration less run time."""
    tasks = application.tasks
    later = tasks[(tasks["use"] == USED) & (tasks["wave"] == "rest") & (tasks["query"].str.contains("#warm"))]
    return (later["duration_ms"] - later["run_ms"]).dropna().to_numpy(dtype=float)


def _facts(runs: Sequence[AloneRun]) -> dict[str, str]:
    starts = [run.start_s for run in runs]
    begin, end = (datetime.fromtimestamp(second, tz=UTC) for second in (min(starts), max(starts)))

    def median(name: str, executors: int) -> float:
        return statistics.median(getattr(run, name) for run in runs if run.executors == executors)

    levels = sorted({run.executors for run in runs})
    load = "; ".join(
        f"{n} executors: threads of Spark waited {100 * median('wait_share', n):.0f} %, "
        f"others had {100 * median('foreign_share', n):.0f} % of the cores"
        for n in levels
    )
    warm, fresh = (sum(run.kind == temperature for run in runs) for temperature in KINDS)
    return {
        "date": f"{begin:%Y-%m-%d %H:%M} to {end:%H:%M} UTC",
        "load": load,
        "runs": f"{warm} warm, {fresh} on new executors; repetitions {len({run.repetition for run in runs})}",
        "settings": f"{tpch_tables.SCAN_BYTES // 2**20} MiB of parquet per scan task, "
        f"{tpch_tables.SHUFFLE_PARTITIONS} shuffle partitions per scale factor, one core per executor, "
        "no adaptive execution, no broadcast joins",
    }


def _join(name: str, warm: JobProfile, fresh: JobProfile | None, most: int) -> JobProfile:
    same = fresh is not None and [one.parents for one in fresh.stages] == [one.parents for one in warm.stages]
    stages = []
    for index, stage in enumerate(warm.stages):
        of_fresh = dict(zip(fresh.stages[index].levels, fresh.stages[index].fresh, strict=True)) if same else {}
        new = [of_fresh.get(level, np.empty(0)) for level in stage.levels]
        waves = {"fresh": new, "first": stage.first, "rest": stage.rest}
        fewer = {wave: tuple(quantiles(values, most) for values in lists) for wave, lists in waves.items()}
        stages.append(replace(stage, **fewer))
    return JobProfile(name, tuple(stages), SOURCE)


def quantiles(values: Sequence[float], most: int) -> np.ndarray:
    """Sort values; of more than `most`, keep that many evenly spaced quantiles, in whole milliseconds."""
    values = np.sort(np.asarray(values, dtype=np.float64))
    if len(values) <= most:
        return values
    return np.rint(np.quantile(values, (np.arange(most) + 0.5) / most))
