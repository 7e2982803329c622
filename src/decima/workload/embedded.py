"""The default workload: TPC-H on this project's own Spark, extrapolated to the sizes and cluster of the paper.

What was measured is `decima.workload.measured`; everything here is that times a model (`docs/measured-workload.md`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from decima.exceptions import WorkloadError
from decima.workload import arrivals, measured, parquet, scaling_model
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

LABEL = "TPC-H extrapolated from Spark"
SOURCE = "extrapolated"
QUERIES = measured.QUERIES
PAPER_SIZES = ("2g", "5g", "10g", "20g", "50g", "100g")
RELEASED_SIZES = ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
LEVELS = (1, 2, 5, 10, 20, 40, 50, 60, 80, 100)
MOST_SAMPLES = 16
# Partitions are so many times as large as the measured ones: 32 MiB of parquet per scan task, about as much as 128 MiB
# of text.
PARTITION = 8
MODEL_PATH = Path(__file__).parent / "data" / "tpch_spark_scaling.json"
# What `extrapolated_profiles` makes of these; kept because reading it is ten times as fast.
PATH = Path(__file__).parent / "data" / "tpch_spark_embedded.parquet"


def embedded_profiles(
    sizes: str | Sequence[str] = "released", queries: Sequence[int] = QUERIES
) -> tuple[JobProfile, ...]:
    """Profiles of the given queries at the given sizes, size by size; always the same objects.

    Args:
        sizes: `"paper"` (six sizes), `"released"` (seven, with 80g) or a list of sizes; `"10g"` is scale factor 10.
        queries: query numbers, 1 to 22.

    Raises:
        WorkloadError: there is no such size or query.
    """
    if isinstance(sizes, str):
        sizes = {"paper": PAPER_SIZES, "released": RELEASED_SIZES}.get(sizes, (sizes,))
    if not sizes:
        raise WorkloadError(
            f"no size is given; expected 'paper', 'released' or some of {', '.join(RELEASED_SIZES)}"
        )
    for size in sizes:
        if size not in RELEASED_SIZES:
            raise WorkloadError(f"size {size!r} is unknown; expected one of {', '.join(RELEASED_SIZES)}")
    for query in queries:
        if query not in QUERIES:
            raise WorkloadError(f"query {query!r} is unknown; expected 1 to {QUERIES[-1]}")
    table = _table()
    return tuple(table[size, query] for size in sizes for query in queries)


def embedded_profile(size: str, query: int) -> JobProfile:
    """Profile of one query at one size.

    Raises:
        WorkloadError: there is no such size or query.
    """
    return embedded_profiles([size], [query])[0]


def embedded_batch(n: int = 20, seed: int = 0, sizes: str | Sequence[str] = "paper") -> Workload:
    """Embedded queries drawn uniformly over queries and sizes, all present at the start.

    Args:
        n: number of jobs.
        seed: 0 or more; chooses the jobs, the profiles themselves are always the same.
        sizes: as in `embedded_profiles`.

    Raises:
        ConfigError: `n` or `seed` is out of range.
        WorkloadError: there is no such size.
    """
    return arrivals.batch(embedded_profiles(sizes), n, seed, label=LABEL)


def embedded_poisson(
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    sizes: str | Sequence[str] = "paper",
    initial: int = 1,
) -> Workload:
    """Embedded queries drawn uniformly, arriving as a Poisson process.

    Args:
        n: number of arrivals, besides the initial jobs.
        mean_interarrival_s: mean gap in seconds.
        seed: 0 or more; chooses jobs and gaps, the profiles themselves are always the same.
        sizes: as in `embedded_profiles`.
        initial: jobs present at time 0.

    Raises:
        ConfigError: a number is out of range.
        WorkloadError: there is no such size.
    """
    return arrivals.poisson(embedded_profiles(sizes), n, mean_interarrival_s, seed, initial, label=LABEL)


@functools.cache
def _table() -> dict[tuple[str, int], JobProfile]:
    profiles = {profile.name: profile for profile in parquet.read_profiles(PATH)}
    return {(size, query): profiles[f"q{query}-{size}"] for size in RELEASED_SIZES for query in QUERIES}


def extrapolated_profiles(
    model: scaling_model.ScalingModel, profiles: Sequence[JobProfile] | None = None
) -> list[JobProfile]:
    """All sizes and queries, anew from the measured profiles of the largest scale and the model.

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
            (base, below),
            model,
            name=f"q{query}-{size}",
            source=SOURCE,
            query=query,
            base_scale=scales[-1],
            scale=float(size.removesuffix("g")),
            kinds=scaling_model.stage_kinds(below, base),
            partition=PARTITION,
            levels=LEVELS,
            most_samples=MOST_SAMPLES,
        )
        for size in RELEASED_SIZES
        for query, below, base in zip(QUERIES, small, large, strict=True)
    ]
