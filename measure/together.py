"""Batches of queries run together on one standalone cluster, a service per run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import TYPE_CHECKING

from decima.connect.cluster import contention, tpch_queries, tpch_tables
from decima.connect.cluster.processes import end_group, free_port, guard, release
from decima.connect.cluster.standalone import HOST, StandaloneCluster, session
from decima.connect.plugin.build import plugin_jar
from decima.core.errors import SparkError
from measure.alone import ENDING, finish_logs
from measure.experiment import Block, Outcome, Plan
from measure.records import CONTROL, LOGS, BatchRun, QueryTimes, query_id, warm_up_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = 60.0  # longest wait for the service
SETTLE_S = 1.5  # between two runs, for what the last one left behind
SERVICE = "decima.service.Scheduler"
# Between two queries of a batch, so that they arrive in the order of the batch.
GAP_S = 0.02
PLAN_S = 300.0  # longest time to plan all queries
_POLL_S = 0.1


@dataclass
class SparkBench:
    """Running cluster on which Spark applications are started."""

    cluster: StandaloneCluster  # has room for the executors of the plan
    plan: Plan  # what is run
    folder: Path  # of the experiment
    data: Path  # folder of the TPC-H tables
    schedulers: Mapping[str, str]  # by name, as `decima serve` takes them: `weighted_fair:alpha=-1`
    # File or source with the measured profiles of the queries, for the service; None: durations are estimated.
    profiles: str | None = None

    @contextlib.contextmanager
    def application(self, block: Block, number: int) -> Iterator[SparkApplication]:
        """Start an application and warm it up; its event log has its final name afterwards."""
        logs = self.folder / LOGS
        finish_logs(logs)
        name = f"app-{number:02d}-{'control' if block.control else 'plugin'}"
        port = free_port()
        conf = tpch_tables.conf(self.plan.scale)
        if not block.control:
            conf |= plugin_conf(self.cluster.url, port, logs / name)
        try:
            with session(self.cluster, conf, executors=self.plan.executors, event_log=logs / name, name=name) as spark:
                tpch_tables.register(spark, self.data)
                application = SparkApplication(self, spark, name + ENDING, port)
                application.warm_up(block)
                yield application
        finally:
            finish_logs(logs)


@dataclass
class SparkApplication:
    """Spark application that has run all queries before it is measured."""

    bench: SparkBench  # the cluster it runs on
    spark: SparkSession  # its session
    log: str  # name of its event log once it has ended
    port: int  # where its plugin looks for the service

    def warm_up(self, block: Block) -> None:
        """Run every query of the batches once, to compile it."""
        plan = self.bench.plan
        names = sorted({query for run in block.runs for query in plan.batch(run.batch)})
        scheduler = None if block.control else block.runs[0].scheduler
        with self._service(scheduler):
            for repetition in range(plan.warmups):
                for name in names:
                    run_together(self.spark, [name], [plan.profile(name)], warm_up_key(repetition, name), plan.scale)

    def measure(self, run: BatchRun, key: str) -> Outcome:
        """Run a batch under the scheduler of the run.

        Raises:
            SparkError: a query failed, or the service does not start.
        """
        plan = self.bench.plan
        names = plan.batch(run.batch)
        with self._service(None if run.scheduler == CONTROL else run.scheduler):
            self._settle()
            pids = contention.family(os.getpid())
            before = contention.sample(pids, time.monotonic())
            queries = run_together(self.spark, names, [plan.profile(name) for name in names], key, plan.scale)
            after = contention.sample(pids, time.monotonic())
        return Outcome(tuple(queries), contention.between(before, after))

    def _settle(self) -> None:
        """Collect garbage, and let the plugin find the service of this run."""
        context = self.spark.sparkContext
        context._jvm.System.gc()
        end = time.monotonic() + SETTLE_S
        context.setLocalProperty("decima.query", f"settle-{time.monotonic_ns()}")
        while time.monotonic() < end:
            self.spark.range(1000).selectExpr("sum(id)").collect()
            time.sleep(0.1)
        context.setLocalProperty("decima.query", None)

    @contextlib.contextmanager
    def _service(self, scheduler: str | None) -> Iterator[None]:
        if scheduler is None:
            yield
            return
        log = self.bench.folder / "service.log"
        with serving(self.bench.schedulers[scheduler], self.port, log, self.bench.profiles):
            yield


def run_together(
    spark: SparkSession, names: Sequence[str], profiles: Sequence[str], run: str, scale: float
) -> list[QueryTimes]:
    """Plan all queries, submit them :data:`GAP_S` apart, and wait for all.

    Planning comes before the clock starts: on a cluster of this size it would take its cores from the first jobs.

    Args:
        spark: the session, tables registered.
        names: queries, `q01` to `q22`, in order of arrival.
        profiles: local property `decima.profile` of each.
        run: names the run in the ids of its queries.
        scale: TPC-H scale factor.

    Raises:
        SparkError: a query failed; the message names it.
    """
    from pyspark import InheritableThread

    results: dict[int, QueryTimes] = {}
    failures: dict[int, BaseException] = {}
    planned = Barrier(len(names) + 1)

    def work(position: int, name: str, profile: str) -> None:
        context = spark.sparkContext
        try:
            context.setLocalProperty("decima.query", query_id(run, position))
            context.setLocalProperty("decima.profile", profile)
            frame = spark.sql(tpch_queries.sql(name, scale))
            frame._jdf.queryExecution().executedPlan()
            planned.wait(PLAN_S)
            time.sleep(GAP_S * position)
            submit_ms = 1000.0 * time.time()
            rows = len(frame.collect())
            results[position] = QueryTimes(name, submit_ms, 1000.0 * time.time(), rows)
        except BrokenBarrierError:
            pass  # another query could not be planned, and says why
        except Exception as error:
            failures[position] = error
            planned.abort()

    threads = [
        InheritableThread(target=work, args=(position, name, profile), daemon=True)
        for position, (name, profile) in enumerate(zip(names, profiles, strict=True))
    ]
    for thread in threads:
        thread.start()
    with contextlib.suppress(BrokenBarrierError):
        planned.wait(PLAN_S)
    while any(thread.is_alive() for thread in threads):
        # Joining with a limit leaves the main thread open to Ctrl-C.
        for thread in threads:
            thread.join(_POLL_S)
    if failures:
        position, error = min(failures.items())
        raise SparkError(f"query {names[position]} of run {run} failed: {_first_line(error)}") from error
    if len(results) < len(names):
        raise SparkError(f"run {run}: the queries were not planned within {PLAN_S:.0f} s")
    return [results[position] for position in range(len(names))]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def plugin_conf(url: str, port: int, stem: Path) -> dict[str, str]:
    """Spark settings that let the service at a port schedule; decisions are logged in `<stem>.decisions.jsonl`."""
    return {
        "spark.master": url.replace("spark://", "spark-decima://"),
        "spark.driver.extraClassPath": str(plugin_jar()),
        "spark.decima.service": f"{HOST}:{port}",
        "spark.decima.metrics.file": f"{stem.absolute()}.metrics.json",
        "spark.decima.decisions.file": f"{stem.absolute()}.decisions.jsonl",
        # On a busy machine a late answer is better than none.
        "spark.decima.timeout": "5s",
        # The service is replaced between runs: look for the next one at once.
        "spark.decima.backoff": "100ms",
        "spark.decima.backoff.max": "200ms",
    }


@contextlib.contextmanager
def serving(scheduler: str, port: int, log: Path, profiles: str | None = None) -> Iterator[subprocess.Popen]:
    """Run a scheduling service in another process, ready when the block begins.

    Args:
        scheduler: as `decima serve` takes it.
        port: of the loopback address.
        log: file that gets its output.
        profiles: file or source with measured durations.

    Raises:
        SparkError: it does not start.
    """
    command = [sys.executable, "-m", "decima", "serve", "--scheduler", scheduler, "--port", str(port)]
    command += [] if profiles is None else ["--profiles", profiles]
    with open(log, "ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    watching = guard([process.pid])
    try:
        _wait_until_ready(process, port, log)
        yield process
    finally:
        end_group(process)
        release(watching)


def _wait_until_ready(process: subprocess.Popen, port: int, log: Path) -> None:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    end = time.monotonic() + START_S
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        while True:
            with contextlib.suppress(grpc.RpcError):
                reply = health.Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=1.0)
                if reply.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            if process.poll() is not None or time.monotonic() > end:
                tail = " / ".join(log.read_text(errors="replace").splitlines()[-3:])
                raise SparkError(f"the scheduling service did not start within {START_S:.0f} s; its last words: {tail}")
            time.sleep(0.05)
