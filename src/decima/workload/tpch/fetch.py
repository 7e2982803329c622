"""Fetching of the TPC-H files: from a local mirror if one is set, else from the public repository."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from decima import config
from decima.exceptions import ChecksumError, DataUnavailableError
from decima.files import atomic_write_bytes
from decima.progress import progress_bar
from decima.workload.tpch.raw import check_digest, checksums

COMMIT = "c010dd74ff4b7566bd0ac989c90a32cfbc630d84"
BASE_URL = f"https://raw.githubusercontent.com/hongzimao/decima-sim/{COMMIT}/spark_env/tpch"
THREADS = 8
TIMEOUT_S = (5.0, 30.0)  # to connect, to receive
ATTEMPTS = 3
_BOTH_WAYS = (
    f"Set {config.MIRROR_VARIABLE} to a folder with tpch/<size>/*.npy and run 'decima data fetch tpch', "
    "or run it with network access; files fetched and verified are kept. "
    "The embedded workload needs no data."
)


def fetch_tpch(progress: bool = False, destination: Path | None = None) -> Path:
    """Fetch all 308 TPC-H files that are not there yet; each is verified before it is put in place.

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
    missing = [name for name in checksums() if not _is_verified(destination / name, name)]
    if not missing:
        return destination
    mirror = config.mirror_dir()

    def fetch(name: str, attempts: int) -> None:
        content, source = _from_network(name, attempts) if mirror is None else _from_mirror(name, mirror)
        check_digest(content, name, source)
        atomic_write_bytes(destination / name, content)

    with progress_bar("TPC-H profiles" if progress else None, len(missing), "file") as bar:
        fetch(missing[0], 1)  # alone and once: an unreachable source is reported at once, not 308 times
        bar.update()
        pool = ThreadPoolExecutor(THREADS)
        try:
            for _ in pool.map(lambda name: fetch(name, ATTEMPTS), missing[1:]):
                bar.update()
        finally:
            pool.shutdown(cancel_futures=True)
    return destination


def _is_verified(path: Path, name: str) -> bool:
    try:
        check_digest(path.read_bytes(), name, path)
    except (FileNotFoundError, ChecksumError):
        return False  # a damaged file is fetched again
    return True


def _from_mirror(name: str, mirror: Path) -> tuple[bytes, str]:
    """Read a file of the mirror; returns its content and its path."""
    path = mirror / "tpch" / name
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        raise DataUnavailableError(
            f"the mirror {mirror} has no readable file {path}: {error.strerror}. {_BOTH_WAYS}"
        ) from error


def _from_network(name: str, attempts: int) -> tuple[bytes, str]:
    """Download a file; returns its content and its address."""
    import pooch
    import requests

    url = f"{BASE_URL}/{name}"
    download = pooch.HTTPDownloader(timeout=TIMEOUT_S)
    while True:
        attempts -= 1
        buffer = io.BytesIO()
        try:
            download(url, buffer, None)
            return buffer.getvalue(), url
        except requests.RequestException as error:
            if attempts == 0:
                raise DataUnavailableError(f"cannot fetch {url}: {_reason(error)}. {_BOTH_WAYS}") from error
        time.sleep(1.0)


def _reason(error: Exception) -> str:
    """Say what happened in a few words; the exception itself spells out three layers of wrapping."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_S[0]:.0f} s"
    return type(error).__name__ + " (no network, or the host cannot be reached)"
