"""Rules of one function: decisions, refusals, and the process that scores them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from decima.bench.rules import NAMES, read_rule
from decima.bench.run import score
from decima.bench.scoring import RuleScorer
from decima.bench.tasks import tasks
from decima.core.errors import ConfigError, SchedulerError
from tests.unit.bench.entries_for_tests import Shortest
from tests.unit.commands.calls import refuse, run

TASK = replace(tasks()["embedded-batch"], jobs=("embedded:n=4",), validation=(170000, 2))
SHORTEST = "def rule(job_remaining_s):\n    return job_remaining_s\n"
# Numba has no format of texts, so that this one is interpreted.
INTERPRETED = "def rule(job_remaining_s):\n    return float(f'{job_remaining_s!r}')\n"
LIMITED = """import math
SHARE = 2.0


def rule(job_remaining_s, stage_runnable, work_s, executors):
    return math.log(1.0 + job_remaining_s) - stage_runnable, SHARE * executors * job_remaining_s / work_s
"""
SEVERAL = """def rule(jobs, stage_tasks):
    {}
    if jobs > 2.0:
        jobs += 1.0
        return stage_tasks, jobs
    return 1, 2
"""
NOT_FINITE = "the rule answered what is no finite number"
FAILING = {
    "nan.py": ("def rule(jobs):\n    return math.nan\n", NOT_FINITE),
    "divides.py": ("def rule(jobs):\n    return 1.0 / (jobs - 20.0)\n", NOT_FINITE),
    "nothing.py": ("def rule(jobs):\n    if jobs > 30.0:\n        return jobs\n", NOT_FINITE),
    "raises.py": ("def rule(jobs):\n    return {}[f'{jobs}']\n", "the rule raised KeyError: "),
    "opens.py": ("def rule(jobs):\n    return open('x')\n", "raised NameError: name 'open' is not defined"),
    "imports.py": (
        "import os\ndef rule(jobs):\n    return 1.0\n",
        r"may not import modules other than math \(line 1\)",
    ),
    "reads.py": (
        "def rule(jobs):\n    return rule.__globals__\n",
        r"may not have attributes \(__globals__\) \(line 2\)",
    ),
    "feature.py": ("def rule(job_remaining):\n    return 1.0\n", "no feature 'job_remaining'; did you mean"),
    "other.py": ("def other(jobs):\n    return 1.0\n", r"has no function rule; expected def rule\(job_remaining_s"),
    "torn.py": ("def rule(", "is no Python"),
}


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def compiled_and_interpreted(folder, one, other):
    compiled, interpreted = read_rule(written(folder, "a.py", one)), read_rule(written(folder, "b.py", other))
    assert (compiled.compiled, interpreted.compiled) == (True, False)
    return compiled, interpreted


def test_a_rule_decides_as_the_scheduler_that_says_the_same(tmp_path):
    compiled, interpreted = compiled_and_interpreted(tmp_path, SHORTEST, INTERPRETED)
    for instance in TASK.instances("validation"):
        one, other, python = (score(TASK, each, instance) for each in (compiled, interpreted, Shortest()))
        assert one.value == other.value == python.value


def test_a_rule_with_several_returns_is_compiled_alike(tmp_path):
    compiled, interpreted = compiled_and_interpreted(tmp_path, *map(SEVERAL.format, ("", "f'{jobs!r}'")))
    instance = TASK.instances("validation")[0]
    assert score(TASK, compiled, instance).value == score(TASK, interpreted, instance).value


def test_limits_share_the_executors(tmp_path):
    limited = read_rule(written(tmp_path, "a.py", LIMITED))
    instance = TASK.instances("validation")[0]
    assert limited.compiled
    row = score(TASK, limited, instance)
    assert row.failure == ""
    assert row.value != score(TASK, read_rule(written(tmp_path, "b.py", SHORTEST)), instance).value


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Lines about all files, by name, from one process of `decima bench score`."""
    folder = tmp_path_factory.mktemp("rules")
    for name, (text, _) in FAILING.items():
        written(folder, name, text)
    for name, text in (("shortest.py", SHORTEST), ("shortest_interpreted.py", INTERPRETED), ("zlimited.py", LIMITED)):
        written(folder, name, text)
    shown = run("bench", "score", "--many", folder, "--limit-s", 600).stdout
    return {Path(line["file"]).name: line for line in map(json.loads, shown.splitlines())}


@pytest.mark.parametrize("name", FAILING)
def test_what_is_no_rule_is_one_sentence(scored, name):
    assert "score" not in scored[name]
    assert re.search(FAILING[name][1], scored[name]["error"]), scored[name]["error"]


def test_who_never_answers_is_ended(tmp_path):
    endless = written(
        tmp_path, "endless.py", "def rule(jobs):\n    while True:\n        jobs += 1.0\n    return jobs\n"
    )
    with RuleScorer(tasks()["embedded-batch"], "training", limit_s=1.0) as scorer:
        assert scorer.score(endless)["error"] == "the entry took more than 1 s (rule)"
        assert not scorer.runs


def test_lines_are_exact_and_compare_with_the_tuned_rule(scored):
    one, other = scored["shortest.py"], scored["shortest_interpreted.py"]
    assert one["scores"] == other["scores"]
    assert len(one["scores"]) == len(tasks()["embedded-batch"].seeds("validation"))
    assert one["score"] == pytest.approx(sum(one["scores"]) / len(one["scores"]))
    assert one["change_low"] < one["change_percent"] < one["change_high"]
    assert scored["zlimited.py"]["compiled"]


def test_features_are_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "benchmark.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| .* \|$", page.split("## Programs that write rules")[1], re.MULTILINE) == list(
        NAMES
    )


def test_bad_input_of_the_command(tmp_path):
    assert "there is no folder" in refuse("bench", "score", "--many", tmp_path / "none")
    assert "there is no file" in refuse("bench", "score", tmp_path / "none.py")
    assert "seeds must be validation, training, test" in refuse("bench", "score", tmp_path, "--seeds", "all")
    assert "task heterogeneous is of system heterogeneous" in refuse(
        "bench", "score", "--many", tmp_path, "--task", "heterogeneous"
    )
    with pytest.raises(ConfigError, match="rules are scored on tasks of spark"):
        RuleScorer(tasks()["placement"])
    with pytest.raises(SchedulerError, match="cannot read"):
        read_rule(tmp_path / "none.py")
