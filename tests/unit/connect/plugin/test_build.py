"""Building the Spark plugin: what a user reads when it cannot be built, and what is in the jar."""

import importlib.metadata
import zipfile

import pytest

from decima.connect.plugin import build
from decima.connect.service import scheduler_pb2
from decima.core.errors import SparkError
from tests.unit.commands.calls import run, succeed


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setattr(build.platformdirs, "user_cache_dir", lambda *_: str(tmp_path / "cache"))
    build.spark_jars.cache_clear()
    yield tmp_path / "cache"
    build.spark_jars.cache_clear()


def no_package(name):
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.fixture
def compiled(monkeypatch):
    """Instead of the compiler, which takes seconds: one class file; gives the number of calls."""
    calls = []

    def compile_sources(classes, jars):
        calls.append(jars)
        (classes / "decima" / "spark").mkdir(parents=True)
        (classes / "decima" / "spark" / "A.class").write_bytes(b"\xca\xfe\xba\xbe")

    monkeypatch.setattr(build, "_compile", compile_sources)
    return calls


def test_without_pyspark(cache, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", no_package)
    with pytest.raises(SparkError, match=r"needs pyspark 4\.3\.0, which is not installed"):
        build.plugin_jar()


def test_another_version_of_pyspark(cache, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "3.5.1")
    with pytest.raises(SparkError, match=r"written for pyspark 4\.3\.0, installed is 3\.5\.1"):
        build.plugin_jar()


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
    assert any(source.stem == manager.rpartition(".")[2] for source in build.java_sources())


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
    monkeypatch.setattr(build, "java_sources", lambda: [changed])
    assert build.plugin_jar() != first
    assert len(compiled) == 2


def test_same_sources_same_jar(cache, compiled):
    first = build.plugin_jar()
    content = first.read_bytes()
    first.unlink()
    assert build.plugin_jar().read_bytes() == content


def test_the_command_says_what_to_configure(cache, compiled, tmp_path):
    jar = tmp_path / "mine.jar"
    assert succeed("spark", "plugin", "--out", jar) == f"spark.driver.extraClassPath  {jar}"
    assert zipfile.is_zipfile(jar)


def test_the_command_without_pyspark(cache, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", no_package)
    result = run("spark", "plugin")
    assert result.exit_code == 2
    assert "needs pyspark 4.3.0" in result.stderr


def test_the_command_refuses_another_ending(cache, tmp_path):
    assert run("spark", "plugin", "--out", tmp_path / "plugin.zip").exit_code == 2
