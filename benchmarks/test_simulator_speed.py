"""Events per second of the compiled core against the plain-Python loop of the same rules, in one run."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.conftest import record_rate
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from tests.differential.oracle import OracleSimulator
from tests.differential.oracle_policies import DynamicPartition


def num_events(state):
    return state.task_events + state.job_events + state.executor_events


def ready_state(workload, settings, scheduler):
    """A state that has run once, so that compilation and page faults are behind it."""
    state = ClusterState(WorkloadTables(workload, settings), settings)
    run_state(state, scheduler, 0)
    return state


def test_plain_python_loop(benchmark, stream):
    result = benchmark.pedantic(
        lambda: OracleSimulator(stream, Settings.released()).run(DynamicPartition()), rounds=2, iterations=1
    )
    record_rate(benchmark, "plain-Python loop", sum(result.num_events.values()))


@pytest.mark.parametrize("mode", ["released", "paper"])
@pytest.mark.parametrize("scheduler", ["released_fair", "capped_srw:plain"])
def test_core_one_thread(benchmark, stream, mode, scheduler):
    scheduler = make_scheduler(scheduler)
    state = ready_state(stream, Settings.of_mode(mode), scheduler)
    benchmark.pedantic(run_state, args=(state, scheduler, 0), rounds=20, iterations=1)
    record_rate(benchmark, f"core, {scheduler.name}, {mode}", num_events(state))


def test_core_four_threads(benchmark, stream):
    scheduler = make_scheduler("released_fair")
    states = [ready_state(stream, Settings.released(), scheduler) for _ in range(4)]
    repeats = 10

    def work(state):
        for _ in range(repeats):
            run_state(state, scheduler, 0)

    with ThreadPoolExecutor(4) as pool:
        benchmark.pedantic(lambda: list(pool.map(work, states)), rounds=5, iterations=1)
    record_rate(benchmark, "core, released_fair, 4 threads", 4 * repeats * num_events(states[0]))


COLD_START = """
import time
start = time.perf_counter()
import decima
from decima.workload import synthetic_batch
decima.simulate(synthetic_batch(5), "fair")
print(time.perf_counter() - start)
"""


def test_start_with_warm_cache(benchmark):
    """A new process to its first result with compiled code on disk; the target is under 2 s."""

    def start():
        done = subprocess.run([sys.executable, "-c", COLD_START], capture_output=True, text=True, check=True)
        return float(done.stdout)

    start()
    benchmark.pedantic(start, rounds=3, iterations=1)


def test_first_compile(benchmark, tmp_path):
    """A new process with an empty cache of compiled code; the target is under 60 s."""

    def start():
        subprocess.run(
            [sys.executable, "-c", COLD_START],
            check=True,
            capture_output=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / str(time.time_ns()))},
        )

    benchmark.pedantic(start, rounds=1, iterations=1)


MEMORY = """
import resource, sys
import decima
from decima import workload
make = workload.tpch_poisson if workload.tpch_available() else workload.synthetic_poisson
decima.simulate(make(int(sys.argv[1]), 25, 0, "released"), "fair", executors=int(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
