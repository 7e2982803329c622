"""Copies of a running cluster, and candidates per second against plain runs, in one run."""

import time

import numpy as np
import pytest

from decima.core.system import form_for
from decima.systems.spark.lookahead.copies import Draw, Plan
from decima.systems.spark.lookahead.projection import NO_FUTURE
from decima.systems.spark.loop import new_state, spawn_generators
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.system import run_state
from decima.workload import synthetic_batch, tpch_available, tpch_batch


def begun(jobs):
    """A batch at its first decision, in a copy; TPC-H if it is there, else synthetic jobs."""
    workload = (tpch_batch if tpch_available() else synthetic_batch)(jobs, 0)
    state = new_state(workload, Settings(executors=50))
    base = form_for(make_scheduler("capped_srw"), workload)
    base.bind(state)
    state.start(*spawn_generators(0))
    state.advance()
    return state, base


def begin(draw, state, seed=0):
    draw.begin(state, state.active[: state.num_active].astype(np.int32), NO_FUTURE, seed)


@pytest.mark.parametrize("jobs", [20, 1000])
def test_copy_of_a_running_state(benchmark, jobs):
    """One copy per candidate and draw; the aim is 20 microseconds for 20 jobs, 1 ms for 1,000."""
    state, base = begun(jobs)
    draw = Draw(state, base, jobs, len(state.stage_job))
    begin(draw, state)
    benchmark(draw._begin.copy_run_into, draw._runs[0]._state)


@pytest.mark.parametrize("jobs", [20, 1000])
def test_projection(benchmark, jobs):
    """Once per draw and plan: what may be known of the cluster, with the ends of running tasks drawn."""
    state, base = begun(jobs)
    draw = Draw(state, base, jobs, len(state.stage_job))
    benchmark(begin, draw, state)


def test_candidates_against_plain_runs(benchmark):
    """Runs of candidates from time 0 against runs of the rule itself; the aim is at least 80 % of their number."""
    state, base = begun(20)
    draw = Draw(state, base, 20, len(state.stage_job))
    begin(draw, state)
    plan = Plan(np.array([base.values[item.name] for item in base.parameters]), np.zeros((2, 20)))
    plain = new_state(state.tables, state.settings)
    ratios = []

    def both():
        times = [time.process_time()]
        for seed in range(20):
            run_state(plain, base, seed)
        times.append(time.process_time())
        for seed in range(20):
            begin(draw, state, seed)
            draw.cost_ms(plan)
        times.append(time.process_time())
        ratios.append((times[1] - times[0]) / (times[2] - times[1]))

    both()
    benchmark.pedantic(both, rounds=10, iterations=1)
    benchmark.extra_info["candidates_per_plain_run"] = float(np.median(ratios[1:]))
