"""Collection of the records and event logs of the experiment into its tables."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas

from decima.connect.cluster.tpch_queries import NAMES
from decima.connect.eventlog.application import Application, read_event_log
from decima.connect.eventlog.profiles import profiles_of
from decima.core.errors import ConfigError, DataUnavailableError
from decima.workload.profile import JobProfile
from measure.experiment import Experiment, Plan
from measure.logs import with_slot_times
from measure.records import CARD, CONTROL, LOGS, BatchRecord, query_id, read_json, warm_up_key
from measure.results import TYPES, Measured

# Share of the tasks of a run whose stages the service must have chosen.
STEERED = 0.99


def collect(experiment: Experiment) -> Measured:
    """Make the tables of an experiment from its records and event logs.

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
        run_jobs, run_tasks = _run_tables(record, logs[record.log])
        steering = _steering(record, run_tasks, decisions[record.log])
        usable = not record.contended and (record.run.scheduler == CONTROL or steering["steered_share"] >= STEERED)
        values = {"run": number, "batch": record.run.batch, "repetition": record.run.repetition}
        values |= {"scheduler": record.run.scheduler, "attempt": record.attempt, "usable": usable}
        runs.append(values | {"contended": record.contended, "log": record.log} | dict(record.load) | steering)
        jobs.append(run_jobs.assign(run=number))
        if usable:
            tasks.append(run_tasks.assign(run=number))
    jobs_table = pandas.concat(jobs, ignore_index=True)
    tasks_table = pandas.concat(tasks, ignore_index=True) if tasks else pandas.DataFrame(columns=list(TYPES))
    return Measured(
        experiment.card() | read_json(experiment.folder / CARD),
        experiment.plan,
        pandas.DataFrame(runs),
        jobs_table[["run", *(name for name in jobs_table.columns if name != "run")]],
        tasks_table[list(TYPES)].astype(TYPES),
        warm_profiles(list(logs.values()), experiment.plan),
    )


def warm_profiles(applications: Sequence[Application], plan: Plan) -> tuple[JobProfile, ...]:
    """Make profiles of the last warm-up of every application, with durations as in `with_slot_times`.

    They give the simulator durations of the same hour, with the same compiled code and all executors busy.
    """
    if not plan.warmups:
        return ()
    # A query of a warm-up is a batch of one.
    wanted = {query_id(warm_up_key(plan.warmups - 1, name), 0) for name in NAMES}
    return tuple(profiles_of(map(with_slot_times, applications), repeat(wanted, len(applications))).values())


def read_decisions(path: Path) -> pandas.DataFrame:
    """Read the decisions of an application: time_ms, stage, round_trip_ms, jobs, scheduler.

    A line that is cut, as the last one of an application that was killed, is left out.
    """
    rows = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                rows.append(json.loads(line))
    return pandas.DataFrame(rows, columns=["time_ms", "stage", "round_trip_ms", "jobs", "scheduler"])


def _steering(record: BatchRecord, tasks: pandas.DataFrame, decisions: pandas.DataFrame) -> dict[str, float]:
    """Share of a run that the service decided, and how long its decisions took."""
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


def _run_tables(record: BatchRecord, application: Application) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    ids = [query_id(record.key, position) for position in range(len(record.queries))]
    queries = application.queries.set_index("query")
    if missing := [id_ for id_ in ids if id_ not in queries.index]:
        raise ConfigError(f"the event log {record.log} lacks query {missing[0]}; remove runs/{record.key}.json")
    start_ms = record.queries[0].submit_ms
    rows = []
    for position, (id_, times) in enumerate(zip(ids, record.queries, strict=True)):
        rows.append({
            "job": position, "query": times.query,
            "submit_s": round((times.submit_ms - start_ms) / 1000.0, 3),
            "arrival_s": round((float(queries.loc[id_, "submit_ms"]) - start_ms) / 1000.0, 3),
            "finish_s": round((float(queries.loc[id_, "finish_ms"]) - start_ms) / 1000.0, 3),
            "client_finish_s": round((times.finish_ms - start_ms) / 1000.0, 3),
            "tasks": int(queries.loc[id_, "tasks"]), "rows": times.rows,
        })  # fmt: skip
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
