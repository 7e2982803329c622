"""The table of measured runs, `runs.csv`: one row per execution of a query."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas

from decima.exceptions import ConfigError
from decima.spark.cluster import contention

RUNS = "runs.csv"


@dataclass(frozen=True)
class Run:
    """One measured execution of a query: a row of `runs.csv`.

    Attributes:
        id: local property `decima.query` of its Spark jobs, unique within an event log.
        log: name of the event log.
        start_s: seconds since 1970 at which the query was handed to Spark.
        duration_s: from there to the last row at the client.
        rows: rows of the result.
        executor_start_s: kind fresh: from the request for the executors to the registration of the last one.
        run_s, wait_s, wait_share, foreign_share, load_average, pressure: see `decima.spark.cluster.contention.Load`.
    """

    id: str
    log: str
    query: str
    kind: str
    scale: float
    executors: int
    repetition: int
    attempt: int
    start_s: float
    duration_s: float
    rows: int
    executor_start_s: float | None
    run_s: float
    wait_s: float
    wait_share: float
    foreign_share: float
    load_average: float
    pressure: float | None

    @property
    def contended(self) -> bool:
        """Whether the machine was too busy with other things for the duration to be used."""
        return self.wait_share > contention.WAIT_LIMIT


def read_runs(folder: Path) -> list[Run]:
    """Rows of `runs.csv`, without one that was cut off when it was written; none when there is no such file.

    Raises:
        ConfigError: the file is not such a table.
    """
    path = folder / RUNS
    if not path.is_file():
        return []
    kinds = {one.name: one.type for one in fields(Run)}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    reader = csv.DictReader(line for line in lines if line.endswith("\n"))
    if reader.fieldnames != list(kinds):
        raise ConfigError(f"{path} has the columns {reader.fieldnames}, expected {list(kinds)}")
    try:
        return [Run(**{key: _value(row[key], kinds[key]) for key in kinds}) for row in reader]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}, line {reader.line_num}: {error}") from None


def append_run(folder: Path, run: Run) -> None:
    """Add a row to `runs.csv`, on disk when this returns; a row that was cut off goes."""
    path = folder / RUNS
    folder.mkdir(parents=True, exist_ok=True)
    path.touch()
    with open(path, "r+", newline="", encoding="utf-8") as file:
        whole = file.read()
        whole = whole[: whole.rfind("\n") + 1]
        file.seek(len(whole.encode()))
        file.truncate()
        writer = csv.DictWriter(file, [one.name for one in fields(Run)], lineterminator="\n")
        if not whole:
            writer.writeheader()
        writer.writerow(asdict(run))
        file.flush()
        os.fsync(file.fileno())


def _value(text: str, kind: str) -> str | int | float | None:
    if "None" in kind and text == "":
        return None
    return {"str": str, "int": int}.get(kind, float)(text)


def summary(runs: Iterable[Run]) -> pandas.DataFrame:
    """Per scale, executor count and kind: how many runs, how long, how true.

    Returns:
        Columns `runs`, `contended` (left out of the rest), `repetitions`, `pass_s` (sum over the queries of their mean
        durations), `noise` (standard deviation between repetitions as a share of the mean, median over the queries),
        `start_s` (median start of executors), `wait_share` and `foreign_share` (medians).
    """
    table = pandas.DataFrame([asdict(run) | {"contended": run.contended} for run in runs])
    keys = ["scale", "executors", "kind"]
    rows = []
    for key, group in table.groupby(keys):
        usable = group[~group["contended"]]
        durations = usable.groupby("query")["duration_s"]
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "runs": len(group),
                "contended": int(group["contended"].sum()),
                "repetitions": usable["repetition"].nunique(),
                "pass_s": durations.mean().sum(),
                "noise": (durations.std() / durations.mean()).median(),
                "start_s": usable["executor_start_s"].median(),
                "wait_share": usable["wait_share"].median(),
                "foreign_share": usable["foreign_share"].median(),
            }
        )
    return pandas.DataFrame(rows)
