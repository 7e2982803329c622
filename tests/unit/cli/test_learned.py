"""The learned scheduler on the command line: `--policy`, `--sampled`, `--greedy`."""

import subprocess
import sys

import pytest

from decima.policy.architecture import Architecture
from decima.policy.store import save_policy
from tests.unit.cli.calls import read_json, refuse, run, succeed


@pytest.fixture
def policy(tmp_path):
    """Path of a policy with random weights, meant to be sampled."""
    architecture = Architecture.paper()
    return save_policy(tmp_path / "random", architecture, architecture.initial_weights(0), {"greedy": False})


def simulated(jobs, folder, *arguments):
    """Result file of a run with the learned scheduler."""
    out = folder / f"{len(list(folder.iterdir()))}.json"
    succeed("simulate", "--jobs", jobs, "--executors", 3, "--scheduler", "decima", *arguments, "--out", out)
    return read_json(out)


def test_a_policy_is_run_as_its_card_says_unless_told_otherwise(jobs, folder, policy):
    document = simulated(jobs, folder, "--policy", policy)
    assert document["scheduler"] == "decima"
    assert document["parameters"] == {"policy": str(policy), "greedy": 0}
    assert simulated(jobs, folder, "--policy", policy, "--greedy")["parameters"]["greedy"] == 1
    assert simulated(jobs, folder, "--policy", policy, "--sampled")["decisions"] == document["decisions"]


def test_parameters_go_before_options(jobs, folder, policy):
    document = simulated(jobs, folder, "--policy", "elsewhere", "--param", f"policy={policy}", "--param", "greedy=1")
    assert document["parameters"] == {"policy": str(policy), "greedy": 1}


def test_greedy_and_sampled_are_compared_under_their_own_names(jobs, policy):
    arguments = ("compare", "fair", "decima", "decima:greedy=1", "--jobs", jobs, "--policy", policy, "--seeds", 3)
    table = run(*arguments, "--executors", 3).stdout
    assert "decima:greedy=1" in table
    assert "best of 3 schedulers" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "--policy", "x"), "--policy has no meaning for fair; it is for scheduler 'decima'"),
        (("simulate", "--sampled"), "--sampled has no meaning for fair"),
        (("compare", "fair", "fifo", "--greedy"), "--greedy has no meaning for fair, fifo"),
        (("simulate", "--scheduler", "decima", "--policy", "no-such"), "unknown policy 'no-such'"),
        (("simulate", "--scheduler", "decima", "--policy", "no.weights.h5"), "lacks its weights: there is no file"),
        (("simulate", "--scheduler", "decima", "--param", "alpha=1"), "decima has no parameter 'alpha'; it has"),
        (("simulate", "--scheduler", "decima", "--param", "greedy=2"), "decima: greedy must be 0 or 1, got 2.0"),
    ],
)
def test_mistakes_are_one_sentence(arguments, message, jobs):
    assert message in refuse(*arguments, "--jobs", jobs)


def test_a_cluster_that_is_too_large_for_the_policy(jobs, policy):
    sentence = refuse("simulate", "--jobs", jobs, "--scheduler", "decima", "--policy", policy, "--executors", 300)
    assert "made for at most 200 executors, the cluster has 300" in sentence


def test_listing_and_running_need_no_tensorflow(jobs, policy):
    code = (
        "import sys, decima\n"
        "decima.list_schedulers()\n"
        "assert 'decima.policy.store' not in sys.modules\n"
        f"decima.simulate({str(jobs)!r}, 'decima', 3, parameters={{'policy': {str(policy)!r}}})\n"
        "assert not {'tensorflow', 'keras', 'spektral', 'matplotlib'} & set(sys.modules)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    assert finished.returncode == 0
