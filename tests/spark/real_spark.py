"""A small real Spark with the plugin for the tests, and what happened in it by its event log."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from decima.connect.cluster.standalone import StandaloneCluster, session
from decima.connect.plugin.build import plugin_jar

LOG_CONFIGURATION = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
logger.decima.name = decima
logger.decima.level = info
"""
OUTAGE = "Spark schedules by itself"
RECOVERY = "answers again"
BUG = "unexpected error"


@dataclass
class Driver:
    """One running application with the plugin."""

    spark: object
    folder: Path

    def log(self) -> list[str]:
        """Lines the plugin wrote, and warnings of Spark."""
        return (self.folder / "driver.log").read_text().splitlines()

    def lines(self, text: str) -> list[str]:
        return [line for line in self.log() if text in line]


def plugin_settings(folder: Path, service: str, jar: Path) -> dict[str, str]:
    """Settings of a driver with the plugin that writes what it does into a folder."""
    log_file = folder / "log4j2.properties"
    log_file.write_text(LOG_CONFIGURATION.format(path=folder / "driver.log"))
    return {
        "spark.driver.extraClassPath": str(jar),
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xss4m -Dlog4j2.configurationFile={log_file.as_uri()}",
        "spark.decima.service": service,
        "spark.decima.metrics.file": str(folder / "metrics.json"),
        "spark.decima.decisions.file": str(folder / "decisions.jsonl"),
        # A machine may be busy with many things; none of them makes the service slow.
        "spark.decima.timeout": "20s",
        "spark.decima.connect.timeout": "30s",
        # A toy service has one world for all sessions.
        "spark.decima.rehearsals": "0",
        "spark.log.level": "WARN",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


@contextlib.contextmanager
def plugin_driver(
    folder: Path,
    service: str,
    *,
    executors: int = 2,
    cores: int = 1,
    conf: Mapping[str, str] | None = None,
    cluster: StandaloneCluster | None = None,
) -> Iterator[Driver]:
    """A driver with the plugin; without `cluster`, master and workers live inside it."""
    inside = cluster is None
    cluster = cluster or StandaloneCluster(executors=executors, memory_mb=600)
    if inside:  # it is never started: what the driver writes goes here, not into the working directory
        cluster.folder = folder / "inside"
        cluster.folder.mkdir(exist_ok=True)
    settings = {
        "spark.master": f"spark-decima-local-cluster[{executors},{cores},600]"
        if inside
        else cluster.url.replace("spark://", "spark-decima://"),
        **plugin_settings(folder, service, plugin_jar()),
        "spark.decima.backoff": "200ms",
        "spark.decima.backoff.max": "1s",
        "spark.executor.cores": str(cores),
        "spark.cores.max": str(executors * cores),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.leafNodeDefaultParallelism": "2",
        **(conf or {}),
    }
    with session(cluster, settings, executors=executors, event_log=folder / "events", driver_memory_mb=700) as spark:
        yield Driver(spark, folder)


def sleep_sql(task_s: float) -> str:
    """Column `slept` of a table whose tasks sleep for so long at each row."""
    return f"reflect('java.lang.Thread', 'sleep', {round(1000 * task_s)}L) AS slept"


def slow_sum(driver: Driver, tasks: int, task_s: float) -> Callable[[], int]:
    """A query of two stages: `tasks` tasks that take `task_s` seconds, then 2 that add up; gives 0 + 1 + ... ."""

    def run() -> int:
        slept = driver.spark.range(0, tasks, 1, tasks).selectExpr("id", sleep_sql(task_s))
        rows = slept.where("slept IS NOT NULL").groupBy((slept.id % 2).alias("odd")).agg({"id": "sum"}).collect()
        return sum(row[1] for row in rows)

    return run


def chain(driver: Driver, stages: int, tasks: int, task_s: float) -> Callable[[], int]:
    """A query of `stages` stages, one after the other, of `tasks` tasks; gives 0 + 1 + ... + (tasks - 1).

    Each number sleeps in all stages but the first, and where the numbers go by chance there may be two in a task.
    """

    def run() -> int:
        table = driver.spark.range(0, tasks, 1, tasks)
        for _ in range(stages - 1):
            table = table.repartition(tasks).selectExpr("id", sleep_sql(task_s)).where("slept IS NOT NULL").select("id")
        return sum(row[0] for row in table.collect())

    return run


@dataclass
class Running:
    """Queries that run in threads of their own."""

    threads: dict[str, threading.Thread]
    results: dict[str, int]
    errors: dict[str, BaseException]

    def wait(self, seconds: float = 300.0) -> dict[str, int]:
        """Results by query; the first error is raised."""
        end = time.monotonic() + seconds
        for name, thread in self.threads.items():
            thread.join(max(0.0, end - time.monotonic()))
            assert not thread.is_alive(), f"query {name} still runs after {seconds} s"
        for error in self.errors.values():
            raise error
        return self.results


def start_queries(driver: Driver, queries: Mapping[str, Callable[[], int]]) -> Running:
    """Run each query in a thread, named for the scheduling service."""
    from pyspark import InheritableThread

    results: dict[str, int] = {}
    errors: dict[str, BaseException] = {}

    def body(name: str, query: Callable[[], int]) -> None:
        driver.spark.sparkContext.setLocalProperty("decima.query", name)
        try:
            results[name] = query()
        except Exception as error:  # handed to the thread that waits
            errors[name] = error

    threads = {name: InheritableThread(target=body, args=(name, query)) for name, query in queries.items()}
    for thread in threads.values():
        thread.start()
    return Running(threads, results, errors)


def finished_tasks(driver: Driver) -> int:
    """Tasks that succeeded in stages that run now."""
    tracker = driver.spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage)


@dataclass(frozen=True)
class Task:
    """One task attempt of the event log; times in milliseconds since the epoch.

    Spark stamps the finish when the driver gets round to it, on a busy machine seconds after the core was given to the
    next task. What the executor measured says when it was free at the earliest.
    """

    query: str
    stage: int
    executor: str
    launched: int
    finished: int
    failed: bool


def events_of(folder: Path) -> list[dict]:
    """Events of the one log in the folder of a driver that has ended."""
    (path,) = (folder / "events").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def tasks_of(folder: Path) -> list[Task]:
    """Task attempts of a driver that has ended."""
    query_of_stage, tasks = {}, []
    for event in events_of(folder):
        if event["Event"] == "SparkListenerStageSubmitted":
            query = (event.get("Properties") or {}).get("decima.query", "")
            query_of_stage[event["Stage Info"]["Stage ID"]] = query
        elif event["Event"] == "SparkListenerTaskEnd":
            info, stage, metrics = event["Task Info"], event["Stage ID"], event.get("Task Metrics") or {}
            worked = metrics.get("Executor Deserialize Time", 0) + metrics.get("Executor Run Time", 0)
            tasks.append(
                Task(
                    query_of_stage[stage],
                    stage,
                    info["Executor ID"],
                    info["Launch Time"],
                    min(info["Finish Time"], info["Launch Time"] + worked) if worked else info["Finish Time"],
                    info["Failed"] or info["Killed"],
                )
            )
    return tasks


def most_at_once(tasks: list[Task]) -> int:
    """Most tasks that ran at the same time."""
    # An end sorts before a beginning in the same millisecond.
    changes = sorted([(task.launched, 1) for task in tasks] + [(task.finished, -1) for task in tasks])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def decisions_of(folder: Path) -> list[dict]:
    """Decisions the plugin wrote, of a driver that has ended."""
    return [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]


def metrics_of(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text())
