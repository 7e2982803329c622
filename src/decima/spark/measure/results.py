"""The measured experiment as small tables: what is committed, and all that figures and statistics need."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas

from decima.exceptions import ConfigError, DataUnavailableError
from decima.files import atomic_path
from decima.spark.cluster.tpch_queries import NAMES
from decima.spark.eventlog.application import Application, read_event_log
from decima.spark.eventlog.profiles import collect_profiles
from decima.spark.eventlog.slot_times import with_slot_times
from decima.spark.measure.experiment import CARD, LOGS, Experiment, Record, read_json, warm_up_key
from decima.spark.measure.plan import CONTROL, Plan
from decima.spark.measure.together import query_id
from decima.workload.parquet import read_profiles, write_profiles
from decima.workload.profile import JobProfile

TABLES = ("runs", "jobs", "tasks")
TYPES = {"run": "int16", "job": "int8", "stage": "int16", "executor": "int8", "start_ms": "int32", "finish_ms": "int32"}
PROFILES = "profiles.parquet"
# Share of the tasks of a run whose stages the service must have chosen.
STEERED = 0.99


@dataclass(frozen=True, eq=False)
class Measured:
    """The experiment as it was measured. Times of jobs and tasks count from the submission of the first query.

    Attributes:
        card: plan, schedulers, limits, machine, versions.
        plan: the plan of the card.
        runs: one row per attempt: `run` (number), batch, repetition, scheduler, attempt, usable (neither contended nor
            without the service), contended, log, load, and of the plugin: decisions, steered_share (of the tasks, those
            whose stage the scheduler of the run chose), round_trip_ms_median, round_trip_ms_p99, active_jobs_mean.
        jobs: one row per query of an attempt: run, job (position in the batch), query, submit_s, arrival_s (submission
            of its first Spark job), finish_s (end of its last one), client_finish_s (last row at the client), tasks,
            rows.
        tasks: one row per task of a usable attempt: run, job, stage, executor, start_ms, finish_ms.
        profiles: of the queries as they ran last before the first batch, alone on the same warm executors.
    """

    card: dict
    plan: Plan
    runs: pandas.DataFrame
    jobs: pandas.DataFrame
    tasks: pandas.DataFrame
    profiles: tuple[JobProfile, ...]

    def scores(self) -> pandas.DataFrame:
        """One row per usable run: batch, repetition, scheduler, avg_jct_s, makespan_s; all jobs arrive at 0."""
        ends = self.jobs.groupby("run")["finish_s"].agg(avg_jct_s="mean", makespan_s="max")
        usable = self.runs[self.runs["usable"]].set_index("run")[["batch", "repetition", "scheduler"]]
        return usable.join(ends, how="inner").reset_index()


def collect(experiment: Experiment) -> Measured:
    """Tables of an experiment from its records and event logs.

    Raises:
        DataUnavailableError: an event log is missing.
        ConfigError: a log lacks queries that a record says it has.
    """
    if not experiment.records:
        raise DataUnavailableError(f"{experiment.folder} holds no measured run yet")
    folder = experiment.folder / LOGS
    names = sorted({record.log for record in experiment.records})
    logs = {name: read_event_log(folder / name) for name in names}
    decisions = {name: read_decisions(folder / f"{Path(name).stem}.decisions.jsonl") for name in names}
    order = {run: index for index, run in enumerate(experiment.plan.runs())}
    runs, jobs, tasks = [], [], []
    for number, record in enumerate(sorted(experiment.records, key=lambda record: (order[record.run], record.attempt))):
        found_jobs, found_tasks = _run_tables(record, logs[record.log])
        steering = _steering(record, found_tasks, decisions[record.log])
        usable = not record.contended and (record.run.scheduler == CONTROL or steering["steered_share"] >= STEERED)
        values = {"run": number, "batch": record.run.batch, "repetition": record.run.repetition}
        values |= {"scheduler": record.run.scheduler, "attempt": record.attempt, "usable": usable}
        runs.append(values | {"contended": record.contended, "log": record.log} | dict(record.load) | steering)
        jobs.append(found_jobs.assign(run=number))
        if usable:
            tasks.append(found_tasks.assign(run=number))
    jobs_table = pandas.concat(jobs, ignore_index=True)
    tasks_table = pandas.concat(tasks, ignore_index=True) if tasks else pandas.DataFrame(columns=list(TYPES))
    return Measured(
        experiment.card() | read_json(experiment.folder / CARD),
        experiment.plan,
        pandas.DataFrame(runs),
        jobs_table[["run", *(name for name in jobs_table.columns if name != "run")]],
        tasks_table[list(TYPES)].astype(TYPES),
        warm_profiles(logs.values(), experiment.plan),
    )


def warm_profiles(applications: Iterable[Application], plan: Plan) -> tuple[JobProfile, ...]:
    """Profiles of the last warm-up of every application, with durations as in `decima.spark.eventlog.slot_times`.

    So the simulator gets durations of the same hour, the same compiled code and all executors busy.
    """
    if not plan.warmups:
        return ()
    parts = []
    for application in applications:
        # A query of a warm-up is a batch of one.
        wanted = {query_id(warm_up_key(plan.warmups - 1, name), 0) for name in NAMES}
        queries = application.queries
        chosen = queries["query"].isin(wanted)
        if chosen.any():
            queries = queries.assign(skipped=queries["skipped"].mask(~chosen, "not the last warm-up"))
            parts.append(replace(with_slot_times(application), queries=queries))
    return tuple(collect_profiles(parts).profiles) if parts else ()


def read_decisions(path: Path) -> pandas.DataFrame:
    """Decisions of an application: time_ms, stage, round_trip_ms, jobs, scheduler; none without the plugin.

    The last line of an application that was killed may be cut.
    """
    rows = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                rows.append(json.loads(line))
    return pandas.DataFrame(rows, columns=["time_ms", "stage", "round_trip_ms", "jobs", "scheduler"])


def _steering(record: Record, tasks: pandas.DataFrame, decisions: pandas.DataFrame) -> dict[str, float]:
    """What the service had to do with a run, and how long a decision took."""
    begin, end = record.queries[0].submit_ms, max(query.finish_ms for query in record.queries)
    # The service tells the parameters, too: `weighted_fair:alpha=-1`.
    names = decisions["scheduler"].map(lambda text: str(text).partition(":")[0])
    mine = decisions[decisions["time_ms"].between(begin, end) & (names == record.run.scheduler)]
    times = mine["round_trip_ms"].to_numpy(float)
    chosen = tasks["spark_stage_id"].isin(set(mine["stage"]))
    return {
        "decisions": len(mine),
        "steered_share": round(float(chosen.mean()), 4) if len(tasks) else 0.0,
        "round_trip_ms_median": round(float(np.median(times)), 3) if len(times) else np.nan,
        "round_trip_ms_p99": round(float(np.quantile(times, 0.99)), 3) if len(times) else np.nan,
        "active_jobs_mean": round(float(mine["jobs"].mean()), 2) if len(times) else np.nan,
    }


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
                "arrival_s": round((float(found.loc[id_, "submit_ms"]) - start_ms) / 1000.0, 3),
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
            "spark_stage_id": tasks["spark_stage_id"],
            "executor": tasks["executor"].astype(str).map(slots),
            "start_ms": (tasks["launch_ms"] - start_ms).round(),
            "finish_ms": (tasks["finish_ms"] - start_ms).round(),
        }
    )
    return pandas.DataFrame(rows), table


def _by_number(executor: str) -> tuple[int, str]:
    return (int(executor), "") if executor.isdecimal() else (2**31, executor)


def write(measured: Measured, folder: Path) -> list[Path]:
    """Write the tables beside the card: two as csv, the tasks and the profiles as parquet."""
    paths = []
    if measured.profiles:
        paths.append(folder / PROFILES)
        write_profiles(measured.profiles, paths[0])
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
        tuple(read_profiles(folder / PROFILES)) if (folder / PROFILES).is_file() else (),
    )
