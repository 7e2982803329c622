"""Kept results against the code: the tables that the repository keeps have the stamps of today.

Needs no results of the pipeline, only the files of the repository, so that it holds in a fresh clone.
"""

import json
import zipfile

import pytest

from experiments.experiment import experiment_names
from experiments.kept import card_entry, reference_path
from experiments.stamps import table_stamp


@pytest.mark.parametrize("run", ["tpch-quick", "embedded-quick"])
def test_kept_tables_are_those_of_this_code(run):
    with zipfile.ZipFile(reference_path(run)) as archive:
        cards = {name: json.loads(archive.read(card_entry(name))) for name in experiment_names()}
    old = [name for name, card in cards.items() if card.get("stamp") != table_stamp(name, run)]
    assert old == [], f"where no number moved: python -m experiments adopt --run {run}; else: decima reproduce --record"
