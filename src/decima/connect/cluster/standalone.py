"""Standalone Spark cluster on this machine, started from the installed pyspark and stopped completely."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decima.connect.cluster.machine import DAEMON_MB, DRIVER_MB, require_spark, spark_home
from decima.connect.cluster.processes import STOP_S, end_group, free_port, guard, release
from decima.core.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
START_S = 60.0  # longest wait for master, worker or executors
# One core per executor, so one collector thread; no time spent on JIT threads for cores an executor does not have.
EXECUTOR_JAVA = "-XX:+UseSerialGC -XX:ActiveProcessorCount=1 -XX:TieredStopAtLevel=1 -Xss4m"
DRIVER_JAVA = "-XX:+UseSerialGC -Xss4m"

BASE_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Failures reach the caller as exceptions; the rest is about messages to executors that were replaced.
    "spark.log.level": "FATAL",
    # A stage takes any free executor at once: all data are on this machine.
    "spark.locality.wait": "0",
    # Jobs begin when all executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    # Executors that were told to go are gone at once, not after 5 s.
    "spark.standalone.executorRemoveDelayOnDisconnection": "0s",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": EXECUTOR_JAVA,
    "spark.driver.extraJavaOptions": DRIVER_JAVA,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    # One plan per query, known before it starts, with one stage per shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@dataclass
class StandaloneCluster:
    """Context manager of a standalone Spark master and worker on the loopback address.

    Each of the two is the leader of a process group of its own (executors belong to the worker's), and the whole
    groups are ended when the block ends, however it ends. Should this process be killed, a third one, which only waits
    for that, ends the groups.
    """

    executors: int = 4  # one-core executors the worker has room for
    memory_mb: int = 2048  # memory of each executor in MiB; `session` asks for as much
    # Let the worker keep shuffle files of executors that are gone, as applications need that release executors while
    # they run.
    shuffle_service: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)  # further `spark.*` settings of master and worker
    url: str = field(default="", init=False)  # address for `spark.master`, once started
    folder: Path = field(default=Path(), init=False)
    processes: list[subprocess.Popen] = field(default_factory=list, init=False, repr=False)
    guard: subprocess.Popen | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> StandaloneCluster:
        """Start master and worker.

        Raises:
            SparkError: no Java or pyspark is installed, or a process does not start.
        """
        require_spark()
        self.folder = Path(tempfile.mkdtemp(prefix="decima-spark-"))
        try:
            port = free_port(HOST)
            self.url = f"spark://{HOST}:{port}"
            self._start("master", master_command(port))
            self._guard()
            self._wait("master", "I have been elected leader")
            self._start("worker", worker_command(self.url, self.executors, self.memory_mb, self.folder / "work"))
            self._guard()
            self._wait("worker", "Successfully registered with master")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all processes of the cluster and remove its scratch folder; may be called twice."""
        while self.processes:
            end_group(self.processes[-1])
            self.processes.pop()
        release(self.guard)
        self.guard = None
        if self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)

    def pids(self) -> list[int]:
        """Process ids of master and worker."""
        return [process.pid for process in self.processes]

    def _start(self, name: str, command: list[str]) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _guard(self) -> None:
        before, self.guard = self.guard, guard(self.pids())
        release(before)

    def _environment(self) -> dict[str, str]:
        conf = {"spark.shuffle.service.enabled": str(self.shuffle_service).lower(), **self.conf}
        options = " ".join(f"-D{key}={value}" for key, value in conf.items())
        return {
            **os.environ,
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": f"{DAEMON_MB}m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC {options}",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_LOG_DIR": str(self.folder),
        }

    def _wait(self, name: str, sign: str) -> None:
        log, process = self.folder / f"{name}.log", self.processes[-1]
        end = time.monotonic() + START_S
        while sign not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > end:
                tail = " / ".join(log.read_text(errors="replace").splitlines()[-3:])
                raise SparkError(f"the Spark {name} did not start within {START_S:.0f} s; its last words: {tail}")
            time.sleep(0.05)


