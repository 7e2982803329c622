"""Where runs of the experiment happen: Spark applications on one standalone cluster, a scheduling service per run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decima.exceptions import SparkError
from decima.spark.cluster import contention, tpch_tables
from decima.spark.cluster.processes import end_group, free_port, guard, release
from decima.spark.cluster.standalone import HOST, StandaloneCluster, session
from decima.spark.measure.alone import ENDING, finish_logs
from decima.spark.measure.experiment import LOGS, Outcome, warm_up_key
from decima.spark.measure.plan import CONTROL, Block, Plan, Run
from decima.spark.measure.together import run_together
from decima.spark.plugin.build import plugin_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = 60.0  # longest wait for the service
SETTLE_S = 1.5  # between two runs, for what the last one left behind
SERVICE = "decima.service.Scheduler"


@dataclass
class SparkBench:
    """Applications on a running cluster.

    Attributes:
        cluster: has room for the executors of the plan.
        plan: what is run.
        folder: of the experiment.
        data: folder of the TPC-H tpch_tables.
        schedulers: by name, as `decima serve` takes them: `weighted_fair:alpha=-1`.
        profiles: file with the measured profiles of the queries, for the service; None: durations are estimated.
    """

    cluster: StandaloneCluster
    plan: Plan
    folder: Path
    data: Path
    schedulers: Mapping[str, str]
    profiles: Path | None = None

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
    """A warm Spark application.

    Attributes:
        bench: where it belongs.
        spark: its session.
        log: name of its event log once it has ended.
        port: where its plugin looks for the service.
    """

    bench: SparkBench
    spark: SparkSession
    log: str
    port: int

    def warm_up(self, block: Block) -> None:
        """Run every query of the batches to come, one after the other, so that no run pays for compiling it first."""
        plan = self.bench.plan
        names = sorted({query for run in block.runs for query in plan.batch(run.batch)})
        scheduler = None if block.control else block.runs[0].scheduler
        with self._service(scheduler):
            for repetition in range(plan.warmups):
                for name in names:
                    run_together(self.spark, [name], [plan.profile(name)], warm_up_key(repetition, name), plan.scale)

    def measure(self, run: Run, key: str) -> Outcome:
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


def plugin_conf(url: str, port: int, stem: Path) -> dict[str, str]:
    """Settings that put an application under the service at a port; its decisions go to `<stem>.decisions.jsonl`."""
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
def serving(scheduler: str, port: int, log: Path, profiles: Path | None = None) -> Iterator[subprocess.Popen]:
    """A scheduling service in a process of its own, ready to answer.

    Args:
        scheduler: as `decima serve` takes it.
        port: of the loopback address.
        log: file that gets its output.
        profiles: file with measured durations.

    Raises:
        SparkError: it does not start.
    """
    command = [sys.executable, "-m", "decima", "serve", "--scheduler", scheduler, "--port", str(port)]
    command += [] if profiles is None else ["--profiles", str(profiles)]
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
