"""Checks that this machine can run Spark, and its description for the record."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import psutil

from decima.core.errors import SparkError
from decima.core.extras import require

DRIVER_MB, DAEMON_MB = 1536, 512  # heaps of the driver, and of master and worker


def spark_home() -> Path:
    """Folder of the installed pyspark.

    Raises:
        MissingExtraError: pyspark is not installed.
    """
    require("spark")
    return Path(find_spec("pyspark").origin).parent


def require_spark() -> None:
    """Check that pyspark and Java are there.

    Raises:
        SparkError: one is missing; the message names it and how to get it.
    """
    spark_home()
    java_command()


def java_command() -> str:
    """Path of Java for Spark: that of `JAVA_HOME`, else the first on the PATH.

    Raises:
        SparkError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise SparkError(f"Spark needs Java 17 or newer, and none was found {where}: install openjdk-17-jre-headless")
    return java


def check_memory(executors: int, memory_mb: int, driver_memory_mb: int = DRIVER_MB) -> None:
    """Check that a cluster with one application fits into the memory that is free now.

    Raises:
        SparkError: it does not.
    """
    # A JVM takes a quarter more than its heap.
    need = 1.25 * (executors * memory_mb + driver_memory_mb + 2 * DAEMON_MB)
    free = psutil.virtual_memory().available / 2**20
    if free < need:
        raise SparkError(
            f"{executors} executors of {memory_mb} MiB need {need:,.0f} MiB of memory with their driver, "
            f"and {free:,.0f} MiB are free"
        )


def describe() -> dict[str, str]:
    """Describe a measurement: date, machine, operating system, versions of Java, Python, Spark and the generator."""
    java = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True)
    known = dict(line.split("\t: ") for line in _cpuinfo() if "\t: " in line)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": known.get("model name", platform.processor()),
        "architecture": platform.machine(),
        "cores": str(os.cpu_count()),
        "memory_gib": f"{psutil.virtual_memory().total / 2**30:.0f}",
        "system": f"{platform.system()} {platform.release()}",
        "java": java.stderr.splitlines()[0],
        "python": platform.python_version(),
        **{name: version(name) for name in ("pyspark", "tpchgen-cli")},
    }


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return []
