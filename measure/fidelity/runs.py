"""Measured runs of queries, and job profiles of chosen runs, for simulations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.eventlog.application import Application
from decima.connect.eventlog.profiles import level, profiles_of
from decima.core.errors import WorkloadError
from decima.workload.profile import JobProfile
from measure.logs import with_slot_times

if TYPE_CHECKING:
    import pandas

RUN_COLUMNS = [
    "app", "query", "name", "executors", "fresh", "repetition", "submit_ms", "startup_ms", "real_ms", "alone",
]  # fmt: skip


class Measurements:
    """Measured runs of some logs, and job profiles of some runs.

    Attributes:
        runs: one row per run of a query, columns `RUN_COLUMNS`: `app` (index into the applications), `query` and `name`
            as in the log, `executors`, `fresh` (the run was the first on all its executors), `repetition` (0, 1, ...
            among runs with equal name, executors, fresh and alone), `submit_ms` (of the first Spark job), `startup_ms`
            (of a fresh run: from the request for its executors until the last one was there), `real_ms` (start-up, and
            from the submission of the first Spark job to the end of the last one), `alone`.
    """

    def __init__(self, applications: Sequence[Application]) -> None:
        import pandas

        self.applications = list(applications)
        tables = [_runs(index, application) for index, application in enumerate(self.applications)]
        runs = pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame(columns=RUN_COLUMNS)
        if not len(runs):
            raise WorkloadError("the event logs hold no complete run of a query with a name; nothing can be compared")
        runs = runs.sort_values(["submit_ms", "app"], kind="stable", ignore_index=True)
        runs["repetition"] = runs.groupby(["name", "executors", "fresh", "alone"]).cumcount()
        self.runs = runs[RUN_COLUMNS].astype({"fresh": bool, "alone": bool})
        self._profiles: dict[tuple, dict[str, JobProfile]] = {}

    @cached_property
    def _slot_times(self) -> list[Application]:
        return [with_slot_times(application) for application in self.applications]

    def profiles(self, chosen: pandas.DataFrame, *, dispatch: bool) -> dict[str, JobProfile]:
        """Make job profiles, by name, of chosen runs.

        Args:
            chosen: rows of `runs`.
            dispatch: count durations as `measure.logs.with_slot_times` does.
        """
        key = (dispatch, *chosen.index)
        if key not in self._profiles:
            applications = self._slot_times if dispatch else self.applications
            ids = [chosen.loc[chosen.app == index, "query"] for index in range(len(applications))]
            self._profiles[key] = profiles_of(applications, ids)
        return self._profiles[key]

    def mixes(self) -> list[pandas.DataFrame]:
        """Group `runs` by mix: overlapping runs of one application, by submission."""
        mixes = []
        beside = self.runs[~self.runs.alone]
        for _, rows in beside.groupby("app"):
            end = (rows.submit_ms + rows.real_ms - rows.startup_ms).cummax().shift(fill_value=-np.inf)
            mixes += [group for _, group in rows.groupby((rows.submit_ms >= end).cumsum())]
        return mixes

    def stage_ranks(self, app: int, query: str) -> np.ndarray:
        """Spark's FIFO order of the stages of a run, float64 [stages]."""
        return self._stage_ranks[app, query]

    @cached_property
    def _stage_ranks(self) -> dict[tuple[int, str], np.ndarray]:
        ranks = {}
        for app, application in enumerate(self.applications):
            job_of = application.tasks.groupby("spark_stage_id").job_id.min()
            for query, stages in application.stages.groupby("query", sort=False):
                first = np.array([ids[0] for ids in stages.spark_stage_ids], float)
                ranks[app, str(query)] = 1e6 * job_of.loc[first].to_numpy(float) + first
        return ranks


def _startup_ms(application: Application, submit_ms: float) -> float:
    """Time from the request for executors to the last arrival; NaN if unknown."""
    executors = application.executors
    there = executors[(executors.added_ms <= submit_ms) & ~(executors.removed_ms <= submit_ms)]
    return float(there.added_ms.max() - there.requested_ms.min(skipna=False))


def _runs(index: int, application: Application) -> pandas.DataFrame:
    import pandas

    queries = application.queries
    queries = queries[queries.named & (queries.skipped == "")]
    fresh = application.tasks[application.tasks.wave == "fresh"].groupby("query", observed=True).size()
    rows = []
    for row in queries.itertuples(index=False):
        is_fresh = int(fresh.get(row.query, 0)) >= min(level(row), row.tasks)
        startup_ms = _startup_ms(application, row.submit_ms) if is_fresh else 0.0
        if np.isnan(startup_ms):
            continue  # the first executors of an application, whose request is not in the log
        rows.append({
            "app": index, "query": row.query, "name": row.name, "executors": level(row), "fresh": is_fresh,
            "submit_ms": row.submit_ms, "startup_ms": startup_ms, "real_ms": startup_ms + row.duration_ms,
            "alone": row.alone,
        })  # fmt: skip
    return pandas.DataFrame(rows, columns=[column for column in RUN_COLUMNS if column != "repetition"])


def measured_floor(measurements: Measurements) -> pandas.DataFrame:
    """Predict each run by the mean of its other repetitions.

    Returns:
        Columns of `runs` and others_ms, the mean of the other repetitions; runs without others are left out.
    """
    runs = measurements.runs
    group = runs.groupby(["name", "executors", "fresh", "alone"]).real_ms
    count, total = group.transform("size"), group.transform("sum")
    return runs.assign(others_ms=(total - runs.real_ms) / (count - 1))[count > 1].reset_index(drop=True)
