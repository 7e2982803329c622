"""Batches of recorded decisions: every tensor against plain loops over the records."""

import dataclasses

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.systems.spark.policy.batch import TENSORS, GraphBatch, ranges
from tests.policy_records import Record, Tables, random_jobs, random_record

# Job 0 is the diamond 0 -> {1, 2} -> 3 with a short cut 0 -> 3, job 1 the chain 1 -> 0.
DIAMOND = [[1, 2, 3], [3], [3], []]
CHAIN = [[], [0]]
TABLES = Tables.of([DIAMOND, CHAIN])


def two_job_record(**changes):
    """Decision 0 sees the whole diamond and the chain, decision 1 the chain and the diamond without its root."""
    values = {
        "instance_first": [0, 4, 6, 9],
        "node_row": [0, 1, 2, 3, 4, 5, 1, 2, 3],
        "node_local": [0, 1, 2, 3, 0, 1, 1, 2, 3],
        "x": np.arange(45).reshape(9, 5),
        "decision_pairs": [0, 2, 4],
        "pair_instance": [0, 1, 2, 1],
        "decision_candidates": [0, 2, 5],
        "candidate_node": [0, 5, 6, 7, 5],
        "candidate_instance": [0, 1, 2, 2, 1],
        "choice": [1, 2],
        "limit": [3, 2],
        "limit_low": [2, 1],
        "limit_high": [6, 6],
        "classes": [3, 1],
    }
    return Record(**(values | changes))


def test_tensors_of_two_decisions_by_hand():
    batch = GraphBatch([two_job_record()], TABLES.child_offset, TABLES.child)
    tensors = batch.tensors()
    # Level 0: stage 3 of the diamond, stage 0 of the chain, stage 3 of the smaller diamond, in the order of the record.
    nodes = [3, 4, 8, 1, 2, 5, 6, 7, 0]
    np.testing.assert_array_equal(tensors["x"], np.arange(45).reshape(9, 5)[nodes])
    expected = {
        "level_sizes": [3, 5, 1],
        "edge_source": [0, 0, 1, 2, 2, 3, 4, 0],
        "edge_target": [0, 1, 2, 3, 4, 0, 0, 0],
        "edge_level_sizes": [0, 5, 3],
        "node_instance": [0, 1, 2, 0, 0, 1, 2, 2, 0],
        "num_instances": 3,
        "pair_instance": [0, 1, 2, 1],
        "pair_decision": [0, 0, 1, 1],
        "candidate_node": [8, 5, 6, 7, 5],
        "candidate_class": np.zeros((5, 0)),
        "candidate_decision": [0, 0, 1, 1, 1],
        "candidate_run": [0, 1, 2, 2, 3],
        "run_instance": [0, 1, 2, 1],
        "run_decision": [0, 0, 1, 1],
        "choice": [1, 2],
        "limits": [2, 3, 4, 5, 6],
        "limit_decision": [0],
        "limit_low": [2],
        "limit_high": [6],
        "limit_tail": [4],
        "limit_chosen": [3],
        "shape": np.zeros((3, 0)),
        "delay_decision": [],
        "delay_chosen": [],
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)
    assert set(tensors) == set(expected) | {"x"}


def test_a_stage_that_runs_again_has_the_children_that_have_not_finished():
    # Of the diamond, stage 0 runs again, 1 has finished, 2 and 3 wait: the message of 1 is missing.
    record = two_job_record(
        instance_first=[0, 3, 5, 8],
        node_row=[0, 2, 3, 4, 5, 1, 2, 3],
        node_local=[0, 2, 3, 0, 1, 1, 2, 3],
        x=np.arange(40).reshape(8, 5),
        candidate_node=[0, 4, 5, 6, 4],
    )
    tensors = GraphBatch([record], TABLES.child_offset, TABLES.child).tensors()
    nodes = [2, 3, 7, 1, 4, 5, 6, 0]
    np.testing.assert_array_equal(tensors["x"], np.arange(40).reshape(8, 5)[nodes])
    np.testing.assert_array_equal(tensors["level_sizes"], [3, 4, 1])
    np.testing.assert_array_equal(tensors["edge_level_sizes"], [0, 4, 2])
    np.testing.assert_array_equal(tensors["edge_source"], [0, 1, 2, 2, 3, 0])
    np.testing.assert_array_equal(tensors["edge_target"], [0, 1, 2, 3, 0, 0])


