"""The plugin with every release of Spark that it knows; `make test-spark-versions` makes the environments."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections import Counter

import pytest

from decima.connect.cluster import standalone
from decima.connect.cluster.standalone import BASE_CONF, StandaloneCluster
from decima.connect.plugin.build import plugin_jar
from decima.connect.plugin.sparks import RELEASES, find_spark
from decima.core.config import checkout_root
from tests.spark import version_application
from tests.spark.real_spark import BUG, OUTAGE, decisions_of, metrics_of, most_at_once, plugin_settings, tasks_of
from tests.spark.toy_service import toy_service

pytestmark = pytest.mark.spark_slow

MISFIT = "does not fit this Spark"


@pytest.fixture(params=RELEASES)
def spark(request):
    """A Spark of each release in an environment of its own."""
    homes = sorted(checkout_root().glob(f".venv-spark-{request.param}.*/lib/python*/site-packages/pyspark"))
    if not homes:
        pytest.skip(f"no .venv-spark-{request.param}.*: make test-spark-versions")
    found = find_spark(homes[-1])
    assert found.release == request.param
    return found


@contextlib.contextmanager
def cluster_of(spark, monkeypatch):
    """A standalone cluster of that Spark."""
    monkeypatch.setattr(standalone, "spark_home", lambda: spark.jars.parent)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with StandaloneCluster(executors=2, memory_mb=600) as cluster:
        yield cluster


def run_application(spark, cluster, jar, service, folder):
    """Run both queries by the Python of that Spark; gives their results and the lines of the driver's log."""
    (folder / "events").mkdir()
    settings = dict(BASE_CONF) | {
        "spark.master": cluster.url.replace("spark://", "spark-decima://"),
        **plugin_settings(folder, service, jar),
        "spark.driver.memory": "700m",
        "spark.executor.memory": "600m",
        "spark.cores.max": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.shuffle.partitions": "3",
    }
    python = spark.jars.parents[4] / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, version_application.__file__, json.dumps(settings)],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(python)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), (folder / "driver.log").read_text().splitlines()


def expected():
    """Rows of both queries, in plain Python."""
    of_query = {"q01": {}, "q03": {}}
    for line in range(version_application.LINES):
        for name, key in (("q01", line % 3), ("q03", line % version_application.ORDERS % 5)):
            of_query[name].setdefault(key, []).append(line % 50 + 1)
    return {
        name: [[key, sum(values), len(values)] for key, values in sorted(rows.items())]
        for name, rows in of_query.items()
    }


def test_the_service_schedules_this_spark(spark, tmp_path, monkeypatch):
    jar = plugin_jar(home=spark.jars)
    with toy_service(cap=1) as toy, cluster_of(spark, monkeypatch) as cluster:
        results, log = run_application(spark, cluster, jar, toy.address, tmp_path)
    assert results == expected()
    assert not [line for line in log if OUTAGE in line or BUG in line or MISFIT in line]
    tasks = tasks_of(tmp_path)
    for name in results:
        assert most_at_once([task for task in tasks if task.query == name]) == 1
    chosen = Counter(line["job"] for line in decisions_of(tmp_path))
    assert set(chosen) == set(results)
    # Every stage was chosen, none by Spark itself.
    assert sum(line["bound"] for line in decisions_of(tmp_path)) >= len({task.stage for task in tasks})
    assert metrics_of(tmp_path)["outages"] == 0


def test_a_jar_of_another_release_leaves_all_to_spark(spark, tmp_path, monkeypatch):
    ours = find_spark()
    if ours.release == spark.release:
        pytest.skip(f"the installed pyspark is a Spark {ours.release}, too")
    with toy_service(cap=1) as toy, cluster_of(spark, monkeypatch) as cluster:
        results, log = run_application(spark, cluster, plugin_jar(), toy.address, tmp_path)
        assert toy.requests == []
    assert results == expected()
    (line,) = [line for line in log if MISFIT in line]
    assert f"for Spark {ours.release} " in line
    assert f"this Spark {spark.version};" in line
