"""Example of a search of rules: what it writes are rules, and they have the values of their expressions."""

import random

import pytest

gp = pytest.importorskip("deap.gp")

import search_rule as example  # noqa: E402

from decima.bench.rules import read_rule  # noqa: E402


def test_candidates_and_their_offspring_are_rules(tmp_path):
    random.seed(3)
    known, path = example.primitives(), tmp_path / "rule.py"
    parents = [[gp.PrimitiveTree(gp.genFull(known, 2, 3)) for _ in range(2)] for _ in range(6)]
    children = example.offspring(list(enumerate(parents)), 4, known)
    assert {example.rule_of(each) for each in children} - {example.rule_of(each) for each in parents}
    for candidate in (*parents[:2], *children[:2]):
        path.write_text(example.rule_of(candidate))
        assert read_rule(path).compiled


def test_text_has_the_operations_in_their_order():
    known = example.primitives()
    tree = gp.PrimitiveTree.from_string("sub(log(work_s), div(jobs, executors))", known)
    assert example.text_of(tree) == "(math.log(1.0 + abs(work_s)) - (jobs / (abs(executors) + 0.001)))"
    constant = gp.PrimitiveTree([known.mapping["jobs"]])
    assert example.rule_of([tree, constant]).startswith(
        "import math\n\n\ndef rule(executors, jobs, work_s):\n    return ("
    )
