"""Slim copies of event logs read the same and hold nothing of the machine."""

import json

import cramjam
import pandas
import pytest

from decima.connect.eventlog.application import read_event_log
from decima.connect.eventlog.profiles import collect_profiles
from decima.connect.eventlog.slim import slim_log
from decima.core.errors import DataUnavailableError, EventLogError
from tests.unit.connect.event_lines import LOGS, job_start, line, stage, write

KINDS = ("plain", "queries.zstd", "adaptive.zstd", "broadcast.lz4", "failed-task.zstd", "killed-executor.zstd")


@pytest.mark.parametrize("name", KINDS)
def test_the_copy_reads_the_same(name, tmp_path):
    copy = tmp_path / "copy.zstd"
    size = slim_log(LOGS / name, copy)
    assert size == copy.stat().st_size
    before, after = read_event_log(LOGS / name), read_event_log(copy)
    for table in ("tasks", "stages", "queries", "executors"):
        pandas.testing.assert_frame_equal(getattr(before, table), getattr(after, table))
    for field in ("key", "name", "spark_version", "adaptive", "start_ms", "end_ms", "ended"):
        assert getattr(before, field) == getattr(after, field), field
    one, other = collect_profiles([before]), collect_profiles([after])
    pandas.testing.assert_frame_equal(one.runs, other.runs)
    assert [profile.name for profile in one.profiles] == [profile.name for profile in other.profiles]
    assert [profile.work_ms for profile in one.profiles] == [profile.work_ms for profile in other.profiles]


def test_a_copy_of_a_copy_is_the_same(tmp_path):
    slim_log(LOGS / "plain", tmp_path / "one.zstd")
    slim_log(tmp_path / "one.zstd", tmp_path / "two.zstd")
    assert (tmp_path / "one.zstd").read_bytes() == (tmp_path / "two.zstd").read_bytes()


def test_nothing_of_the_machine_stays(tmp_path):
    properties = {
        "spark.eventLog.dir": "file:///home/somebody/logs",
        "spark.driver.extraClassPath": "/home/somebody/x.jar",
        "spark.executor.extraJavaOptions": "-Djava.io.tmpdir=/home/somebody",
        "spark.sql.adaptive.enabled": "false",
        "spark.task.cpus": "1",
    }
    scan = stage(0, 2, rdd=1, name="/home/somebody/t.parquet") | {"Details": "at /home/somebody/x.py"}
    scan["RDD Info"][0]["Scope"] = '{"id":"3","name":"Scan parquet"}'
    environment = {"Spark Properties": properties, "System Properties": {"user.home": "/home/somebody"}}
    lines = [
        line("SparkListenerEnvironmentUpdate", **environment),
        job_start(0, [scan], **{"decima.query": "q01#0", "spark.home": "/home/somebody"}),
        line("org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", details="/home/somebody"),
    ]
    slim_log(write(tmp_path / "log", lines), tmp_path / "copy.zstd")
    content = bytes(cramjam.zstd.decompress((tmp_path / "copy.zstd").read_bytes())).decode()
    assert "somebody" not in content
    kept = [json.loads(each) for each in content.splitlines()]
    assert [each["Event"].removeprefix("SparkListener") for each in kept] == [
        "EnvironmentUpdate",
        "JobStart",
        "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
    ]
    assert kept[0]["Spark Properties"] == {"spark.sql.adaptive.enabled": "false", "spark.task.cpus": "1"}
    assert kept[1]["Properties"] == {"decima.query": "q01#0"}
    assert json.loads(kept[1]["Stage Infos"][0]["RDD Info"][0]["Scope"])["name"] == "Scan parquet"


def test_damaged_logs_are_refused_rather_than_made_to_look_whole(tmp_path):
    content = (LOGS / "plain").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    with pytest.raises(EventLogError, match="damaged"):
        slim_log(tmp_path / "cut", tmp_path / "copy.zstd")
    assert not (tmp_path / "copy.zstd").exists()
    with pytest.raises(DataUnavailableError):
        slim_log(tmp_path / "nothing", tmp_path / "copy.zstd")
