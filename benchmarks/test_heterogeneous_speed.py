"""Schedules per second on unequal executors, beside a plain-Python twin of the same rules in one run."""

import subprocess
import sys

import numpy as np
import pytest

from decima.heterogeneous import Rules
from decima.heterogeneous.decisions import Planner
from decima.heterogeneous.ranks import rank_up
from decima.heterogeneous.tpch import tpch_instance
from tests.differential.heterogeneous_oracle import PlainScheduler

RATES = {}
KINDS = {
    "DEFT, append": Rules(),
    "DEFT, insertion": Rules(slots="insertion"),
    "HEFT": Rules(slots="insertion", duplicate=False),
    "DEFT, event": Rules(decision="event"),
    "DEFT, idle": Rules(decision="idle"),
}
LARGE = """
import resource, time
from decima.heterogeneous import Rules
from decima.heterogeneous.decisions import Planner
from decima.heterogeneous.ranks import rank_up
from decima.heterogeneous.tpch import tpch_instance
Planner(small := tpch_instance(2, 0), Rules()).run(rank_up(small))
instance = tpch_instance(14_700, 0, edges=1.0, executors=1000)
before = time.perf_counter()
planner = Planner(instance, Rules())
planner.run(rank_up(instance))
seconds = time.perf_counter() - before
print(len(instance), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)
"""


@pytest.fixture(scope="module")
def thousand():
    """TPC-H jobs with 998 nodes, 50 executors, CCR 5."""
    return tpch_instance(138, 0, edges=5.0)


def note(benchmark, name):
    RATES[name] = 1.0 / benchmark.stats.stats.min
    plain = RATES.get("plain Python")
    ratio = "" if plain is None else f", {RATES[name] / plain:,.0f} times plain Python"
    print(f"\n{name}: {RATES[name]:,.1f} schedules/s{ratio}")


def test_plain_python(benchmark, thousand):
    priority = rank_up(thousand).tolist()

    def run():
        PlainScheduler(thousand, Rules()).run(priority)

    benchmark.pedantic(run, rounds=2, iterations=1)
    note(benchmark, "plain Python")


@pytest.mark.parametrize("kind", KINDS)
def test_thousand_nodes(benchmark, thousand, kind):
    planner, priority = Planner(thousand, KINDS[kind]), rank_up(thousand)
    planner.run(priority)
    benchmark.pedantic(planner.run, args=(priority,), rounds=100, iterations=20)
    note(benchmark, kind)


def test_ten_thousand_nodes(benchmark):
    instance = tpch_instance(1400, 0, edges=5.0)
    planner, priority = Planner(instance, Rules()), rank_up(instance)
    planner.run(priority)
    benchmark.pedantic(planner.run, args=(priority,), rounds=30, iterations=2)
    note(benchmark, f"DEFT, append, {len(instance):,} nodes")


def test_hundred_thousand_nodes_on_a_thousand_executors():
    finished = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    nodes, seconds, megabytes = np.array(finished.stdout.split(), dtype=float)
    print(f"\n{nodes:,.0f} nodes on 1,000 executors: {seconds:.2f} s, {megabytes:.0f} MB at most in the process")
