"""Event logs of measured runs, without contended ones, queries named as profiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from decima.connect.eventlog.application import Application, read_event_log
from decima.core.errors import DataUnavailableError
from measure.records import CARD, CONTROL, LOGS, query_id, read_alone_runs, read_json, read_records

# Ids of the queries of a batch, and of those that ran alone before the first one.
_BATCH = re.compile(r"b\d+-r\d+-(?P<scheduler>\w+)-a\d+#\d+")
_WARM_UP = re.compile(r"warm-up-(?P<repetition>\d+)-q\d\d#\d+")


def read_alone(folder: Path) -> list[Application]:
    """Read the logs of `decima spark profile`; contended runs are skipped.

    Raises:
        DataUnavailableError: there are no such runs, or a log is missing.
    """
    runs = [run for run in read_alone_runs(folder) if not run.contended]
    if not runs:
        raise DataUnavailableError(f"{folder} holds no usable run; `decima spark profile` measures them")
    names: dict[str, dict[str, str]] = {}
    for run in runs:
        names.setdefault(run.log, {})[run.id] = run.profile
    applications = []
    for log, of_id in sorted(names.items()):
        application = read_log(folder, log).only(of_id)
        queries = application.queries
        queries = queries.assign(name=queries["query"].map(of_id).fillna(queries.name))
        applications.append(replace(application, queries=queries))
    return applications


def read_mixes(folder: Path) -> list[Application]:
    """Read the logs of `decima spark experiment` or of mixes of `decima spark validate`.

    Contended batches are marked as skipped, and so is the first round of the queries that ran alone before the batches,
    in which their code was compiled.

    Raises:
        DataUnavailableError: there are no such batches, or a log is missing.
    """
    records = [record for record in read_records(folder) if not record.contended]
    if not records:
        raise DataUnavailableError(f"{folder} holds no usable batch; `decima spark validate` measures them")
    wanted: dict[str, set[str]] = {}
    for record in records:
        ids = wanted.setdefault(record.log, set())
        ids.update(query_id(record.key, position) for position in range(len(record.queries)))
    executors = float(read_json(folder / CARD)["plan"]["executors"])
    applications = []
    for log, ids in sorted(wanted.items()):
        application = read_log(folder, log)
        queries = application.queries
        rounds = queries["query"].str.extract(_WARM_UP)["repetition"].fillna("0").astype(int)
        application = application.only(queries.loc[queries["query"].isin(ids) | (rounds > 0), "query"])
        applications.append(of_cluster(application, executors))
    return applications


def of_cluster(application: Application, executors: float) -> Application:
    """State what the log of a mix does not tell: queries share all executors."""
    return replace(application, queries=application.queries.assign(stated_executors=executors))


def scheduler_of(query: str) -> str:
    """Name of the scheduler of a query in a batch by its id, else Spark."""
    match = _BATCH.fullmatch(query)
    return match["scheduler"] if match else CONTROL


def read_log(folder: Path, name: str) -> Application:
    """Read a log of measured runs, plain or compressed.

    Raises:
        DataUnavailableError: neither is there.
    """
    for path in sorted((folder / LOGS).glob(f"{name.partition('.json')[0]}.json*")):
        return read_event_log(path)
    raise DataUnavailableError(f"event log {folder / LOGS / name} is missing")


def with_slot_times(application: Application) -> Application:
    """Copy of the application in which tasks count from when they could have begun.

    `duration_ms` counts from the end of the task before on the same slot, or from the end of the stage's last parent,
    whichever is later. For a stage without parents, the submission of the query replaces the latter. Where the driver
    stamped that end after the launch, the time is shorter than the duration. Tasks of no query keep their duration.

    Before a launch, the driver notices the end of a stage, makes the tasks of the next one, or plans the next Spark job
    of the query. In the simulator this takes no time; as part of the task that waited it keeps the executor's total.
    """
    tasks = application.tasks
    if not len(tasks):
        return application
    could_begin = np.fmax(_runnable_ms(application), _slot_free_ms(application))
    time_ms = tasks.finish_ms.to_numpy(float) - np.where(np.isnan(could_begin), tasks.launch_ms, could_begin)
    return replace(application, tasks=tasks.assign(duration_ms=np.maximum(time_ms, 0.0)))


def _runnable_ms(application: Application) -> np.ndarray:
    """When the stage of each task became runnable; NaN for tasks of no query."""
    submitted = dict(zip(application.queries["query"], application.queries.submit_ms, strict=True))
    finish = {}
    ready = {}
    for row in application.stages[application.stages["query"].isin(submitted)].itertuples():  # parents come first
        finish[row.query, row.stage] = row.last_finish_ms
        before = [finish[row.query, parent] for parent in row.parents]
        ready[row.query, row.stage] = max([submitted[row.query], *before])
    tasks = application.tasks
    keys = zip(tasks["query"].astype(object), tasks.stage, strict=True)
    return np.array([ready.get(key, np.nan) for key in keys], float)


def _slot_free_ms(application: Application) -> np.ndarray:
    """When the previous task on the slot of each task ended; NaN: none."""
    tasks = application.tasks
    ordered = tasks.sort_values(["launch_ms", "task_id"], kind="stable")
    before = ordered.groupby(["executor", "slot"], observed=True).finish_ms.shift()
    return before.reindex(tasks.index).to_numpy(float)
