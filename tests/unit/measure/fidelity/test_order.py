"""Batches of the experiment, recorded orders and unbound executors in the simulator."""

import numpy as np
import pytest

from decima.core.errors import RecordError, WorkloadError
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from measure.fidelity.simulation import (
    RecordedOrder,
    batch_workload,
    cluster_settings,
    plan_profiles,
    training_workloads,
)
from measure.fidelity.variants import one_task_per_stage
from measure.plan import Plan


def stage(name, tasks, parents, first_ms, rest_ms):
    rest = np.array([rest_ms]) if rest_ms else np.array([])
    return Stage(name, tasks, parents, (2,), (np.array([]),), (np.array([first_ms]),), (rest,))


def completion_ms(profiles, arrivals, rank, executors=2):
    jobs = tuple(Job(profile, arrival) for profile, arrival in zip(profiles, arrivals, strict=True))
    settings = cluster_settings(executors)
    state = ClusterState(WorkloadTables(Workload(jobs, "test"), settings), settings)
    run_state(state, RecordedOrder(rank), 0)
    return state.job_finish_ms.tolist()


def test_the_order_decides():
    one = JobProfile("one", (stage("a", 2, (), 10.0, None),), "test")
    two = JobProfile("two", (stage("a", 2, (), 20.0, None),), "test")
    assert completion_ms([one, two], [0.0, 0.0], [0, 1]) == [10.0, 30.0]
    assert completion_ms([one, two], [0.0, 0.0], [1, 0]) == [30.0, 20.0]


def test_executors_are_bound_to_a_stage_unless_every_task_is_one():
    # The first job's second stage becomes runnable while the second job's long stage has tasks left.
    first = JobProfile("first", (stage("a", 1, (), 10.0, None), stage("b", 2, (0,), 10.0, None)), "test")
    second = JobProfile("second", (stage("a", 6, (), 10.0, 10.0),), "test")
    assert completion_ms([first, second], [0.0, 0.0], [0, 1, 2])[0] > 20.0
    profiles, ranks = [], []
    for profile, rank in ((first, [0, 1]), (second, [2])):
        split, origin = one_task_per_stage(profile, 2)
        profiles.append(split)
        ranks += [rank[index] for index in origin]
    assert completion_ms(profiles, [0.0, 0.0], ranks) == [20.0, 50.0]


def test_later_waves_take_later_durations():
    profile = JobProfile("job", (stage("a", 5, (), 10.0, 1.0), stage("b", 1, (0,), 7.0, None)), "test")
    split, origin = one_task_per_stage(profile, 2)
    assert origin == [0] * 5 + [1]
    assert [each.num_tasks for each in split.stages] == [1] * 6
    assert split.stages[5].parents == (0, 1, 2, 3, 4)
    assert completion_ms([split], [0.0], origin) == completion_ms([profile], [0.0], [0, 1])


def test_a_rank_for_every_stage_is_wanted():
    profile = JobProfile("job", (stage("a", 1, (), 10.0, None),), "test")
    with pytest.raises(RecordError, match=r"array stage_rank .*: got 2 numbers; expected 1 of float64"):
        completion_ms([profile], [0.0], [0, 1])


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
