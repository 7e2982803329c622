"""Examples with libraries of reinforcement learning: a few updates, and the comparison at the end."""

import importlib
import warnings

import pytest

SMALL = ["--workload", "synthetic:n=3,sizes=xs", "--executors", "4", "--cpu-s", "0.1", "--fresh", "2"]


@pytest.mark.parametrize(("example", "library"), [("cleanrl_ppo", "torch"), ("maskable_ppo", "sb3_contrib")])
def test_example_learns_and_compares(example, library):
    pytest.importorskip(library, reason=f"{library} is not installed; examples/{example}.py needs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries
        scores = importlib.import_module(example).main(SMALL).scores
    assert set(scores.scheduler) == {"fair", "capped_srw", example}
    assert scores.avg_jct_s.notna().all()
