"""Kept results against the code: the tables that the repository keeps have the stamps of today.

Needs no results of the pipeline, only the files of the repository, so that it holds in a fresh clone.
"""

import zipfile

import pytest

from experiments.experiment import experiment_names
from experiments.stamps import table_stamp
from experiments.tables import read_stamps, reference_path


@pytest.mark.parametrize("run", ["tpch-quick", "embedded-quick"])
def test_kept_tables_are_those_of_this_code(run):
    cards = read_stamps(run)
    old = [name for name in experiment_names() if cards.get(name, {}).get("stamp") != table_stamp(name, run)]
    with zipfile.ZipFile(reference_path(run)) as archive:
        tables = {name for name in archive.namelist() if "/" in name}
    assert tables == {f"{name}/{table}" for name, card in cards.items() for table in card["tables"]}
    assert old == [], f"where no number moved: python -m experiments adopt --run {run}; else: decima reproduce --record"
