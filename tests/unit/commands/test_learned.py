"""The learned scheduler on the command line."""

import subprocess
import sys

import pytest

from decima.learning.store import save_policy
from decima.systems.spark.policy.architecture import Architecture
from tests.unit.commands.calls import refuse, run, simulated, succeed


@pytest.fixture
def policy(tmp_path):
    """Path of a policy with random weights, meant to be sampled."""
    architecture = Architecture.paper()
    return save_policy(tmp_path / "random", architecture, architecture.initial_weights(0), {"greedy": False})


def test_a_policy_is_run_as_its_card_says_unless_told_otherwise(jobs, folder, policy):
    def run_with(scheduler):
        return simulated(folder, "--jobs", jobs, "--executors", 3, "--scheduler", scheduler)

    document = run_with(f"decima:{policy}")
    assert document["scheduler"] == "decima"
    assert document["parameters"] == {"policy": str(policy), "greedy": 0}
    assert run_with(f"decima:{policy},greedy=true")["parameters"]["greedy"] == 1
    assert run_with(f"decima:policy={policy},greedy=0")["decisions"] == document["decisions"]
    assert run_with(str(policy))["decisions"] == document["decisions"]


def test_greedy_and_sampled_are_compared_under_their_own_names(jobs, policy):
    texts = (f"decima:{policy}", f"decima:{policy},greedy=1")
    table = run("compare", "fair", *texts, "--jobs", jobs, "--seeds", 3, "--executors", 3).stdout
    assert f"{policy},greedy=1" in table
    assert "best of 3 schedulers" in table


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ("decima:no-such", "unknown policy 'no-such'"),
        ("decima:busy", "policy 'busy' is gone: version 0.2.0 is the last one that has policies that correct a rule"),
        ("no.weights.h5", "lacks its weights: there is no file"),
        ("models/tpch-batch.weights.h5", "models/decima/tpch-batch, its name alone will do"),
        ("decima:alpha=1", "has no option 'alpha'; it has: policy, greedy"),
        ("decima:greedy=2", "greedy is '2'; expected true or false"),
    ],
)
def test_mistakes_are_one_sentence(scheduler, message, jobs):
    assert message in refuse("simulate", "--scheduler", scheduler, "--jobs", jobs)


def test_a_cluster_that_is_too_large_for_the_policy(jobs, policy):
    sentence = refuse("simulate", "--jobs", jobs, "--scheduler", f"decima:{policy}", "--executors", 300)
    assert "made for at most 200 executors, the cluster has 300" in sentence


def test_jobs_without_gaps_for_a_policy_that_is_told_the_gap(jobs, tmp_path):
    architecture = Architecture.paper(interarrival_hint=True)
    told = save_policy(tmp_path / "told", architecture, architecture.initial_weights(0), {"greedy": True})
    sentence = refuse("simulate", "--jobs", "embedded:n=2", "--scheduler", f"decima:{told}", "--executors", 3)
    assert "needs the mean gap between arrivals, and these jobs have none" in sentence
    succeed("simulate", "--jobs", "embedded:n=2,interarrival_s=9", "--scheduler", f"decima:{told}", "--executors", 3)


def test_listing_and_running_need_no_tensorflow(jobs, policy):
    code = (
        "import sys, decima\n"
        "decima.list_schedulers()\n"
        "assert 'decima.learning.store' not in sys.modules\n"
        f"decima.simulate({str(jobs)!r}, 'decima', 3, parameters={{'policy': {str(policy)!r}}})\n"
        "assert not {'tensorflow', 'keras', 'spektral', 'matplotlib'} & set(sys.modules)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    assert finished.returncode == 0
