"""Accounts of the papers: their numbers are those of the published tables."""

import json
import re

import pytest

from decima.core.errors import ConfigError
from experiments import accounts
from experiments.results import DIGESTS, results_folder


def test_pages_are_made_of_the_published_tables():
    for path, text in accounts.pages().items():
        assert path.read_text(encoding="utf-8") == text, "python -m experiments publish accounts"


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_every_item_has_a_verdict_and_says_where(paper):
    rows = accounts.items(accounts.filled(accounts._source(paper).read_text(encoding="utf-8")))
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 5, row
        assert all(row), row
        assert row[3] in accounts.VERDICTS, row
        assert row[4] == "–" or "](" in row[4], row


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_figures_and_tables_that_an_item_names_are_published(paper):
    folder = results_folder(accounts.RUN)
    published = {path.stem for path in folder.glob("*/*/*")}
    published |= {name.split("/")[1] for name in json.loads((folder / DIGESTS).read_text(encoding="utf-8"))["tables"]}
    for row in accounts.items(accounts._source(paper).read_text(encoding="utf-8")):
        assert {*re.findall(r"\b[a-z]\w*_\w+\b", re.sub(r"\(.*?\)|\[.*?\]", "", row[4]))} <= published, row


def test_a_number_is_the_mean_of_the_rows_that_are_named(monkeypatch):
    rows = [{"scheduler": "fair", "seed": "0", "jct": "2"}, {"scheduler": "fair", "seed": "1", "jct": "4"}]
    rows.append({"scheduler": "fifo", "seed": "0", "jct": "12"})
    monkeypatch.setattr(accounts, "_rows", {"a/b": rows}.__getitem__)
    assert accounts.filled('{{mean("a/b", "jct", scheduler="fair"):.1f}} s') == "3.0 s"
    assert accounts.filled('{{most("a/b", "jct", scheduler=("fair", "fifo")) / 4:.0f}}') == "3"
    assert accounts.filled('{{least("a/b", "jct", seed=0) - 4:+.0f}}') == "−2"
    assert accounts.filled('{{least("a/b", "jct", seed=0) - 2:+.1f}}') == "0.0"


@pytest.mark.parametrize("number", ['mean("a/b", "jct", scheduler="other")', 'mean("a/b", "makespan", seed=0)'])
def test_a_number_that_no_table_has_is_refused(monkeypatch, number):
    monkeypatch.setattr(accounts, "_rows", {"a/b": [{"seed": "0", "jct": "2"}]}.__getitem__)
    with pytest.raises(ConfigError, match="not in the tables"):
        accounts.filled("{{" + number + ":.0f}}")


def test_the_collected_page_counts_verdicts(monkeypatch):
    start = "# Paper\n\n| item | paper | here | verdict | where |\n| --- | --- | --- | --- | --- |\n"
    page = accounts._collected({"cloud": start + "| a | 1 | 2 | not | – |\n| b | 1 | 1 | whole | – |\n"})
    assert "| [Paper](cloud.md) | 2 | 1 | 0 | 1 | 0 |" in page
    assert "- Paper: a" in page
