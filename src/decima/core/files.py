"""Atomic files, locks of folders, and conversion of values to JSON."""

import contextlib
import errno
import fcntl
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decima.core.checks import is_name
from decima.core.errors import ConfigError, WorkloadError


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path; flush and rename it to `path` when the block succeeds.

    The temporary file lies in the same folder, so the rename is atomic. When the block raises, it is removed
    and `path` is as before.

    Args:
        path: where the finished file belongs; missing folders are created. A symbolic link stays, the file that it
            leads to is replaced.
    """
    # The suffix is kept: libraries such as matplotlib choose the format by it.
    suffix = f".part{Path(path).suffix}"
    path = written_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, mode = _new_file(path, suffix)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with _opened(path.parent) as folder:
        os.fsync(folder)


def written_file(path: str | os.PathLike) -> Path:
    """The file that is written for a path: a link leads to another one.

    Raises:
        OSError: Symbolic links lead to each other.
    """
    path = Path(path)
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def atomic_write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Write bytes through `atomic_path`."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def atomic_write_text(path: str | os.PathLike, content: str) -> None:
    """Write text as UTF-8, line ends as they are, through `atomic_path`."""
    atomic_write_bytes(path, content.encode("utf-8"))


@contextlib.contextmanager
def sole_use(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock a folder against other processes that use this lock, during a block.

    The lock leaves no file and ends with the process, however that ends.

    Args:
        folder: a folder; made if there is none.
        wait: wait until nobody else has it, however long that takes.

    Yields:
        Whether nobody else has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Descriptor of a folder during a block."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def read_json(path: str | os.PathLike, **options: Any) -> Any:
    """Read a JSON value from a file.

    Args:
        path: The file.
        **options: As :func:`json.loads` takes them.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not UTF-8, not JSON, or nested deeper than can be read.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"), **options)
    except RecursionError as error:
        raise ValueError(f"nested too deeply: {error}") from error


def read_yaml(path: str | os.PathLike) -> dict:
    """Read the fields of a YAML file.

    Args:
        path: The file.

    Raises:
        ConfigError: The file cannot be read, is not YAML, or does not hold fields and values.
    """
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also not UTF-8, or 2026-13-45
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return fields_of(content, str(path))


def fields_of(value: Any, where: str) -> dict:
    """The value itself, which has to hold fields and values.

    Raises:
        ConfigError: It is something else.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must hold fields and values, got {value!r:.60}")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of a JSON file, for ``object_pairs_hook``.

    Raises:
        WorkloadError: A key is not Unicode text, or is given twice.
    """
    content = dict(pairs)
    if broken := [key for key in content if key and not is_name(key)]:
        raise WorkloadError(f"key {broken[0]!r} is not Unicode text")
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise WorkloadError(f"key {twice!r} is given twice in one object, among {sorted(content)}")
    return content


def _new_file(path: Path, suffix: str) -> tuple[Path, int]:
    """Make a hidden file next to a path that nobody else can open.

    Returns its path, and the mode of any new file. The system itself applies the umask, which can be asked for only by
    changing it for all threads.
    """
    while True:
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{suffix}")
        try:
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            continue
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        return temporary, mode


def plain(value: Any) -> Any:
    """Convert NumPy values, also nested ones, to JSON values; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
