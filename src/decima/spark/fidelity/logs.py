"""Folders of measured runs as applications: contended runs left out, queries named by their size as profiles are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from decima.exceptions import DataUnavailableError
from decima.spark.eventlog.application import Application, read_event_log
from decima.spark.fidelity.order import SPARK_FIFO
from decima.spark.measure.alone_runs import read_runs
from decima.spark.measure.experiment import CARD, LOGS, read_json, read_records
from decima.spark.measure.together import query_id
from decima.workload.measured import profile_name

# Ids of the queries of a batch, and of those that ran alone before the first one.
_BATCH = re.compile(r"b\d+-r\d+-(?P<scheduler>\w+)-a\d+#\d+")
_WARM_UP = re.compile(r"warm-up-(?P<repetition>\d+)-q\d\d#\d+")


def read_alone(folder: Path) -> list[Application]:
    """Logs of a folder of `decima spark profile`, with the runs that are not contended.

    Raises:
        DataUnavailableError: there are no such runs, or a log is missing.
    """
    runs = [run for run in read_runs(folder) if not run.contended]
    if not runs:
        raise DataUnavailableError(f"{folder} holds no usable run; `decima spark profile` measures them")
    names: dict[str, dict[str, str]] = {}
    for run in runs:
        names.setdefault(run.log, {})[run.id] = profile_name(int(run.query.removeprefix("q")), run.scale)
    return [_only(_read(folder / LOGS, log), ids) for log, ids in sorted(names.items())]


def read_mixes(folder: Path) -> list[Application]:
    """Logs of a folder of `decima spark experiment` or of the mixes of `validate`, with what is not contended.

    Queries that ran alone before the batches are kept but for the first round, in which their code was compiled.

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
        application = _read(folder / LOGS, log)
        queries = application.queries
        rounds = queries["query"].str.extract(_WARM_UP)["repetition"].fillna("0").astype(int)
        kept = queries[queries["query"].isin(ids) | (rounds > 0)]
        application = _only(application, dict(zip(kept["query"], kept.name, strict=True)))
        # In a mix the log does not tell: each query has as many executors as the cluster and shares them.
        applications.append(replace(application, queries=application.queries.assign(stated_executors=executors)))
    return applications


def scheduler_of(query: str) -> str:
    """Who scheduled a query of a batch, by its id; Spark itself when the id does not tell."""
    found = _BATCH.fullmatch(query)
    return found["scheduler"] if found else SPARK_FIFO


def _read(folder: Path, name: str) -> Application:
    """A log as it was written, or its slim copy."""
    for path in sorted(folder.glob(f"{name.partition('.json')[0]}.json*")):
        return read_event_log(path)
    raise DataUnavailableError(f"event log {folder / name} is missing")


def _only(application: Application, names: Mapping[str, str]) -> Application:
    """Only these queries are not skipped, and under these names."""
    queries = application.queries
    name = queries["query"].map(names)
    skipped = queries.skipped.mask(name.isna() & (queries.skipped == ""), "not asked for")
    return replace(application, queries=queries.assign(name=name.fillna(queries.name), skipped=skipped))
