"""Measurement of single TPC-H queries on a standalone cluster."""

from __future__ import annotations

import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decima.connect.cluster import contention, tpch_queries, tpch_tables
from decima.connect.cluster.machine import check_memory, require_spark
from decima.connect.cluster.standalone import StandaloneCluster, replace_executors, session
from decima.core.errors import ConfigError, SparkError
from measure.records import LOGS, AloneRun, append_alone_run, read_alone_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDING = ".jsonl"
ATTEMPTS = 3
KINDS = ("warm", "fresh")
# Not one of the 22, so that no generated code of theirs is compiled before it is measured.
WARM_UP = """
select l_shipmode, o_orderpriority, p_mfgr, count(*), sum(l_tax), avg(l_quantity), max(l_comment), min(o_totalprice)
from lineitem join orders on l_orderkey = o_orderkey join part on l_partkey = p_partkey
where l_linenumber < 4 and o_clerk like '%1%'
group by l_shipmode, o_orderpriority, p_mfgr
"""


@dataclass(frozen=True)
class PlannedApplication:
    """Spark application of the plan: all queries at one scale, executor count and repetition."""

    scale: float
    executors: int
    repetition: int
    kinds: tuple[str, ...] = ("warm",)

    @property
    def name(self) -> str:
        """Name of its logs, without the attempt."""
        return f"sf{self.scale:g}-e{self.executors}-r{self.repetition}"

    def runs(self) -> list[tuple[str, str]]:
        """Query and temperature of every run, in a shuffled order that is always the same."""
        order: list[tuple[str, str]] = []
        for temperature in self.kinds:
            names = list(tpch_queries.NAMES)
            random.Random(f"{self.repetition}-{temperature}").shuffle(names)
            order += [(name, temperature) for name in names]
        return order


def plan(
    scales: Iterable[float], executors: Iterable[int], repetitions: int, fresh_at: Iterable[int] | None = None
) -> list[PlannedApplication]:
    """Plan the applications in rounds over all scales and executor counts.

    Args:
        scales: TPC-H scale factors.
        executors: numbers of executors.
        repetitions: of everything.
        fresh_at: numbers of executors at which the first repetition also runs each query on new executors; the
            smallest and the largest when None.

    Raises:
        ConfigError: a number is out of range or given twice.
    """
    scales, executors = list(scales), list(executors)
    for name, values in (("scale factors", scales), ("executor counts", executors)):
        if not values or len(set(values)) < len(values) or not all(0 < value < math.inf for value in values):
            raise ConfigError(f"{name} {values}: expected positive numbers, each once")
    if repetitions < 1:
        raise ConfigError(f"{repetitions} repetitions: expected at least 1")
    fresh_at = {min(executors), max(executors)} if fresh_at is None else set(fresh_at)
    if not fresh_at <= set(executors):
        raise ConfigError(f"fresh executors at {sorted(fresh_at)}: expected some of the executor counts {executors}")
    return [
        PlannedApplication(scale, count, repetition, KINDS if repetition == 0 and count in fresh_at else KINDS[:1])
        for repetition in range(repetitions)
        for scale in scales
        for count in executors
    ]


