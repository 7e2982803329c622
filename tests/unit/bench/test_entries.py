"""Entries of the benchmark: scored alike wherever they run; one that cheats or fails is caught with a sentence."""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from decima.bench.entries import entry_of
from decima.bench.results import without_times
from decima.bench.run import run, score, scores
from decima.bench.tasks import tasks
from decima.core.errors import DecimaError, SchedulerError
from tests.unit.bench.entries_for_tests import Shortest

FILE = Path(__file__).with_name("entries_for_tests.py")
TASK = replace(tasks()["embedded-batch"], jobs=("embedded:n=4",), test=(60000, 2), quick=1)
CLASSES = replace(tasks()["embedded-classes"], jobs=("embedded:n=4,requests=uniform",), test=(60000, 1))
COMPILED = """
from decima.core.decision import CompiledDecision
from decima.systems.spark.fields import state_at
from decima.systems.spark.rules.choices import choose_idle
from decima.systems.spark.schedulers import CompiledScheduler


@CompiledDecision
def _rule(address):
    state = state_at(address)
    choose_idle(state)


def rule():
    return CompiledScheduler("idles", _rule)
"""


def outcome(name, task=TASK):
    """Result of an entry of the file on a task."""
    return run(entry_of(f"{FILE}:{name}"), [task])["tasks"][task.name]


@pytest.mark.parametrize("task", [TASK, CLASSES], ids=["plain", "classes"])
def test_code_from_outside_decides_as_the_object_here(task):
    here = scores(task, Shortest(), task.instances())
    assert outcome("Shortest", task)["scores"] == [row.value for row in here]
    assert entry_of(f"{FILE}:Shortest").form == "Python"


def test_chance_comes_from_the_seed():
    values = [outcome("Chance")["scores"] for _ in range(2)]
    assert values[0] == values[1]
    assert len(set(values[0])) == 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Raises", "IndexError: list index out of range"),
        ("Nonsense", r".*returned 3\.5 \(float\); expected a Decision"),
        ("Impossible", "decision 0 at 0.000 s: cannot choose stage .*: the limit gives it no executor"),
        ("Idles", "no event is left at 0.0 s but 4 of 4 jobs are unfinished"),
        ("Sleeps", "the entry took more than 0.1 s"),
    ],
)
def test_what_an_entry_does_wrong_is_a_failure(name, sentence):
    result = outcome(name, replace(TASK, limit_s=0.1 if name == "Sleeps" else 60.0))
    assert result["scores"] == [None, None]
    assert all(re.match(sentence, failure) for failure in result["failures"].values()), result["failures"]


def test_two_runs_are_equal_but_for_times():
    entry = entry_of("capped_srw:batch")
    one, other = (run(entry, [TASK], quick=True, workers=workers) for workers in (1, 2))
    assert without_times(one) == without_times(other)
    assert one["tasks"]["embedded-batch"]["scores"] == [score(TASK, entry.scheduler(TASK), TASK.instances()[0]).value]
    assert one["times"]["embedded-batch"]["decision_us"] > 0.0


def test_tasks_that_do_not_fit_say_so(monkeypatch, tmp_path):
    entry = entry_of("entry_srw")
    hidden = replace(TASK, durations_hidden=True)
    monkeypatch.setenv("DECIMA_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DECIMA_DATA_MIRROR", raising=False)
    assert entry.not_for(hidden) == "the entry reads measured durations, which the task hides"
    assert entry.not_for(tasks()["heterogeneous"]) == "the entry is for system spark"
    assert "decima data fetch tpch" in entry.not_for(tasks()["tpch-batch"])
    assert entry.not_for(TASK) == ""


@pytest.mark.parametrize(
    ("text", "form", "learned", "system"),
    [
        ("tuned", "heuristic", "", ""),
        ("fair", "heuristic", "", "spark"),
        ("decima:embedded-batch-random", "policy", "alone", "spark"),
        ("decima", "policy", "warm", "spark"),
        ("heft", "heuristic", "", "heterogeneous"),
        ("lachesis", "policy", "warm", "heterogeneous"),
        ("ilp_exact", "heuristic", "", "cloud"),
        ("learned:policy=cloud-burst", "policy", "warm", "cloud"),
    ],
)
def test_origin_of_entries(text, form, learned, system):
    entry = entry_of(text)
    assert (entry.form, entry.learned, entry.system) == (form, learned, system)


@pytest.mark.parametrize("name", ["sched_sim", "torch_policy"])
def test_modules_that_moved_to_the_examples_say_so(name):
    with pytest.raises(ModuleNotFoundError, match=rf"is examples/{name}\.py of the repository; version 0\.2\.0"):
        import_module(f"decima.bench.{name}")


def test_compiled_rules_from_outside(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(COMPILED)
    entry = entry_of(f"{file}:rule")
    assert (entry.form, len(entry.sha256)) == ("heuristic", 64)
    assert "jobs are unfinished" in score(TASK, entry.scheduler(TASK), TASK.instances()[0]).failure


READS = {
    "heap_ms": ("", "state.now_ms += 0 * state.heap_ms[0]"),
    "heap": ("from decima.core.heap import heap_subject as who", "who(state)"),
    "heap_code": ("import decima.core as core", "core.x.heap_code(state)"),
    "getattr": ("", 'getattr(state, "heap_" + "ms")'),
    "job_arrival_ms": ("", "state.now_ms += 0 * state.job_arrival_ms[1]"),
}


@pytest.mark.parametrize("name", READS)
def test_compiled_rules_that_name_the_future_are_refused(tmp_path, name):
    first, line = READS[name]
    cheat = tmp_path / f"cheat_{name}.py"  # modules are told apart by their names
    cheat.write_text(
        f"{first}\n" + COMPILED.replace("    choose_idle(state)", f"    choose_idle(state)\n    {line}", 1)
    )
    with pytest.raises(SchedulerError, match=f"an entry may not name {name},"):
        entry_of(f"{cheat}:rule")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fairr", "unknown scheduler 'fairr'; did you mean 'fair'"),
        ("no_such_file.py:Mine", "there is no file no_such_file.py"),
        (f"{FILE}:Missing", "Missing"),
        ("decima:no-policy", "no-policy"),
    ],
)
def test_what_is_no_entry_is_one_sentence(text, sentence):
    with pytest.raises(DecimaError, match=sentence):
        entry_of(text)
