"""The TPC-H queries: all there, and written so that Spark plans one job for each."""

import re

import pytest

from decima.connect.cluster import tpch_queries, tpch_tables
from decima.core.errors import ConfigError


def test_every_query_names_tables_that_are_generated():
    assert len(tpch_queries.NAMES) == 22
    used = set()
    for name in tpch_queries.NAMES:
        words = set(re.findall(r"[a-z0-9_]+", tpch_queries.text(name)))
        used |= words & set(tpch_tables.NAMES)
        assert words & set(tpch_tables.NAMES), name
    assert used == set(tpch_tables.NAMES)


def test_sorted_results_have_a_limit_and_others_have_none():
    last_words = {name: tpch_queries.sql(name, 1.0).splitlines()[-1] for name in tpch_queries.NAMES}
    own = {"q02": 100, "q03": 10, "q10": 20, "q18": 100, "q21": 100}  # first rows of the specification
    for name, rows in own.items():
        assert last_words[name] == f"limit {rows}"
    unsorted = {"q06", "q14", "q17", "q19"}
    for name in set(tpch_queries.NAMES) - own.keys():
        limited = last_words[name] == f"limit {tpch_queries.ALL_ROWS}"
        assert limited == (name not in unsorted), name
        assert tpch_queries.sql(name, 1.0).count("\nlimit ") == limited


def test_no_two_queries_are_the_same():
    assert len({tpch_queries.text(name) for name in tpch_queries.NAMES}) == 22


@pytest.mark.parametrize(("scale", "fraction"), [(1.0, "0.0001"), (0.25, "0.0004"), (100.0, "0.000001")])
def test_the_fraction_of_q11_follows_the_scale(scale, fraction):
    found = re.search(r"\* ([0-9.]+)\n", tpch_queries.sql("q11", scale))
    assert float(found[1]) == pytest.approx(float(fraction), rel=1e-6)


@pytest.mark.parametrize("name", ["q0", "q1", "q23", "", "q01.sql"])
def test_unknown_query(name):
    with pytest.raises(ConfigError, match="expected one of q01 to q22"):
        tpch_queries.sql(name, 1.0)


def test_task_counts_grow_with_the_scale_alone():
    counts = [tpch_tables.shuffle_partitions(scale) for scale in (0.01, 0.1, 0.25, 0.5, 1.0, 2.0)]
    assert counts == [4, 4, 8, 16, 32, 64]
    settings = tpch_tables.conf(0.5)
    assert settings["spark.sql.shuffle.partitions"] == "16"
    assert settings["spark.sql.files.minPartitionNum"] == "1"
