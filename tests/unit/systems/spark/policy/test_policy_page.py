"""What docs/policy.md and policy-heads.md say about the network."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.features import FEATURES, SETS

DOCS = Path(__file__).parents[5] / "docs"
PAGE = (DOCS / "policy.md").read_text(encoding="utf-8")


def rows(first_cell):
    """Cells of the table rows whose first cell matches."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    return [cells for cells in lines if re.fullmatch(first_cell, cells[0])]


@pytest.mark.parametrize(("name", "column"), [("paper", 1), ("released", 3)])
def test_widths_and_weights(name, column):
    architecture = Architecture.named(name)
    shown = {cells[0].strip("`"): (cells[column], cells[column + 1]) for cells in rows("`[a-z_]+`") if len(cells) == 5}
    expected = {
        net.name: ("-".join(map(str, net.widths)), f"{sum(int(np.prod(shape)) for _, shape in net.shapes):,}")
        for net in architecture.perceptrons
    }
    assert {net: cells for net, cells in shown.items() if cells != ("–", "–")} == expected
    (total,) = rows("all")
    assert total[column + 1] == f"{architecture.num_parameters:,}"


def test_features_are_those_of_the_code():
    table = PAGE[PAGE.index("## Features") : PAGE.index("## One network")]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] == "| `"]
    of_sets = {name: [set_ for set_, chosen in SETS.items() if name in chosen] for name in (f.name for f in FEATURES)}
    assert shown == [
        [f"`{feature.name}`", feature.doc, f"{feature.scale:.6g}", ", ".join(of_sets[feature.name]) or "–"]
        for feature in FEATURES
    ]


def test_options_exist():
    known = {field.name for field in fields(Architecture)}
    page = (DOCS / "policy-heads.md").read_text(encoding="utf-8")
    table = page[page.index("## Options") : page.index("## Idle slots")]
    named = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    options = [option for cell in named for option in re.findall(r"`([a-z_]+)(?:=.*?)?`", cell)]
    assert len(options) >= 10
    assert set(options) <= known


def test_example_runs(capsys):
    exec(compile(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1), "policy.md", "exec"), {})
    assert "Traceback" not in capsys.readouterr().out
