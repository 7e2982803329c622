"""Embedded workload: TPC-H on this project's Spark, extrapolated to the paper's sizes.

What was measured is `decima.workload.measured`; everything here is that times a model (`docs/measured-workload.md`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from decima.workload import measured, profile_arrays, scaling_model
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
MOST_SAMPLES = 16
# Partitions are so many times as large as the measured ones: 32 MiB of parquet per scan task, about as much as 128 MiB
# of text.
PARTITION = 8
MODEL_PATH = Path(__file__).parent / "data" / "tpch_spark_scaling.json"
# What `extrapolated_profiles` makes of these; kept because reading it is ten times as fast.
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
    profiles = {profile.name: profile for profile in profile_arrays.read_arrays(PATH)}
    return {(size, query): profiles[f"q{query}-{size}"] for size in RELEASED_SIZES for query in QUERIES}


def extrapolated_profiles(
    model: scaling_model.ScalingModel, profiles: Sequence[JobProfile] | None = None
) -> list[JobProfile]:
    """Rebuild all profiles from the largest measured scale and the scaling model.

    Args:
        model: the exponents.
        profiles: measured profiles; those of the package when omitted.
    """
    profiles = measured.measured_profiles() if profiles is None else profiles
    table = {measured.parse_name(profile.name): profile for profile in profiles}
    scales = sorted({scale for _, scale in table})
    small, large = ([table[query, scale] for query in QUERIES] for scale in (scales[0], scales[-1]))
    return [
        scaling_model.extrapolate(
            (large_profile, small_profile),
            model,
            name=f"q{query}-{size}",
            source=ORIGIN,
            query=query,
            base_scale=scales[-1],
            scale=float(size.removesuffix("g")),
            kinds=scaling_model.stage_kinds(small_profile, large_profile),
            partition=PARTITION,
            levels=LEVELS,
            most_samples=MOST_SAMPLES,
        )
        for size in RELEASED_SIZES
        for query, small_profile, large_profile in zip(QUERIES, small, large, strict=True)
    ]


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
