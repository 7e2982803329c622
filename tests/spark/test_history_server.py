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
from decima.core.errors import ConfigError, DataUnavailableError, EventLogError
from tests.unit.commands.calls import refuse, succeed

pytestmark = pytest.mark.spark
START_S = 300.0


@contextmanager
def history_server(logs, folder, applications):
    """Address of a history server on loopback that has read a folder with the logs of so many applications."""
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
        while len(_listed(address)) < applications:
            assert process.poll() is None, (folder / "history.log").read_text()
            assert time.monotonic() < end, (folder / "history.log").read_text()
            time.sleep(0.2)
        yield address
    finally:
        end_group(process)
        release(watcher)


def _listed(address):
    """Applications of a server that may be starting: for an instant its start page answers at every path."""
    try:
        return list_applications(address)
    except (DataUnavailableError, EventLogError):
        return []


def test_applications_and_logs_of_a_history_server(tmp_path):
    """Of two applications, one with a log of one file and one with rolling, compressed files."""
    cluster = StandaloneCluster(executors=1)
    cluster.folder = tmp_path  # it is never started: tasks run in the driver
    conf = {"spark.master": "local[2]", "spark.dynamicAllocation.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    logs, direct = tmp_path / "events", {}
    for name, rolling in (("one file", "false"), ("rolling", "true")):
        conf |= {"spark.eventLog.rolling.enabled": rolling, "spark.eventLog.compress": rolling}
        before = set(logs.iterdir()) if logs.exists() else set()
        with session(cluster, conf, executors=1, event_log=logs, name=name, driver_memory_mb=700) as spark:
            for tasks in (3, 6):
                assert len(spark.range(0, 100, 1, tasks).groupBy("id").count().collect()) == 100
        (log,) = set(logs.iterdir()) - before
        assert log.is_dir() == (name == "rolling")
        direct[name] = log, *read_event_logs([log])
    with history_server(logs, tmp_path, len(direct)) as address:
        listed = {each.name: each for each in list_applications(address)}
        assert listed.keys() == direct.keys()
        for name, (log, application) in direct.items():
            url = f"{address}/{listed[name].app_id}"
            assert (listed[name].app_id, listed[name].completed) == (application.key.app_id, True)
            with local_logs([url]) as paths:
                (served,) = read_event_logs(paths)
            assert served.tasks.equals(application.tasks)
            files = tmp_path / "direct.json", tmp_path / "served.json"
            for source, out in zip((log, url), files, strict=True):
                assert "executor" in succeed("capacity", source, "--executors", "1-4", "--draws", "2", "--out", out)
            tables = [json.loads(out.read_text())["points"] for out in files]
            assert tables[0] == tables[1]
            with pytest.raises(ConfigError, match=f"{url} \\({name}"), local_logs([address]):
                pass
        assert "it answers 404" in refuse("capacity", f"{address}/app-there-is-none")
