"""Schedules per second on heterogeneous executors, and of a plain-Python version of the same rules in one run."""

import time

import pytest

from decima.learning.rollout import RolloutJob
from decima.systems.heterogeneous import Rules
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.generators import tpch_instance
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.task import NodeEpisodes, NodeTask
from decima.systems.heterogeneous.schedulers.priorities import rank_up
from tests.differential.heterogeneous_oracle import PlainScheduler

RATES = {}
KINDS = {
    "DEFT, append": Rules(),
    "DEFT, insertion": Rules(slots="insertion"),
    "HEFT": Rules(slots="insertion", duplicate=False),
    "DEFT, event": Rules(decision="event"),
    "DEFT, idle": Rules(decision="idle"),
}
FIRST = """
import time
from decima.systems.heterogeneous import canonical, list_schedulers, plan
list_schedulers()
before = time.process_time()
plan(canonical(), scheduler="high_rank_up_deft")
print(time.process_time() - before)
plan(canonical(), scheduler="lachesis")
print(time.process_time() - before)
"""
LARGE = """
import resource, time
from decima.systems.heterogeneous import Rules
from decima.systems.heterogeneous.engine import Planner
from decima.systems.heterogeneous.schedulers.priorities import rank_up
from decima.systems.heterogeneous.generators import tpch_instance
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


@pytest.mark.parametrize("name", ["paper", "fast", "decima"])
def test_recorded_episode(benchmark, name):
    """Batches of 20 jobs on 50 executors, drawn from the policy and recorded; the target is under 20 ms."""
    architecture = NodeArchitecture.named(name)
    task = NodeTask(jobs=20, executors=50)
    weights = architecture.initial_weights(0)
    (sequence,) = task.training_sequences(0, 0, 1)
    episodes = NodeEpisodes(task)
    seeds = iter(range(10**6))

    def run():
        return episodes((architecture, weights, RolloutJob(sequence, next(seeds), None)))

    before = time.process_time()
    decisions = len(run().record.chosen)
    first_ms = 1000.0 * (time.process_time() - before)
    benchmark.pedantic(run, rounds=100, iterations=1)
    median_ms = 1000.0 * benchmark.stats.stats.median
    print(f"\n{name}: {decisions} decisions, {median_ms:.2f} ms, the first with its instance {first_ms:.0f} ms")
