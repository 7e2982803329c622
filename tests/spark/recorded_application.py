"""Small applications for the Python of any pyspark, without this project: each writes one event log.

    python recorded_application.py CASE FOLDER

Tasks sleep, so that a run takes the same time on a busy machine.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark import InheritableThread
from pyspark.sql import SparkSession

CLUSTER = "local-cluster[2,1,600]"
WIDE = "local-cluster[1,2,600]"
ADAPTIVE, BROADCAST = "spark.sql.adaptive.enabled", "spark.sql.autoBroadcastJoinThreshold"
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
}


def sleeping(spark, tasks=4, seconds=0.7):
    """A table of as many rows as tasks, each of which sleeps."""
    sleep = f"reflect('java.lang.Thread', 'sleep', {round(1000 * seconds)}L) AS slept"
    return spark.range(0, tasks, 1, tasks).selectExpr("id", "id % 3 AS key", sleep).where("slept IS NOT NULL")


def query(spark, description, tasks=4, seconds=0.7):
    spark.sparkContext.setJobDescription(description)
    sleeping(spark, tasks, seconds).groupBy("key").count().collect()


def plain(spark):
    for number in range(3):
        query(spark, f"report {number % 2}")


def dynamic(spark):
    query(spark, "burst", 10, 1.0)
    time.sleep(6.0)
    query(spark, "burst", 10, 1.0)


def killed(spark):
    query(spark, "before")
    threading.Timer(1.5, kill_one).start()
    query(spark, "killed", 8, 1.0)
    query(spark, "after")


def kill_one():
    """Kill one executor, a descendant of this process."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
    for pid in sorted(parents):
        ancestor = pid
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid() and b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
            return


def failed(spark):
    query(spark, "good")
    spark.sparkContext.setJobDescription("bad")
    try:
        sleeping(spark, 4, 1.5).selectExpr("id", "assert_true(id < 3)").collect()
    except Exception as error:
        print(type(error).__name__)  # noqa: T201
    query(spark, "good")


def cancelled(spark):
    query(spark, "good")

    def long_query():
        spark.sparkContext.setJobGroup("long", "long one", True)
        try:
            sleeping(spark, 8, 2.0).groupBy("key").count().collect()
        except Exception as error:
            print(type(error).__name__)  # noqa: T201

    thread = InheritableThread(target=long_query)
    thread.start()
    time.sleep(4.0)
    spark.sparkContext.cancelJobGroup("long")
    thread.join()
    query(spark, "good")


def empty(spark):
    query(spark, "before")
    spark.sparkContext.setJobDescription("join with an empty table")
    none = spark.createDataFrame(spark.sparkContext.emptyRDD(), "id long, name string")
    sleeping(spark).join(none, "id", "left").groupBy("key").count().collect()
    spark.sparkContext.setJobDescription("cogroup with an empty RDD")
    pairs = spark.sparkContext.parallelize([(number, 1) for number in range(4)], 2)
    pairs.map(lambda pair: (time.sleep(0.5), pair)[1]).cogroup(spark.sparkContext.emptyRDD()).collect()
    query(spark, "after")


def broadcast(spark):
    for _ in range(2):
        spark.sparkContext.setJobDescription("report daily")
        small = sleeping(spark, 2, 0.5)
        sleeping(spark, 6, 0.7).join(small.select("id").hint("broadcast"), "id").groupBy("key").count().collect()


def stream(spark):
    rates = spark.readStream.format("rate").option("rowsPerSecond", 10).option("numPartitions", 2).load()
    slow = rates.selectExpr("value % 3 AS key", "reflect('java.lang.Thread', 'sleep', 20L) AS slept")
    counts = slow.where("slept IS NOT NULL").groupBy("key").count()
    writer = counts.writeStream.outputMode("complete").format("memory").queryName("counts")
    running = writer.trigger(processingTime="3 seconds").start()
    end = time.monotonic() + 60.0
    while len(running.recentProgress) < 4 and time.monotonic() < end:
        time.sleep(0.2)
    running.stop()


def resources(spark):
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    query(spark, "one core a task")
    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(2)).build
    rdd = spark.sparkContext.parallelize(range(6), 6).map(lambda number: (time.sleep(0.8), number)[1])
    spark.sparkContext.setJobDescription("two cores a task")
    rdd.withResources(profile).collect()


PLAN = {ADAPTIVE: "false", BROADCAST: "-1"}
ADAPTED = {ADAPTIVE: "true", BROADCAST: "-1"}
# Case: what it does, its master, its settings.
CASES = {
    "plain": (plain, CLUSTER, PLAN),
    "adaptive": (plain, CLUSTER, ADAPTED),
    "dynamic": (dynamic, CLUSTER, PLAN | DYNAMIC),
    "killed": (killed, CLUSTER, PLAN),
    "failed": (failed, CLUSTER, PLAN | {"spark.task.maxFailures": "1"}),
    "cancelled": (cancelled, CLUSTER, PLAN),
    "empty": (empty, CLUSTER, PLAN),
    "empty-adaptive": (empty, CLUSTER, ADAPTED),
    "broadcast": (broadcast, CLUSTER, {ADAPTIVE: "false"}),
    "broadcast-adaptive": (broadcast, CLUSTER, {ADAPTIVE: "true"}),
    "stream": (stream, "local[2]", ADAPTED),
    "resources": (resources, WIDE, PLAN),
    "local": (plain, "local[2]", PLAN),
}


def main(case: str, folder: str) -> None:
    body, master, settings = CASES[case]
    settings = settings | {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": Path(folder).absolute().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.locality.wait": "0",
        "spark.log.level": "FATAL",
        "spark.scheduler.minRegisteredResourcesRatio": "0.0" if case == "dynamic" else "1.0",
    }
    builder = SparkSession.builder.master(master).appName(case)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    body(spark)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
