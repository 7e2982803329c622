"""Processes that die without notice, at random points; what is left goes on to the right end."""

import csv
import json
import os
import shutil
import signal
import sys
import time

import numpy as np
import psutil
import pytest
import yaml

from decima.files import sole_use
from decima.policy.store import read_policy
from decima.training.checkpoint import FILE_NAME, Checkpoint
from decima.training.logs import CURVE_NAME
from tests.knobs import FIRST_SEED, KILLS, when_asked
from tests.reliability.processes import COMMAND, below, finish, started, wait_until
from tests.unit.training.small import same_arrays, without_times

TRAIN = [
    *("train", "embedded:n=3", "--executors", "6", "--iterations", "6", "--seed", "4"),
    *("--set", "recipe.teacher_sequences=2", "--set", "recipe.validation_sequences=2", "--set", "recipe.rollouts=2"),
    *("--set", "recipe.teacher_iterations=1", "--set", "recipe.validate_every=2", "--set", "recipe.sequences=1"),
    *("--set", "recipe.checkpoint_every=1", "--set", "architecture.hidden=4", "--set", "architecture.embedding=4"),
]
# A run may go on in another environment than the one in which it began.
VARIABLES = ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1"}, {})


def train(folder, number):
    """Words and environment of one of the processes of a training."""
    resume = ["--resume"] if (folder / FILE_NAME).exists() else []
    words = [*COMMAND, *TRAIN, "--workers", 1 + number % 2, "--out", folder, *resume]
    return words, VARIABLES[number % len(VARIABLES)]


def outcome(folder):
    """All that a training leaves, without what depends on the clock."""
    stored = Checkpoint.load(folder)
    with open(folder / CURVE_NAME, encoding="utf-8") as file:
        curve = without_times(csv.DictReader(file))
    policy = read_policy(folder / "policy")
    counters = {name: value for name, value in stored.counters.items() if not name.endswith("_s")}
    arrays = stored.arrays | {"policy": policy.weights}
    return arrays, {"curve": curve, "counters": counters, "score": policy.card["validation"]}


def test_a_training_that_is_killed_goes_on_bit_for_bit(tmp_path):
    rng = np.random.default_rng(FIRST_SEED)
    whole = tmp_path / "whole"
    words, variables = train(whole, 2)
    with started(*words, variables=variables) as process:
        assert wait_until((whole / FILE_NAME).exists, process)
        begin = time.monotonic()
        said = process.communicate()[0]
    assert process.returncode == 0, said
    lasts_s = time.monotonic() - begin
    arrays, numbers = outcome(whole)
    kills, folder, number, seen = 0, tmp_path / "run 0", 0, set()
    while True:
        words, variables = train(folder, number)
        wait_s = rng.uniform(0.0, lasts_s) if kills < KILLS else None
        with started(*words, variables=variables) as process:
            number += 1
            before = (folder / FILE_NAME).stat().st_mtime_ns if (folder / FILE_NAME).exists() else 0
            trains = wait_until(
                lambda before=before, folder=folder: (
                    (folder / FILE_NAME).exists() and (folder / FILE_NAME).stat().st_mtime_ns > before
                ),
                process,
            )
            if trains and wait_s is not None:
                with sole_use(folder) as alone:  # nobody else may train there meanwhile
                    assert not alone
                time.sleep(wait_s)
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()
                    kills += 1
                    seen.add(Checkpoint.load(folder).counters["iteration"])
                    continue
            said = process.communicate()[0]
        assert process.returncode == 0, said
        found, found_numbers = outcome(folder)
        assert same_arrays(found, arrays), f"seed {FIRST_SEED}, after {kills} kills"
        assert found_numbers == numbers, f"seed {FIRST_SEED}, after {kills} kills"
        leftovers = {path.name for path in folder.iterdir()} - {path.name for path in whole.iterdir()}
        assert all(name.endswith((".npz", ".json", ".h5", ".csv")) and ".part" in name for name in leftovers)
        if kills == KILLS:
            break
        folder = tmp_path / f"run {number}"
    assert len(seen) > min(KILLS, 6) // 3, f"kills only after iterations {seen}"


STAGE = "decima simulate --jobs embedded:n=20 --executors 5 --scheduler random --out run.json --log tasks.csv"
PIPELINE = {"stages": {"run": {"cmd": f"{sys.executable} -m {STAGE}", "outs": ["run.json", "tasks.csv"]}}}


def products(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".csv", ".lock")}


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
