"""Numbers in prose are those of kept tables: intervals by their table, other percentages by a generated page."""

import csv
import re
from functools import cache
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml

from decima.core.errors import ConfigError
from decima.evaluation.statistics import paired_change
from experiments import accounts
from experiments.results import results_folder

ROOT = Path(__file__).parents[3]
GENERATED = sorted(accounts.pages())
OTHERS = {*GENERATED, ROOT / "docs" / "benchmark-results.md"}
WRITTEN = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - OTHERS)]
TABLES = [*results_folder(accounts.RUN).glob("tables/*/*.csv"), *(ROOT / "benchmarks" / "results").glob("*.csv")]
SCHEDULERS = ("decima", "fair", "fifo", "sjf", "capped", "graphene", "tetris", "heft", "lachesis", "aep", "ilp", "dqn")
NUMBER = r"(?<![\d.])[−+-]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER}) %,? [\[(]({NUMBER})(?:, | to )({NUMBER})[\])]")


def value(text):
    return abs(float(text.replace("−", "-")))


@cache
def changes():
    """Sizes of all changes in percent, with both ends of their intervals.

    Also of those between any two schedulers of a table that has a row for each seed.
    """
    found = []
    for path in TABLES:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = set(rows[0])
        if {"change_percent", "low", "high"} <= columns:
            found += [[row[name] for name in ("change_percent", "low", "high")] for row in rows]
        elif {"scheduler", "seed", "avg_jct_s"} <= columns:
            groups = {}
            for row in rows:
                where = tuple(row.get(name) for name in ("interarrival_s", "arrivals", "setting", "training"))
                groups.setdefault(where, {}).setdefault(row["scheduler"], {})[row["seed"]] = float(row["avg_jct_s"])
            for scores in groups.values():
                lists = {name: np.array([each[seed] for seed in sorted(each)]) for name, each in scores.items()}
                pairs = [pair for pair in permutations(lists.values(), 2) if len(pair[0]) == len(pair[1])]
                found += [paired_change(*pair) for pair in pairs]
    return np.abs(np.array([row for row in found if "" not in row], dtype=float))


def unknown_intervals(text):
    """Percentages with an interval that no table has, rounded as they are."""
    for match in INTERVAL.finditer(text):
        digits = max(len(part.partition(".")[2]) for part in match.groups())
        middle, *ends = map(value, match.groups())
        rounded = np.round(changes() + 1e-12, digits)
        same = (rounded[:, 0] == middle) & (np.sort(rounded[:, 1:]) == np.sort(ends)).all(axis=1)
        if not same.any():
            yield match[0]


def named(text):
    return {name for name in SCHEDULERS if name in text.lower()}


@cache
def generated_numbers():
    """Sizes of the numbers of generated pages by the schedulers that their line names."""
    lines = [line for path in GENERATED for line in accounts.pages()[path].splitlines()]
    return [(named(line), [value(number) for number in re.findall(NUMBER, line)]) for line in lines]


def unknown_percentages(text):
    """Percentages without an interval in sentences about a scheduler, which no generated page has beside one of it."""
    for sentence in re.split(r"(?<=[.:;|])\s", INTERVAL.sub("", text)):
        about = named(sentence)
        for number in re.findall(rf"({NUMBER}) %", sentence) if about else ():
            digits = len(number.partition(".")[2])
            beside = (each for names, numbers in generated_numbers() if names & about for each in numbers)
            if value(number) not in {round(each, digits) for each in beside}:
                yield f"{number} % in: {sentence.strip()}"


