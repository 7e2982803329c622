"""Accounts of the papers: their numbers are those of the published tables."""

import json
import re

import pytest
import yaml

from decima.core.errors import ConfigError
from experiments import accounts
from experiments.results import DIGESTS, results_folder

CLAIMS = yaml.safe_load((accounts.checkout() / "experiments" / "claims.yaml").read_text(encoding="utf-8"))


def test_pages_are_made_of_the_published_tables():
    for path, text in accounts.pages().items():
        assert path.read_text(encoding="utf-8") == text, "python -m experiments publish accounts"


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_every_item_has_a_verdict_with_its_reason_and_says_where(paper):
    rows = accounts.items(accounts.filled(accounts._source(paper).read_text(encoding="utf-8")))
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 6, row
        assert all(row), row
        assert row[3] in accounts.VERDICTS, row
        assert row[4] not in ("–", row[3]), row
        assert "](" in row[5], row


def test_every_headline_claim_has_a_verdict_with_its_reason():
    for paper in CLAIMS["papers"]:
        for claim in paper["claims"]:
            assert {"claim", "place", "paper", "short", "here", "verdict", "why", "see"} <= set(claim), claim["claim"]
            assert set(claim) <= {"claim", "place", "short", "verdict", "why", "see", "table", *accounts.SAID}
            assert claim["verdict"] in accounts.VERDICTS, claim["claim"]
            assert "[" in claim["see"], claim["claim"]


def test_numbers_of_this_project_are_filled_from_tables():
    """What is typed in a claim are settings, such as loads and gaps, and numbers of papers."""
    for paper in CLAIMS["papers"]:
        for claim in paper["claims"]:
            for cell in (claim["short"], claim["here"], claim.get("possible", "")):
                typed = re.sub(r"\{\{.+?\}\}|\(.*?\)", "", cell)
                assert not re.findall(r"[−+-]?\d[\d.]* %", typed), claim["claim"]
            numbers = re.findall(r"\{\{.+?\}\}", claim["short"] + claim["here"] + str(claim.get("table")))
            assert numbers, claim["claim"]


def test_verdicts_are_those_of_one_list():
    page = (accounts.checkout() / "docs" / "accounts" / "index.md").read_text(encoding="utf-8")
    for verdict, meaning in accounts.VERDICTS.items():
        assert f"- *{verdict}*: {meaning}" in page
        assert f"- *{verdict}*: {meaning}" in accounts.claims_page()


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_figures_and_tables_that_an_item_names_are_published(paper):
    folder = results_folder(accounts.RUN)
    published = {path.stem for path in folder.glob("*/*/*")}
    published |= {name.split("/")[1] for name in json.loads((folder / DIGESTS).read_text(encoding="utf-8"))["tables"]}
    for row in accounts.items(accounts._source(paper).read_text(encoding="utf-8")):
        assert {*re.findall(r"\b[a-z]\w*_\w+\b", re.sub(r"\(.*?\)|\[.*?\]", "", row[5]))} <= published, row


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


def test_a_number_of_a_benchmark_is_read_from_its_results():
    assert accounts.filled('{{mean("benchmarks/published_experiment", "avg_jct_s", who="authors"):.2f}}') == "61.35"


def test_the_collected_page_counts_verdicts():
    start = "# Paper\n\n| item | paper | here | verdict | why | where |\n| --- | --- | --- | --- | --- | --- |\n"
    rows = "| a | 1 | 2 | budget | short | – |\n| b | 1 | 1 | reproduced | exact | – |\n"
    page = accounts._collected({"cloud": start + rows})
    assert "| verdict | [Paper](cloud.md) |" in page
    assert "| reproduced | 1 |" in page
    assert "| contradicted | 0 |" in page
    assert "| all | 2 |" in page
    assert "## Budget\n\n- Paper: a" in page
