"""Small runs of a real Spark under its own FIFO and FAIR, and the order in which it launched their tasks.

`python -m tests.spark.order_runs fifo|fair FILE.csv` records one anew for the tests that need no Spark.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import decima
from decima.connect.cluster.standalone import StandaloneCluster, session
from decima.workload.jobs import Workload
from tests import toy_jobs
from tests.spark.real_spark import Driver, events_of, sleep_sql, start_queries

EXECUTORS = 3
POOLS = {"big": (2, 0, "FIFO"), "sure": (1, 1, "FIFO"), "mixed": (1, 0, "FAIR")}  # weight, minimum share, order
SCHEDULERS = {"fifo": "spark_fifo", "fair": "spark_fair:pools=big-*/2/0/fifo+sure-*/1/1/fifo+mixed-*/1/0/fair"}


class Query(NamedTuple):
    """A Spark job of one stage, or of two one after the other, whose tasks sleep."""

    name: str
    pool: str
    after_s: float  # since the first is submitted
    tasks: int
    task_s: float
    stages: int = 1


# Of lengths such that no two cores come free at nearly the same time for long.
RUNS = {
    "fifo": (Query("a", "", 0.0, 7, 1.7), Query("b", "", 0.6, 5, 1.1, stages=2), Query("c", "", 1.2, 9, 1.3)),
    "fair": (
        Query("a", "big", 0.0, 14, 1.7),
        Query("b", "big", 0.6, 4, 1.1),
        Query("c", "mixed", 1.2, 6, 1.3),
        Query("d", "mixed", 1.8, 6, 0.9),
        Query("e", "sure", 2.4, 6, 1.9),
    ),
}


class Launch(NamedTuple):
    """A task in the order of the log; times in ms since the first launch."""

    job: int
    name: str  # of the query
    pool: str
    stage: int  # number in the job
    task: int
    executor: str
    submitted_ms: int  # when Spark took its stage up
    launched_ms: int
    finished_ms: int


def record(run: str, folder: Path) -> list[Launch]:
    """Run the queries of a run on a real Spark."""
    pools = folder / "pools.xml"
    entries = (
        f"<pool name='{name}'><schedulingMode>{order}</schedulingMode><weight>{weight}</weight>"
        f"<minShare>{least}</minShare></pool>"
        for name, (weight, least, order) in POOLS.items()
    )
    pools.write_text(f"<?xml version='1.0'?><allocations>{''.join(entries)}</allocations>")
    conf = {"spark.scheduler.mode": run.upper(), "spark.sql.shuffle.partitions": "3"}
    if run == "fair":
        conf["spark.scheduler.allocation.file"] = pools.as_uri()
    with (
        StandaloneCluster(executors=EXECUTORS, memory_mb=600) as cluster,
        session(cluster, conf, event_log=folder / "events", driver_memory_mb=700) as spark,
    ):
        # What is slow once is slow before the runs.
        for stages in (1, 2):
            sleeping(spark, Query("warm", "", 0.0, 2 * EXECUTORS, 0.01, stages)).collect()
        frames = {query.name: sleeping(spark, query) for query in RUNS[run]}
        begin = time.monotonic() + 0.5

        def submit(query: Query) -> int:
            if query.pool:
                spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.pool)
            time.sleep(begin + query.after_s - time.monotonic())
            return len(frames[query.name].collect())

        start_queries(Driver(spark, folder), {query.name: partial(submit, query) for query in RUNS[run]}).wait()
    return launches(events_of(folder))


def sleeping(spark, query: Query):
    """Table whose tasks sleep, planned already."""
    sleep = sleep_sql(query.task_s)
    table = spark.range(0, query.tasks, 1, query.tasks).selectExpr("id", sleep).where("slept IS NOT NULL")
    if query.stages == 2:
        groups = table.groupBy((table.id % 3).alias("rest")).count()
        table = groups.selectExpr("rest", sleep).where("slept IS NOT NULL")
    table._jdf.queryExecution().executedPlan()
    return table


def launches(events: list[dict]) -> list[Launch]:
    """Launches of the queries by the events of a log, in their order."""
    jobs, of_stage, submitted, rows = {}, {}, {}, []
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            properties = event.get("Properties") or {}
            if name := properties.get("decima.query"):
                jobs[event["Job ID"]] = name, properties.get("spark.scheduler.pool", "")
                for number, stage in enumerate(sorted(event["Stage IDs"])):
                    of_stage[stage] = event["Job ID"], number
        elif event["Event"] == "SparkListenerStageSubmitted":
            submitted[event["Stage Info"]["Stage ID"]] = event["Stage Info"]["Submission Time"]
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in of_stage:
            info = event["Task Info"]
            rows.append((info["Task ID"], event["Stage ID"], info))
    first = min(info["Launch Time"] for _, _, info in rows)
    order = {job: number for number, job in enumerate(sorted(jobs))}
    return [
        Launch(
            order[of_stage[stage][0]],
            *jobs[of_stage[stage][0]],
            of_stage[stage][1],
            info["Index"],
            info["Executor ID"],
            submitted[stage] - first,
            info["Launch Time"] - first,
            info["Finish Time"] - first,
        )
        # Spark numbers tasks as it launches them.
        for _, stage, info in sorted(rows, key=lambda row: row[0])
    ]


def write(path: Path, rows: list[Launch]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Launch._fields, *rows])


def read(path: Path) -> list[Launch]:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {"name", "pool", "executor"}
    return [Launch(**{key: value if key in texts else int(value) for key, value in row.items()}) for row in rows]


def workload(rows: list[Launch]) -> Workload:
    """The run for the simulator: every task a stage of its own, which keeps its executor as long as it did in Spark.

    That is until the next launch there, if it follows at once: Spark stamps the end of a task later than it gives the
    core away. In the simulator an executor keeps its stage, in Spark it does not: so every task is a stage.
    """
    after: dict[str, list[Launch]] = defaultdict(list)
    for row in rows:
        after[row.executor].append(row)
    busy = {}
    for of_executor in after.values():
        for row, following in zip(of_executor, [*of_executor[1:], None], strict=True):
            end = row.finished_ms
            if following is not None and following.submitted_ms <= row.finished_ms:
                end = following.launched_ms
            busy[row.job, row.stage, row.task] = max(1, end - row.launched_ms)
    jobs = []
    for of_job in _by_job(rows):
        parents = tuple(number for number, row in enumerate(of_job) if row.stage == 0)
        stages = (
            toy_jobs.stage(
                f"{row.stage}/{row.task}",
                1,
                busy[row.job, row.stage, row.task] / 1000.0,
                *(parents if row.stage else ()),
            )
            for row in of_job
        )
        arrival_s = max(0, of_job[0].submitted_ms) / 1000.0
        jobs.append(toy_jobs.job(*stages, at_s=arrival_s, name=f"{of_job[0].pool}-{of_job[0].name}"))
    return toy_jobs.workload(*jobs)


def _by_job(rows: list[Launch]) -> list[list[Launch]]:
    # Spark prefers tasks whose data are near, whatever the order of stages: the first of a stage is its first launch.
    return [
        sorted((row for row in rows if row.job == job), key=lambda row: row.stage)
        for job in sorted({r.job for r in rows})
    ]


def both_orders(run: str, rows: list[Launch]) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """Job and stage of the launches of Spark and of the simulator without those in a gap, and how many these are.

    In a gap the last task of a stage has ended and Spark has not submitted the child yet: a core that comes free
    then goes to another job. In the simulator the child is there at once, and that job gets its core later.
    """
    log = decima.simulate(
        workload(rows), SCHEDULERS[run], EXECUTORS, log=True, mode="simplified", runnable_only=True
    ).log
    by_job = _by_job(rows)
    order = sorted(range(len(rows)), key=lambda number: log.start_ms[number])
    simulated = [(int(log.job[n]), by_job[log.job[n]][log.stage[n]].stage) for n in order]
    real = []
    gap = [row for row in rows if _in_gap(row, rows)]
    for row in rows:
        if row not in gap:
            real.append((row.job, row.stage))
    for row in gap:
        simulated.reverse()
        simulated.remove((row.job, row.stage))
        simulated.reverse()
    return real, simulated, len(gap)


def _in_gap(row: Launch, rows: list[Launch]) -> bool:
    for child in rows:
        if child.stage and child.job != row.job and row.launched_ms < child.submitted_ms:
            parents = [other for other in rows if other.job == child.job and other.stage < child.stage]
            # Spark stamps the end of a task later than it gives the core away.
            if all(other.launched_ms < row.launched_ms for other in parents) and all(
                other.finished_ms <= row.launched_ms or other.executor == row.executor for other in parents
            ):
                return True
    return False


def main(run: str, file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(file), record(run, Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
