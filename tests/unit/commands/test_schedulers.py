"""`decima schedulers` and `decima models`."""

import subprocess
import sys
from pathlib import Path

import pytest

import decima
from decima.commands.schedulers import described
from decima.commands.shared.options import registry_of
from decima.commands.shared.verbs import SYSTEMS
from decima.learning import store
from decima.learning.store import list_policies, save_policy
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.schedulers import (
    form_for,
    list_schedulers,
    make_scheduler,
    scheduler_options,
    scheduler_presets,
)
from tests.unit.commands.calls import refuse, run, simulated


def test_every_scheduler_is_listed_with_its_parameters():
    lines = run("schedulers").stdout.splitlines()
    names = [line.split()[0] for line in lines[:-1] if not line.startswith(" ")]
    assert names == list_schedulers()
    rows, options = [], []
    for words, indented in ((line.split(), line.startswith(" ")) for line in lines[:-1]):
        if not indented:
            options = [option.name for option in scheduler_options(words[0])]
        elif words[0] not in options:
            rows.append(words)
    parameters = [words for words in rows if not words[0].startswith(":")]
    numeric = [make_scheduler(name) for name in names if not scheduler_options(name)]
    forms = [[form_for(scheduler, streaming).values for streaming in (False, True)] for scheduler in numeric]
    values = [(name, {batch[name], stream[name]}) for batch, stream in forms for name in batch]
    assert [(words[0], set(map(float, words[1].split("|")))) for words in parameters] == values
    assert all(words[3] == "to" for words in parameters)
    presets = [f":{preset.name}" for scheduler in names for preset in scheduler_presets(scheduler)]
    assert [words[0] for words in rows if words not in parameters] == presets
    assert lines[-1].startswith(f"{len(names)} schedulers")


def table_of(system):
    """What is kept for `decima schedulers`, so that it imports none of them."""
    registry = registry_of(system).SCHEDULERS
    return "".join(f"{described(system, each)}\n" for each in registry if not registry.outside(each))


def keep_tables():
    """Write the tables anew; docs/extend.md has the command."""
    for system in SYSTEMS:
        path = Path(decima.__file__).parent / "systems" / system / "schedulers.txt"
        path.write_text(table_of(system), encoding="utf-8")


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_kept_table_says_what_the_registry_says(system):
    shown = run("schedulers", "--system", system).stdout
    assert shown.startswith(table_of(system)), "schedulers.txt is not up to date: docs/extend.md has the command"


def test_listing_the_learned_scheduler_reads_no_weights(monkeypatch):
    monkeypatch.setattr(store, "read_policy", None)
    assert described("spark", "decima") in run("schedulers").stdout
    lines = run("schedulers", "decima").stdout.splitlines()
    assert lines[0].startswith("decima               A learned policy: a graph neural network")
    presets = [":batch", ":stream", ":alone_batch", ":alone_stream"]
    assert [line.split()[0] for line in lines[1:]] == ["policy", "greedy", *presets]
    assert lines[-1].endswith("(policy tpch-stream-continuing)")


def test_every_stored_policy_is_listed():
    lines = run("models").stdout.splitlines()
    assert lines[0].split() == ["name", "system", "paper", "from", "algorithm", "iterations", "kept", "cpu_s", "seed"]
    assert [line.split()[0] for line in lines[1:-1]] == list_policies()
    squeezed = "\n".join(" ".join(line.split()) for line in lines)
    assert "tpch-stream-entry-warm spark decima imitation of entry_srw " in squeezed
    assert lines[-1].startswith(f"{len(list_policies())} policies; ")


# The learned scheduler on the command line.


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
