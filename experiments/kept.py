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


def card_entry(name: str) -> str:
    """Name inside the file of the card of an experiment."""
    return f"cards/{name}.json"


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
    if not path.is_file():
        return None
    with zipfile.ZipFile(path) as archive:
        entry = card_entry(name)
        card = json.loads(archive.read(entry)) if entry in archive.namelist() else {}
        if card.get("stamp") != stamp:
            return None
        return {table: pandas.read_csv(io.BytesIO(archive.read(f"{name}/{table}"))) for table in card["tables"]}
