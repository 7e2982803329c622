"""Reader of the published TPC-H files.

They are pickles inside `.npy` containers. A file is read once, its checksum is compared first, and the pickle
then goes through an unpickler that knows only the array classes these files need.
"""

import functools
import hashlib
import importlib.resources
import io
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from decima.core import config
from decima.core.errors import DataUnavailableError, WorkloadError
from decima.workload.pinned import PinnedFiles
from decima.workload.profile import JobProfile, Stage

LABEL = "TPC-H"  # what errors call the files

ORIGIN = "tpch"
_STORED_WAVES = frozenset({"fresh_durations", "first_wave", "rest_wave"})


def read_raw_profile(raw: Path, size: str, query: int) -> JobProfile:
    """Read one query at one size from the raw files.

    The task count of a stage is the one at the first *stored* level, before cleaning. First-wave lists are
    stored with the fresh durations inside; these are taken out as a multiset, and a list that is empty then
    takes the one of the next lower level.

    Args:
        raw: folder with `<size>/adj_mat_<query>.npy` and `<size>/task_duration_<query>.npy`.
        size: one of `RELEASED_SIZES`.
        query: 1 to 22.

    Raises:
        DataUnavailableError: a file is missing.
        ChecksumError: a file differs from the checksum kept in the package.
        WorkloadError: the content is not what it should be.
    """
    adjacency = _read_adjacency(raw / size / f"adj_mat_{query}.npy", f"{size}/adj_mat_{query}.npy")
    durations_path = raw / size / f"task_duration_{query}.npy"
    tables = load_restricted(_verified(durations_path, f"{size}/task_duration_{query}.npy"), durations_path)
    name = f"q{query}-{size}"
    if not isinstance(tables, dict) or sorted(tables) != list(range(len(adjacency))):
        raise WorkloadError(
            f"job {name!r}: {durations_path} does not hold one table for each of {len(adjacency)} stages"
        )
    stages = []
    for index in range(len(adjacency)):
        parents = tuple(int(parent) for parent in np.flatnonzero(adjacency[:, index]))
        stages.append(_stage(f"job {name!r}, stage '{index}'", str(index), parents, tables[index]))
    return JobProfile(name, tuple(stages), ORIGIN)


def remove_fresh(first: Sequence[int], fresh: Sequence[int]) -> list[int]:
    """Remove fresh durations from a stored first wave, the earliest equal value each."""
    left = Counter(fresh)
    kept = []
    for duration in first:
        if left[duration] > 0:
            left[duration] -= 1
        else:
            kept.append(duration)
    return kept


def clean_first_waves(first: Mapping[int, Sequence[int]], fresh: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Remove fresh durations from first waves; an empty level inherits from below.

    What is inherited may itself be inherited. A list with nothing below it stays empty.
    """
    cleaned: dict[int, list[int]] = {}
    inherited: list[int] = []
    for level in sorted(first):
        inherited = remove_fresh(first[level], fresh[level]) or inherited
        cleaned[level] = inherited
    return cleaned


def load_restricted(content: bytes, path: Path | str):
    """Decode a `.npy` file that holds one pickled object, admitting numpy's array classes only.

    Raises:
        WorkloadError: the file is truncated, of another kind, or its pickle asks for more than numpy arrays.
    """
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise WorkloadError(f"{path}: expected version 1.0 of the npy format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if shape != () or dtype != np.dtype(object):
            raise WorkloadError(f"{path} holds an array of shape {shape} and type {dtype}; expected one object")
        return _ArrayUnpickler(stream, path).load().item()
    except WorkloadError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise WorkloadError(f"{path} is truncated or damaged: {type(error).__name__}: {error}") from error


@functools.cache
def checksums() -> Mapping[str, str]:
    """SHA-256 of every raw file by its path inside the data set, for example `2g/adj_mat_1.npy`."""
    lines = _checksums_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def check_digest(content: bytes, name: str, path: Path | str) -> None:
    """Compare content with the checksum kept for a raw file.

    Raises:
        ChecksumError: they differ; names the file, what was got and what was expected.
    """
    PinnedFiles(LABEL, "tpch", "", checksums(), "").check(content, name, path)


def _checksums_text() -> str:
    return importlib.resources.files("decima.workload.tpch").joinpath("tpch.sha256").read_text(encoding="ascii")


@functools.cache
def checksums_digest() -> str:
    """SHA-256 of the list of checksums: names the version of the raw data."""
    return hashlib.sha256(_checksums_text().encode("ascii")).hexdigest()


def _verified(path: Path, name: str) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DataUnavailableError(f"TPC-H file {name} is missing at {path}: run 'decima data fetch tpch'") from error
    check_digest(content, name, path)
    return content


def _read_adjacency(path: Path, name: str) -> np.ndarray:
    content = _verified(path, name)
    adjacency = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1] or not np.isin(adjacency, (0.0, 1.0)).all():
        raise WorkloadError(f"{path} holds an array of shape {adjacency.shape}; expected a square matrix of 0 and 1")
    return adjacency


def _stage(where: str, name: str, parents: tuple[int, ...], table) -> Stage:
    if not isinstance(table, dict) or set(table) != _STORED_WAVES:
        raise WorkloadError(f"{where}: expected one table for each of {', '.join(sorted(_STORED_WAVES))}")
    stored_first, stored_rest, fresh = table["first_wave"], table["rest_wave"], table["fresh_durations"]
    if not set(stored_first) == set(stored_rest) == set(fresh) or not stored_first:
        raise WorkloadError(f"{where}: the three waves are not profiled at the same levels")
    level = next(iter(stored_first))  # as stored: 2, 100, 5, 40, ...
    num_tasks = len(stored_first[level]) + len(stored_rest[level])
    first = clean_first_waves(stored_first, fresh)
    levels = tuple(sorted(stored_first))
    return Stage(
        name,
        num_tasks,
        parents,
        levels,
        *(tuple(np.array(lists[level], dtype=np.float64) for level in levels) for lists in (fresh, first, stored_rest)),
    )


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler that knows the three names an object array needs, and nothing else."""

    _RECONSTRUCT = np.empty(0).__reduce__()[0]
    _ADMITTED: ClassVar = {
        ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
        ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def __init__(self, stream: io.BytesIO, path: Path | str) -> None:
        super().__init__(stream)
        self._path = path

    def find_class(self, module: str, name: str):
        try:
            return self._ADMITTED[module, name]
        except KeyError:
            raise WorkloadError(
                f"{self._path}: its pickle asks for {module}.{name}, which profiles never need; "
                "refused before anything ran"
            ) from None


COMMIT = "c010dd74ff4b7566bd0ac989c90a32cfbc630d84"
BASE_URL = f"https://raw.githubusercontent.com/hongzimao/decima-sim/{COMMIT}/spark_env/tpch"
_HOW_TO_GET = (
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
    files = PinnedFiles(LABEL, "tpch", BASE_URL, checksums(), _HOW_TO_GET)
    return files.fetch(destination, progress="TPC-H profiles" if progress else None)
