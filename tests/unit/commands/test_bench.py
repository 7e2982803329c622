"""`decima bench`: runs, checks, pages; damaged files and bad input give one sentence."""

import json
import re

import pytest

from decima.bench.report import rows
from decima.bench.results import read_result
from decima.bench.tasks import task_named
from tests.unit.commands.calls import refuse, run, succeed

QUICK = ("--quick", "--task", "embedded-batch", "--task", "placement", "--workers", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Quick results of three entries on two tasks."""
    path = tmp_path_factory.mktemp("results")
    for name, entry in (("tuned", "tuned"), ("fair", "fair"), ("aep", "aep")):
        line = succeed("bench", "run", entry, *QUICK, "--out", path / f"{name}.json")
        assert line.endswith(f"wrote {path / f'{name}.json'}")
    return path


def test_result_is_complete_and_says_what_was_not_run(folder):
    document = read_result(folder / "fair.json")
    task = task_named("embedded-batch")
    assert document["tasks"]["embedded-batch"]["seeds"] == list(task.seeds(quick=True))
    assert document["not_run"]["placement"] == "the entry is for system spark"
    assert document["not_run"]["heterogeneous"] == "not asked for"
    assert document["times"]["cpu"]
    assert "quick run, 1 tasks, 4 instances, 0 failed, 12 tasks not run" in succeed(
        "bench", "check", folder / "fair.json"
    )


def test_table_on_the_terminal(folder):
    shown = run("bench", "run", "fair", *QUICK).stdout
    score = read_result(folder / "fair.json")["tasks"]["embedded-batch"]["scores"]
    assert re.search(rf"^embedded-batch +{sum(score) / 4:.3f} ", shown, re.MULTILINE)
    assert "placement          not run: the entry is for system spark" in shown


def test_page_pairs_with_the_tuned_rule(folder, tmp_path):
    documents = [read_result(path) for path in sorted(folder.glob("*.json"))]
    best, worst = rows(task_named("embedded-batch"), documents)
    assert (best.entry, worst.entry) == ("tuned", "fair")
    assert worst.change[1] <= worst.change[0] <= worst.change[2]
    assert worst.change[0] == pytest.approx(100.0 * (worst.score / best.score - 1.0))
    assert worst.closed < 0.0 == best.closed
    page = tmp_path / "page.md"
    assert succeed("bench", "report", folder, "--out", page) == f"3 entries; wrote {page}"
    text = page.read_text()
    assert "| fair |" in text
    assert f"| fair | heuristic | {worst.score:.1f} |" in run("bench", "report", folder).stdout


def test_failures_have_no_score(folder, tmp_path):
    document = json.loads((folder / "fair.json").read_text())
    result = document["tasks"]["embedded-batch"]
    result["scores"][1] = None
    result["failures"] = {"embedded:n=20 seed 60001": "it raised"}
    (tmp_path / "fair.json").write_text(json.dumps(document))
    page = run("bench", "report", tmp_path).stdout
    assert "| fair | heuristic | 1 of 4 failed | - | - |" in page


def test_result_older_than_a_task_stays_valid(folder, tmp_path):
    document = json.loads((folder / "fair.json").read_text())
    for name in ("spark-logs", "alibaba"):
        del document["not_run"][name]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(document))
    assert read_result(file)["not_run"]["alibaba"] == "the result is older than the task"
    assert "12 tasks not run" in succeed("bench", "check", file)


def of_batch(**changes):
    """Function that changes what a document says about the task."""
    return lambda document: document["tasks"]["embedded-batch"].update(changes)


def timed(**changes):
    """Function that changes what a document says about the times of the task."""
    return lambda document: document["times"]["embedded-batch"].update(changes)


def first_score(value):
    return lambda document: document["tasks"]["embedded-batch"]["scores"].__setitem__(0, value)


DAMAGE = {
    "has the score 0; no schedule is below": first_score(0),
    "has the score inf": first_score(float("inf")),
    "has the score 10000000000": first_score(10**400),
    "has the score '60'": first_score("60"),
    "has 1000000000000": of_batch(decisions=[10**30] * 4),
    "form is 'magic'": lambda document: document.update(form="magic"),
    "learned is 'by heart'": lambda document: document.update(form="policy", learned="by heart"),
    "sha256 is 'abc'": lambda document: document.update(sha256="abc"),
    "cpu is 3": lambda document: document["times"].update(cpu=3),
    "cores is 'two'": lambda document: document["times"].update(cores="two"),
    "times of embedded-batch have no seconds": timed(seconds="1"),
    "decision_us of embedded-batch is 'fast'": timed(decision_us="fast"),
    "packages has no text": lambda document: document["packages"].update(numpy=2),
    "not_run has no text": lambda document: document["not_run"].update(unequal=["a"]),
    "entry is 'fair\\n# x'": lambda document: document.update(entry="fair\n# x"),
    "entry is '=HYPERLINK": lambda document: document.update(entry="=HYPERLINK(1)"),
    "there is no task 'other'": lambda document: document["tasks"].update(other={}),
    "seeds are not those": lambda document: document["tasks"]["embedded-batch"]["seeds"].reverse(),
    "has hash": lambda document: document["tasks"]["embedded-batch"].update(hash="0"),
    "scores are not 4 numbers": lambda document: document["tasks"]["embedded-batch"]["scores"].pop(),
    "either no score or no failure": lambda document: document["tasks"]["embedded-batch"]["scores"].__setitem__(
        0, None
    ),
    "not either run or said not to be run": lambda document: document["not_run"].pop("heterogeneous"),
    "schema 9": lambda document: document.update(schema=9),
    "expected dict": lambda document: document.update(tasks=[]),
    "times lack cpu": lambda document: document["times"].pop("cpu"),
}


@pytest.mark.parametrize("sentence", DAMAGE)
def test_damaged_results_are_refused(folder, tmp_path, sentence):
    document = json.loads((folder / "fair.json").read_text())
    DAMAGE[sentence](document)
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document))
    assert sentence in refuse("bench", "check", file)


def test_names_do_not_change_a_page(folder, tmp_path):
    document = json.loads((folder / "fair.json").read_text()) | {"entry": "a|b<img src=x>[c](d)`e`"}
    document["times"]["cpu"] = "<b>|"
    (tmp_path / "fair.json").write_text(json.dumps(document))
    page = run("bench", "report", tmp_path).stdout
    assert r"| a\|b\<img src=x\>\[c\](d)\`e\` | heuristic |" in page
    assert r"\<b\>\|" in page


def test_bad_input_is_one_sentence(folder, tmp_path):
    torn = tmp_path / "torn.json"
    torn.write_text((folder / "fair.json").read_text()[:200])
    assert "is not a result of bench-1" in refuse("bench", "check", torn)
    assert "is not a result of bench-1" in refuse("bench", "report", tmp_path)


def test_list_has_all_tasks():
    assert succeed("bench", "list") == "13 tasks of bench-1"
