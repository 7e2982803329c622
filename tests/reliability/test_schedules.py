"""Random runs of every system under a checker that reads their files only, and proof that the checker sees faults."""

import ast
import copy
import inspect

import pytest

from decima.core.system import list_systems
from tests.knobs import FIRST_SEED, RANDOM_RUNS
from tests.reliability import spark_checker, spark_mutations
from tests.reliability.systems import CHECKED

# Seeds of one test; many make the last line of progress say more.
BLOCK = 40
END = FIRST_SEED + RANDOM_RUNS


def test_every_system_has_a_checker():
    assert sorted(CHECKED) == list_systems()


@pytest.fixture(params=sorted(CHECKED))
def checked(request):
    return CHECKED[request.param]


def test_the_checker_knows_nothing_of_the_package(checked):
    tree = ast.parse(inspect.getsource(checked.checker))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported
    assert not {name for name in imported if name.partition(".")[0] in ("decima", "tests")}


@pytest.mark.parametrize("first", range(FIRST_SEED, END, BLOCK))
def test_random_runs_keep_all_rules(checked, first, tmp_path, tally):
    subjects = checked.subjects()
    tally(f"random runs under the checker: {checked.checker.__name__.rpartition('.')[2]}", runs=min(BLOCK, END - first))
    for seed in range(first, min(first + BLOCK, END)):
        subject = subjects[seed % len(subjects)]
        folder = tmp_path / str(seed)
        folder.mkdir()
        repeat = f"seed {seed}, {subject}: repeat with DECIMA_FIRST_SEED={seed} DECIMA_RANDOM_RUNS=1"
        try:
            files = checked.random_run(seed, subject, folder)
            found = [] if files is None else checked.checker.violations(checked.checker.read_run(*files))
        except Exception as error:
            error.add_note(repeat)
            raise
        assert not found, "\n".join([repeat, *found])


# ---- the checker itself ---------------------------------------------------------------------------------------------


# Good run -> its checker, who makes it, what breaks its rules.
GOOD = {name: (checked.checker, checked.good_run, checked.mutations) for name, checked in CHECKED.items()}
GOOD["elastic"] = (spark_checker, CHECKED["spark"].good_elastic_run, spark_mutations.ELASTIC)


@pytest.fixture(scope="module")
def good_runs(tmp_path_factory):
    """Runs in which nothing is wrong."""
    return {name: checker.read_run(*make(tmp_path_factory.mktemp(name))) for name, (checker, make, _) in GOOD.items()}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_in_a_good_run(name, good_runs):
    assert GOOD[name][0].violations(good_runs[name]) == []


def test_every_rule_can_be_broken(checked):
    assert set(checked.mutations) == {rule.__name__ for rule in checked.checker.RULES}


def test_everything_happens_in_the_elastic_run(good_runs):
    run = good_runs["elastic"]
    assert min(run.result["losses"].values()) > 0
    assert any(task.killed for task in run.tasks)
    assert any(end is not None and not lost for _, _, end, lost in run.result["registrations"])


@pytest.mark.parametrize(
    ("name", "rule", "change"),
    [
        pytest.param(name, rule, change, id=f"{name}-{rule}-{what}")
        for name, (_, _, mutations) in GOOD.items()
        for rule, changes in mutations.items()
        for what, change in changes.items()
    ],
)
def test_a_broken_rule_is_found(name, rule, change, good_runs):
    run = copy.deepcopy(good_runs[name])
    change(run)
    run = run.anew()
    found = GOOD[name][0].violations(run)
    assert any(text.startswith(f"{rule}: ") for text in found), found
