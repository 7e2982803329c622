"""Files of ``models/training``: what training runs wrote, kept in the repository."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decima.core.errors import ConfigError
from experiments.params import checkout

if TYPE_CHECKING:
    from pathlib import Path

    import pandas


def training_folder() -> Path:
    """Folder of these files in the checkout."""
    return checkout() / "models" / "training"


def read_training_file(name: str, columns: Sequence[str], texts: Sequence[str] = ()) -> pandas.DataFrame:
    """Read a file of ``models/training``.

    Args:
        name: Name of the csv file.
        columns: What is wanted of it; the others are passed over.
        texts: Columns that are text even where they look like numbers.

    Returns:
        The columns.

    Raises:
        ConfigError: The file is missing, lacks a column, or was cut short: its last line does not end, or a line has
            not as many values as the first.
    """
    import pandas

    path = training_folder() / name
    if not path.is_file():
        raise ConfigError(f"{path} is missing; it belongs to the repository")
    text = path.read_text(encoding="utf-8")
    lines = list(csv.reader(text.splitlines()))
    short = [number for number, line in enumerate(lines, 1) if len(line) != len(lines[0])]
    if short or not text.endswith("\n"):
        raise ConfigError(f"{path} was cut short: line {short[0] if short else len(lines)} is not whole")
    table = pandas.read_csv(path, dtype=dict.fromkeys(texts, str))
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ConfigError(f"{path} has no column {', '.join(missing)}; expected: {', '.join(columns)}")
    return table[list(columns)]


def check_whole_curve(curve: pandas.DataFrame, name: str, iterations: int) -> None:
    """Refuse a curve that ends before its run did.

    Args:
        curve: Rows with validation scores, by ``iteration`` from 0; at least one.
        name: Of the file.
        iterations: Of the run. The last ones may lack a validation, but fewer than lie between two of them.

    Raises:
        ConfigError: Rows are missing at its end.
    """
    done = 1 + int(curve["iteration"].iloc[-1])
    between = curve["iteration"].diff().max() if len(curve) > 1 else done
    if iterations - done >= between:
        raise ConfigError(
            f"{training_folder() / name} was cut short: it ends after {done} of the {iterations} iterations of its run"
        )
