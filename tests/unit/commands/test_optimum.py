"""`decima optimum` for the Spark cluster: bounds, exhaustive search, value of idling."""

import pandas
import pytest

from decima import make_scheduler
from decima.evaluation.run import score_matrix
from decima.systems.spark.optimum.bounds import lower_bound
from decima.systems.spark.optimum.exhaustive import exhaustive_search
from decima.systems.spark.optimum.idle_value import TwoClassCluster, idle_value
from decima.systems.spark.optimum.schedule_search import search_schedule
from decima.systems.spark.settings import Settings
from decima.workload import synthetic_batch
from tests.unit.commands.calls import read_json, run, show, succeed

SMALL = ("--jobs", "synthetic:n=4,sizes=xs", "--executors", 5, "--seed", 3)


def test_exhaustive_search(folder):
    path = folder / "best.json"
    line = succeed("optimum", "exhaustive", *SMALL, "--out", path)
    expected = exhaustive_search(synthetic_batch(4, 3, ["xs"]), 5)
    document = read_json(path)
    assert document["best_order"] == list(expected.best_order)
    assert document["best_avg_jct_s"] == expected.best_avg_jct_s
    assert document["best_completion_s"] == expected.best_completion_s.tolist()
    assert document["sjf_avg_jct_s"] == expected.sjf_avg_jct_s
    assert document["num_orders"] == 24
    assert sum(document["distribution"]["counts"]) == 24
    assert line.startswith("synthetic (4 jobs, 5 executors): best of 24 orders: average JCT ")
    assert line.endswith(f"; wrote {path}")


def test_bound_is_what_the_library_computes(folder):
    path = folder / "bounds.csv"
    line = succeed("optimum", "fifo", "weighted_fair:alpha=0", *SMALL, "--instances", 2, "--budget", 60, "--out", path)
    settings = Settings.paper(executors=5, durations="mean")
    workloads = [synthetic_batch(4, seed, ["xs"]) for seed in (3, 4)]
    heuristics = [make_scheduler("fifo"), make_scheduler("weighted_fair", alpha=0)]
    scores = score_matrix(workloads, heuristics, settings, seeds=[3, 4])
    table = pandas.read_csv(path).pivot(index="instance", columns="policy", values="avg_jct_s")
    assert table.index.tolist() == [3, 4]
    assert table["fifo"].tolist() == scores[0].tolist()
    assert table["weighted_fair:alpha=0"].tolist() == scores[1].tolist()
    assert table["lower_bound"].tolist() == [lower_bound(each, settings).avg_jct_s for each in workloads]
    assert table["search"].tolist() == [
        search_schedule(each, settings, 60, seed=seed).avg_jct_s for each, seed in zip(workloads, (3, 4), strict=True)
    ]
    assert (table["lower_bound"] <= table["search"]).all()
    mean = table.mean()
    assert f"(2 instances, 4 jobs each, mean durations): best found {mean.drop('lower_bound').min():.2f} s" in line
    assert line.endswith(f"lower bound {mean['lower_bound']:.2f} s; wrote {path}")


def test_bound_with_delays_compares_equal_budgets(folder):
    path = folder / "bounds.csv"
    jobs = ("--jobs", "two_class:n=6,load=0.8,executors=1", "--executors", 1)
    shown = show("optimum", "fifo", *jobs, "--budget", 60, "--delays", "--out", path)
    table = pandas.read_csv(path).set_index("policy")["avg_jct_s"]
    assert list(table.index) == ["fifo", "search", "search_twice", "search_delays", "lower_bound"]
    assert table["lower_bound"] <= table["search_delays"] <= table["search"] <= table["fifo"]
    gain = 100.0 * (1.0 - table["search_delays"] / table["search_twice"])
    assert f"delays gain {gain:.2f} % for a scheduler that knows the future" in shown


def test_idle_value_is_what_the_library_computes(folder):
    path, rule = folder / "value.json", folder / "rule.csv"
    options = ("--executors", 2, "--long-s", 50, "--share", 0.1, "--load", 0.5, "--step-s", 10)
    line = succeed("optimum", "idle-value", *options, "--out", path, "--rule", rule)
    expected = idle_value(TwoClassCluster(2, 50.0, 10.0, 0.1, 0.5), step_s=10.0)
    document = read_json(path)
    assert {name: document[name] for name in expected.as_dict()} == expected.as_dict()
    assert (document["executors"], document["long_s"], document["load"]) == (2, 50.0, 0.5)
    assert (document["most_short"], document["most_long"]) == expected.queues
    assert pandas.read_csv(rule).equals(expected.rule())
    assert line.startswith("2 executors, 50 and 10 s, 0.1 of the jobs long, load 0.5: average JCT ")
    assert line.endswith(f"; wrote {path}, {rule}")
    lines = run("optimum", "idle-value", *options).stdout.splitlines()
    assert [float(number) for number in lines[3].split()[-2:]] == [
        pytest.approx(expected.gain_percent, abs=6e-4), pytest.approx(expected.coarse_gain_percent, abs=6e-4),
    ]  # fmt: skip
