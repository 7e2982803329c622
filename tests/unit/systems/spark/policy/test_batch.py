"""Batches of recorded decisions that are refused; what batches say is compared in ``test_network.py``."""

import dataclasses

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.systems.spark.policy.batch import GraphBatch, ranges
from tests.policy_records import Record, Tables

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
