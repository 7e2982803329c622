"""Workload source that draws from the job profiles of a file."""

from __future__ import annotations

import functools
from pathlib import Path

from decima.core.errors import DataUnavailableError
from decima.core.grammar import Option
from decima.workload.json_jobs import load
from decima.workload.profile import JobProfile
from decima.workload.sources import WorkloadSource, file_digest


def file_profiles(path: str) -> tuple[JobProfile, ...]:
    """Distinct profiles of the jobs in a file, in order of first use.

    Args:
        path: A ``.parquet`` of profiles, or a ``.json`` of jobs.

    Raises:
        WorkloadError: The file is not of its format.
        DataUnavailableError: It cannot be read.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:  # a zero byte in the path
        raise DataUnavailableError(f"no workload file to read at {path!r:.200}: {error}") from error
    return _read(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _read(path: str, modified_ns: int, size: int) -> tuple[JobProfile, ...]:
    # Time and size are part of the key, so that a file written anew is read anew.
    return load(path).universe


SOURCE = WorkloadSource(
    "file",
    "jobs of a file",
    "profiles of a file of one's own, drawn from like those of any other source",
    file_profiles,
    lambda path: file_digest(Path(path)),
    options=(Option("path", "a .parquet of profiles, or a .json of jobs", required=True),),
)
