"""Verbs and `--system`: which command is meant, and one sentence that names the right one where it is another."""

import re

import pytest
from typer.main import get_command

import experiments.__main__ as pipeline
import measure.__main__ as measuring
from decima.app import VERBS, app
from decima.commands.checkout import MEASURING, PIPELINE
from decima.commands.shared.examples import EXAMPLES
from decima.commands.shared.verbs import RENAMED, SYSTEMS
from decima.core.errors import UnknownSchedulerError
from decima.core.system import get_system
from decima.systems.cloud import list_placements
from decima.systems.heterogeneous import list_schedulers as list_heterogeneous
from decima.systems.spark.schedulers import list_schedulers
from tests.unit.commands.calls import read_json, refuse, run, succeed

COMMAND = get_command(app)
SCHEDULERS = {"spark": list_schedulers, "heterogeneous": list_heterogeneous, "cloud": list_placements}
SMALL = {
    "spark": ("--jobs", "synthetic:n=2,sizes=xs", "--executors", 3),
    "heterogeneous": ("--jobs", "canonical"),
    "cloud": ("--jobs", "generated:n=4"),
}
FORMS = [
    (verb.name, system, "" if number == 0 else method)
    for verb in VERBS
    for system, methods in verb.forms.items()
    for number, method in enumerate(methods)
]
HEAD = ["system", "label", "scheduler", "parameters", "seed", "settings", "scores", "jobs"]


@pytest.mark.parametrize(("verb", "system", "method"), FORMS)
def test_every_form_has_help_that_names_the_system(verb, system, method):
    shown = run(verb, *filter(None, [method]), "--system", system, "--help")
    assert shown.exit_code == 0, shown.stderr
    assert "--system spark|heterogeneous|cloud" in shown.stdout
    assert f"[default: {system}]" in " ".join(shown.stdout.split())


