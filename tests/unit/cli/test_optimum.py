"""`decima exhaustive` and `decima bound`."""

import pytest

from decima.evaluation.exhaustive import exhaustive_search
from decima.workload import synthetic_batch
from tests.unit.cli.calls import read_json, refuse, succeed, write_json

SMALL = ("--kind", "synthetic-batch", "--n", 4, "--sizes", "xs", "--executors", 5, "--seed", 3)


@pytest.mark.parametrize("options", [(), ("--best-only",), ("--wait",)])
def test_exhaustive_search(options, folder):
    path = folder / "best.json"
    line = succeed("exhaustive", *SMALL, *options, "--out", path)
    expected = exhaustive_search(synthetic_batch(4, 3, ["xs"]), 5, runnable_only="--wait" not in options)
    document = read_json(path)
    assert document["best_order"] == list(expected.best_order)
    assert document["best_avg_jct_s"] == expected.best_avg_jct_s
    assert document["best_completion_s"] == expected.best_completion_s.tolist()
    assert document["sjf_avg_jct_s"] == expected.sjf_avg_jct_s
    assert document["num_orders"] == 24
    if options == ("--best-only",):
        assert document["distribution"] is None
    else:
        assert sum(document["distribution"]["counts"]) == 24
    assert line.startswith("embedded synthetic (4 jobs, 5 executors): best of 24 orders: average JCT ")
    assert line.endswith(f"; wrote {path}")


def test_bad_exhaustive_search(jobs, folder):
    path = folder / "best.json"
    sentence = refuse("exhaustive", "--kind", "synthetic-batch", "--n", 11, "--out", path)
    assert "11 jobs, that is 39,916,800 orders; at most 10 jobs" in sentence
    assert "job 1 arrives at 2.5 s" in refuse("exhaustive", "--jobs", jobs, "--out", path)
    assert "'--limit'" in refuse("exhaustive", *SMALL, "--limit", 0, "--out", path)
    assert "executors must be" in refuse("exhaustive", *SMALL, "--executors", 0, "--out", path)
    assert "cannot be combined" in refuse("exhaustive", "--jobs", jobs, "--n", 3, "--out", path)
    empty = write_json(folder / "jobs.json", [])
    assert "no jobs; expected at least one" in refuse("exhaustive", "--jobs", empty, "--out", path)
    assert list(folder.iterdir()) == [empty]
