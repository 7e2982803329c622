"""Which Spark the plugin is compiled for, and what a user reads where there is none that it knows."""

import importlib.util
from types import SimpleNamespace

import pytest

from decima.connect.plugin.sparks import RELEASES, find_spark
from decima.core.errors import SparkError


def spark_folder(folder, version, scala=""):
    """A folder with the jar that says which Spark it is, of the Scala that the release has."""
    release = ".".join(version.split(".")[:2])
    scala = scala or (RELEASES[release].scala if release in RELEASES else "2.13")
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_{scala}-{version}.jar").write_bytes(b"")
    return folder


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No Spark by the environment, nor by an installed package."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize("version", ["3.5.0", "3.5.8", "3.5.2-amzn-1", "4.0.2", "4.1.0", "4.2.0-SNAPSHOT", "4.3.7"])
def test_the_jars_say_the_version(tmp_path, version):
    home = spark_folder(tmp_path / "spark", version)
    spark = find_spark(home)
    assert spark == (version, version[:3], home / "jars")
    assert spark.layer == RELEASES[version[:3]]
    assert find_spark(home / "jars") == spark


@pytest.mark.parametrize("version", ["2.4.8", "3.4.4", "4.4.0", "5.0.1", "3.50.1", "40.0.1"])
def test_releases_that_it_does_not_know(tmp_path, version):
    home = spark_folder(tmp_path / "spark", version)
    with pytest.raises(SparkError, match=rf"knows Spark 3\.5, 4\.0, .* and 4\.3, and {home} is Spark {version}$"):
        find_spark(home)


def test_another_scala(tmp_path):
    home = spark_folder(tmp_path / "spark", "3.5.8", "2.13")
    with pytest.raises(SparkError, match=rf"Spark 3\.5 with Scala 2\.12, and {home} has Scala 2\.13"):
        find_spark(home)


@pytest.mark.parametrize("jar", ["", "spark-core.jar", "spark-core_2.13-4.jar", "spark-sql_2.13-4.3.0.jar"])
def test_a_folder_without_a_spark(tmp_path, jar):
    (tmp_path / "jars").mkdir()
    if jar:
        (tmp_path / "jars" / jar).write_bytes(b"")
    with pytest.raises(SparkError, match=f"no Spark in {tmp_path}: expected spark-core"):
        find_spark(tmp_path)


def test_where_it_is_looked_for(tmp_path, monkeypatch):
    with pytest.raises(SparkError, match="none was found: name its folder with --spark, set SPARK_HOME"):
        find_spark()
    package = spark_folder(tmp_path / "package", "4.3.0")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin=str(package / "__init__.py")))
    assert find_spark().version == "4.3.0"
    monkeypatch.setenv("SPARK_HOME", str(spark_folder(tmp_path / "home", "4.0.2")))
    assert find_spark().version == "4.0.2"
    assert find_spark(spark_folder(tmp_path / "named", "3.5.8")).version == "3.5.8"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SparkError, match=f"no Spark in SPARK_HOME={tmp_path}: "):
        find_spark()
