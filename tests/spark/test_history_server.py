"""The history server of the installed Spark: its list of applications, and `decima capacity` on one of their logs."""

import json
import os
import subprocess
import time
from contextlib import contextmanager

import pytest

from decima.connect.cluster.machine import spark_home
from decima.connect.cluster.processes import end_group, free_port, guard, release
from decima.connect.cluster.standalone import HOST, StandaloneCluster, session
from decima.connect.eventlog.application import read_event_logs
from decima.connect.eventlog.history import list_applications, local_logs
from decima.core.errors import ConfigError, DataUnavailableError
from tests.unit.commands.calls import refuse, succeed

pytestmark = pytest.mark.spark
START_S = 300.0


@contextmanager
def history_server(logs, folder):
    """Address of a history server on loopback that has read a folder of logs."""
    port = free_port(HOST)
    options = {"fs.logDirectory": logs.as_uri(), "ui.port": port, "fs.update.interval": "1s"}
    environment = os.environ | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_HISTORY_OPTS": " ".join(f"-Dspark.history.{name}={value}" for name, value in options.items()),
    }
    command = [str(spark_home() / "bin" / "spark-class"), "org.apache.spark.deploy.history.HistoryServer"]
    with open(folder / "history.log", "wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    watcher = guard([process.pid])
    try:
        address, end = f"http://{HOST}:{port}", time.monotonic() + START_S
        while not _listed(address):
            assert process.poll() is None, (folder / "history.log").read_text()
            assert time.monotonic() < end, (folder / "history.log").read_text()
            time.sleep(0.2)
        yield address
    finally:
        end_group(process)
        release(watcher)


def _listed(address):
    try:
        return list_applications(address)
    except DataUnavailableError:
        return []


@pytest.mark.parametrize("rolling", [False, True], ids=["one file", "rolling"])
def test_applications_and_logs_of_a_history_server(rolling, tmp_path):
    cluster = StandaloneCluster(executors=1)
    cluster.folder = tmp_path  # it is never started: tasks run in the driver
    conf = {"spark.master": "local[2]", "spark.dynamicAllocation.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    conf |= {"spark.eventLog.rolling.enabled": str(rolling).lower(), "spark.eventLog.compress": str(rolling).lower()}
    logs = tmp_path / "events"
    with session(cluster, conf, executors=1, event_log=logs, name="two queries", driver_memory_mb=700) as spark:
        for tasks in (3, 6):
            assert len(spark.range(0, 100, 1, tasks).groupBy("id").count().collect()) == 100
    (direct,) = read_event_logs([logs])
    with history_server(logs, tmp_path) as address:
        (listed,) = list_applications(address)
        assert (listed.app_id, listed.name, listed.completed) == (direct.key.app_id, "two queries", True)
        with local_logs([f"{address}/{listed.app_id}"]) as paths:
            (served,) = read_event_logs(paths)
        assert served.tasks.equals(direct.tasks)
        files = tmp_path / "direct.json", tmp_path / "served.json"
        for log, out in zip((next(logs.iterdir()), f"{address}/{listed.app_id}"), files, strict=True):
            assert "executor" in succeed("capacity", log, "--executors", "1-4", "--draws", "2", "--out", out)
        tables = [json.loads(out.read_text())["points"] for out in files]
        assert tables[0] == tables[1]
        with pytest.raises(ConfigError, match=f"{address}/{listed.app_id} \\(two queries"), local_logs([address]):
            pass
        assert "it answers 404" in refuse("capacity", f"{address}/app-there-is-none")
