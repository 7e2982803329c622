"""Output files of commands: tables, results and charts, written atomically."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from decima.core.errors import ConfigError
from decima.core.extras import require
from decima.core.files import atomic_path, plain, written_file


def check_output(path: Path | None, *endings: str, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse an output file that cannot be written, before any work.

    Args:
        path: the file; None: no file.
        endings: accepted ends of the name; any when empty.
        inputs: files that the command reads and must not overwrite.

    Raises:
        ConfigError: the path cannot be written.
        MissingExtraError: the package that writes such a file is not installed.
    """
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise ConfigError(f"cannot write {path}: expected a name that ends in {' or '.join(endings)}")
    if path.exists() and not path.is_file():
        # Devices, too: renaming the finished file would put it in their place.
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigError(f"cannot write {path}: it is {what}")
    if any(source is not None and source.exists() and _same(source, path) for source in inputs):
        raise ConfigError(f"cannot write {path}: the command reads that file")
    if path.suffix == ".parquet":
        require("parquet")
    _require_writable(path, written_file(path).absolute().parents)


def check_folder(folder: Path) -> None:
    """Refuse an output folder that cannot be written, before any work.

    Raises:
        ConfigError: the path cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"cannot write {folder}: it is not a folder")
    _require_writable(folder, (folder.absolute(), *folder.absolute().parents))


@contextlib.contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block succeeds.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        with atomic_path(path) as temporary:
            yield temporary
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file with a line per key; NaN and infinity become null."""
    lines = [f"{json.dumps(key)}: {_value(value)}" for key, value in document.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with output_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_table(path: Path, table) -> None:
    """Write a pandas table as csv or, by the end of the name, parquet."""
    with output_path(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)


CHARTS = (".png", ".pdf", ".svg", ".html")
TABLES = (".csv", ".parquet")


def check_chart(path: Path | None, system: ModuleType, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse a file for a chart that cannot be written, before any work.

    Raises:
        ConfigError: the path cannot be written.
        MissingExtraError: the packages that draw are not installed.
    """
    if path is not None:
        require("plots")
    check_output(path, *(CHARTS if getattr(system, "EXPLORED", True) else CHARTS[:-1]), inputs=inputs)


def draw_schedules(path: Path, results: Sequence[Any]) -> None:
    """Draw schedules of the same jobs above each other, as picture or interactive page.

    Args:
        path: the file.
        results: what to draw.

    Raises:
        ConfigError: there is nothing to draw, or the file cannot be written.
    """
    if path.suffix == ".html":
        from decima.plotting.explorer import explore

        content = explore(*results).page().encode("utf-8")
    else:
        from decima.plotting import style
        from decima.plotting.gantt import gantt_stack

        content = style.image(gantt_stack(results), path.suffix[1:])
    with output_path(path) as temporary:
        temporary.write_bytes(content)


@dataclass(frozen=True)
class RunFiles:
    """Files about one run that were asked for: result, table of tasks, chart.

    Attributes:
        system: Module of the options of the system.
    """

    system: ModuleType
    out: Path | None
    gantt: Path | None
    log: Path | None = None

    def check(self, inputs: tuple[Path | None, ...]) -> None:
        """Refuse files that cannot be written; see :func:`check_output`."""
        check_output(self.out, ".json", inputs=inputs)
        check_output(self.log, *TABLES, inputs=inputs)
        check_chart(self.gantt, self.system, inputs)

    def write(self, result: Any, parameters: Mapping[str, Any], seed: int, **more: Any) -> str:
        """Write them, the result with ``more`` keys; returns what the last line says."""
        if self.log is not None:
            write_table(self.log, self.system.task_table(result))
        if self.gantt is not None:
            draw_schedules(self.gantt, [result])
        if self.out is not None:
            write_json(self.out, result_document(self.system, result, parameters, seed) | more)
        return wrote(self.out, self.log, self.gantt)


def result_document(system: ModuleType, result: Any, parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Content of a result file: keys of all systems first, then of this one."""
    return {
        "system": system.__name__.split(".")[-1],
        "label": result.workload.label,
        "scheduler": result.scheduler,
        "parameters": dict(parameters),
        "seed": seed,
        "settings": result.settings.as_dict(),
        "scores": system.scores(result),
        "jobs": system.job_rows(result),
        **system.result_fields(result),
    }


def wrote(*paths: Path | None) -> str:
    """End of the last line of a command: which files were written."""
    written = [str(path) for path in paths if path is not None]
    return f"; wrote {', '.join(written)}" if written else ""


def _require_writable(path: Path, folders: Iterable[Path]) -> None:
    """Raise ConfigError unless the first existing folder can be written to."""
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