def leaves(group, path=""):
    """Commands without commands below them, by their words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def test_every_command_has_an_example():
    forms = {" ".join(filter(None, (verb, method))) for verb, _, method in FORMS}
    assert {
        path.removeprefix("spark ") if path.split()[-1] in MEASURING else path for path in leaves(COMMAND)
    } | forms <= {path.partition(" --system")[0] for path in EXAMPLES}


@pytest.mark.parametrize("group", ["", "bench", "data", "spark", "workload"])
def test_no_summary_of_a_command_is_cut_off(group):
    shown = run(*group.split(), "--help").stdout
    listed = shown[shown.index("Commands:") :]
    assert not re.search(r"\w\.\.\.$", listed, re.MULTILINE), listed


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_is_a_call_that_the_command_understands(path):
    shown = EXAMPLES[path]
    group = COMMAND
    words = shown.split()
    if path in PIPELINE or path in MEASURING:
        group = get_command((pipeline if path in PIPELINE else measuring).app)
        words = words[shown.startswith("spark ") :]
    context = group.make_context("decima", ["--help", *words], resilient_parsing=True)
    while hasattr(group, "commands"):
        name, group, words = group.resolve_command(context, words)
    assert f"Example:\n  decima {shown}" in "\n".join(
        line.removeprefix("  ") for line in group.get_help(context).splitlines()
    )
    group.make_context(name, words).close()


def test_commands_of_a_checkout_stand_apart():
    ours, theirs = run("--help").stdout.partition("\nCommands:")[2].split("\nCommands of a clone")
    for name in (*PIPELINE, "spark"):
        assert f"\n  {name} " in theirs
        assert f"\n  {name} " not in ours
    assert "..." not in ours + theirs  # no sentence is cut short


@pytest.mark.parametrize("system", SYSTEMS)
class TestEverySystem:
    """What holds for the schedulers and files of every system."""

    def test_schedulers_are_listed(self, system):
        listed = run("schedulers", "--system", system).stdout
        names = {line.split()[0] for line in listed.splitlines()[:-1] if line.strip() and not line.startswith(" ")}
        assert names == set(SCHEDULERS[system]())
        name = sorted(names)[0]
        assert run("schedulers", name, "--system", system).stdout.startswith(f"{name} ")
        assert "unknown scheduler 'no-such'" in refuse("schedulers", "no-such", "--system", system)

    def test_unknown_schedulers_are_refused_with_a_hint(self, system):
        name = sorted(SCHEDULERS[system]())[-1]
        for words in (("simulate", "--scheduler", f"{name}x"), ("compare", f"{name}x")):
            sentence = refuse(*words, "--system", system, *SMALL[system])
            assert sentence.startswith(f"unknown scheduler '{name}x'; did you mean '")
        others = {name: other for other in reversed(SYSTEMS) for name in SCHEDULERS[other]()}
        for name in others.keys() - SCHEDULERS[system]() - {"remote"}:  # gone from one of them
            with pytest.raises(UnknownSchedulerError, match=f"^scheduler '{name}' is of system '{others[name]}' .*not"):
                get_system(system).make_scheduler(name)

    def test_options_of_schedulers_are_checked(self, system):
        name = sorted(SCHEDULERS[system]())[0]
        sentence = refuse("simulate", "--scheduler", f"{name}:no_such=1", "--system", system, *SMALL[system])
        assert "no_such" in sentence

    def test_twice_the_same_and_bad_files_are_refused(self, system, folder):
        name = sorted(SCHEDULERS[system]())[0]
        small = ("--system", system, *SMALL[system])
        assert f"scheduler '{name}' is given twice" in refuse("compare", name, name, *small)
        assert "expected a name that ends in .json" in refuse("simulate", *small, "--out", folder / "r.txt")
        assert "ends in .csv or .parquet" in refuse("simulate", *small, "--log", folder / "r.txt")
        assert "ends in .png or .pdf or .svg" in refuse("simulate", *small, "--gantt", folder / "r.txt")
        assert list(folder.iterdir()) == []

    def test_files_of_results_begin_alike(self, system, folder):
        out, chart = folder / "r.json", folder / "chart.svg"
        line = succeed("simulate", "--system", system, *SMALL[system], "--out", out, "--gantt", chart)
        assert line.endswith(f"; wrote {out}, {chart}")
        document = read_json(out)
        assert list(document)[: len(HEAD)] == HEAD
        assert document["system"] == system
        assert document["jobs"]
        assert all(isinstance(value, (int, float, type(None))) for value in document["scores"].values())
        assert b"<svg" in chart.read_bytes()


def test_a_page_to_explore_of_an_episode_and_none_of_a_schedule(folder):
    page = folder / "page.html"
    succeed("simulate", "--system", "cloud", *SMALL["cloud"], "--gantt", page)
    assert "ilp, placement-aware" in page.read_text(encoding="utf-8").lower()
    refused = refuse("simulate", "--system", "heterogeneous", *SMALL["heterogeneous"], "--gantt", folder / "no.html")
    assert "expected a name that ends in .png or .pdf or .svg" in refused


@pytest.mark.parametrize("old", RENAMED)
def test_earlier_commands_name_the_new_ones_which_are_there(old):
    sentence = refuse(*old.split(), *([] if " " in old else ["x"]))
    match = re.fullmatch(rf"'decima {old}' is now 'decima (.*)'", sentence)
    words = [word for word in match[1].split() if word not in ("NAME", "FILE", "--scheduler", "--log")]
    assert run(*words, "--help").exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("data fetch tpch --force", "'decima data --force' is gone: damaged files are fetched again without it"),
        ("tune fair --checkpoint=x", "'decima tune --checkpoint' is gone: version 0.2.0 is the last one"),
        ("simulate --time-limit-s 5", "--time-limit-s' is gone: expected --set settings.time_limit_ms=MS"),
        ("spark slim logs", "'decima spark slim' is gone: version 0.2.0 is the last one that has it"),
        ("workload alibaba --part test", "'decima workload alibaba' is gone: expected decima workload write alibaba"),
        ("bench duel a b", "'decima bench duel' is gone: version 0.2.0 is the last one that has it"),
        ("optimum --fluid", "'decima optimum --fluid' is gone: version 0.2.0 is the last one that has it"),
        ("optimum --system heterogeneous --solver=x", "--solver' is gone: OR-Tools is used where it is"),
        ("simulate --service localhost:1", "--service' is gone: expected --scheduler remote:HOST:PORT"),
        ("simulate --scheduler lookahead", "scheduler 'lookahead' is gone: version 0.2.0 is the last one that has it"),
        ("simulate --system heterogeneous --scheduler dfrn", "scheduler 'dfrn' is gone: expected 'tds' or 'tdca'"),
        ("simulate --system cloud --scheduler ilp_highs", "scheduler 'ilp_highs' is gone: expected 'ilp'"),
        ("simulate --scheduler decima:busy-entry --jobs embedded:n=1", "policy 'busy-entry' is gone: version 0.2.0"),
        ("simulate --scheduler decima:busy-23 --jobs embedded:n=1", "'busy-23' is gone: expected busy-23-random"),
        ("simulate --scheduler decima:tpch-p90 --jobs embedded:n=1", "policy 'tpch-p90' is gone: expected tpch-p90-ra"),
        (
            "simulate --scheduler decima:tpch-stream-entry-loads-2 --jobs embedded:n=1",
            "policy 'tpch-stream-entry-loads-2' is gone: expected tpch-stream-entry-continuing-2",
        ),
        ("simulate --system heterogeneous --scheduler lachesis:policy=lachesis-short", "expected lachesis-random"),
        ("simulate --system heterogeneous --scheduler lachesis:policy=lachesis-no-graph", "lachesis-random-no-graph"),
        ("train embedded:n=1 --set architecture.residual=fair", "architecture.residual is gone; version 0.2.0"),
        ("train embedded:n=1 --set recipe.teacher_rollouts=1", "recipe: teacher_rollouts is gone; version 0.2.0"),
        ("train --system cloud generated --set architecture.job_id=true", "architecture.job_id is gone; version 0.2.0"),
    ],
)
def test_what_is_gone_names_what_replaces_it_or_the_last_version_that_has_it(words, sentence, tmp_path):
    words = [*words.split(), *(["--iterations", "1", "--out", str(tmp_path)] if words.startswith("train") else [])]
    said = refuse(*words)
    assert sentence in said
    assert "\n" not in said.strip()
