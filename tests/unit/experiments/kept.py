"""Tables of the quick runs as the repository keeps them: what figures are drawn from in tests."""

import zipfile
from functools import cache
from pathlib import Path

import pandas

ROOT = Path(__file__).parents[3]


@cache
def kept(experiment, run="tpch-quick"):
    """Tables of an experiment by name."""
    with zipfile.ZipFile(ROOT / "reports" / "reference" / f"{run}.zip") as archive:
        entries = [entry for entry in archive.namelist() if entry.startswith(f"{experiment}/")]
        return {entry.split("/")[1]: pandas.read_csv(archive.open(entry)) for entry in entries}
