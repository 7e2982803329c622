"""Copies of running states: each goes on on its own; that both go on alike: `test_pickle.py`."""

import numpy as np
import pytest

from decima.core.errors import RecordError
from decima.systems.spark.loop import spawn_generators
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.schedulers import Observation, make_scheduler
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState
from decima.systems.spark.tables import WorkloadTables
from decima.workload import synthetic_poisson

JOBS = synthetic_poisson(12, 5.0, seed=3)
SETTINGS = Settings(executors=8)


def policy(**options):
    architecture = Architecture()
    return LearnedScheduler(architecture, architecture.initial_weights(1), **options)


def begin(scheduler, log=True):
    state = ClusterState(WorkloadTables(JOBS, SETTINGS), SETTINGS, log_tasks=log, log_decisions=log)
    scheduler.bind(state)
    state.start(*spawn_generators(4))
    return state


def go_on(state, scheduler, decisions=10**9):
    """Take some more decisions, or all."""
    observation = Observation(state)
    for _ in range(decisions):
        if not state.advance():
            return
        state.decide(*(decision_parts(scheduler.decide(observation)) if state.num_frontier else (-1,)))


def everything(state):
    """All numbers of a state and of the records attached to it, but addresses."""
    found = {}
    for record in (state, *state.attached.values()):
        for name in record.layout.fields_of_run:
            found[name] = np.array(getattr(record, name)).tobytes()
    count = state.num_tasks_logged
    for name in ("task_stage", "task_executor", "task_start_ms", "task_finish_ms"):
        found[name] = getattr(state, name)[:count].tobytes()
    return found


def test_copies_into_the_same_memory_again_and_again():
    scheduler = make_scheduler("random")
    state, twin = begin(scheduler, log=False), begin(scheduler, log=False)
    finished = []
    go_on(state, scheduler, 8)
    for _ in range(3):
        state.copy_into(twin)
        assert twin.advance()
        go_on(twin, scheduler)
        finished.append(twin.job_finish_ms.copy())
    go_on(state, scheduler)
    for times in finished:
        np.testing.assert_array_equal(times, state.job_finish_ms)


def test_a_copy_never_shares_a_generator_with_its_original():
    scheduler = make_scheduler("random")
    state, twin = begin(scheduler), begin(scheduler)
    twin.start(*state._generators)
    go_on(state, scheduler, 5)
    state.copy_into(twin)
    go_on(twin, scheduler)
    go_on(state, scheduler)
    np.testing.assert_array_equal(twin.job_finish_ms, state.job_finish_ms)


def test_addresses_of_a_copy_are_its_own():
    scheduler = make_scheduler("fair")
    state = begin(scheduler)
    twin = state.copy()
    twin.job_attached[:] = 7
    twin.job_share[:] = 7
    assert not (state.job_attached == 7).any()
    assert not (state.job_share == 7).any()
    assert twin.rule_record != state.rule_record
    assert twin.duration_rng != state.duration_rng


def test_what_does_not_fit_is_refused():
    state = begin(make_scheduler("fair"))
    other = Settings(executors=9000)
    larger = ClusterState(WorkloadTables(JOBS, other), other)
    make_scheduler("fair").bind(larger)
    with pytest.raises(RecordError, match="same type and extents"):
        state.copy_into(larger)
    with pytest.raises(RecordError, match="with rule_record attached needs the same; the other has nothing"):
        state.copy_into(ClusterState(WorkloadTables(JOBS, SETTINGS), SETTINGS))
