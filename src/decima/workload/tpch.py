"""TPC-H job profiles: 22 queries at 7 input sizes, as published with the simulator of the paper."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from decima import config
from decima.exceptions import DataUnavailableError, WorkloadError
from decima.workload import arrivals, parquet, tpch_raw
from decima.workload.jobs import Workload
from decima.workload.profile import JobProfile

LABEL = "TPC-H"
QUERIES = tuple(range(1, 23))
PAPER_SIZES = ("2g", "5g", "10g", "20g", "50g", "100g")
RELEASED_SIZES = ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
PREPARED_NAME = "tpch.parquet"


def tpch_profile(size: str, query: int) -> JobProfile:
    """Profile of one query at one input size.

    Reads the prepared file, which is made from the raw files when these are present.

    Args:
        size: one of `RELEASED_SIZES`, for example `"10g"`.
        query: 1 to 22.

    Raises:
        WorkloadError: there is no such size or query.
        DataUnavailableError: the data was not fetched.
    """
    return tpch_profiles([size], [query])[0]


def tpch_profiles(
    sizes: str | Sequence[str] = "released", queries: Sequence[int] = QUERIES
) -> tuple[JobProfile, ...]:
    """Profiles of all given queries at all given sizes, size by size.

    The same object is returned for the same query and size as long as the prepared file does not change.

    Args:
        sizes: `"paper"` (six sizes), `"released"` (seven, with 80g) or a list of sizes.
        queries: query numbers, 1 to 22.

    Raises:
        WorkloadError: there is no such size or query.
        DataUnavailableError: the data was not fetched.
    """
    keys = [(size, query) for size in resolve_sizes(sizes) for query in queries]
    for size, query in keys:
        _check_key(size, query)
    table = _table()
    return tuple(table[profile_name(*key)] for key in keys)


def tpch_batch(n: int = 20, seed: int = 0, sizes: str | Sequence[str] = "paper") -> Workload:
    """Queries drawn uniformly over all queries and sizes, all present at the start.

    Args:
        n: number of jobs.
        seed: 0 or more.
        sizes: as in `tpch_profiles`.

    Raises:
        ConfigError: `n` or `seed` is out of range.
        WorkloadError: there is no such size.
        DataUnavailableError: the data was not fetched.

    Source: §7.2, batched arrivals.
    """
    return arrivals.batch(tpch_profiles(sizes), n, seed, label=LABEL)


def tpch_poisson(
    n: int,
    mean_interarrival_s: float,
    seed: int = 0,
    sizes: str | Sequence[str] = "paper",
    initial: int = 1,
) -> Workload:
    """Queries drawn uniformly over all queries and sizes, arriving as a Poisson process.

    Args:
        n: number of arrivals, besides the initial jobs.
        mean_interarrival_s: mean gap in seconds.
        seed: 0 or more.
        sizes: as in `tpch_profiles`.
        initial: jobs present at time 0.

    Raises:
        ConfigError: a number is out of range.
        WorkloadError: there is no such size.
        DataUnavailableError: the data was not fetched.

    Source: §7.2, continuous arrivals.
    """
    return arrivals.poisson(tpch_profiles(sizes), n, mean_interarrival_s, seed, initial, label=LABEL)


def tpch_available() -> bool:
    """True when the profiles are on disk, prepared or as a full set of raw files."""
    raw = config.raw_tpch_dir()
    return (config.workloads_dir() / PREPARED_NAME).is_file() or all(
        (raw / name).is_file() for name in tpch_raw.checksums()
    )


def resolve_sizes(sizes: str | Sequence[str]) -> tuple[str, ...]:
    """Turn `"paper"`, `"released"`, one size or a list of sizes into a tuple of sizes.

    Raises:
        WorkloadError: a size is unknown or none is given.
    """
    if isinstance(sizes, str):
        sizes = {"paper": PAPER_SIZES, "released": RELEASED_SIZES}.get(sizes, (sizes,))
    sizes = tuple(sizes)
    if not sizes:
        raise WorkloadError(
            "no TPC-H size is given; expected 'paper', 'released' or some of " + ", ".join(RELEASED_SIZES)
        )
    for size in sizes:
        _check_key(size, 1)
    return sizes


def profile_name(size: str, query: int) -> str:
    """Name of a TPC-H profile, for example `q9-10g`."""
    return f"q{query}-{size}"


def prepare_tpch(raw: Path | None = None, path: Path | None = None) -> Path:
    """Read all raw files and write them as one prepared file.

    Args:
        raw: folder of the raw files; `data/raw/tpch` when omitted.
        path: the prepared file; `data/workloads/tpch.parquet` when omitted.

    Returns:
        The path of the prepared file.

    Raises:
        DataUnavailableError: a raw file is missing.
        ChecksumError: a raw file differs from the checksum kept in the package.
    """
    raw = config.raw_tpch_dir() if raw is None else Path(raw)
    path = config.workloads_dir() / PREPARED_NAME if path is None else Path(path)
    profiles = [tpch_raw.read_raw_profile(raw, size, query) for size in RELEASED_SIZES for query in QUERIES]
    parquet.write_profiles(profiles, path, {"label": LABEL, "raw_sha256": tpch_raw.checksums_digest()})
    return path


def _check_key(size: str, query: int) -> None:
    if size not in RELEASED_SIZES:
        raise WorkloadError(f"TPC-H size {size!r} is unknown; expected one of {', '.join(RELEASED_SIZES)}")
    if isinstance(query, bool) or query not in QUERIES:
        raise WorkloadError(f"TPC-H query {query!r} is unknown; expected 1 to {QUERIES[-1]}")


def _table() -> dict[str, JobProfile]:
    """All profiles by name, from the prepared file, which is made anew when missing or of other raw files."""
    path = config.workloads_dir() / PREPARED_NAME
    if path.is_file():
        profiles, digest = _load(*_version(path))
        if digest == tpch_raw.checksums_digest():
            return profiles
    raw = config.raw_tpch_dir()
    if not raw.is_dir():
        raise DataUnavailableError(
            f"TPC-H profiles are neither at {path} nor at {raw}: run 'decima data fetch tpch' (with "
            f"{config.MIRROR_VARIABLE} set to a local copy, or with network access), "
            "or use the embedded workload"
        )
    profiles, _ = _load(*_version(prepare_tpch(raw, path)))
    return profiles


def _version(path: Path) -> tuple[Path, int, int]:
    status = path.stat()
    return path, status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=2)
def _load(path: Path, modified_ns: int, size: int) -> tuple[dict[str, JobProfile], str | None]:
    # Time and size are part of the key, so that a file prepared anew is read anew.
    profiles = {profile.name: profile for profile in parquet.read_profiles(path)}
    return profiles, parquet.read_metadata(path).get("raw_sha256")
