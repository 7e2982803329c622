"""TPC-H tables as parquet files, generated once per scale factor, cached and registered as views."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from decima.core.errors import ConfigError, SparkError
from decima.core.extras import how_to_install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
# Bytes of a row group before compression. A scan task reads the row groups whose middle lies in its range of the
# file, so they must be well below SCAN_BYTES for tasks of equal size.
ROW_GROUP = "2MiB"
SCAN_BYTES = 4 * 1024**2
SHUFFLE_PARTITIONS = 32  # at scale 1
LEAST_PARTITIONS = 4
DISK_MB = 400  # needed at scale 1
_VARIABLE = "DECIMA_SPARK_DATA"


def shuffle_partitions(scale: float) -> int:
    """Task count behind a shuffle, which grows with the scale factor as that of scans."""
    return max(LEAST_PARTITIONS, round(SHUFFLE_PARTITIONS * scale))


def conf(scale: float) -> dict[str, str]:
    """Spark settings that make the number of tasks per stage depend only on the scale."""
    return {
        "spark.sql.shuffle.partitions": str(shuffle_partitions(scale)),
        "spark.sql.files.maxPartitionBytes": str(SCAN_BYTES),
        # Without it Spark cuts files by the number of cores, and stages had other task counts on other clusters.
        "spark.sql.files.minPartitionNum": "1",
    }


def cache_folder() -> Path:
    """Folder that keeps the tables: `$DECIMA_SPARK_DATA`, else a folder in the platform's cache."""
    folder = os.environ.get(_VARIABLE)
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("decima")) / "tpch-tables"


def generate(scale: float, folder: Path | None = None, threads: int | None = None) -> Path:
    """Generate the eight tables of a scale factor, if they are not there yet.

    Args:
        scale: TPC-H scale factor; 1 is 1 GB of text, 380 MB of parquet.
        folder: cache; :func:`cache_folder` when None.
        threads: threads of the generator; all cores when None.

    Returns:
        Folder with `<table>.parquet`.

    Raises:
        ConfigError: the scale factor is not a positive number.
        SparkError: the generator is not installed or fails, or the disk is too full.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise ConfigError(f"scale factor {scale:g}: expected a positive number")
    folder = (cache_folder() if folder is None else Path(folder)) / f"sf{scale:g}"
    if all((folder / f"{name}.parquet").is_file() for name in NAMES):
        return folder
    command = generator()
    folder.parent.mkdir(parents=True, exist_ok=True)
    free_mb, need_mb = shutil.disk_usage(folder.parent).free / 2**20, DISK_MB * scale
    if free_mb < need_mb:
        raise SparkError(f"{folder.parent} has {free_mb:,.0f} MiB left; scale factor {scale:g} needs {need_mb:,.0f}")
    # Under another name first: a killed generator leaves no folder that looks complete.
    with tempfile.TemporaryDirectory(prefix=f".sf{scale:g}-", dir=folder.parent) as half:
        command += ["parquet", "--quiet", "-s", f"{scale:g}", "--row-group-bytes", ROW_GROUP, "-o", half]
        command += [] if threads is None else ["-n", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SparkError(f"tpchgen-cli failed ({done.returncode}): {done.stderr.strip()[-300:]}")
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            os.replace(Path(half, f"{name}.parquet"), folder / f"{name}.parquet")
    return folder


def generator() -> list[str]:
    """Command of the table generator: that of this environment, else the one on the PATH.

    Raises:
        SparkError: it is not installed.
    """
    import sys

    beside = Path(sys.executable).parent / "tpchgen-cli"
    command = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if command is None:
        raise SparkError(f"tpchgen-cli is not installed: {how_to_install('spark')}")
    return [command]


def register(spark: SparkSession, folder: Path) -> None:
    """Register a folder's tables as views, without a job per query that reads footers.

    Raises:
        SparkError: a table is missing.
    """
    for name in NAMES:
        path = folder / f"{name}.parquet"
        if not path.is_file():
            raise SparkError(f"table {path} is missing")
        spark.read.parquet(path.absolute().as_uri()).createOrReplaceTempView(name)
