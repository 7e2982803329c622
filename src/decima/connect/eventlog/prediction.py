"""How well recorded runs are predicted from logs of other sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.eventlog.application import Application
from decima.connect.eventlog.recordings import LABEL, QueryRecord, cluster_slots, pooled, query_records
from decima.evaluation.statistics import mean_interval
from decima.systems.spark.capacity import AfterDriver, Recording
from decima.systems.spark.schedulers.registry import make_scheduler
from decima.systems.spark.settings import cluster_settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from decima.workload.jobs import Job, Workload

if TYPE_CHECKING:
    import pandas

#: Mean size of the error of a query, in per cent, when the runs of `data/spark` with 1 to 4 executors are predicted
#: from those of one other number of executors; `docs/capacity.md` has the numbers by size.
REFERENCE_PERCENT = 15.0


@dataclass(frozen=True)
class PredictionError:
    """Errors in % of predicted run times, each with its 95 % interval."""

    query: tuple[float, float, float]  # mean size of the error of single queries
    total: tuple[float, float, float]  # mean size of the error of the sum of an application's queries
    applications: int  # predicted

    @property
    def text(self) -> str:
        """For tables: both means with intervals."""
        parts = []
        for name, (mean, low, high) in (("application", self.total), ("query", self.query)):
            reach = f" ({max(0.0, low):.0f} to {high:.0f})" if low == low else ""
            parts.append(f"{mean:.0f} %{reach} per {name}")
        return ", ".join(parts)


def predict_runs(
    sources: Sequence[Application], targets: Sequence[Application], *, data: float = 1.0, draws: int = 5
) -> pandas.DataFrame:
    """Predict queries that ran alone by the logs of other applications.

    Task durations, task counts and driver times (means over the runs of a query) come from the sources. Queries are
    matched by name and number of stages, the first run of an application with first ones where there are; others, and
    those that ran together with others, are left out.

    Args:
        sources: Logs to predict from.
        targets: Logs to predict; their sizes are all that is taken from them.
        data: Factor on the input, see :func:`decima.connect.eventlog.recordings.read_recordings`.
        draws: Simulations of each query.

    Returns:
        A row per query of a target: app_id, query, name, slots, recorded_s, predicted_s.
    """
    import pandas

    known: dict[tuple[str, bool], list[QueryRecord]] = defaultdict(list)
    for records in query_records(sources, data)[1]:
        for record in records:
            known[record.profile.name, record.again].append(record)
    scheduler = make_scheduler("fifo")
    predicted: dict[tuple[str, bool, int], float] = {}
    rows = []
    for application in targets:
        slots = cluster_slots(application)
        queries = application.queries[application.queries.alone & (application.queries.skipped == "")]
        for row in queries.itertuples():
            runs = known.get((row.name, row.again)) or known.get((row.name, not row.again), ())
            runs = [each for each in runs if len(each.profile.stages) == row.stages]
            if not runs:
                continue
            if (row.name, row.again, slots) not in predicted:
                driver = np.mean([each.driver_ms for each in runs], axis=0)
                workload = Workload((Job(pooled(runs[0].profile)),), LABEL)
                contention = np.full(len(driver), np.mean([each.contention for each in runs]))
                recorded = np.array([row.duration_ms])
                recording = Recording(row.name, workload, driver, recorded, slots, contention)
                state = new_state(recording.at(slots), cluster_settings(slots))
                times = []
                for draw in range(draws):
                    run_state(state, AfterDriver(scheduler, driver), draw)
                    times.append(float(state.job_finish_ms.max()))
                predicted[row.name, row.again, slots] = float(np.mean(times)) / 1000.0
            rows.append({
                "app_id": str(application.key), "query": row.query, "name": row.name, "slots": slots,
                "recorded_s": row.duration_ms / 1000.0, "predicted_s": predicted[row.name, row.again, slots],
            })  # fmt: skip
    return pandas.DataFrame(rows, columns=["app_id", "query", "name", "slots", "recorded_s", "predicted_s"])


def error_of(runs: pandas.DataFrame) -> PredictionError:
    """Errors of a table of :func:`predict_runs`, which has at least one row."""
    sizes = 100.0 * (runs.predicted_s / runs.recorded_s - 1.0).abs()
    by_query = sizes.groupby(runs["name"]).mean().to_numpy()
    sums = runs.groupby("app_id")[["predicted_s", "recorded_s"]].sum()
    totals = (100.0 * (sums.predicted_s / sums.recorded_s - 1.0).abs()).to_numpy()
    query, total = mean_interval(by_query), mean_interval(totals)
    return PredictionError((query[0], *query[2:]), (total[0], *total[2:]), len(sums))


def cross_errors(applications: Sequence[Application]) -> Mapping[int, PredictionError]:
    """Errors by size, each predicted from the applications of all other sizes.

    Empty where all applications have one size, or have no query in common.
    """
    by_size = {}
    of_size = sizes_of(applications)
    for slots, targets in of_size.items():
        sources = [each for size, others in of_size.items() if size != slots for each in others]
        runs = predict_runs(sources, targets) if sources else None
        if runs is not None and len(runs):
            by_size[slots] = error_of(runs)
    return by_size


def sizes_of(applications: Collection[Application]) -> dict[int, list[Application]]:
    """Applications by the slots of their clusters, ascending."""
    by_size: dict[int, list[Application]] = defaultdict(list)
    for application in sorted(applications, key=cluster_slots):
        by_size[cluster_slots(application)].append(application)
    return dict(by_size)
