"""Tables of runs that the repository keeps, for whoever has not run the pipeline: ``reports/reference/<run>.zip``."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.params import checkout, resolve_run

if TYPE_CHECKING:
    import pandas


def reference_path(run: str) -> Path:
    """File of the kept results of a run."""
    return checkout() / "reports" / "reference" / f"{resolve_run(run)}.zip"


def stamps_path(run: str) -> Path:
    """File of what the kept results of a run are made of: by experiment its stamp and the names of its tables.

    It lies beside the tables, so that a change of code that moves no number changes a small text and not the archive.
    """
    return reference_path(run).with_suffix(".json")


def read_stamps(run: str) -> dict[str, dict]:
    """Content of that file; nothing where there is none."""
    path = stamps_path(run)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def kept_tables(name: str, run: str, stamp: dict[str, str]) -> dict[str, pandas.DataFrame] | None:
    """Kept tables of an experiment by name.

    Args:
        name: The experiment.
        run: Run of ``params.yaml``.
        stamp: What tables have to be made of.

    Returns:
        None where none are kept, or those that are were made of something else.
    """
    import pandas

    path = reference_path(run)
    card = read_stamps(run).get(name, {})
    if not path.is_file() or card.get("stamp") != stamp:
        return None
    with zipfile.ZipFile(path) as archive:
        return {table: pandas.read_csv(io.BytesIO(archive.read(f"{name}/{table}"))) for table in card["tables"]}
