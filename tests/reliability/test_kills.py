"""Processes that die without notice, at random points; what is left goes on to the right end."""

import csv
import json
import os
import signal
import sys
import time

import numpy as np
import pytest
import yaml

from decima.files import sole_use
from decima.policy.store import read_policy
from decima.training.checkpoint import FILE_NAME, Checkpoint
from decima.training.logs import CURVE_NAME
from tests.knobs import FIRST_SEED, KILLS
from tests.reliability.processes import COMMAND, below, finish, started, wait_until
from tests.unit.training.small import same_arrays, without_times

TRAIN = [
    *("train", "embedded:n=3", "--executors", "6", "--iterations", "12", "--seed", "4"),
    *("--set", "recipe.teacher_sequences=2", "--set", "recipe.validation_sequences=2", "--set", "recipe.rollouts=2"),
    *("--set", "recipe.teacher_iterations=1", "--set", "recipe.validate_every=2", "--set", "recipe.sequences=1"),
    *("--set", "recipe.checkpoint_every=1", "--set", "architecture.hidden=4", "--set", "architecture.embedding=4"),
]
# A run may go on in another environment than the one in which it began.
VARIABLES = ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1"}, {})


def train(folder, number):
    """Words and environment of the so-manieth process of a training."""
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
    assert len(seen) > min(KILLS, 6) // 2, f"kills only after iterations {seen}"


PIPELINE = {
    "stages": {
        "run": {
            "cmd": f"{sys.executable} -m decima simulate --jobs embedded:n=20 --executors 5 --scheduler random "
            "--out run.json --log tasks.csv",
            "outs": ["run.json", "tasks.csv"],
        },
        "compare": {
            "cmd": f"{sys.executable} -m decima compare fair replay:run.json --jobs embedded:n=20 --executors 5 "
            "--seeds 1 --out table.csv",
            "deps": ["run.json"],
            "outs": ["table.csv"],
        },
    }
}


def pipeline(folder):
    """A folder with a pipeline of two stages."""
    folder.mkdir()
    (folder / "dvc.yaml").write_text(yaml.safe_dump(PIPELINE))
    finish("dvc", "init", "--no-scm", "-q", cwd=folder)
    return folder


def products(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".csv", ".lock")}


@pytest.mark.parametrize("victim", ["dvc and its stage", "dvc alone"])
def test_a_pipeline_that_is_killed_ends_right_the_second_time(victim, tmp_path):
    rng = np.random.default_rng(FIRST_SEED)
    whole = pipeline(tmp_path / "whole")
    begin = time.monotonic()
    finish("dvc", "repro", cwd=whole)
    lasts_s = time.monotonic() - begin
    expected = products(whole)
    assert set(expected) == {"run.json", "tasks.csv", "table.csv", "dvc.lock"}
    for number in range(max(1, KILLS // 2)):
        folder = pipeline(tmp_path / f"killed {number}")
        with started("dvc", "repro", cwd=folder) as process:
            assert wait_until(lambda process=process: below(process, "decima"), process)
            orphans = below(process, "decima")
            time.sleep(rng.uniform(0.0, 0.7 * lasts_s))
            if victim == "dvc alone":
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                finish("dvc", "repro", cwd=folder)  # while the stage of the first may still run
                for orphan in orphans:
                    if orphan.is_running():
                        orphan.wait(300)
        finish("dvc", "repro", cwd=folder)
        assert products(folder) == expected, f"seed {FIRST_SEED}, kill {number}"
        assert "didn't change" in finish("dvc", "repro", cwd=folder)
        status = json.loads(finish("dvc", "status", "--json", cwd=folder))
        assert status == {}

