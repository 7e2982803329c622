"""Releases of Spark for the plugin: jars, version, and layer of the sources."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

from decima.core.errors import SparkError
from decima.core.extras import how_to_install


class Layer(NamedTuple):
    """Sources for the private classes of Spark that differ between its releases."""

    folder: str  # in `layers`
    scala: str  # the Scala that they are written for


#: Releases of Spark that the plugin knows. Private classes change between them, hardly ever within one.
RELEASES = {
    "3.5": Layer("spark-3.5", "2.12"),
    "4.0": Layer("spark-4.0", "2.13"),
    "4.1": Layer("spark-4.0", "2.13"),
    "4.2": Layer("spark-4.0", "2.13"),
    "4.3": Layer("spark-4.3", "2.13"),
}
KNOWN = ", ".join([*RELEASES][:-1]) + " and " + [*RELEASES][-1]
HOME_VARIABLE = "SPARK_HOME"

_CORE = re.compile(r"spark-core_(\d+\.\d+)-((\d+\.\d+)\..*)\.jar")


class Spark(NamedTuple):
    """A Spark that the plugin can be compiled for."""

    version: str  # such as 3.5.8 or 3.5.2-amzn-1
    release: str  # 3.5
    jars: Path  # folder

    @property
    def layer(self) -> Layer:
        """What it needs of the sources."""
        return RELEASES[self.release]


def find_spark(home: str | os.PathLike | None = None) -> Spark:
    """Find a Spark: that of the folder, else of `SPARK_HOME`, else the installed pyspark.

    Args:
        home: folder of a Spark, or of its jars.

    Returns:
        Its version, as its jars say, and where these are.

    Raises:
        SparkError: There is none, or one that the plugin does not know.
    """
    named = home or os.environ.get(HOME_VARIABLE)
    if named:
        folder = Path(named)
        where = f"{HOME_VARIABLE}={folder}" if home is None else str(folder)
    else:
        pyspark = importlib.util.find_spec("pyspark")
        if pyspark is None or not pyspark.origin:
            raise SparkError(
                "the Spark plugin is compiled for a Spark, and none was found: name its folder with --spark, set "
                f"{HOME_VARIABLE}, or {how_to_install('spark')}"
            )
        folder = Path(pyspark.origin).parent
        where = f"the installed pyspark ({folder})"
    for jars in (folder / "jars", folder):
        for path in sorted(jars.glob("spark-core_*.jar")):
            if parts := _CORE.fullmatch(path.name):
                return _known(Spark(parts[2], parts[3], jars), parts[1], where)
    raise SparkError(f"no Spark in {where}: expected spark-core_*.jar there or in its folder jars")


def _known(spark: Spark, scala: str, where: str) -> Spark:
    if spark.release not in RELEASES:
        raise SparkError(f"the Spark plugin knows Spark {KNOWN}, and {where} is Spark {spark.version}")
    if scala != spark.layer.scala:
        raise SparkError(
            f"the Spark plugin knows Spark {spark.release} with Scala {spark.layer.scala}, "
            f"and {where} has Scala {scala}"
        )
    return spark
