"""Tables of the quick runs as the repository keeps them, and folders that pass for a checkout."""

import zipfile
from functools import cache
from pathlib import Path

import pandas

ROOT = Path(__file__).parents[3]


def make_checkout(folder, params="runs: {}\n"):
    """Let a folder pass for a checkout with these parameters."""
    (folder / "pyproject.toml").write_text('[project]\nname = "decima-sched"\n')
    (folder / "params.yaml").write_text(params)


@cache
def kept(experiment, run="tpch-quick"):
    """Tables of an experiment by name."""
    with zipfile.ZipFile(ROOT / "reports" / "reference" / f"{run}.zip") as archive:
        entries = [entry for entry in archive.namelist() if entry.startswith(f"{experiment}/")]
        return {entry.split("/")[1]: pandas.read_csv(archive.open(entry)) for entry in entries}
