"""Building the Spark plugin: what a user reads when it cannot be built, and what is in the jar."""

import importlib.util
import zipfile
from types import SimpleNamespace

import pytest

from decima.connect.plugin import build
from decima.connect.plugin.sparks import RELEASES, find_spark
from decima.connect.service import scheduler_pb2
from decima.core.errors import SparkError
from tests.unit.commands.calls import run, succeed


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setattr(build.platformdirs, "user_cache_dir", lambda *_: str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch):
    """Instead of the compiler, which takes seconds: one class file; gives the Sparks that it was called for."""
    calls = []

    def compile_sources(classes, spark):
        calls.append(spark)
        (classes / "decima" / "spark").mkdir(parents=True)
        (classes / "decima" / "spark" / "A.class").write_bytes(b"\xca\xfe\xba\xbe")

    monkeypatch.setattr(build, "_compile", compile_sources)
    return calls


def test_without_a_java_compiler(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkError, match="no javac was found"):
        build.plugin_jar()
    assert not list(cache.rglob("*.jar"))


def test_a_failing_compiler_is_quoted(cache, monkeypatch, tmp_path):
    fake = tmp_path / "bin" / "javac"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'A.java:1: error: release version 17 not supported' >&2\nexit 2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkError, match="release version 17 not supported"):
        build.plugin_jar()
    assert not list(cache.rglob("*.jar"))


def test_what_is_in_the_jar(cache, compiled):
    with zipfile.ZipFile(build.plugin_jar()) as jar:
        manager = jar.read("META-INF/services/org.apache.spark.scheduler.ExternalClusterManager").decode().strip()
        assert jar.read("decima/spark/scheduler.desc") == scheduler_pb2.DESCRIPTOR.serialized_pb
        assert "decima/spark/A.class" in jar.namelist()
        assert jar.read("decima/spark/spark-release").decode().strip() == find_spark().release
    sources = build.java_sources(find_spark().layer.folder)
    assert any(source.stem == manager.rpartition(".")[2] for source in sources)


def test_a_jar_for_each_release(cache, compiled, tmp_path):
    jars = {name: build.plugin_jar(home=spark_folder(tmp_path / name, f"{name}.1")) for name in RELEASES}
    assert len(set(jars.values())) == len(RELEASES)
    for name, path in jars.items():
        with zipfile.ZipFile(path) as jar:
            assert jar.read("decima/spark/spark-release").decode() == f"{name}\n"
    assert [spark.release for spark in compiled] == list(RELEASES)


def test_every_layer_has_the_same_classes():
    """What the common sources extend is in each of them, and in none twice."""
    common = {path.name for path in build.java_sources("none")}
    layers = {layer.folder for layer in RELEASES.values()}
    classes = [[path.name for path in build.java_sources(layer) if path.name not in common] for layer in sorted(layers)]
    assert len(layers) == 3
    assert classes == [["VersionedTaskScheduler.java", "VersionedTaskSetManager.java"]] * 3


def test_compiled_once(cache, compiled, tmp_path):
    first = build.plugin_jar()
    assert build.plugin_jar() == first
    copy = build.plugin_jar(tmp_path / "mine.jar")
    assert copy.read_bytes() == first.read_bytes()
    assert build.plugin_jar(tmp_path) == tmp_path / build.JAR_NAME
    assert len(compiled) == 1


def test_other_sources_are_compiled_anew(cache, compiled, monkeypatch, tmp_path):
    first = build.plugin_jar()
    changed = tmp_path / "Changed.java"
    changed.write_text("class Changed {}")
    monkeypatch.setattr(build, "java_sources", lambda layer: [changed])
    assert build.plugin_jar() != first
    assert len(compiled) == 2


def test_the_command_says_what_to_configure(cache, compiled, tmp_path):
    jar = tmp_path / "mine.jar"
    assert succeed("spark", "plugin", "--out", jar) == f"spark.driver.extraClassPath  {jar}"
    assert zipfile.is_zipfile(jar)


def test_the_command_refuses_a_spark_that_it_does_not_know(cache, tmp_path):
    result = run("spark", "plugin", "--spark", spark_folder(tmp_path / "old", "3.4.1", "2.12"))
    assert result.exit_code == 2
    assert "knows Spark 3.5, 4.0, 4.1, 4.2 and 4.3" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(cache.rglob("*.jar"))


# Which Spark the plugin is compiled for, and what a user reads where there is none that it knows.


def spark_folder(folder, version, scala=""):
    """A folder with the jar that says which Spark it is, of the Scala that the release has."""
    release = ".".join(version.split(".")[:2])
    scala = scala or (RELEASES[release].scala if release in RELEASES else "2.13")
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_{scala}-{version}.jar").write_bytes(b"")
    return folder


@pytest.fixture
def nowhere(monkeypatch):
    """No Spark by the environment, nor by an installed package."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize("version", ["3.5.0", "3.5.8", "3.5.2-amzn-1", "4.0.2", "4.1.0", "4.2.0-SNAPSHOT", "4.3.7"])
def test_the_jars_say_the_version(nowhere, tmp_path, version):
    home = spark_folder(tmp_path / "spark", version)
    spark = find_spark(home)
    assert spark == (version, version[:3], home / "jars")
    assert spark.layer == RELEASES[version[:3]]
    assert find_spark(home / "jars") == spark


@pytest.mark.parametrize("version", ["2.4.8", "3.4.4", "4.4.0", "5.0.1", "3.50.1", "40.0.1"])
def test_releases_that_it_does_not_know(nowhere, tmp_path, version):
    home = spark_folder(tmp_path / "spark", version)
    with pytest.raises(SparkError, match=rf"knows Spark 3\.5, 4\.0, .* and 4\.3, and {home} is Spark {version}$"):
        find_spark(home)


@pytest.mark.parametrize("jar", ["", "spark-core.jar", "spark-core_2.13-4.jar", "spark-sql_2.13-4.3.0.jar"])
def test_a_folder_without_a_spark(nowhere, tmp_path, jar):
    (tmp_path / "jars").mkdir()
    if jar:
        (tmp_path / "jars" / jar).write_bytes(b"")
    with pytest.raises(SparkError, match=f"no Spark in {tmp_path}: expected spark-core"):
        find_spark(tmp_path)


def test_where_it_is_looked_for(nowhere, tmp_path, monkeypatch):
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
