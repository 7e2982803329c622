"""A network beside the core, as docs/another-network.md shows it: it trains, stores its weights and is compared."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import decima
from tests.unit.commands.calls import run

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "another-network.md"


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Names of the file on the page, in a folder of its own."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("transformer.py").write_text(code, encoding="utf-8")
    return runpy.run_path("transformer.py")


def test_the_transformer_trains_and_every_command_takes_it(shown):
    shown["train"](iterations=2, sequences=1, rollouts=2)
    assert Path("transformer.weights.h5").stat().st_size > 10**4
    trained, untrained = shown["Transformer"](), shown["Transformer"](weights="")
    jobs = shown["parse_jobs"](shown["JOBS"]).workload(7)
    assert decima.check_scheduler(trained, workloads=jobs, executors=[10]).kind == "Python"
    steps, episode = shown["episode"](trained, jobs, 0)
    assert (np.diff(episode.time_s) >= 0.0).all()
    result = decima.simulate(jobs, trained, 10, 0)
    from_first_s = sum(job.arrival_ms for job in jobs.jobs) / 1000.0  # all jobs arrive at 0
    assert -episode.rewards.sum() == pytest.approx(result.avg_jct_s * len(jobs) - from_first_s)
    rows = steps[0][1][None]
    there = np.ones(rows.shape[:2], bool)
    assert not np.allclose(trained.scores(rows, there), untrained.scores(rows, there))
    ours = ("compare", "fair", "transformer.py:Transformer", "--jobs", shown["JOBS"])
    answer = run(*ours, "--executors", 10, "--seeds", 2)
    assert answer.exit_code == 0, answer.stderr
    assert "transformer" in answer.stdout


def test_padding_changes_no_score(shown):
    policy = shown["Transformer"](weights="")
    rows = np.random.default_rng(0).normal(size=(1, 3, shown["COLUMNS"])).astype(np.float32)
    padded = np.concatenate([rows, np.zeros((1, 4, shown["COLUMNS"]), np.float32)], axis=1)
    alone = policy.scores(rows, np.ones((1, 3), bool)).numpy()
    among = policy.scores(padded, np.array([[True] * 3 + [False] * 4])).numpy()
    assert np.allclose(alone, among[:, :3], atol=1e-5)
