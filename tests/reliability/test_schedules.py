"""Random runs of every system under a checker that reads their files only, and proof that the checker sees faults."""

import ast
import copy
import inspect

import pytest

from decima.core.system import list_systems
from tests.knobs import FIRST_SEED, RANDOM_RUNS
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


@pytest.fixture(scope="module")
def good_runs(tmp_path_factory):
    """A run of every system in which nothing is wrong."""
    return {
        name: checked.checker.read_run(*checked.good_run(tmp_path_factory.mktemp(name)))
        for name, checked in CHECKED.items()
    }


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_nothing_is_found_in_a_good_run_and_every_rule_can_be_broken(name, good_runs):
    checked, good = CHECKED[name], good_runs[name]
    assert checked.checker.violations(good) == []
    assert set(checked.mutations) == {rule.__name__ for rule in checked.checker.RULES}


@pytest.mark.parametrize(
    ("name", "rule", "change"),
    [
        pytest.param(name, rule, change, id=f"{name}-{rule}-{what}")
        for name, checked in CHECKED.items()
        for rule, changes in checked.mutations.items()
        for what, change in changes.items()
    ],
)
def test_a_broken_rule_is_found(name, rule, change, good_runs):
    run = copy.deepcopy(good_runs[name])
    change(run)
    run = run.anew()
    found = CHECKED[name].checker.violations(run)
    assert any(text.startswith(f"{rule}: ") for text in found), found
