"""`decima schedulers` and `decima models`."""

import json

from decima.learning import store
from decima.learning.store import list_policies
from decima.systems.spark.schedulers import (
    describe_scheduler,
    form_for,
    list_schedulers,
    make_scheduler,
    scheduler_options,
    scheduler_presets,
)
from tests.unit.commands.calls import refuse, run, succeed


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


def test_one_scheduler():
    text = run("schedulers", "naive_weighted_fair").stdout
    assert text.startswith(f"naive_weighted_fair  {describe_scheduler('naive_weighted_fair')}\n")
    assert "    alpha             1  -5 to 5" in text
    assert succeed("schedulers", "random") == f"random               {describe_scheduler('random')}"
    assert "unknown scheduler 'rando'" in refuse("schedulers", "rando")


def test_presets_are_listed_with_their_values():
    text = run("schedulers", "weighted_fair").stdout
    assert "    alpha        -0.7|0.1  -5 to 5" in text
    assert ":paper       a reading of §7.1" in text
    assert "(sticky 1, order 0, alpha -1)" in text


def test_listing_the_learned_scheduler_reads_no_weights(monkeypatch):
    monkeypatch.setattr(store, "read_policy", None)
    lines = run("schedulers", "decima").stdout.splitlines()
    assert lines[0].startswith("decima               A learned policy: a graph neural network")
    presets = [":batch", ":stream", ":alone_batch", ":alone_stream"]
    assert [line.split()[0] for line in lines[1:]] == ["policy", "greedy", *presets]
    assert lines[-1].endswith("(policy tpch-stream-random-long)")
    assert run("schedulers").exit_code == 0


def test_every_stored_policy_is_listed():
    lines = run("models").stdout.splitlines()
    assert lines[0].split() == ["name", "system", "paper", "from", "algorithm", "iterations", "kept", "cpu_s", "seed"]
    assert [line.split()[0] for line in lines[1:-1]] == list_policies()
    squeezed = "\n".join(" ".join(line.split()) for line in lines)
    assert "tpch-stream-entry-warm spark decima imitation of entry_srw " in squeezed
    assert lines[-1].startswith(f"{len(list_policies())} policies; ")


def test_one_system_and_json():
    assert succeed("models", "--system", "heterogeneous").startswith(f"{len(list_policies('heterogeneous'))} policies")
    rows = json.loads(run("models", "--system", "cloud", "--json").stdout)
    assert [row["name"] for row in rows] == list_policies("cloud")
    assert {row["from"] for row in rows} == {"imitation of ilp_beta", "imitation of search", "random weights"}
    message = refuse("models", "--system", "rocket")
    assert message == "no policy of system 'rocket' is stored; known: cloud, heterogeneous, spark"
