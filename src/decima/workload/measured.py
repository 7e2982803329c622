"""TPC-H as measured on this project's own Spark: what event logs say, and nothing else (`docs/measured-workload.md`).

The profiles hold the executor counts and scale factors that were run. What is beyond them is
`decima.workload.embedded`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from decima.exceptions import WorkloadError
from decima.workload import arrivals, parquet
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

LABEL = "TPC-H measured on Spark"
QUERIES = tuple(range(1, 23))
PATH = Path(__file__).parent / "data" / "tpch_spark_measured.parquet"
_NAME = re.compile(r"q(\d+)-(\d+(?:\.\d+)?)g")
_NOT_CONDITIONS = ("format", "version")


def profile_name(query: int, scale: float) -> str:
    """Name of a profile: `q9-1g` is query 9 at scale factor 1."""
    return f"q{query}-{scale:g}g"


def parse_name(name: str) -> tuple[int, float]:
    """Query and scale factor of a profile.

    Raises:
        WorkloadError: the name is not of the form of `profile_name`.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise WorkloadError(f"profile {name!r}: expected a name like q9-0.25g, query and scale factor")
    return int(found[1]), float(found[2])


def scales() -> tuple[float, ...]:
    """Scale factors that were measured, ascending; at scale 1 the tables are 1 GB of text."""
    return tuple(sorted({scale for _, scale in _table()}))


def conditions() -> dict[str, str]:
    """What the measurement was made with: machine, versions, settings, load, date."""
    return {key: value for key, value in parquet.read_metadata(PATH).items() if key not in _NOT_CONDITIONS}


def measured_profiles(
    sizes: str | Sequence[str] = "all", queries: Sequence[int] = QUERIES
) -> tuple[JobProfile, ...]:
    """Profiles of the given queries at the given scale factors, size by size.

    Args:
        sizes: `"all"`, one size or a list of them; `"0.25g"` is scale factor 0.25. `"paper"` and `"released"`, which
            choose among the sizes of other workloads, mean all sizes here.
        queries: query numbers, 1 to 22.

    Raises:
        WorkloadError: there is no such size or query.
    """
    table = _table()
    known = {f"{scale:g}g": scale for scale in scales()}
    if isinstance(sizes, str):
        sizes = tuple(known) if sizes in ("all", "paper", "released") else (sizes,)
    if not sizes:
        raise WorkloadError(f"no size is given; expected 'all' or some of {', '.join(known)}")
    for size in sizes:
        if size not in known:
            raise WorkloadError(f"size {size!r} was not measured; expected 'all' or some of {', '.join(known)}")
    for query in queries:
        if query not in QUERIES:
            raise WorkloadError(f"query {query!r} is unknown; expected 1 to {QUERIES[-1]}")
    return tuple(table[query, known[size]] for size in sizes for query in queries)


def measured_batch(n: int = 20, seed: int = 0, sizes: str | Sequence[str] = "all") -> Workload:
    """Measured queries drawn uniformly over queries and sizes, all present at the start.

    Args:
        n: number of jobs.
        seed: 0 or more.
        sizes: as in `measured_profiles`.

    Raises:
        ConfigError: `n` or `seed` is out of range.
        WorkloadError: there is no such size.
    """
    return arrivals.batch(measured_profiles(sizes), n, seed, label=LABEL)


def measured_poisson(
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    sizes: str | Sequence[str] = "all",
    initial: int = 1,
) -> Workload:
    """Measured queries drawn uniformly, arriving as a Poisson process.

    Args:
        n: number of arrivals, besides the initial jobs.
        mean_interarrival_s: mean gap in seconds.
        seed: 0 or more.
        sizes: as in `measured_profiles`.
        initial: jobs present at time 0.

    Raises:
        ConfigError: a number is out of range.
        WorkloadError: there is no such size.
    """
    return arrivals.poisson(measured_profiles(sizes), n, mean_interarrival_s, seed, initial, label=LABEL)


@functools.cache
def _table() -> dict[tuple[int, float], JobProfile]:
    return {parse_name(profile.name): profile for profile in parquet.read_profiles(PATH)}
