"""Folders of measured runs as applications: contended runs left out, queries named by their size as profiles are."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from decima.exceptions import DataUnavailableError
from decima.spark import profile as profiler
from decima.spark.eventlog import Application, read_event_log
from decima.spark.experiment import LOGS, read_records
from decima.spark.experiment_plan import CONTROL
from decima.spark.query_batch import query_id
from decima.workload.measured import profile_name

# Of the mixes of `validate`: logs of applications in which queries only ran alone, and the load meanwhile.
ALONE_LOG, LOADS = "alone-", "loads.csv"
# Ids of the queries of a batch, and of those that ran alone before the first one.
_BATCH = re.compile(r"b\d+-r\d+-(?P<scheduler>\w+)-a\d+#\d+")
_WARM_UP = re.compile(r"warm-up-(?P<repetition>\d+)-q\d\d#\d+")


def read_alone(folder: Path) -> list[Application]:
    """Logs of a folder of `decima spark profile`, with the runs that are not contended.

    Raises:
        DataUnavailableError: there are no such runs, or a log is missing.
    """
    runs = [run for run in profiler.read_runs(folder) if not run.contended]
    if not runs:
        raise DataUnavailableError(f"{folder} holds no usable run; `decima spark profile` measures them")
    names: dict[str, dict[str, str]] = {}
    for run in runs:
        names.setdefault(run.log, {})[run.id] = profile_name(int(run.query.removeprefix("q")), run.scale)
    return [_only(read_event_log(_log(folder / profiler.LOGS, log)), ids) for log, ids in sorted(names.items())]


def read_mixes(folder: Path) -> list[Application]:
    """Logs of a folder of `decima spark experiment` or of the mixes of `validate`, with what is not contended.

    Queries that ran alone, before the batches or in an application of their own, are kept but for the first round, in
    which their code was compiled.

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
    contended = _contended(folder)
    wanted |= {path.name.removesuffix(".zstd"): set() for path in (folder / LOGS).glob(f"{ALONE_LOG}*")}
    applications = []
    for log, ids in sorted(wanted.items()):
        application = read_event_log(_log(folder / LOGS, log))
        rounds = application.queries["query"].str.extract(_WARM_UP)["repetition"].fillna("0").astype(int)
        warm = (rounds > 0) & ~(application.queries["query"].isin(contended) & log.startswith(ALONE_LOG))
        kept = application.queries[application.queries["query"].isin(ids) | warm]
        applications.append(_only(application, dict(zip(kept["query"], kept.name, strict=True))))
    return applications


def _contended(folder: Path) -> list[str]:
    """Ids of the queries alone that ran while the machine was busy with other things."""
    if not (folder / LOADS).is_file():
        return []
    with open(folder / LOADS, newline="", encoding="utf-8") as file:
        return [row["query"] for row in csv.DictReader(file) if row["contended"] == "True"]


def scheduler_of(query: str) -> str:
    """Who scheduled a query of a batch, by its id; Spark itself when the id does not tell."""
    found = _BATCH.fullmatch(query)
    return found["scheduler"] if found else CONTROL


def _log(folder: Path, name: str) -> Path:
    """A log as it was written, or its slim copy."""
    for path in (folder / name, folder / f"{name}.zstd"):
        if path.exists():
            return path
    raise DataUnavailableError(f"event log {folder / name} is missing")


def _only(application: Application, names: Mapping[str, str]) -> Application:
    """Only these queries, under these names."""
    queries = application.queries[application.queries["query"].isin(names)]
    return replace(application, queries=queries.assign(name=queries["query"].map(names)))