def test_idle_slots_and_shapes_follow_their_decisions_and_graphs():
    shape = np.arange(6.0).reshape(3, 2)
    record = two_job_record(delay=[0, 4], delay_free=[0, 1], instance_shape=shape)
    batch = GraphBatch([record, record], TABLES.child_offset, TABLES.child)
    tensors = batch.tensors()
    np.testing.assert_array_equal(tensors["delay_decision"], [1, 3])
    np.testing.assert_array_equal(tensors["delay_chosen"], [4, 4])
    np.testing.assert_array_equal(tensors["shape"], [*shape, *shape])
    some = batch.tensors(np.array([3]))
    np.testing.assert_array_equal(some["delay_decision"], [0])
    np.testing.assert_array_equal(some["shape"], shape[1:])


def test_dtypes_and_ranks_are_those_listed():
    batch = GraphBatch([two_job_record()], TABLES.child_offset, TABLES.child)
    for tensors in (batch.tensors(), batch.tensors(np.array([1]), num_levels=7)):
        assert set(tensors) == set(TENSORS)
        for name, (dtype, shape) in TENSORS.items():
            assert tensors[name].dtype == dtype, name
            assert tensors[name].ndim == len(shape), name


def test_a_decision_brings_only_the_graphs_it_sees():
    batch = GraphBatch([two_job_record()], TABLES.child_offset, TABLES.child)
    tensors = batch.tensors(np.array([1]), num_levels=4)
    assert tensors["num_instances"] == 2
    assert len(tensors["x"]) == 5
    np.testing.assert_array_equal(tensors["level_sizes"], [2, 3, 0, 0])
    np.testing.assert_array_equal(tensors["pair_instance"], [1, 0])
    np.testing.assert_array_equal(tensors["choice"], [0])
    assert len(tensors["limit_decision"]) == 0
    assert len(tensors["limits"]) == 0


def described(tensors):
    """What a batch says about each decision, free of its numbering: nested sorted lists of feature vectors."""
    first = np.cumsum(tensors["level_sizes"]) - tensors["level_sizes"]
    edge_level = np.repeat(np.arange(len(first)), tensors["edge_level_sizes"])
    parents = first[edge_level] + tensors["edge_target"]
    x = [tuple(row) for row in tensors["x"].tolist()]
    level = np.repeat(np.arange(len(first)), tensors["level_sizes"])
    children = [[] for _ in x]
    for child, parent in zip(tensors["edge_source"], parents, strict=True):
        assert level[child] < level[parent]
        children[parent].append(x[child])
    graphs = [[] for _ in range(tensors["num_instances"])]
    for node, instance in enumerate(tensors["node_instance"]):
        graphs[instance].append((x[node], sorted(children[node])))
    limits = {
        int(decision): tuple(int(tensors[f"limit_{part}"][index]) for part in ("low", "high", "tail", "chosen"))
        for index, decision in enumerate(tensors["limit_decision"])
    }
    result = []
    for decision, choice in enumerate(tensors["choice"]):
        pairs = tensors["pair_instance"][tensors["pair_decision"] == decision]
        candidates = np.flatnonzero(tensors["candidate_decision"] == decision)
        assert choice in candidates
        runs = tensors["candidate_run"][candidates]
        assert (tensors["run_decision"][runs] == decision).all()
        result.append(
            (
                sorted(sorted(graphs[instance]) for instance in pairs),
                [x[node] for node in tensors["candidate_node"][candidates]],
                [sorted(graphs[instance]) for instance in tensors["run_instance"][runs]],
                int(choice - candidates[0]),
                limits.get(decision),
            )
        )
    return result


