"""Embedded workload: TPC-H on this project's Spark, extrapolated to the paper's sizes.

What was measured is `decima.workload.measured`; everything here is that times a model (`docs/measured-workload.md`).
"""

import functools
from collections.abc import Sequence
from pathlib import Path

from decima.workload import measured
from decima.workload.profile import JobProfile
from decima.workload.sources import (
    CHOSEN_QUERIES,
    QUERIES,
    SIZES,
    WorkloadSource,
    file_digest,
    resolve_queries,
    resolve_sizes,
)
from decima.workload.tpch.profiles import GROUPS, RELEASED_SIZES

LABEL = "TPC-H extrapolated from Spark"
ORIGIN = "extrapolated"
LEVELS = (1, 2, 5, 10, 20, 40, 50, 60, 80, 100)
# What `measure.scaling_model` makes of the measured profiles.
PATH = Path(__file__).parent / "data" / "tpch_spark_embedded.npz"


def embedded_profiles(
    sizes: str | Sequence[str] = "released", queries: str | Sequence[int] = "all"
) -> tuple[JobProfile, ...]:
    """Profiles of queries at sizes, size by size; always the same objects.

    Args:
        sizes: `"paper"` (six sizes), `"released"` (seven, with 80g), some of them as `"2g+10g"`, or a list of sizes;
            `"10g"` is scale factor 10.
        queries: numbers from 1 to 22, `"all"`, or a text such as `"1-16+20"`.

    Raises:
        WorkloadError: there is no such size or query.
    """
    chosen = resolve_sizes(sizes, RELEASED_SIZES, GROUPS, "embedded")
    numbers = resolve_queries(queries)
    table = _table()
    return tuple(table[size, query] for size in chosen for query in numbers)


def embedded_profile(size: str, query: int) -> JobProfile:
    """Profile of one query at one size.

    Raises:
        WorkloadError: there is no such size or query.
    """
    return embedded_profiles([size], [query])[0]


@functools.cache
def _table() -> dict[tuple[str, int], JobProfile]:
    profiles = {profile.name: profile for profile in measured.read_arrays(PATH)}
    return {(size, query): profiles[f"q{query}-{size}"] for size in RELEASED_SIZES for query in QUERIES}


SOURCE = WorkloadSource(
    "embedded",
    LABEL,
    "TPC-H queries measured on this project's Spark, extrapolated to the paper's sizes and cluster; in the package",
    embedded_profiles,
    lambda queries="all": file_digest(PATH),
    options=(SIZES, CHOSEN_QUERIES),
    query_profile=lambda size_gb, query: embedded_profile(f"{size_gb:g}g", query),
)
embedded_batch, embedded_poisson = SOURCE.batch, SOURCE.poisson
