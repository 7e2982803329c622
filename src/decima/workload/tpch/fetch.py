"""Fetching of the TPC-H files from a local mirror or the public repository."""

from __future__ import annotations

from pathlib import Path

from decima.core import config
from decima.workload.pinned import PinnedFiles
from decima.workload.tpch.raw import LABEL, checksums

COMMIT = "c010dd74ff4b7566bd0ac989c90a32cfbc630d84"
BASE_URL = f"https://raw.githubusercontent.com/hongzimao/decima-sim/{COMMIT}/spark_env/tpch"
_BOTH_WAYS = (
    f"Set {config.MIRROR_VARIABLE} to a folder with tpch/<size>/*.npy and run 'decima data fetch tpch', "
    "or run it with network access; files fetched and verified are kept. "
    "The embedded workload needs no data."
)


def fetch_tpch(progress: bool = False, destination: Path | None = None) -> Path:
    """Fetch and verify all missing ones of the 308 TPC-H files.

    Args:
        progress: show a progress bar.
        destination: where to put them; `data/raw/tpch` when omitted.

    Returns:
        The folder of the files.

    Raises:
        DataUnavailableError: the source cannot be reached or lacks a file.
        ChecksumError: a file of the source differs from the checksum kept in the package.
    """
    destination = config.raw_tpch_dir() if destination is None else Path(destination)
    files = PinnedFiles(LABEL, "tpch", BASE_URL, checksums(), _BOTH_WAYS)
    return files.fetch(destination, progress="TPC-H profiles" if progress else None)
