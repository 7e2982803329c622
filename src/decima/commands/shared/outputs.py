"""Output files of commands: refused before the work where they cannot be written, put in place whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from decima.core.errors import ConfigError
from decima.core.files import atomic_path, plain


def check_output(path: Path | None, *endings: str, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse an output file that could not be written, before any work is done for it.

    Args:
        path: the file; None is no file.
        endings: accepted ends of the name; any when empty.
        inputs: files that the command reads and must not overwrite.

    Raises:
        ConfigError: says what is wrong with the path.
    """
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise ConfigError(f"cannot write {path}: expected a name that ends in {' or '.join(endings)}")
    if path.exists() and not path.is_file():
        # Devices, too: renaming the finished file would put it in their place.
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigError(f"cannot write {path}: it is {kind}")
    if any(given is not None and given.exists() and _same(given, path) for given in inputs):
        raise ConfigError(f"cannot write {path}: the command reads that file")
    _require_writable(path, path.absolute().parents)


def check_folder(folder: Path) -> None:
    """Refuse an output folder that could not be written, before any work is done for it.

    Raises:
        ConfigError: says what is wrong with the path.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"cannot write {folder}: it is not a folder")
    _require_writable(folder, (folder.absolute(), *folder.absolute().parents))


@contextlib.contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, and put it in place of `path` when the block succeeds.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        with atomic_path(path) as temporary:
            yield temporary
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file, one line per key and per item of a list of lists; NaN and infinity become null."""
    lines = [f"{json.dumps(key)}: {_value(value)}" for key, value in document.items()]
    with output_path(path) as temporary:
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def write_table(path: Path, table) -> None:
    """Write a pandas table as csv or, by the end of the name, parquet."""
    with output_path(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)


def _require_writable(path: Path, folders: Iterable[Path]) -> None:
    """Raise ConfigError unless files can be made in the first of the folders that is there."""
    known = next(folder for folder in folders if folder.exists())
    if not known.is_dir():
        raise ConfigError(f"cannot write {path}: {known} is not a folder")
    if not os.access(known, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot write {path}: no permission to write in {known}")


def _value(value: Any) -> str:
    value = plain(value)
    if isinstance(value, list) and value and all(isinstance(item, (list, dict)) for item in value):
        return "[\n" + ",\n".join(f"  {_text(item)}" for item in value) + "\n]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _same(first: Path, second: Path) -> bool:
    return second.exists() and first.samefile(second)
