"""Executors that come, go and are killed: the same queries on real Spark and simulated."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima.connect.cluster import contention
from decima.connect.cluster.standalone import StandaloneCluster, session
from decima.connect.eventlog.application import Application, read_event_log
from decima.connect.eventlog.recordings import read_recordings
from decima.systems.spark.capacity import Plan, sweep
from decima.systems.spark.schedulers import make_scheduler
from measure.records import query_id

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import SparkSession

# Tasks, seconds that each sleeps, whether a shuffle follows, seconds until the next query. The second pause is longer
# than the idle timeout: executors without outputs go, and come again. From the first shuffle on they stay.
QUERIES = ((24, 1.0, False, 1.0), (12, 1.0, False, 9.0), (24, 1.0, True, 1.0), (16, 0.5, True, 0.0))
CASES = ("fixed", "dynamic", "killed")  # executors: all, from 1 on as they are needed, all until one is killed
IDLE_S, BACKLOG_S = 4.0, 1.0  # timeouts, the second one Spark's default
KILL_S = 6.0  # from the first submission to the kill of an executor
_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE_S:g}s",
    "spark.scheduler.minRegisteredResourcesRatio": "0.0",
}


def measure_run(cluster: StandaloneCluster, case: str, name: str, logs: Path) -> dict[str, float | None]:
    """Run the queries in a new application; returns the load of the machine.

    ``case`` is one of `CASES`.

    Raises:
        SparkError: Spark does not start.
    """
    conf = {"spark.sql.shuffle.partitions": "8"}
    if case == "dynamic":
        conf |= _DYNAMIC | {"spark.dynamicAllocation.maxExecutors": str(cluster.executors)}
    folder = logs / f"{name}.running"
    with session(cluster, conf, event_log=folder, name=name, driver_memory_mb=700) as spark:
        _query(spark, cluster.executors, 0.0, False)  # to compile, and not counted
        time.sleep(IDLE_S + 3.0)
        pids = contention.family(os.getpid())
        before = contention.sample(pids, time.monotonic())
        if case == "killed":
            threading.Timer(KILL_S, _kill_one, (cluster,)).start()
        for number, (tasks, seconds, shuffles, pause_s) in enumerate(QUERIES):
            spark.sparkContext.setLocalProperty("decima.query", query_id(name, number))
            _query(spark, tasks, seconds, shuffles)
            time.sleep(pause_s)
        load = contention.between(before, contention.sample(pids, time.monotonic())).row()
    (log,) = folder.iterdir()
    log.rename(logs / name)
    folder.rmdir()
    return load


def _query(spark: SparkSession, tasks: int, seconds: float, shuffles: bool) -> None:
    sleep = f"reflect('java.lang.Thread', 'sleep', {round(1000 * seconds)}L) AS slept"
    rows = spark.range(0, tasks, 1, tasks).selectExpr("id", sleep).where("slept IS NOT NULL")
    (rows.groupBy("id").count() if shuffles else rows).collect()


def _kill_one(cluster: StandaloneCluster) -> None:
    """Kill the oldest executor; executors are in the process group of the worker."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in command and os.getpgid(pid) in cluster.pids():
                os.kill(pid, signal.SIGKILL)
                break
        except OSError:  # it has just ended
            continue


def _counted_queries(application: Application) -> pandas.DataFrame:
    return application.queries[application.queries["query"].str.contains("#")]


def _simulated(fixed: Application, plan: Plan) -> dict[str, float]:
    """Mean simulated times, from a run on fixed executors."""
    counted = _counted_queries(fixed)
    read = read_recordings([fixed.only(list(counted["query"]))], unit="application", hosts="many")
    (recording,), (without,) = read.recordings, read.compared
    driver_ms = recording.driver_ms.copy()
    driver_ms[0] = without.driver_ms[0]  # not what was before the first query
    draws = sweep([replace(recording, driver_ms=driver_ms)], {"fifo": make_scheduler("fifo")}, plan, threads=1)
    return {f"simulated_{name}": float(draws[name].mean()) for name in ("run_s", "executor_hours")}


def compare_runs(logs: Path, loads: Mapping[str, Mapping]) -> pandas.DataFrame:
    """Compare runs with simulations of the fixed run of the same repetition.

    Executors start as fast as the first one did that was asked for in the run, since logs do not tell of requests.

    Args:
        logs: Folder of logs, named by case, executors and repetition; compressed ones end in ``.zstd``.
        loads: Load of the machine by log.
    """
    import pandas

    def read(name: str) -> Application:
        log = logs / name
        return read_event_log(log if log.exists() else log.with_name(f"{name}.zstd"))

    rows = []
    for name, load in loads.items():
        case, executors, repetition = name.split("-")
        application = read(name)
        counted, table = _counted_queries(application), application.executors
        begin_ms, end_ms = counted.submit_ms.min(), counted.finish_ms.max()
        held_ms = table.removed_ms.fillna(end_ms).clip(upper=end_ms) - table.added_ms.clip(lower=begin_ms)
        asked_ms = table.removed_ms.min() if case == "killed" else begin_ms + BACKLOG_S * 1000.0
        came_ms = min([*table.added_ms[table.added_ms > asked_ms], end_ms])
        changes: dict[str, Any] = {} if case == "fixed" else {"executor_startup_ms": float(came_ms - asked_ms)}
        if case == "killed":
            changes["loss_times_ms"] = (float(asked_ms - begin_ms),)
        elif case == "dynamic":
            changes["idle_timeout_ms"] = 1000.0 * IDLE_S
        plan = Plan([int(executors)], dynamic=1 if case == "dynamic" else None, changes=changes)
        times = {"run_s": (end_ms - begin_ms) / 1000.0, "executor_hours": held_ms.clip(lower=0.0).sum() / 3.6e6}
        times |= _simulated(read(f"fixed-{executors}-{repetition}"), plan)
        run = {"case": case, "executors": int(executors), "repetition": repetition}
        rows.append(run | times | {f"spark_{key}": value for key, value in load.items()})
    return pandas.DataFrame(rows)
