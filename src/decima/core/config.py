"""Folders of data on disk; writers create the folders that they need."""

import os
import tempfile
import tomllib
import warnings
from functools import cache
from pathlib import Path

import platformdirs

DISTRIBUTION = "decima-sched"
DATA_DIR_VARIABLE = "DECIMA_DATA_DIR"
MIRROR_VARIABLE = "DECIMA_DATA_MIRROR"
_KEPT: list[tempfile.TemporaryDirectory] = []  # removed when the process ends


def checkout_root(start: Path | None = None) -> Path | None:
    """Find the checkout of this project that holds a folder.

    Args:
        start: folder to start from; the current directory when omitted.

    Returns:
        The nearest folder at or above `start` whose `pyproject.toml` is this project's, or None.
    """
    start = Path.cwd() if start is None else Path(start).resolve()
    for folder in (start, *start.parents):
        if _is_project(folder / "pyproject.toml"):
            return folder
    return None


def data_root() -> Path:
    """Folder of all data: `$DECIMA_DATA_DIR`, else `data/` of the checkout, else the user's data folder."""
    if chosen := os.environ.get(DATA_DIR_VARIABLE):
        return Path(chosen).expanduser().absolute()
    root = checkout_root()
    return user_data_root() if root is None else root / "data"


def user_data_root() -> Path:
    """Folder of data outside of a checkout."""
    return Path(platformdirs.user_data_dir(DISTRIBUTION, appauthor=False))


def raw_tpch_dir() -> Path:
    """Folder of the fetched TPC-H files, never edited: `<size>/task_duration_<query>.npy` and so on."""
    return data_root() / "raw" / "tpch"


def workloads_dir() -> Path:
    """Folder of prepared profiles in the columnar format (`docs/workload-format.md`)."""
    return data_root() / "workloads"


def mirror_dir() -> Path | None:
    """Local copy of the public data sets to fetch from (`$DECIMA_DATA_MIRROR`), or None when unset."""
    chosen = os.environ.get(MIRROR_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else None


def kernels_folder() -> str:
    """Folder of compiled functions: `$NUMBA_CACHE_DIR`, else one in the user's cache."""
    return _writable(os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_dir(DISTRIBUTION))


@cache
def _writable(folder: str) -> str:
    """The folder, or where it cannot be written one that ends with this process.

    Numba would keep its files next to the sources then, under a name that knows nothing of what a function calls.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        warnings.warn(
            f"compiled code cannot be kept in {folder} ({error.strerror}), so that every process compiles it again; "
            "let NUMBA_CACHE_DIR name a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )
        _KEPT.append(tempfile.TemporaryDirectory(prefix="decima-kernels-"))
        return _KEPT[-1].name


def _is_project(pyproject: Path) -> bool:
    if not pyproject.is_file():
        return False
    status = pyproject.stat()
    return _names_project(pyproject, status.st_mtime_ns, status.st_size)


@cache
def _names_project(pyproject: Path, changed_ns: int, size: int) -> bool:
    """Whether a file is this project's, read once while it stays the same."""
    try:
        content = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False  # somebody else's broken file above the current directory is no concern of ours
    return content.get("project", {}).get("name") == DISTRIBUTION
