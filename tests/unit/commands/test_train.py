"""`decima train`: a run from the command line, its files, its continuation, and what it refuses."""

import hashlib
import os
import shutil
import signal

import numpy as np
import pytest

from decima.commands.train import as_ctrl_c, resumed
from decima.learning.store import read_policy
from decima.workload import embedded
from tests.unit.commands.calls import read_json, refuse, run, succeed

BATCH, STREAM = "embedded:n=3", "embedded:arrivals=poisson,n=3"
SMALL = ["--executors", 6, "--workers", 2]
BRIEF = [
    *("--set", "recipe.teacher_sequences=2", "--set", "recipe.validation_sequences=2", "--set", "recipe.rollouts=2"),
    *("--set", "recipe.teacher_iterations=1", "--set", "recipe.validate_every=1", "--set", "recipe.sequences=1"),
]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A finished run of three iterations and its summary."""
    folder = tmp_path_factory.mktemp("train") / "run"
    return folder, succeed("train", BATCH, "--out", folder, *SMALL, *BRIEF, "--iterations", 3, "--seed", 4)


def test_a_run_writes_a_policy_with_its_card(run_folder):
    folder, summary = run_folder
    assert summary.startswith(f"fast-batch on {embedded.LABEL}, batch of 3 jobs, 6 executors: 3 iterations, best ")
    assert summary.endswith(f"; wrote {folder / 'policy.weights.h5'}")
    written = {"checkpoint.npz", "command.json", "curve.csv", "events", "policy.json", "policy.weights.h5"}
    assert {path.name for path in folder.iterdir()} == written
    card = read_json(folder / "policy.json")
    learned = card["learned"]
    assert (learned["seed"], learned["iterations"], card["task"]["jobs"]) == (4, 3, 3)
    assert learned["from"] == "imitation of capped_srw"
    kept = card["curve"]["iteration"].index(learned["kept_iteration"] - 1)
    assert learned["algorithm"] == card["curve"]["phase"][kept]
    assert 0 < learned["cpu_s"] >= card["curve"]["cpu_s"][-1]
    assert card["recipe"]["teacher"] == "capped_srw"
    assert card["data"] == f"embedded sha256:{hashlib.sha256(embedded.PATH.read_bytes()).hexdigest()}"
    assert len(card["curve"]["val_greedy"]) == 3
    scores = card["curve"]["val_greedy"] + card["curve"]["val_sampled"]
    assert card["validation"]["score_s"] == min(scores)
    assert card["greedy"] == (min(card["curve"]["val_greedy"]) == min(scores))


def test_resume_needs_no_other_option(run_folder, tmp_path):
    folder, _ = run_folder
    words = ["--resume", "--out", str(folder), "--iterations=4"]
    begun = read_json(folder / "command.json")
    assert begun[:3] == [BATCH, "--out", str(folder)]
    assert resumed(words) == [*begun, *words]
    for other in ([*words, "--seed", "5"], [BATCH, *words], words[1:], ["--resume", "--out", str(tmp_path)]):
        assert resumed(other) == other
    copy = shutil.copytree(folder, tmp_path / "copy")
    line = succeed("train", "--resume", "--out", copy, "--iterations", 4)
    assert ": 4 iterations, best " in line
    for content in ("", "[", "3", "[1]"):
        (copy / "command.json").write_text(content)
        assert "cannot resume: " in refuse("train", "--resume", "--out", copy)


def test_resume_goes_on_and_another_policy_name_is_taken(run_folder, tmp_path):
    folder, summary = run_folder
    before = read_policy(folder / "policy")
    again = succeed(
        *("train", BATCH, "--out", folder, *SMALL, *BRIEF, "--iterations", 3, "--seed", 4),
        *("--resume", "--policy", tmp_path / "models" / "small"),
    )
    assert again.split("; wrote ")[0] == summary.split("; wrote ")[0]
    stored = read_policy(tmp_path / "models" / "small")
    assert stored.name == "small"
    assert np.array_equal(stored.weights, before.weights)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_the_end_that_a_batch_system_asks_for_is_an_interruption(monkeypatch, tmp_path, handler):
    before, usual = signal.signal(signal.SIGINT, handler), signal.getsignal(signal.SIGTERM)

    def train(*_, **__):
        assert signal.getsignal(signal.SIGTERM) is as_ctrl_c
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted after 1 iteration") from None

    monkeypatch.setattr("decima.learning.training.train", train)
    try:
        result = run("train", BATCH, "--out", tmp_path / "run", "--iterations", 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130
    assert result.stderr == f"error: interrupted after 1 iteration; --resume continues {tmp_path / 'run'}\n"
    assert signal.getsignal(signal.SIGTERM) == usual


def test_other_networks_and_streams(tmp_path):
    summary = succeed(
        *("train", f"{STREAM},interarrival_s=20-40", "--out", tmp_path / "run", *SMALL, *BRIEF, "--iterations", 1),
        *("--architecture", "released", "--set", "architecture.limit=none"),
        *("--set", "settings.moving_delay_ms=0", "--set", "settings.runnable_only=true"),
        *("--set", "architecture.hidden=4", "--recipe", "fast", "--set", "recipe.episode_start_s=none"),
    )
    assert "stream of 3 jobs at 20-40 s" in summary
    stored = read_policy(tmp_path / "run" / "policy")
    assert stored.card["task"]["settings"] == {"moving_delay_ms": 0, "runnable_only": True}
    architecture = stored.architecture
    assert (architecture.name, architecture.limit, architecture.hidden) == ("released", "none", (4,))


def test_an_episode_of_the_released_mode_cannot_end_early(tmp_path):
    """Unlike the mistakes of test_refusals, found where the first sequences are drawn."""
    words = ("--iterations", 2, "--mode", "released", "--set", "recipe.episode_start_s=1000")
    sentence = refuse("train", STREAM, "--out", tmp_path / "run", *SMALL, *words)
    assert "mode released never ends an episode early" in sentence
    assert not (tmp_path / "run" / "policy.json").exists()


def test_folders_that_cannot_be_used(run_folder, tmp_path):
    folder, _ = run_folder
    common = ("train", BATCH, *SMALL, *BRIEF, "--iterations", 3)
    assert "already holds a training run: resume it" in refuse(*common, "--seed", 4, "--out", folder)
    other = refuse(*common, "--seed", 4, "--set", "recipe.clip=0.5", "--resume", "--out", folder)
    assert "its recipe is another one (clip is 0.2 there, 0.5 here)" in other
    assert "it is not a folder" in refuse(*common, "--out", folder / "curve.csv")
    (folder / "checkpoint.npz").rename(tmp_path / "kept")
    (folder / "checkpoint.npz").write_bytes((tmp_path / "kept").read_bytes()[:1000])
    assert "is damaged or no checkpoint" in refuse(*common, "--seed", 4, "--resume", "--out", folder)
    (tmp_path / "kept").replace(folder / "checkpoint.npz")
