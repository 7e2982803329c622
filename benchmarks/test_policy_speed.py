"""Decisions per second of the learned policy inside the core, and the time of one decision by jobs in the system."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.record import policy_record
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState, spawn_generators
from decima.systems.spark.tables import WorkloadTables
from decima.workload import synthetic_batch, tpch_available, tpch_batch

BASES = ("paper", "released")


def batch(jobs, seed=0):
    return (tpch_batch if tpch_available() else synthetic_batch)(jobs, seed)


def make_policy(name, **options):
    architecture = Architecture.named(name)
    return LearnedScheduler(architecture, architecture.initial_weights(0), **options)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("threads", [1, 4])
def test_recorded_episodes(benchmark, name, threads):
    """Batches of 20 jobs on 50 executors, sampled and recorded; targets: 12,000 decisions/s, 40,000 on four threads."""
    policy = make_policy(name, greedy=False, record=True)
    settings = Settings.paper()
    states = [ClusterState(WorkloadTables(batch(20, seed), settings), settings) for seed in range(8)]
    records = [record_episode(state, policy, seed) for seed, state in enumerate(states)]

    def run():
        list(pool.map(lambda seed: record_episode(states[seed], policy, seed), range(len(states))))

    with ThreadPoolExecutor(threads) as pool:
        benchmark.pedantic(run, rounds=20, iterations=1)
    decisions = sum(len(record) for record in records)
    benchmark.extra_info["decisions_per_s"] = decisions / benchmark.stats.stats.min


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("known", [False, True], ids=["all_new", "nothing_new"])
@pytest.mark.parametrize("jobs", [1, 10, 100, 1000])
def test_one_decision(benchmark, name, known, jobs):
    """The first decision of a batch, embeddings computed anew or reused; the target is under 1 ms for 100 jobs."""
    policy = make_policy(name)
    settings = Settings.paper()
    state = ClusterState(WorkloadTables(batch(jobs), settings), settings)
    policy.bind(state)
    state.start(*spawn_generators(0))
    state.advance()
    decide = ctypes.CFUNCTYPE(None, ctypes.c_int64)(policy.decision.address)

    def run():
        if not known:
            policy_record(state).put(net_ready=0)
        decide(state.address)

    run()
    benchmark(run)
    benchmark.extra_info["stages"] = state.num_stages
