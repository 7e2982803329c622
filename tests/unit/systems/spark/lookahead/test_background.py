"""The scheduler ``lookahead`` in a service: plans come from another thread, decisions do not wait for them."""

import threading

import numpy as np
import pytest

import decima
from decima.connect.service.simulator_client import RemoteScheduler
from decima.systems.spark.lookahead import background
from decima.systems.spark.lookahead.observed import ObservedCluster, Snapshot
from decima.systems.spark.lookahead.settings import PlanSettings
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.schedulers.fields import rule_record
from decima.systems.spark.schedulers.interface import Observation
from decima.workload import synthetic_batch, synthetic_poisson
from tests.services import running, sessions_of
from tests.unit.systems.spark.lookahead.test_lookahead import BATCH, STREAM, state_at_decision


def test_a_service_plans_and_every_job_finishes():
    with running(sessions_of("lookahead:64,draws=2")) as service:
        remote = RemoteScheduler(service.target, "lookahead:64,draws=2")
        for jobs in (BATCH, STREAM):
            result = decima.simulate(jobs, remote, 12, 3)
            assert result.num_unfinished == 0
        remote.close()


def test_a_service_without_a_budget_is_the_rule():
    with running(sessions_of("lookahead:0")) as service:
        remote = RemoteScheduler(service.target, "lookahead:0")
        there = decima.simulate(BATCH, remote, 12, 3, log=True)
        remote.close()
    here = decima.simulate(BATCH, "capped_srw", 12, 3, log=True)
    assert np.array_equal(here.log.decisions, there.log.decisions)


def test_a_decision_does_not_wait_for_a_plan(monkeypatch):
    """The plan is held back; decisions are those of the rule, and change the factors of jobs when it is there."""
    gate = threading.Event()
    plan = background._Desk.plan

    def late(desk, snapshot):
        assert gate.wait(30)
        return plan(desk, snapshot)

    monkeypatch.setattr(background._Desk, "plan", late)
    state, base = state_at_decision(BATCH, 15)
    rule = rule_record(state)
    for name in ("job_order_factor", "job_share_factor"):
        rule.bind(name, np.zeros(5), copy=False)
    scheduler = make_scheduler("lookahead:300,draws=4").in_background(streaming=False)
    scheduler.reset(np.random.default_rng(5))
    observation = Observation(state)
    try:
        assert scheduler.decide(observation) == base.decide(observation)
        assert scheduler.decide(observation) == base.decide(observation)
        assert scheduler.plans == 0
    finally:
        gate.set()
    scheduler.wait()
    scheduler.decide(observation)
    assert scheduler.plans == 1
    assert np.array_equal(rule.params, scheduler._parameters)


@pytest.mark.parametrize("number", [0, 12, 25])
def test_an_observed_cluster_has_the_same_work_left(number):
    state, base = state_at_decision(synthetic_poisson(7, 3.0, seed=3), number)
    seen = ObservedCluster(Snapshot(state)).see(Snapshot(state))
    there = state.active[: state.num_active]
    assert np.array_equal(seen.active[: seen.num_active], there)
    for name in ("stage_next", "stage_finished_tasks", "stage_moving", "stage_runnable", "stage_unfinished_parents"):
        stages = np.isin(state.stage_job, there)
        assert np.array_equal(getattr(seen, name)[stages], getattr(state, name)[stages]), name
    assert np.array_equal(seen.job_attached[there], state.job_attached[there])
    assert np.array_equal(seen.job_unexhausted[there], state.job_unexhausted[there])
    running_tasks = int((state.stage_next - state.stage_finished_tasks)[stages].sum())
    assert seen.heap_size == running_tasks + int(state.stage_moving[stages].sum())
    planner = PlanSettings.of_budget(64, draws=2).planner(base, 0)
    jobs, plan = planner.replan(seen, PlanSettings.of_budget(64, draws=2).budget)
    assert np.array_equal(jobs, there)
    assert np.isfinite(plan.factors).all()
    assert planner.runs > 0


def test_jobs_without_room_for_executors_are_simulated_too():
    state, _ = state_at_decision(synthetic_batch(5, seed=3), 15)
    snapshot = Snapshot(state)
    snapshot.num_executors = 3  # fewer than hold tasks: a client took some away
    seen = ObservedCluster(snapshot).see(snapshot)
    assert seen.heap_size <= 3
    planner = PlanSettings.of_budget(64, draws=2).planner(make_scheduler("capped_srw:batch"), 0)
    _, plan = planner.replan(seen, PlanSettings.of_budget(64, draws=2).budget)
    assert np.isfinite(plan.factors).all()