def prose(path):
    """Text of a page without its blocks of code, and without what other tests compare with what is run or recorded."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    apart = r"Your own heuristic|Compared with real Spark" if path.stem != "write-a-scheduler" else ".+"
    return re.sub(rf"^## (?:{apart})\n.*?(?=^## |\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", [*WRITTEN, ROOT / "docs" / "claims.md"], ids=lambda path: path.stem)
def test_an_interval_is_that_of_a_kept_table(path):
    assert not list(unknown_intervals(prose(path)))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_percentage_beside_a_scheduler_is_on_a_generated_page(path):
    assert not list(unknown_percentages(prose(path)))


def test_errors_on_a_cluster_that_changes_are_those_of_the_recorded_runs():
    runs = pandas.read_csv(ROOT / "data" / "spark" / "elastic" / "runs.csv").groupby("case")
    page = (ROOT / "docs" / "elastic.md").read_text(encoding="utf-8")
    for (column, form), (case, label) in product(
        (("run_s", "{:.1f} s"), ("executor_hours", "{:.4f}")),
        (("fixed", "4, fixed"), ("dynamic", "1 to 4, dynamic"), ("killed", "4, one killed after 6 s")),
    ):
        real, simulated = (runs.get_group(case)[name] for name in (column, f"simulated_{column}"))
        errors = 100.0 * (simulated / real - 1.0)
        cells = [label, *(form.format(each.mean()) for each in (real, simulated))]
        spread = f"{errors.mean():+.1f} % ({errors.min():.1f} to {errors.max():.1f})"
        assert f"| {' | '.join(cells)} | {spread} |".replace("-", "−") in page, (case, column)


def test_wrong_numbers_are_found():
    right = "Decima is 6.3 % [5.9, 6.7] below tuned weighted fair, 20.4 % below fair."
    assert not [*unknown_intervals(right), *unknown_percentages(right)]
    assert list(unknown_intervals(right.replace("5.9", "4.1"))) == ["6.3 % [4.1, 6.7]"]
    beside = {round(each, 1) for names, numbers in generated_numbers() if names & named(right) for each in numbers}
    wrong = next(tenths / 10 for tenths in range(200, 1000) if tenths / 10 not in beside)
    assert len(list(unknown_percentages(right.replace("20.4", f"{wrong:.1f}")))) == 1


SINGLE = {"FIFO": "fifo", "SJF-CP": "sjf_cp", "fair": "fair", "tuned weighted fair": "weighted_fair"}
SINGLE |= {"capped shortest remaining work": "capped_srw", "Decima": "decima"}
SINGLE |= {"Decima, imitation-pretrained": "decima_warm"}
LEARNED = {"Decima": ("decima", "trained_long"), "Decima, imitation-pretrained": (None, "trained_warm")}
LEARNED |= {"Decima + executor-entry cost": ("decima_entry", "trained_entry")}


def scores(name, scheduler, table=None):
    """Rows of a scheduler in a table of an experiment."""
    rows = pandas.read_csv(results_folder(accounts.RUN) / "tables" / name / f"{table or name}.csv")
    return rows[rows["scheduler"] == scheduler]


@pytest.mark.parametrize("label", SINGLE)
def test_single_runs_are_those_of_the_tables(label):
    page = re.sub(r" \(`tpch.+?\)", "", (ROOT / "docs" / "results.md").read_text(encoding="utf-8"))
    batches, streams, load = (scores(name, SINGLE[label]) for name in ("batch", "stream", "load"))
    columns = [batches, *(streams[streams["interarrival_s"] == gap] for gap in (14, 25, 45))]
    cells = [f"{each.mean():.1f} ± {each.sem():.1f}" for each in (rows["avg_jct_s"] for rows in columns)]
    assert f"| {label} | {' | '.join(cells)} |" in page
    means = load.groupby("interarrival_s")["avg_jct_s"].mean()[[45, 25, 19, 14, 13]]
    assert f"| {label} | {' | '.join(f'{mean:,.{int(mean < 200)}f}' for mean in means)} |" in page


@pytest.mark.parametrize("label", LEARNED)
def test_means_over_training_runs_are_those_of_the_tables(label):
    batches, streams = LEARNED[label]
    rows = scores("batch", batches, "batch_trainings").query("against == 'weighted_fair' and training == 'mean'")
    means = scores("batch", "weighted_fair")["avg_jct_s"].mean() * (1.0 + rows["change_percent"] / 100.0)
    means = [*means, *scores("generalisation", streams).groupby("interarrival_s")["avg_jct_s"].mean()[[14, 25, 45]]]
    row = ["–"] * (batches is None) + [f"{mean:.1f}" for mean in means]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"| {label}, mean of 3 seeds | {' | '.join(row)} |" in page


def test_verdicts_of_the_readme_are_those_of_the_claims():
    claims = accounts.claims_page().splitlines()
    shown = {tuple(re.sub(r"\[(.+?)\]\(.+?\)", r"\1", line).strip("| ").split(" | ")) for line in claims}
    rows = [line for line in prose(ROOT / "README.md").splitlines() if line.startswith("|")]
    cells = [re.sub(r"\[(.+?)\]\(.+?\)", r"\1", line).strip("| ").split(" | ") for line in rows]
    named = [tuple(row[-4:]) for row in cells if row[-1] in accounts.VERDICTS]
    assert len(named) >= 8
    assert set(named) <= shown


# Accounts of the papers: their numbers are those of the published tables.


CLAIMS = yaml.safe_load((accounts.checkout() / "experiments" / "claims.yaml").read_text(encoding="utf-8"))


def test_pages_are_made_of_the_published_tables():
    for path, text in accounts.pages().items():
        assert path.read_text(encoding="utf-8") == text, "python -m experiments publish accounts"


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_every_item_has_a_link_and_a_verdict_with_its_reason(paper):
    rows = accounts.items(accounts.filled(accounts._source(paper).read_text(encoding="utf-8")))
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 5, row
        assert all(row), row
        assert row[3] in accounts.VERDICTS, row
        assert row[4] not in ("–", row[3]), row
        assert "](" in row[0], row


@pytest.mark.parametrize("paper", accounts.PAPERS)
def test_percentages_of_an_account_are_filled_from_tables(paper):
    """What is typed are settings: loads."""
    for row in accounts.items(accounts._source(paper).read_text(encoding="utf-8")):
        typed = re.sub(r"at \d+ %|\d+ % load", "", re.sub(r"\{\{.+?\}\}", "·", row[2]))
        assert not re.findall(r"\d %", typed), row


def test_every_headline_claim_has_a_verdict_with_its_reason():
    for paper in CLAIMS["papers"]:
        for claim in paper["claims"]:
            assert {"claim", "place", "paper", "short", "here", "verdict", "why", "see"} <= set(claim), claim["claim"]
            assert set(claim) <= {"claim", "place", "paper", "short", "verdict", "why", "see", "table", *accounts.SAID}
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
    page = (accounts.checkout() / "docs" / "claims.md").read_text(encoding="utf-8")
    for verdict, meaning in accounts.VERDICTS.items():
        assert f"- *{verdict}*: {meaning}" in page


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
    start = "# Paper\n\n| item | paper | here | verdict | why |\n| --- | --- | --- | --- | --- |\n"
    rows = "| a | 1 | 2 | budget | short |\n| b | 1 | 1 | reproduced | exact |\n"
    page = accounts._collected({"cloud": start + rows})
    assert "| verdict | [Paper](cloud.md) |" in page
    assert "| reproduced | 1 |" in page
    assert "| contradicted | 0 |" in page
    assert "| all | 2 |" in page
