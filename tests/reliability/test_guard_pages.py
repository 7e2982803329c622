"""Random runs with every array beside a page that may not be touched, and proof that such a page kills."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from decima.systems.spark.fields import CLUSTER
from decima.systems.spark.policy.fields import POLICY
from decima.systems.spark.schedulers.fields import RULE
from tests.knobs import FIRST_SEED, GUARDED_RUNS
from tests.reliability.guarded import guarded_run, subjects

pytestmark = pytest.mark.slow
BLOCK = 50
ROOT = Path(__file__).parents[2]
# Entries that no rule reads in these runs: the last pool, level or record of a capacity that is seldom used up, and
# tables that only Python reads.
MOST_THAT_LIVE = 0.3


def program(*arguments):
    """Lines of the program, and its exit code (below 0: the signal that ended it)."""
    command = [sys.executable, "-m", "tests.reliability.guarded", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.returncode, done.stderr[-2000:]


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + GUARDED_RUNS, BLOCK))
def test_nothing_is_read_or_written_outside_of_an_array(first, tally):
    count = min(BLOCK, FIRST_SEED + GUARDED_RUNS - first)
    tally("runs between guard pages, both ends", runs=2 * count)
    lines, code, errors = program("runs", first, count)
    assert code == 0, f"ended by {code} at: {lines[-1] if lines else 'the beginning'}\n{errors}"
    assert len(lines) == 4 * count + 1
    placed = json.loads(lines[-1])
    assert min(placed.values()) > count, placed
    outcomes = lines[1:-1:2]
    assert outcomes[::2] == outcomes[1::2]
    for number in range(0, count, 10):  # the fence changes nothing
        assert " ".join(guarded_run(first + number)) == outcomes[2 * number]


def test_all_that_decides_in_the_core_has_its_turn():
    assert len({guarded_run(seed)[0] for seed in range(len(subjects()))}) == len(set(subjects()))


def test_an_array_that_is_one_entry_too_short_kills():
    step = 1 if GUARDED_RUNS >= 1000 else 14
    lines, code, errors = program("short", len(subjects()), step)
    assert code == 0, errors
    deaths = {name: ends for name, *ends in map(json.loads, lines)}
    assert len(deaths) == -(-sum(len(layout.arrays) for layout in (CLUSTER, RULE, POLICY)) // step)
    ends = [end for both in deaths.values() for end in both]
    assert set(ends) <= {"SIGSEGV", "SIGBUS", None}
    assert ends.count(None) < MOST_THAT_LIVE * len(ends), deaths
