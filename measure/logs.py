"""Event logs of measured runs, without contended ones, queries named as profiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

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
        # In a mix the log does not tell: each query has as many executors as the cluster and shares them.
        applications.append(replace(application, queries=application.queries.assign(stated_executors=executors)))
    return applications


def scheduler_of(query: str) -> str:
    """Name of the scheduler of a query in a batch by its id, else Spark."""
    match = _BATCH.fullmatch(query)
    return match["scheduler"] if match else CONTROL


def read_log(folder: Path, name: str) -> Application:
    """Read a log of measured runs, full or slim.

    Raises:
        DataUnavailableError: neither is there.
    """
    for path in sorted((folder / LOGS).glob(f"{name.partition('.json')[0]}.json*")):
        return read_event_log(path)
    raise DataUnavailableError(f"event log {folder / LOGS / name} is missing")
