"""Sizes of the edges of TPC-H jobs, from the bytes that stages wrote for their children on this project's Spark.

The file ``data/tpch_shuffle.csv`` has the shuffle bytes of every stage at scale factor 0.5, out of the event log
``data/spark/events/sf0.5-e4-r0-a0`` of the repository. At twice the scale they are about twice as large; sizes are
taken to grow in proportion. What Spark broadcasts through its driver is not among these bytes.
"""

from __future__ import annotations

import csv
import functools
import re
from pathlib import Path

import numpy as np

from decima.core.errors import WorkloadError
from decima.workload.measured import measured_profiles
from decima.workload.profile import JobProfile

PATH = Path(__file__).parent / "data" / "tpch_shuffle.csv"
SCALE = 0.5
_NAME = re.compile(r"q(?P<query>\d+)-(?P<scale>\d+(?:\.\d+)?)g")


def measured_data(profile: JobProfile) -> np.ndarray:
    """Size in MB of each edge of a TPC-H profile, child by child as the stages list their parents, float64 [edges].

    Every child of a stage is sent all that the stage wrote. Profiles of this project's Spark have the very stages that
    were measured. Those of others have other DAGs: there the stages with children, ranked by work, get the measured
    bytes per second of work of the stage of the same rank in the same query, of the last one where they are more.

    Args:
        profile: A profile of a TPC-H query, called as in ``q9-10g``.

    Raises:
        WorkloadError: The name is not that of a TPC-H query.
    """
    match = _NAME.fullmatch(profile.name)
    if match is None or int(match["query"]) not in shuffle_bytes():
        raise WorkloadError(
            f"job {profile.name!r} is no TPC-H query, whose edges were measured; expected edges of the form ccr=NUMBER"
        )
    query, scale = int(match["query"]), float(match["scale"])
    (reference,) = measured_profiles(f"{SCALE:g}g", [query])
    written = shuffle_bytes()[query] / 1e6
    if [stage.parents for stage in profile.stages] == [stage.parents for stage in reference.stages]:
        sizes = written * (scale / SCALE)
    else:
        ranked = _by_work(reference)
        per_ms = [written[index] / reference.stages[index].work_ms for index in ranked]
        sizes = np.zeros(len(profile.stages))
        for rank, index in enumerate(_by_work(profile)):
            sizes[index] = per_ms[min(rank, len(per_ms) - 1)] * profile.stages[index].work_ms if per_ms else 0.0
    return np.array([sizes[parent] for stage in profile.stages for parent in stage.parents], dtype=np.float64)


def _by_work(profile: JobProfile) -> list[int]:
    """Stages that have children, the heaviest first."""
    inner = [index for index, children in enumerate(profile.children) if children]
    return sorted(inner, key=lambda index: -profile.stages[index].work_ms)


@functools.cache
def shuffle_bytes() -> dict[int, np.ndarray]:
    """Bytes that each stage wrote at scale factor 0.5, float64 [stages], by query."""
    rows: dict[int, list[float]] = {}
    with PATH.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(int(row["query"]), []).append(float(row["shuffle_bytes"]))
    return {query: np.array(values) for query, values in rows.items()}
