"""Batches of the experiment as workloads of the simulator."""

import pytest

from decima.core.errors import WorkloadError
from measure.fidelity.simulation import batch_workload, plan_profiles, training_workloads
from measure.plan import Plan

PLAN = Plan(0.25, executors=3, queries=4)


def test_profiles_have_the_durations_at_the_executors_of_the_plan_only():
    profiles = plan_profiles(PLAN)
    assert len(profiles) == 22
    assert {stage.levels for profile in profiles.values() for stage in profile.stages} == {(3,)}


def test_a_scale_that_was_not_measured():
    with pytest.raises(WorkloadError, match="size '7g' is unknown"):
        plan_profiles(Plan(7.0))


def test_jobs_stand_in_the_order_of_the_batch():
    profiles = plan_profiles(PLAN)
    workload = batch_workload(PLAN, 1, profiles, [0.0, 20.0, 40.0, 60.0])
    assert [job.profile.name for job in workload.jobs] == [PLAN.profile(query) for query in PLAN.batch(1)]
    assert [job.arrival_ms for job in workload.jobs] == [0.0, 20.0, 40.0, 60.0]
    del profiles[PLAN.profile(PLAN.batch(1)[2])]
    with pytest.raises(WorkloadError, match=f"no profile {PLAN.profile(PLAN.batch(1)[2])} for batch 1"):
        batch_workload(PLAN, 1, profiles, [0.0, 20.0, 40.0, 60.0])


def test_batches_to_tune_on_are_as_large_as_those_measured_and_differ():
    names = [[job.profile.name for job in workload.jobs] for workload in training_workloads(PLAN, 2)]
    assert [len(batch) for batch in names] == [PLAN.queries] * 2
    assert names[0] != names[1]
    assert [job.profile.name for job in training_workloads(PLAN, 1)[0].jobs] == names[0]
