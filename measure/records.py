"""Records of measured runs: `runs.csv` for single queries, a JSON file per batch."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from decima.core.errors import ConfigError
from decima.core.files import atomic_write_text
from decima.core.files import read_json as load_json
from decima.workload.measured import profile_name

ALONE_RUNS = "runs.csv"
BATCH_RUNS = "runs"
LOGS = "events"
CARD = "card.json"
# Spark's own scheduler, without the plugin.
CONTROL = "spark_fifo"
# Wait share above which a run counts as contended; data/spark/README.md tells what was seen. It is this high because
# the threads of four executors (tasks, compilers) and of the driver wait for each other on four cores.
WAIT_LIMIT = 0.65


@dataclass(frozen=True)
class AloneRun:
    """Run of a query that was alone on the cluster: a row of `runs.csv`."""

    id: str  # local property `decima.query` of its Spark jobs, unique within an event log
    log: str  # name of the event log
    query: str
    kind: str
    scale: float
    executors: int
    repetition: int
    attempt: int
    start_s: float  # seconds since 1970 at which the query was handed to Spark
    duration_s: float  # from there to the last row at the client
    rows: int  # rows of the result
    executor_start_s: float | None  # kind fresh: from the request for executors to the registration of the last one
    # From here on as in `decima.connect.cluster.contention.Load`.
    run_s: float
    wait_s: float
    wait_share: float
    foreign_share: float
    load_average: float
    pressure: float | None

    @property
    def contended(self) -> bool:
        """Whether the machine was too busy with other things for the duration to be used."""
        return self.wait_share > WAIT_LIMIT

    @property
    def profile(self) -> str:
        """Name of the profile of the query at its scale: `q9-1g` for `q09`."""
        return profile_name(int(self.query[1:]), self.scale)


def read_alone_runs(folder: Path) -> list[AloneRun]:
    """Read the rows of `runs.csv`, without a last one that is cut off.

    Raises:
        ConfigError: the file is not such a table.
    """
    path = folder / ALONE_RUNS
    if not path.is_file():
        return []
    kinds = {one.name: one.type for one in fields(AloneRun)}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    reader = csv.DictReader(line for line in lines if line.endswith("\n"))
    if reader.fieldnames != list(kinds):
        raise ConfigError(f"{path} has the columns {reader.fieldnames}, expected {list(kinds)}")
    try:
        return [AloneRun(**{key: _value(row[key], kinds[key]) for key in kinds}) for row in reader]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}, line {reader.line_num}: {error}") from None


def append_alone_run(folder: Path, run: AloneRun) -> None:
    """Add a row to `runs.csv`, durably; a row that was cut off is removed."""
    path = folder / ALONE_RUNS
    folder.mkdir(parents=True, exist_ok=True)
    path.touch()
    with open(path, "r+", newline="", encoding="utf-8") as file:
        whole = file.read()
        whole = whole[: whole.rfind("\n") + 1]
        file.seek(len(whole.encode()))
        file.truncate()
        writer = csv.DictWriter(file, [one.name for one in fields(AloneRun)], lineterminator="\n")
        if not whole:
            writer.writeheader()
        writer.writerow(asdict(run))
        file.flush()
        os.fsync(file.fileno())


def _value(text: str, annotation: str) -> str | int | float | None:
    if "None" in annotation and text == "":
        return None
    return {"str": str, "int": int}.get(annotation, float)(text)


@dataclass(frozen=True)
class BatchRun:
    """Run of one batch under one scheduler."""

    batch: int  # which batch, from 0
    repetition: int  # from 0
    scheduler: str  # name, or `CONTROL`

    @property
    def key(self) -> str:
        """Name for files and query ids."""
        return f"b{self.batch}-r{self.repetition}-{self.scheduler}"


@dataclass(frozen=True)
class QueryTimes:
    """Times of one query of a batch, in ms since 1970."""

    query: str  # its name, `q01` to `q22`
    submit_ms: float  # handed to Spark, planned before
    finish_ms: float  # its last row was at the client
    rows: int  # rows of its result


@dataclass(frozen=True)
class BatchRecord:
    """Record of one attempt at a run of a batch."""

    run: BatchRun  # the run that was tried
    attempt: int  # from 0
    log: str  # name of the event log
    queries: tuple[QueryTimes, ...]  # in order of arrival
    load: Mapping[str, float | None]  # as `Load.row` gives it
    contended: bool  # the machine was too busy with other things

    @property
    def key(self) -> str:
        """Name unique among all attempts; the ids of the queries begin with it."""
        return f"{self.run.key}-a{self.attempt}"

    @classmethod
    def from_dict(cls, values: dict) -> BatchRecord:
        """Make a record of its fields by name, as `asdict` gives them."""
        queries = tuple(QueryTimes(**query) for query in values["queries"])
        return cls(**(values | {"run": BatchRun(**values["run"]), "queries": queries}))


def query_id(run: str, position: int) -> str:
    """Id of a query of a run, the local property `decima.query`."""
    return f"{run}#{position:02d}"


def warm_up_key(repetition: int, query: str) -> str:
    """Begin of the id of a query that ran to warm an application up."""
    return f"warm-up-{repetition}-{query}"


def write_record(folder: Path, record: BatchRecord) -> None:
    """Write an attempt to its file in a folder of batches."""
    atomic_write_text(folder / BATCH_RUNS / f"{record.key}.json", json.dumps(asdict(record), indent=1) + "\n")


def read_records(folder: Path) -> list[BatchRecord]:
    """Read all attempts that are kept in a folder.

    Raises:
        ConfigError: a file is not a record.
    """
    records = []
    for path in sorted((folder / BATCH_RUNS).glob("*.json")):
        try:
            records.append(BatchRecord.from_dict(read_json(path)))
        except (KeyError, TypeError) as error:
            raise ConfigError(f"{path} is not a record of a run: {error!r}") from error
    return records


def read_json(path: Path) -> dict:
    """Read an object from a JSON file.

    Raises:
        ConfigError: the file cannot be read, or is not a JSON object.
    """
    try:
        values = load_json(path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds {type(values).__name__}, expected an object")
    return values
