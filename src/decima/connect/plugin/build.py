"""Compilation of the Spark plugin against the installed pyspark into a jar for drivers."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import platformdirs

from decima.core.config import DISTRIBUTION
from decima.core.errors import SparkError
from decima.core.files import atomic_path

#: The hooks are private API of Spark, which changes between minor releases.
SPARK_VERSION = "4.3.0"
JAR_NAME = "decima-spark.jar"
CLUSTER_MANAGER = "decima.spark.DecimaClusterManager"

_SERVICE_FILE = "META-INF/services/org.apache.spark.scheduler.ExternalClusterManager"
_DESCRIPTOR_FILE = "decima/spark/scheduler.desc"
_JAVA_ROOT = Path(__file__).parent / "java"
# Spark 4 runs on Java 17 and later.
_JAVA_RELEASE = "17"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def plugin_jar(out: str | os.PathLike | None = None) -> Path:
    """Path of the compiled plugin; new sources are compiled first.

    The compiled plugin is kept in the user's cache folder under a hash of its sources and the Spark version.

    Args:
        out: also copy the jar to this file (or into this folder).

    Returns:
        The jar: `out`, else the one in the cache.

    Raises:
        SparkError: pyspark is missing or of another version, there is no Java compiler, or it failed.
    """
    jars = spark_jars()
    descriptor = _descriptor()
    cached = Path(platformdirs.user_cache_dir(DISTRIBUTION)) / "spark-plugin" / _key(descriptor) / JAR_NAME
    if not cached.is_file():
        _build(cached, jars, descriptor)
    if out is None:
        return cached
    target = Path(out)
    if target.is_dir():
        target = target / JAR_NAME
    with atomic_path(target) as temporary:
        shutil.copyfile(cached, temporary)
    return target


@functools.cache
def spark_jars() -> Path:
    """Folder of the jars of the installed pyspark.

    Raises:
        SparkError: pyspark is not installed or of another version than the plugin is written for.
    """
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise SparkError(
            f'the Spark plugin needs pyspark {SPARK_VERSION}, which is not installed: pip install "decima-sched[spark]"'
        ) from None
    if version != SPARK_VERSION:
        raise SparkError(f"the Spark plugin is written for pyspark {SPARK_VERSION}, installed is {version}")
    found = importlib.util.find_spec("pyspark")
    folder = Path(found.origin).parent / "jars" if found and found.origin else None
    if folder is None or not folder.is_dir():
        raise SparkError(f"the installed pyspark has no jars (looked in {folder})")
    return folder


def java_sources() -> list[Path]:
    """Source files of the plugin, sorted."""
    return sorted(_JAVA_ROOT.rglob("*.java"))


def _descriptor() -> bytes:
    from decima.connect.service import scheduler_pb2

    # Spark's own protobuf reads messages by this description, so no Java code is generated (see Messages.java).
    return scheduler_pb2.DESCRIPTOR.serialized_pb


def _key(descriptor: bytes) -> str:
    digest = hashlib.sha256(f"{SPARK_VERSION}\0{_JAVA_RELEASE}\0".encode())
    for source in java_sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    digest.update(descriptor)
    return digest.hexdigest()[:16]


def _build(jar: Path, jars: Path, descriptor: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="decima-spark-") as folder:
        classes = Path(folder)
        _compile(classes, jars)
        with atomic_path(jar) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, _SERVICE_FILE, CLUSTER_MANAGER.encode() + b"\n")
            _add(archive, _DESCRIPTOR_FILE, descriptor)
            for compiled in sorted(classes.rglob("*.class")):
                _add(archive, compiled.relative_to(classes).as_posix(), compiled.read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # Fixed times: the same sources give the same jar.
    archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)


def _compile(classes: Path, jars: Path) -> None:
    compiler = _java_compiler()
    command = [
        compiler,
        *("-encoding", "UTF-8", "--release", _JAVA_RELEASE, "-proc:none", "-nowarn"),
        *("-cp", os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))),
        *("-d", str(classes)),
        *(str(source) for source in java_sources()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-300:])
        raise SparkError(f"the Java compiler {compiler} failed on the Spark plugin: {first}")


def _java_compiler() -> str:
    home = os.environ.get("JAVA_HOME")
    inside = shutil.which("javac", path=os.path.join(home, "bin")) if home else None
    compiler = inside or shutil.which("javac")
    if compiler is None:
        raise SparkError(f"the Spark plugin needs a Java compiler (JDK {_JAVA_RELEASE} or later): no javac was found")
    return compiler