def described_record(record, jobs):
    """The same from a record, by loops."""
    first_row = Tables.of(jobs).first_row
    graphs = []
    for instance in range(len(record.instance_first) - 1):
        nodes = range(record.instance_first[instance], record.instance_first[instance + 1])
        x = {int(record.node_local[node]): tuple(record.x[node].tolist()) for node in nodes}
        graph = []
        for node in nodes:
            stage = int(record.node_local[node])
            job = int(np.flatnonzero(first_row == record.node_row[node] - stage)[0])
            graph.append((x[stage], sorted(x[child] for child in jobs[job][stage])))
        graphs.append(sorted(graph))
    result = []
    for decision in range(len(record.choice)):
        pairs = record.pair_instance[record.decision_pairs[decision] : record.decision_pairs[decision + 1]]
        span = slice(record.decision_candidates[decision], record.decision_candidates[decision + 1])
        limit = (
            int(record.limit_low[decision]),
            int(record.limit_high[decision]),
            int(record.limit_low[decision] + record.classes[decision] - 1),
            int(record.limit[decision]),
        )
        result.append(
            (
                sorted(graphs[instance] for instance in pairs),
                [tuple(record.x[node].tolist()) for node in record.candidate_node[span]],
                [graphs[instance] for instance in record.candidate_instance[span]],
                int(record.choice[decision] - span.start),
                limit if record.classes[decision] > 1 else None,
            )
        )
    return result


@pytest.mark.parametrize("seed", range(5))
def test_batches_of_several_records_say_what_the_records_say(seed):
    rng = np.random.default_rng(seed)
    jobs = random_jobs(rng, 12)
    tables = Tables.of(jobs)
    records = [random_record(rng, jobs, decisions) for decisions in (7, 1, 12)]
    batch = GraphBatch(records, tables.child_offset, tables.child)
    expected = [decision for record in records for decision in described_record(record, jobs)]
    assert batch.num_decisions == 20
    np.testing.assert_array_equal(batch.decision_offset, [0, 7, 8, 20])
    assert described(batch.tensors()) == expected
    chosen = rng.permutation(20)[:9]
    assert described(batch.tensors(chosen, num_levels=12)) == [expected[index] for index in chosen]


def test_levels_are_longest_paths_and_edges_are_sorted():
    rng = np.random.default_rng(3)
    jobs = random_jobs(rng, 10, (5, 14))
    tables = Tables.of(jobs)
    tensors = GraphBatch([random_record(rng, jobs, 30)], tables.child_offset, tables.child).tensors()
    first = np.cumsum(tensors["level_sizes"]) - tensors["level_sizes"]
    edge_level = np.repeat(np.arange(len(first)), tensors["edge_level_sizes"])
    level = np.repeat(np.arange(len(first)), tensors["level_sizes"])
    parents = first[edge_level] + tensors["edge_target"]
    assert (np.diff(parents) >= 0).all()
    highest = np.full(len(level), -1)
    np.maximum.at(highest, parents, level[tensors["edge_source"]])
    np.testing.assert_array_equal(highest + 1, level)


def test_ranges():
    np.testing.assert_array_equal(ranges(np.array([5, 0, 9]), np.array([2, 0, 3])), [5, 6, 9, 10, 11])
    assert len(ranges(np.zeros(0), np.zeros(0, int))) == 0


def test_too_deep_graphs_are_refused():
    batch = GraphBatch([two_job_record()], TABLES.child_offset, TABLES.child)
    with pytest.raises(ConfigError, match="has 3 levels, the network is built for 2"):
        batch.tensors(num_levels=2)


def test_nothing_to_learn_from_is_refused():
    empty = two_job_record(
        decision_pairs=[0],
        decision_candidates=[0],
        **{name: [] for name in ("choice", "limit", "limit_low", "limit_high", "classes")},
    )
    with pytest.raises(ConfigError, match="at least one decision, got 1 records"):
        GraphBatch([empty], TABLES.child_offset, TABLES.child)
    with pytest.raises(ConfigError, match="empty selection"):
        GraphBatch([two_job_record()], TABLES.child_offset, TABLES.child).tensors(np.zeros(0, int))


def test_tables_of_other_profiles_are_refused():
    other = Tables.of([[[1], [2], [3], []], CHAIN])
    with pytest.raises(ConfigError, match="profile row 5, the profile tables have 4 rows"):
        GraphBatch([two_job_record()], other.child_offset[:5], other.child[:3])
    deeper = Tables.of([DIAMOND, [[2], [0], []]])
    with pytest.raises(ConfigError, match="job graph 1 lacks stage 2"):
        GraphBatch([two_job_record()], deeper.child_offset, deeper.child)
    wide = dataclasses.replace(two_job_record(), x=np.zeros((9, 6)))
    with pytest.raises(ConfigError, match=r"different numbers of features: \[5, 6\]"):
        GraphBatch([two_job_record(), wide], TABLES.child_offset, TABLES.child)
