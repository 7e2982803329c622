"""Processes that die without notice, at random points; what is left goes on to the right end."""

import contextlib
import csv
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from decima.learning.logs import CURVE_NAME
from decima.learning.store import read_policy
from decima.learning.trainer import FILE_NAME, Checkpoint
from tests.knobs import FIRST_SEED, KILLS, when_asked
from tests.reliability.processes import below, finish, started, wait_until
from tests.unit.learning.small import same_arrays, without_times

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TRAIN = [
    *("train", "embedded:n=3", "--executors", "6", "--iterations", "6", "--seed", "4"),
    *("--set", "recipe.teacher_sequences=2", "--set", "recipe.validation_sequences=2", "--set", "recipe.rollouts=2"),
    *("--set", "recipe.teacher_iterations=1", "--set", "recipe.validate_every=2", "--set", "recipe.sequences=1"),
    *("--set", "recipe.checkpoint_every=1", "--set", "architecture.hidden=4", "--set", "architecture.embedding=4"),
]
ITERATIONS = 6
# A run may go on in another environment than the one in which it began.
VARIABLES = ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """``begin(number, folder)`` starts or goes on with a training; returns its process id and ``end()``, its end."""
    errors = tmp_path_factory.mktemp("said") / "errors"
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(errors.open("w"))
        programs = [
            stack.enter_context(
                started(sys.executable, "-m", "tests.reliability.forked", variables=variables, errors=file, cwd=ROOT)
            )
            for variables in VARIABLES
        ]

        def begin(number, folder):
            program = programs[number % len(programs)]
            resume = ["--resume"] if (folder / FILE_NAME).exists() else []
            words = [*TRAIN, "--workers", str(1 + number % 2), "--out", str(folder), *resume]
            program.stdin.write(json.dumps(words) + "\n")
            program.stdin.flush()
            child = program.stdout.readline()
            assert child, errors.read_text()[-2000:]
            return int(child), lambda: int(program.stdout.readline())

        yield begin


def progress(folder):
    """Iterations of which the curve has a row."""
    curve = folder / CURVE_NAME
    return curve.read_text(encoding="utf-8").count("\n") - 1 if curve.exists() else 0


def outcome(folder):
    """All that a training leaves, without what depends on the clock."""
    stored = Checkpoint.load(folder)
    with open(folder / CURVE_NAME, encoding="utf-8") as file:
        curve = without_times(csv.DictReader(file))
    policy = read_policy(folder / "policy")
    counters = {name: value for name, value in stored.counters.items() if not name.endswith("_s")}
    arrays = stored.arrays | {"policy": policy.weights}
    return arrays, {"curve": curve, "counters": counters, "score": policy.card["validation"]}


def kill_at(child, folder, target, wait_s):
    """Kill a training some time after so many iterations, at once if it goes on from there."""
    with contextlib.suppress(ProcessLookupError):  # it may end before
        while True:
            os.kill(child, 0)
            if (folder / FILE_NAME).exists() and progress(folder) >= target:
                time.sleep(wait_s)
                os.kill(child, signal.SIGKILL)
                return
            time.sleep(0.005)


def test_a_training_that_is_killed_goes_on_bit_for_bit(forked, tmp_path, tally):
    tally("kills of a training", kills=KILLS)
    rng = np.random.default_rng(FIRST_SEED)
    whole = tmp_path / "whole"
    assert forked(1, whole)[1]() == 0
    arrays, numbers = outcome(whole)
    kills, number, folder, after = 0, 0, tmp_path / "run 0", []
    while True:
        child, end = forked(number, folder)
        number += 1
        if kills < KILLS:
            target = int(rng.integers(progress(folder), ITERATIONS))
            kill_at(child, folder, target, rng.uniform(0.0, 1.0))
        code = end()
        if code == -signal.SIGKILL:
            after.append(Checkpoint.load(folder).counters["iteration"])
            kills += 1
            continue
        assert code == 0
        found, found_numbers = outcome(folder)
        assert same_arrays(found, arrays), f"seed {FIRST_SEED}, killed after {after}"
        assert found_numbers == numbers, f"seed {FIRST_SEED}, killed after {after}"
        new = {path.name for path in folder.iterdir()} - {path.name for path in whole.iterdir()}
        assert all(".part" in name for name in new)
        if kills == KILLS:
            return
        folder = tmp_path / f"run {number}"


STAGE = "decima simulate --jobs embedded:n=20 --executors 5 --scheduler random --out run.json --log tasks.csv"
PIPELINE = {"stages": {"run": {"cmd": f"{sys.executable} -m {STAGE}", "outs": ["run.json", "tasks.csv"]}}}


def products(folder):
    """Contents of what a pipeline made by name, without parts of files that a killed process left."""
    whole = [path for path in folder.iterdir() if ".part" not in path.name]
    return {path.name: path.read_bytes() for path in whole if path.suffix in (".json", ".csv", ".lock")}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """Folder of a pipeline that never ran, what it makes, and how long that takes."""
    new, whole = (tmp_path_factory.mktemp("pipeline") / name for name in ("new", "whole"))
    new.mkdir()
    (new / "dvc.yaml").write_text(yaml.safe_dump(PIPELINE))
    finish("dvc", "init", "--no-scm", "-q", cwd=new)
    shutil.copytree(new, whole)
    with started("dvc", "repro", cwd=whole) as process:
        assert wait_until(lambda: below(process, "decima"), process)
        begin = time.monotonic()
        said = process.communicate()[0]
    assert process.returncode == 0, said
    found = products(whole)
    assert set(found) == {"run.json", "tasks.csv", "dvc.lock"}
    return new, found, time.monotonic() - begin


@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=when_asked)], ids=["with its stage", "dvc alone"])
def test_a_pipeline_that_is_killed_ends_right_the_second_time(alone, pipeline, tmp_path):
    rng = np.random.default_rng(FIRST_SEED)
    new, expected, lasts_s = pipeline
    for number in range(max(1, KILLS // 2)):
        folder = tmp_path / f"killed {number}"
        shutil.copytree(new, folder)
        with started("dvc", "repro", cwd=folder) as process:
            assert wait_until(lambda process=process: below(process, "decima"), process)
            orphans = below(process, "decima")
            time.sleep(rng.uniform(0.0, 0.8 * lasts_s))
            if alone:
                process.kill()
                process.wait()
                finish("dvc", "repro", cwd=folder)  # while the stage of the first may still run
                psutil.wait_procs(orphans, 300)
        said = finish("dvc", "repro", cwd=folder)
        assert products(folder) == expected, f"seed {FIRST_SEED}, kill {number}: {said}"
        assert json.loads(finish("dvc", "status", "--json", cwd=folder)) == {}