@dataclass
class Measurement:
    """Measurement of a plan into a folder, which can be resumed."""

    folder: Path  # gets `runs.csv` and the event logs
    applications: list[PlannedApplication]  # the plan
    data: Path | None = None  # folder of the generated tables; the cache when None
    memory_mb: int = 2048  # memory per executor
    done: list[AloneRun] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.done = read_alone_runs(self.folder)

    def missing(self, application: PlannedApplication) -> list[tuple[str, str]]:
        """Query and temperature of runs to repeat, in the order of running."""
        key = (application.scale, application.executors, application.repetition)
        mine = [run for run in self.done if (run.scale, run.executors, run.repetition) == key]
        usable = {(run.query, run.kind) for run in mine if not run.contended}
        tried = Counter((run.query, run.kind) for run in mine)
        return [run for run in application.runs() if run not in usable and tried[run] < ATTEMPTS]

    def total(self) -> int:
        """Number of runs to measure now, not counting repetitions of contended ones."""
        return sum(len(self.missing(application)) for application in self.applications)

    def check(self) -> None:
        """Check that everything the measurement needs is there, before anything is started.

        Raises:
            SparkError: Java, pyspark or the generator is missing, or the machine has too little memory.
        """
        require_spark()
        tpch_tables.generator()
        most = max(application.executors for application in self.applications)
        check_memory(most, self.memory_mb)

    def measure(self, finished: Callable[[AloneRun], None] = lambda run: None) -> None:
        """Measure all runs that are missing.

        Raises:
            SparkError: Spark or the generator is missing or fails.
        """
        scales = {application.scale for application in self.applications}
        folders = {scale: tpch_tables.generate(scale, self.data) for scale in scales}
        most = max(application.executors for application in self.applications)
        with StandaloneCluster(executors=most, memory_mb=self.memory_mb) as cluster:
            for application in self.applications:
                for _ in range(ATTEMPTS):
                    missing = self.missing(application)
                    if not missing:
                        break
                    for run in self._application(cluster, application, missing, folders[application.scale]):
                        self.done.append(run)
                        append_alone_run(self.folder, run)
                        finished(run)

    def _application(
        self, cluster: StandaloneCluster, application: PlannedApplication, missing: list[tuple[str, str]], data: Path
    ) -> Iterator[AloneRun]:
        logs = self.folder / LOGS
        finish_logs(logs)
        attempt = sum(path.name.startswith(f"{application.name}-") for path in logs.glob(f"*{ENDING}"))
        name = f"{application.name}-a{attempt}"
        # Spark names the log by the application's id, which is not known before it starts.
        with session(
            cluster,
            tpch_tables.conf(application.scale),
            executors=application.executors,
            event_log=logs / name,
            name=name,
        ) as spark:
            tpch_tables.register(spark, data)
            spark.sparkContext.setLocalProperty("decima.query", "warm-up")
            for _ in range(2):
                spark.sql(WARM_UP).collect()
            for query, temperature in missing:
                started = None if temperature == "warm" else replace_executors(spark, application.executors)
                yield self._run(spark, cluster, application, query, temperature, name + ENDING, attempt, started)
        finish_logs(logs)

    def _run(
        self,
        spark: SparkSession,
        cluster: StandaloneCluster,
        application: PlannedApplication,
        query: str,
        temperature: str,
        log: str,
        attempt: int,
        started: float | None,
    ) -> AloneRun:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        context = spark.sparkContext
        name = f"{query}#{temperature}-{application.repetition}"
        context.setLocalProperty("decima.query", name)
        context.setLocalProperty("decima.profile", query)
        statement = tpch_queries.sql(query, application.scale)
        pids = [pid for root in (os.getpid(), *cluster.pids()) for pid in contention.family(root)]
        wall = time.time()
        before = contention.sample(pids, time.monotonic())
        try:
            rows = len(spark.sql(statement).collect())
        except (PySparkException, Py4JError) as error:
            cause = next(iter(str(error).splitlines()), type(error).__name__)
            raise SparkError(f"{name} at scale {application.scale:g} failed: {cause[:300]}") from error
        end = time.monotonic()
        after = contention.sample(pids, end)
        context.setLocalProperty("decima.query", None)
        context.setLocalProperty("decima.profile", None)
        return AloneRun(
            id=name,
            log=log,
            query=query,
            kind=temperature,
            scale=application.scale,
            executors=application.executors,
            repetition=application.repetition,
            attempt=attempt,
            start_s=round(wall, 3),
            duration_s=round(end - before.time_s, 4),
            rows=rows,
            executor_start_s=None if started is None else round(started, 3),
            **contention.between(before, after).row(),
        )


def finish_logs(logs: Path) -> None:
    """Give event logs their final names: `<name>/<application id>[.inprogress]` becomes `<name>.jsonl`."""
    for folder in sorted(path for path in logs.glob("*") if path.is_dir()):
        for path in folder.iterdir():
            if not path.name.startswith("."):
                path.replace(logs / (folder.name + ENDING))
            else:
                path.unlink()
        folder.rmdir()
