"""`decima models`: stored policies and how they were learned."""

import json

from decima.learning.store import list_policies
from tests.unit.commands.calls import refuse, run, succeed


def test_every_stored_policy_is_listed():
    lines = run("models").stdout.splitlines()
    assert lines[0].split() == ["name", "system", "paper", "from", "algorithm", "iterations", "kept", "cpu_s", "seed"]
    assert [line.split()[0] for line in lines[1:-1]] == list_policies()
    squeezed = "\n".join(" ".join(line.split()) for line in lines)
    assert "tpch-stream-busy spark decima residual on capped_srw " in squeezed
    assert lines[-1].startswith(f"{len(list_policies())} policies; ")


def test_one_system_and_json():
    assert succeed("models", "--system", "unequal").startswith(f"{len(list_policies('unequal'))} policies")
    rows = json.loads(run("models", "--system", "cloud", "--json").stdout)
    assert [row["name"] for row in rows] == list_policies("cloud")
    assert {row["from"] for row in rows} == {"imitation of ilp_beta", "imitation of search", "random weights"}
    message = refuse("models", "--system", "rocket")
    assert message == "no policy of system 'rocket' is stored; known: cloud, spark, unequal"
