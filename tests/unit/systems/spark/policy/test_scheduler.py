"""The learned scheduler wherever schedulers run: in the core, through ``decide``, in pools, with bad input."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import decima
from decima.core.errors import ConfigError
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.features import FEATURES, SETS
from decima.systems.spark.policy.record import collect_record
from decima.systems.spark.policy.scheduler import record_episode
from decima.systems.spark.schedulers import Observation, check_scheduler, make_scheduler
from decima.systems.spark.state import spawn_generators
from decima.workload import synthetic_batch, synthetic_poisson
from tests.unit.systems.spark.policy.policies import BASES, finish_times, make_policy, make_state


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("greedy", [True, False])
def test_keeps_the_rules_of_schedulers(name, greedy):
    report = check_scheduler(make_policy(name, greedy=greedy))
    assert report.kind == "compiled"


def test_the_state_serves_other_schedulers_in_between():
    workload = synthetic_poisson(10, 20, 0)
    state = make_state(workload, executors=10)
    policies = [make_policy("paper"), make_policy("released"), make_policy("paper", seed=1), make_scheduler("fair")]
    alone = [finish_times(make_state(workload, executors=10), policy) for policy in policies]
    for index in (0, 1, 3, 2, 0, 2, 1, 3):
        np.testing.assert_array_equal(finish_times(state, policies[index]), alone[index])


def test_cluster_larger_than_the_policy_allows():
    with pytest.raises(ConfigError, match="at most 200 executors, the cluster has 201"):
        decima.simulate(synthetic_batch(2), make_policy(), executors=201)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"teacher_share": 1.5}, "teacher_share"),
        ({"teacher_share": float("nan")}, "teacher_share"),
        ({"interarrival_s": -1.0}, "interarrival_s"),
        ({"interarrival_s": float("inf")}, "interarrival_s"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        make_policy(**options)


def test_one_object_on_two_states_in_turn():
    """Through ``decide`` on two states, a decision here and a decision there: the records are those of the core."""
    teacher = make_scheduler("capped_srw")
    policy = make_policy(greedy=False, record=True, teacher=teacher, teacher_share=0.5)
    workloads = [synthetic_poisson(8, 10, 0), synthetic_batch(5)]
    wanted = [record_episode(make_state(workload, executors=9), policy, 1) for workload in workloads]
    states = [make_state(workload, executors=9) for workload in workloads]
    for state in states:
        state.start(*spawn_generators(1))
    open_ones = list(states)
    while open_ones:
        for state in list(open_ones):
            if not state.advance():
                open_ones.remove(state)
            elif state.num_frontier == 0:
                state.decide(-1, state.num_source)
            else:
                make_scheduler("weighted_fair").decide(Observation(state))  # binds its own parameters
                decision = policy.decide(Observation(state))
                idle = decision.stage is None
                state.decide(-1 if idle else decision.stage, state.num_source if idle else decision.parallelism_limit)
    for state, record in zip(states, wanted, strict=True):
        found = collect_record(state)
        for name, value in vars(record).items():
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)


# ---- what docs/policy.md and policy-heads.md say about the network ---------------------------------------------------

DOCS = Path(__file__).parents[5] / "docs"
PAGE = (DOCS / "policy.md").read_text(encoding="utf-8")


def rows(first_cell):
    """Cells of the table rows whose first cell matches."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    return [cells for cells in lines if re.fullmatch(first_cell, cells[0])]


@pytest.mark.parametrize(("name", "column"), [("paper", 1), ("released", 3)])
def test_widths_and_weights(name, column):
    architecture = Architecture.named(name)
    shown = {cells[0].strip("`"): (cells[column], cells[column + 1]) for cells in rows("`[a-z_]+`") if len(cells) == 5}
    expected = {
        net.name: ("-".join(map(str, net.widths)), f"{sum(int(np.prod(shape)) for _, shape in net.shapes):,}")
        for net in architecture.perceptrons
    }
    assert {net: cells for net, cells in shown.items() if cells != ("–", "–")} == expected
    (total,) = rows("all")
    assert total[column + 1] == f"{architecture.num_parameters:,}"


def test_features_are_those_of_the_code():
    table = PAGE[PAGE.index("## Features") : PAGE.index("## One network")]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] == "| `"]
    of_sets = {name: [set_ for set_, chosen in SETS.items() if name in chosen] for name in (f.name for f in FEATURES)}
    assert shown == [
        [f"`{feature.name}`", feature.doc, f"{feature.scale:.6g}", ", ".join(of_sets[feature.name]) or "–"]
        for feature in FEATURES
    ]


def test_options_exist():
    known = {field.name for field in fields(Architecture)}
    page = (DOCS / "policy-heads.md").read_text(encoding="utf-8")
    table = page[page.index("## Options") : page.index("## Idle slots")]
    named = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    options = [option for cell in named for option in re.findall(r"`([a-z_]+)(?:=.*?)?`", cell)]
    assert len(options) >= 10
    assert set(options) <= known


def test_example_runs(capsys):
    exec(compile(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1), "policy.md", "exec"), {})
    assert "Traceback" not in capsys.readouterr().out