@contextlib.contextmanager
def session(
    cluster: StandaloneCluster,
    conf: Mapping[str, str] | None = None,
    *,
    executors: int | None = None,
    event_log: str | Path | None = None,
    name: str = "decima",
    driver_memory_mb: int = DRIVER_MB,
) -> Iterator[SparkSession]:
    """Run a Spark application in a new driver JVM; yield once all executors are registered.

    Args:
        cluster: where it runs.
        conf: settings that add to, or replace, those of `BASE_CONF`.
        executors: one-core executors of the application; all of the cluster when None.
        event_log: folder for the event log `<application id>`, made when missing.
        name: name of the application.
        driver_memory_mb: heap of the driver in MiB.

    Raises:
        SparkError: the executors do not come, or another session is open in this process.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise SparkError("another Spark session is open in this process")
    # py4j reports every lost connection, and a driver that is gone has several.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    count = cluster.executors if executors is None else executors
    settings = {
        **BASE_CONF,
        "spark.master": cluster.url,
        "spark.app.name": name,
        "spark.cores.max": str(count),
        "spark.executor.memory": f"{cluster.memory_mb}m",
        "spark.driver.memory": f"{driver_memory_mb}m",
        "spark.local.dir": str(cluster.folder / "driver"),
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
        "spark.shuffle.service.enabled": str(cluster.shuffle_service).lower(),
    }
    if event_log is not None:
        folder = Path(event_log).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri()}
    settings |= conf or {}
    os.environ["SPARK_LOCAL_IP"] = HOST
    spark = None
    try:
        spark = _start_driver(SparkSession.builder.config(conf=SparkConf().setAll(settings.items())), cluster.folder)
        if "spark.dynamicAllocation.enabled" not in settings and settings["spark.cores.max"] != "0":
            wait_for_executors(spark, count)
        yield spark
    finally:
        _close(spark)


def _start_driver(builder: SparkSession.Builder, folder: Path) -> SparkSession:
    """Start a driver JVM that writes to `driver.log` instead of this terminal; return its session."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    log = folder / "driver.log"
    terminal = os.dup(2)
    try:
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 2)
        with warnings.catch_warnings():
            # That pyspark is older than pandas concerns functions that are not used here.
            warnings.simplefilter("ignore", FutureWarning)
            try:
                return builder.getOrCreate()
            except PySparkException as error:
                if error.getCondition() != "JAVA_GATEWAY_EXITED":
                    raise
            # The JVM ended before any code of the application: a busy machine may have refused it memory or a thread.
            return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        tail = " / ".join(log.read_text(errors="replace").splitlines()[-3:])
        raise SparkError(f"the Spark driver did not start: {tail or error}") from error
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def executor_ids(spark: SparkSession) -> list[str]:
    """Ids of the executors that are registered with the application now."""
    ids = spark.sparkContext._jsc.sc().getExecutorIds()
    return [ids.apply(index) for index in range(ids.size())]


def wait_for_executors(spark: SparkSession, count: int) -> None:
    """Wait until exactly that many executors are registered.

    Raises:
        SparkError: they are not after `START_S` seconds.
    """
    end = time.monotonic() + START_S
    while (have := len(executor_ids(spark))) != count:
        if time.monotonic() > end:
            raise SparkError(f"{have} executors are registered after {START_S:.0f} s, expected {count}")
        time.sleep(0.01)


def replace_executors(spark: SparkSession, count: int) -> float:
    """End all executors and start new ones.

    Returns:
        Seconds from the request for the new executors to the registration of the last one.

    Raises:
        SparkError: old executors do not go, or new ones do not come.
    """
    context = spark.sparkContext._jsc.sc()
    context.killExecutors(context.getExecutorIds())
    wait_for_executors(spark, 0)
    asked = time.monotonic()
    context.requestExecutors(count)
    wait_for_executors(spark, count)
    return time.monotonic() - asked


def master_command(port: int) -> list[str]:
    """Command line of the master; its page for browsers gets any free port."""
    return [
        str(spark_home() / "bin" / "spark-class"),
        "org.apache.spark.deploy.master.Master",
        *("--host", HOST, "--port", str(port), "--webui-port", "0"),
    ]


def worker_command(url: str, executors: int, memory_mb: int, work: Path) -> list[str]:
    """Command line of the worker, with one core per executor."""
    return [
        str(spark_home() / "bin" / "spark-class"),
        "org.apache.spark.deploy.worker.Worker",
        *("--host", HOST, "--webui-port", "0", "--cores", str(executors)),
        *("--memory", f"{executors * memory_mb}M", "--work-dir", str(work), url),
    ]


def _close(spark: SparkSession | None) -> None:
    """Stop the application and end its driver JVM; the next one starts like the first."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    try:
        if spark is not None:
            # A driver that is gone (killed, out of memory) cannot be stopped, and need not be.
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
    finally:
        # What is left when stopping fails half-way; a new session would be refused.
        SparkContext._active_spark_context = None
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            try:
                gateway.proc.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                gateway.proc.kill()
                gateway.proc.wait()
