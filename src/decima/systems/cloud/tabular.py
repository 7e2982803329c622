"""Small csv files, checked row by row; errors name row and column."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decima.core.errors import WorkloadError

if TYPE_CHECKING:
    from decima.workload.left_out import LeftOut

_LARGEST = 1e12
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_rows(
    path: str | Path, required: Sequence[str], optional: Sequence[str] = (), left_out: LeftOut | None = None
) -> list[tuple[str, dict]]:
    """Rows of a csv file with a header line.

    Args:
        path: The file, UTF-8.
        required: Columns that it must have.
        optional: Columns that it may have.
        left_out: Notes rows with another number of values; without it, they are an error.

    Returns:
        Of every row where it is (file and line), and its texts by column.

    Raises:
        OSError: The file cannot be read.
        WorkloadError: It is not such a table.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{path} is not a csv file in UTF-8: {error.reason} at byte {error.start}") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in required:
            if name not in header:
                raise WorkloadError(f"{path}: column {name} is missing; expected {', '.join(required)}")
        for name in header:
            if name not in (*required, *optional):
                raise WorkloadError(f"{path}: column {name!r} is unknown; expected {', '.join((*required, *optional))}")
            if header.count(name) > 1:
                raise WorkloadError(f"{path}: column {name} is there twice")
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            if not row:
                continue
            if len(row) != len(header):
                with contextlib.nullcontext() if left_out is None else left_out.member():
                    raise WorkloadError(f"{where}: {len(row)} values for {len(header)} columns")
                continue
            rows.append((where, {name: value.strip() for name, value in zip(header, row, strict=True)}))
    except csv.Error as error:
        raise WorkloadError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows and not (left_out and left_out.reasons):
        raise WorkloadError(f"{path} has no rows; expected at least one")
    return rows


def number(where: str, name: str, text: str, *, least: float = 0.0, above: bool = False) -> float:
    """Read a number.

    Args:
        where: Where it stands, for the error message.
        name: Its column.
        text: What stands there.
        least: Smallest value.
        above: Whether it has to be above the smallest value.

    Raises:
        WorkloadError: It is none, or out of range.
    """
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not (least < value if above else least <= value) or value > _LARGEST:
        bound = f"up to {_LARGEST:g}" if value > _LARGEST else f"{'above' if above else 'of at least'} {least:g}"
        raise WorkloadError(f"{where}: {name} is {text!r}; expected a number {bound}")
    return value


def whole(where: str, name: str, text: str, least: int = 1) -> int:
    """Read a whole number.

    Raises:
        WorkloadError: It is none, or smaller than ``least``.
    """
    value = number(where, name, text, least=-_LARGEST)
    if value != int(value) or value < least:
        raise WorkloadError(f"{where}: {name} is {text!r}; expected a whole number of at least {least}")
    return int(value)
