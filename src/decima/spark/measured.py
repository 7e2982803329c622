"""From a folder of the profiler to the measured workload: contended runs left out, warm and fresh runs kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.exceptions import DataUnavailableError
from decima.spark import profile as profiler
from decima.spark.eventlog import read_event_log
from decima.spark.log_profiles import collect_profiles
from decima.workload.measured import profile_name
from decima.workload.profile import JobProfile, Stage

if TYPE_CHECKING:
    from decima.spark.eventlog import Application

SOURCE = "spark"


def measured_from(folder: Path, most_durations: int) -> list[JobProfile]:
    """Profiles of all queries and scales that a folder of `decima spark profile` holds, by scale and query.

    Tasks of a wave `fresh` come from the runs on new executors, `first` and `rest` from those on warm ones. (On new
    executors later tasks are slow, too, while the JVM still compiles; there are such runs at some levels only, and they
    would look like an effect of parallelism.)

    Args:
        folder: with `runs.csv` and `events/`.
        most_durations: per stage, level and wave; of more, as many evenly spaced quantiles are kept.

    Raises:
        DataUnavailableError: there are no runs, or a log is missing.
        DecimaError: a log is not one.
    """
    runs = [run for run in profiler.read_runs(folder) if not run.contended]
    if not runs:
        raise DataUnavailableError(f"{folder} holds no run that can be used")
    profiles = []
    for scale in sorted({run.scale for run in runs}):
        of_scale = [run for run in runs if run.scale == scale]
        logs = {
            name: read_event_log(folder / profiler.LOGS / name) for name in sorted({run.log for run in of_scale})
        }
        warm, fresh = (_collect(logs, [run for run in of_scale if run.kind == kind]) for kind in profiler.KINDS)
        for query in sorted(warm):
            name = profile_name(int(query.removeprefix("q")), scale)
            profiles.append(_join(name, warm[query], fresh.get(query), most_durations))
    return profiles


def _collect(logs: dict[str, Application], runs: Iterable[profiler.Run]) -> dict[str, JobProfile]:
    wanted: dict[str, set[str]] = {name: set() for name in logs}
    for run in runs:
        wanted[run.log].add(run.id)
    kept = []
    for name, application in logs.items():
        out = ~application.queries["query"].isin(wanted[name])
        skipped = application.queries["skipped"].mask(out & (application.queries["skipped"] == ""), "not asked for")
        if (skipped == "").any():
            kept.append(replace(application, queries=application.queries.assign(skipped=skipped)))
    return {profile.name: profile for profile in collect_profiles(kept).profiles} if kept else {}


def _join(name: str, warm: JobProfile, fresh: JobProfile | None, most: int) -> JobProfile:
    same = fresh is not None and [one.parents for one in fresh.stages] == [one.parents for one in warm.stages]
    stages = []
    for index, stage in enumerate(warm.stages):
        of_fresh: dict[int, np.ndarray] = {}
        if same:
            of_fresh = dict(zip(fresh.stages[index].levels, fresh.stages[index].fresh, strict=True))
        none = np.empty(0)
        waves = [[of_fresh.get(level, none) for level in stage.levels], stage.first, stage.rest]
        stages.append(
            Stage(
                stage.name,
                stage.num_tasks,
                stage.parents,
                stage.levels,
                *(tuple(quantiles(values, most) for values in wave) for wave in waves),
            )
        )
    return JobProfile(name, tuple(stages), SOURCE)


def quantiles(values: Sequence[float], most: int) -> np.ndarray:
    """The values in ascending order; of more than `most`, that many evenly spaced quantiles, in whole milliseconds."""
    values = np.sort(np.asarray(values, dtype=np.float64))
    if len(values) <= most:
        return values
    return np.rint(np.quantile(values, (np.arange(most) + 0.5) / most))
