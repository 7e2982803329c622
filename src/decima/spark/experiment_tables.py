"""The measured experiment as small tables: what is committed, and all that figures and statistics need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas

from decima.exceptions import ConfigError, DataUnavailableError
from decima.files import atomic_path
from decima.spark.eventlog import Application, read_event_log
from decima.spark.experiment import CARD, LOGS, Experiment, Record, read_json
from decima.spark.experiment_plan import Plan
from decima.spark.query_batch import query_id

TABLES = ("runs", "jobs", "tasks")
TYPES = {"run": "int16", "job": "int8", "stage": "int16", "executor": "int8", "start_ms": "int32", "finish_ms": "int32"}
RUN_COLUMNS = ("batch", "repetition", "scheduler", "attempt", "contended")


@dataclass(frozen=True, eq=False)
class Measured:
    """The experiment as it was measured. Times of jobs and tasks count from the submission of the first query.

    Attributes:
        card: plan, schedulers, limits, machine, versions.
        plan: the plan of the card.
        runs: one row per attempt: `run` (number), batch, repetition, scheduler, attempt, contended, load, log.
        jobs: one row per query of an attempt: run, job (position in the batch), query, submit_s, finish_s (end of its
            last Spark job), client_finish_s (last row at the client), tasks, rows.
        tasks: one row per task of an attempt that is not contended: run, job, stage, executor, start_ms, finish_ms.
    """

    card: dict
    plan: Plan
    runs: pandas.DataFrame
    jobs: pandas.DataFrame
    tasks: pandas.DataFrame

    def scores(self) -> pandas.DataFrame:
        """One row per usable run: batch, repetition, scheduler, avg_jct_s, makespan_s; all jobs arrive at 0."""
        ends = self.jobs.groupby("run")["finish_s"].agg(avg_jct_s="mean", makespan_s="max")
        usable = self.runs[~self.runs["contended"]].set_index("run")[["batch", "repetition", "scheduler"]]
        return usable.join(ends, how="inner").reset_index()


def collect(experiment: Experiment) -> Measured:
    """Tables of an experiment from its records and event logs.

    Raises:
        DataUnavailableError: an event log is missing.
        ConfigError: a log lacks queries that a record says it has.
    """
    logs: dict[str, Application] = {}
    runs, jobs, tasks = [], [], []
    order = {run: index for index, run in enumerate(experiment.plan.runs())}
    records = sorted(experiment.records, key=lambda record: (order[record.run], record.attempt))
    for number, record in enumerate(records):
        if record.log not in logs:
            logs[record.log] = read_event_log(experiment.folder / LOGS / record.log)
        values = {"batch": record.run.batch, "repetition": record.run.repetition, "scheduler": record.run.scheduler}
        values |= {"attempt": record.attempt, "contended": record.contended, "log": record.log}
        load = {name: value for name, value in record.load.items() if name != "contended"}
        runs.append({"run": number} | values | load)
        found_jobs, found_tasks = _run_tables(record, logs[record.log])
        jobs.append(found_jobs.assign(run=number))
        if not record.contended:
            tasks.append(found_tasks.assign(run=number))
    if not runs:
        raise DataUnavailableError(f"{experiment.folder} holds no measured run yet")
    jobs_table = pandas.concat(jobs, ignore_index=True)
    columns = list(TYPES)
    tasks_table = pandas.concat(tasks, ignore_index=True)[columns] if tasks else pandas.DataFrame(columns=columns)
    return Measured(
        experiment.card() | read_json(experiment.folder / CARD),
        experiment.plan,
        pandas.DataFrame(runs),
        jobs_table[["run", *(name for name in jobs_table.columns if name != "run")]],
        tasks_table.astype(TYPES),
    )


def _run_tables(record: Record, application: Application) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    ids = [query_id(record.key, position) for position in range(len(record.queries))]
    found = application.queries.set_index("query")
    if missing := [id_ for id_ in ids if id_ not in found.index]:
        raise ConfigError(f"the event log {record.log} lacks query {missing[0]}; remove runs/{record.key}.json")
    start_ms = record.queries[0].submit_ms
    rows = []
    for position, (id_, times) in enumerate(zip(ids, record.queries, strict=True)):
        rows.append(
            {
                "job": position,
                "query": times.query,
                "submit_s": round((times.submit_ms - start_ms) / 1000.0, 3),
                "finish_s": round((float(found.loc[id_, "finish_ms"]) - start_ms) / 1000.0, 3),
                "client_finish_s": round((times.finish_ms - start_ms) / 1000.0, 3),
                "tasks": int(found.loc[id_, "tasks"]),
                "rows": times.rows,
            }
        )
    position_of = {id_: position for position, id_ in enumerate(ids)}
    tasks = application.tasks
    tasks = tasks[tasks["query"].isin(ids) & (tasks["status"] == "success")]
    slots = {name: index for index, name in enumerate(sorted(tasks["executor"].astype(str).unique(), key=_by_number))}
    table = pandas.DataFrame(
        {
            "job": tasks["query"].astype(object).map(position_of),
            "stage": tasks["stage"],
            "executor": tasks["executor"].astype(str).map(slots),
            "start_ms": (tasks["launch_ms"] - start_ms).round(),
            "finish_ms": (tasks["finish_ms"] - start_ms).round(),
        }
    )
    return pandas.DataFrame(rows), table


def _by_number(executor: str) -> tuple[int, str]:
    return (int(executor), "") if executor.isdecimal() else (2**31, executor)


def write(measured: Measured, folder: Path) -> list[Path]:
    """Write the tables beside the card: two as csv, the tasks as parquet."""
    paths = []
    for name in TABLES:
        frame = getattr(measured, name)
        path = folder / f"{name}.{'parquet' if name == 'tasks' else 'csv'}"
        with atomic_path(path) as temporary:
            if name == "tasks":
                frame.to_parquet(temporary, index=False, compression="zstd", compression_level=19)
            else:
                frame.to_csv(temporary, index=False, lineterminator="\n")
        paths.append(path)
    return paths


def read(folder: Path) -> Measured:
    """The tables that :func:`write` wrote.

    Raises:
        DataUnavailableError: a file is missing.
        ConfigError: the card is damaged.
    """
    for name in (CARD, "runs.csv", "jobs.csv", "tasks.parquet"):
        if not (folder / name).is_file():
            raise DataUnavailableError(f"{folder / name} is missing; `decima spark experiment` measures it anew")
    card = read_json(folder / CARD)
    return Measured(
        card,
        Plan.from_dict(card.get("plan", {})),
        pandas.read_csv(folder / "runs.csv"),
        pandas.read_csv(folder / "jobs.csv"),
        pandas.read_parquet(folder / "tasks.parquet"),
    )
