"""TPC-H job profiles: 22 queries at 7 input sizes, as the authors published them."""

import functools
from collections.abc import Sequence
from pathlib import Path

from decima.core import config
from decima.core.errors import DataUnavailableError
from decima.workload import parquet
from decima.workload.profile import JobProfile
from decima.workload.sources import CHOSEN_QUERIES, QUERIES, SIZES, WorkloadSource, resolve_queries, resolve_sizes
from decima.workload.tpch import raw as tpch_raw

LABEL = "TPC-H"
PAPER_SIZES = ("2g", "5g", "10g", "20g", "50g", "100g")
RELEASED_SIZES = ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
GROUPS = {"paper": PAPER_SIZES, "released": RELEASED_SIZES}
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
    sizes: str | Sequence[str] = "released", queries: str | Sequence[int] = "all"
) -> tuple[JobProfile, ...]:
    """Profiles of queries at sizes, size by size.

    The same object is returned for the same query and size as long as the prepared file does not change.

    Args:
        sizes: `"paper"` (six sizes), `"released"` (seven, with 80g), some of them as `"2g+10g"`, or a list of sizes.
        queries: numbers from 1 to 22, `"all"`, or a text such as `"1-16+20"`.

    Raises:
        WorkloadError: there is no such size or query.
        DataUnavailableError: the data was not fetched.
    """
    chosen = resolve_sizes(sizes, RELEASED_SIZES, GROUPS, "TPC-H")
    numbers = resolve_queries(queries)
    table = _table()
    return tuple(table[profile_name(size, query)] for size in chosen for query in numbers)


def tpch_available() -> bool:
    """Whether the profiles are on disk, prepared or as all raw files."""
    raw = config.raw_tpch_dir()
    return (config.workloads_dir() / PREPARED_NAME).is_file() or all(
        (raw / name).is_file() for name in tpch_raw.checksums()
    )


def profile_name(size: str, query: int) -> str:
    """Name of a TPC-H profile, for example `q9-10g`."""
    return f"q{query}-{size}"


def prepare_tpch(raw: Path | None = None, path: Path | None = None) -> Path:
    """Read all raw files and write them as one prepared file.

    Args:
        raw: folder of the raw files; `data/raw/tpch` when omitted.
        path: the prepared file; `data/workloads/tpch.parquet` when omitted.

    Raises:
        DataUnavailableError: a raw file is missing.
        ChecksumError: a raw file differs from the checksum kept in the package.
    """
    raw = config.raw_tpch_dir() if raw is None else Path(raw)
    path = config.workloads_dir() / PREPARED_NAME if path is None else Path(path)
    profiles = [tpch_raw.read_raw_profile(raw, size, query) for size in RELEASED_SIZES for query in QUERIES]
    parquet.write_profiles(profiles, path, {"label": LABEL, "raw_sha256": tpch_raw.checksums_digest()})
    return path


def _table() -> dict[str, JobProfile]:
    """Read all profiles by name; rebuild the prepared file if raw files changed."""
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
            f"or use the embedded workload (--jobs embedded:n=20){_elsewhere()}"
        )
    profiles, _ = _load(*_version(prepare_tpch(raw, path)))
    return profiles


def _elsewhere() -> str:
    """Hint at profiles that were fetched outside of the checkout."""
    root = config.user_data_root()
    if root == config.data_root() or not any(
        (root / name).exists() for name in ("raw/tpch", f"workloads/{PREPARED_NAME}")
    ):
        return ""
    return f"; those fetched outside of this checkout are read with {config.DATA_DIR_VARIABLE}={root}"


def _version(path: Path) -> tuple[Path, int, int]:
    status = path.stat()
    return path, status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=2)
def _load(path: Path, modified_ns: int, size: int) -> tuple[dict[str, JobProfile], str | None]:
    # Time and size are part of the key, so that a file prepared anew is read anew.
    profiles = {profile.name: profile for profile in parquet.read_profiles(path)}
    return profiles, parquet.read_metadata(path).get("raw_sha256")


SOURCE = WorkloadSource(
    "tpch",
    LABEL,
    "TPC-H queries as the authors measured them; fetched by 'decima data fetch tpch'",
    tpch_profiles,
    lambda queries="all": tpch_raw.checksums_digest(),
    options=(SIZES, CHOSEN_QUERIES),
    available=tpch_available,
    query_profile=lambda size_gb, query: tpch_profile(f"{size_gb:g}g", query),
)
tpch_batch, tpch_poisson = SOURCE.batch, SOURCE.poisson
