"""Results of the experiment as small tables for figures and statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas

from decima.core.errors import ConfigError, DataUnavailableError
from decima.core.files import atomic_path
from decima.workload.parquet import read_profiles, write_profiles
from decima.workload.profile import JobProfile
from measure.experiment import Plan
from measure.logs import of_cluster, read_log
from measure.records import CARD, BatchRun, query_id, read_json

if TYPE_CHECKING:
    from decima.connect.eventlog.application import Application
    from decima.systems.spark.schedulers import Scheduler

TABLES = ("runs", "jobs", "tasks")
TYPES = {"run": "int16", "job": "int8", "stage": "int16", "executor": "int8", "start_ms": "int32", "finish_ms": "int32"}
PROFILES = "profiles.parquet"


@dataclass(frozen=True, eq=False)
class Measured:
    """Results of a measured experiment; times count from the first submission."""

    card: dict  # plan, schedulers, limits, machine, versions
    plan: Plan  # the plan of the card
    # One row per attempt: `run` (number), batch, repetition, scheduler, attempt, usable (neither contended nor without
    # the service), contended, log, load, and of the plugin: decisions, steered_share (of the tasks, those whose stage
    # the scheduler of the run chose), round_trip_ms_median, round_trip_ms_p99, active_jobs_mean.
    runs: pandas.DataFrame
    # One row per query of an attempt: run, job (position in the batch), query, submit_s, arrival_s (submission of its
    # first Spark job), finish_s (end of its last one), client_finish_s (last row at the client), tasks, rows.
    jobs: pandas.DataFrame
    tasks: pandas.DataFrame  # one row per task of a usable attempt: run, job, stage, executor, start_ms, finish_ms
    # Profiles of the queries as they ran last before the first batch, alone on the same warm executors.
    profiles: tuple[JobProfile, ...]

    def scores(self) -> pandas.DataFrame:
        """Score every usable run: batch, repetition, scheduler, avg_jct_s, makespan_s; all jobs arrive at 0."""
        ends = self.jobs.groupby("run")["finish_s"].agg(avg_jct_s="mean", makespan_s="max")
        usable = self.runs[self.runs["usable"]].set_index("run")[["batch", "repetition", "scheduler"]]
        return usable.join(ends, how="inner").reset_index()


def write(measured: Measured, folder: Path) -> list[Path]:
    """Write the tables next to the card: two as csv, two as parquet."""
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
    """Read the tables that :func:`write` wrote.

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


def read_steered(folder: Path) -> list[Application]:
    """Read the logs of `decima spark experiment`: its usable runs, without the warm-up.

    Raises:
        DataUnavailableError: a table or a log is missing.
    """
    measured = read(folder)
    wanted: dict[str, list[str]] = {}
    for run in measured.runs[measured.runs["usable"]].itertuples():
        key = f"{BatchRun(run.batch, run.repetition, run.scheduler).key}-a{run.attempt}"
        wanted.setdefault(run.log, []).extend(query_id(key, position) for position in range(measured.plan.queries))
    executors = float(measured.plan.executors)
    return [of_cluster(read_log(folder, log).only(ids), executors) for log, ids in sorted(wanted.items())]


def schedulers_of(card: dict) -> dict[str, Callable[[], Scheduler]]:
    """Makers of the schedulers of a card, by name.

    Raises:
        ConfigError: a policy is not the one that was measured.
    """
    from decima.learning.store import read_policy
    from decima.systems.spark.policy import scheduler as learned
    from decima.systems.spark.schedulers import make_scheduler

    makers = {}
    for name, entry in card["schedulers"].items():
        parameters = dict(entry["parameters"])
        if "policy" in parameters:
            stored = read_policy(parameters["policy"])
            if stored.card["weights_sha256"] != entry["weights_sha256"]:
                raise ConfigError(
                    f"policy {stored.name} is not the one that was measured on Spark: weights "
                    f"{stored.card['weights_sha256'][:12]}..., measured {entry['weights_sha256'][:12]}..."
                )
            makers[name] = partial(learned.decima, **parameters)
        else:
            makers[name] = partial(make_scheduler, entry["scheduler"], **parameters)
    return makers
