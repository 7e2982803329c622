"""The two traces published with the paper: fetched and verified, never part of this project.

``jobs.csv`` (50 jobs, normal arrivals) and ``jobs_burst.csv`` (100 jobs, burst) state no licence. They are taken from
``$DECIMA_DATA_MIRROR/cloud_vm`` if a mirror is set, else from the public repository at the pinned commit, and compared
with the checksums kept here.

Source: GitHub ``tawfiqul-islam/RM_DeepRL``, folder ``input``.
"""

import csv
import io
from pathlib import Path

from decima.core import config
from decima.core.errors import DataUnavailableError, WorkloadError
from decima.systems.cloud.workload import PlacementWorkload, jobs_of_rows
from decima.workload.pinned import PinnedFiles

COMMIT = "899064657d0fcbd5c4d637defc6c038a9b976ce2"
BASE_URL = f"https://raw.githubusercontent.com/tawfiqul-islam/RM_DeepRL/{COMMIT}/input"
CHECKSUMS = {
    "jobs.csv": "a080a1a56068b0aa5dfdbbc3be1c517103c49fe92626f4d1b881c3d7383595e3",
    "jobs_burst.csv": "7f940ec92f36578e881da087b7497acf41e039400e21210a5a0e9ea613ca1f2d",
}
TRACES = {"normal": "jobs.csv", "burst": "jobs_burst.csv"}
_REMEDY = (
    f"Set {config.MIRROR_VARIABLE} to a folder with cloud_vm/jobs.csv and run 'decima data fetch cloud-vm', or run it "
    "with network access. The source 'generated' needs no data."
)


def traces_folder() -> Path:
    """Folder of the fetched traces."""
    return config.data_root() / "raw" / "cloud_vm"


def fetch_traces(*, force: bool = False) -> Path:
    """Fetch and verify the traces that are not there yet.

    Args:
        force: Fetch again what is already there.

    Returns:
        The folder of the files.

    Raises:
        DataUnavailableError: The source cannot be reached or lacks a file.
        ChecksumError: A file of the source differs from the checksum kept here.
    """
    return _files().fetch(traces_folder(), force=force, all_or_none=True)


def _files() -> PinnedFiles:
    return PinnedFiles("cloud-vm", "cloud_vm", BASE_URL, CHECKSUMS, _REMEDY)


def fetch_line(force: bool) -> str:
    """Fetch, for ``decima data fetch cloud-vm``, and say what is there."""
    folder = fetch_traces(force=force)
    source = config.mirror_dir() or "the public repository"
    return f"cloud-vm: {len(CHECKSUMS)} files in {folder}, verified (source: {source})"


def status_line() -> str:
    """What ``decima data status`` says of the traces."""
    present = sum((traces_folder() / name).is_file() for name in CHECKSUMS)
    whole = sum(map(is_verified, CHECKSUMS))
    return f"{whole} of {len(CHECKSUMS)} files verified, {present} present, in {traces_folder()}"


def is_verified(name: str) -> bool:
    """Whether a file is there, unchanged."""
    return _files().is_verified(traces_folder() / name, name)


def traces_available() -> bool:
    """Whether both traces are on this machine, unchanged."""
    return all(map(is_verified, CHECKSUMS))


def load_trace(name: str) -> PlacementWorkload:
    """One of the published traces.

    Args:
        name: ``"normal"`` or ``"burst"``.

    Raises:
        DataUnavailableError: It was not fetched.
        ChecksumError: The file was changed.
    """
    if name not in TRACES:
        raise WorkloadError(f"unknown trace {name!r}; expected {' or '.join(TRACES)}")
    path = traces_folder() / TRACES[name]
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataUnavailableError(
            f"the trace {name} is not at {path}: run 'decima data fetch cloud-vm'. {_REMEDY}"
        ) from error
    _files().check(content, TRACES[name], path)
    return jobs_of_rows(list(csv.reader(io.StringIO(content.decode("ascii")))), f"{name} trace")
