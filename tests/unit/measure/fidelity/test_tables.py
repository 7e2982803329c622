"""From folders of measured runs to the tables of appendix D."""

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError, RecordError, WorkloadError
from decima.systems.spark.schedulers import make_scheduler
from decima.systems.spark.state import ClusterState
from decima.systems.spark.system import run_state
from decima.systems.spark.tables import WorkloadTables
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile, Stage
from measure.experiment import Plan
from measure.fidelity.simulation import (
    RecordedOrder,
    Service,
    batch_workload,
    cluster_settings,
    plan_profiles,
    training_workloads,
)
from measure.fidelity.tables import FIRST_RUN, FRESH, MIX, REAL, WARM, fidelity_tables
from measure.fidelity.variants import one_task_per_stage
from measure.logs import read_alone, read_mixes
from measure.records import append_alone_run
from measure.results import read, read_steered, schedulers_of
from tests.unit.connect.planted_logs import measured_run, write_folders
from tests.unit.measure.fidelity.test_simulation import LEVELS, job


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    rng = np.random.default_rng(2)
    write_folders(folder, [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    return folder


def test_tables_of_both_settings(folder):
    tables = fidelity_tables(read_alone(folder / "alone"), read_mixes(folder / "mix"), seeds=3, threads=1)
    runs, floor, summary = (tables[f"fidelity_{name}"] for name in ("runs", "floor", "summary"))
    assert set(runs["name"]) == {"q1-1g", "q2-1g"}
    assert set(runs["setting"]) == {FIRST_RUN, FRESH, WARM, MIX}
    assert (runs["error"] - (runs["simulated_s"] / runs["real_s"] - 1.0)).abs().max() < 1e-2
    assert not runs.isna().any(axis=None)
    # 2 queries, 2 repetitions: first runs and fresh ones at 2 levels, second runs and mixes at one.
    assert len(floor) == 2 * 2 * (2 + 2 + 1 + 1)
    all_effects = summary[(summary["variant"] == "all effects") & summary["bound"]].set_index(["setting", "profile"])
    assert (all_effects["mean_percent"] < 5.0).all()
    assert (summary["simulations"] == 3).all()
    startup = summary[summary["variant"] == "no start-up of executors"]
    assert set(startup["setting"]) == {FRESH}
    assert set(summary[summary["profile"] == REAL]["setting"]) == {FIRST_RUN, FRESH, WARM, MIX}


def test_runs_under_a_scheduler_of_the_service_are_simulated_under_it(folder):
    folders = [folder / "steered" / name for name in ("alone", "mix")]
    logs = [application for name in folders for application in read_steered(name)]
    fifo = Service(schedulers_of(read(folders[0]).card))
    tables = fidelity_tables([], [], 3, 1, logs, fifo)
    runs = tables["fidelity_runs"]
    assert set(zip(runs["setting"], runs["scheduler"], strict=True)) == {
        ("alone, decima", "decima"),
        ("mix, decima", "decima"),
    }
    assert runs.groupby(["setting", "profile"]).size().to_dict() == {
        **{("alone, decima", profile): 4 for profile in ("held out", "same run", "training")},
        **{("mix, decima", profile): 4 for profile in ("alone", "held out", "same run")},
    }
    assert tables["fidelity_summary"]["mean_percent"].max() < 10.0
    # Under another scheduler the jobs end at other times.
    shortest = {"decima": lambda: make_scheduler("sjf_cp")}
    other = fidelity_tables([], [], 3, 1, logs, Service(shortest))["fidelity_summary"]
    assert other["mean_percent"].max() > 20.0

    def mean_s(scale):
        known = {"q1-1g": job("q1-1g", scale, np.random.default_rng(0))}
        runs = fidelity_tables([], [], 3, 1, logs, Service(shortest, known))["fidelity_runs"]
        return runs.loc[(runs["setting"] == "mix, decima") & (runs["name"] == "q1-1g"), "simulated_s"].mean()

    # They go by the durations that the service had, however long the tasks are.
    assert mean_s(0.01) < 0.8 * mean_s(100.0)
    with pytest.raises(WorkloadError, match="under decima cannot be simulated without the scheduler"):
        fidelity_tables([], [], 1, 1, logs)


def test_contended_runs_are_left_out(folder, tmp_path):
    (tmp_path / "events").symlink_to(folder / "alone" / "events")
    append_alone_run(tmp_path, measured_run("q01#warm-0", "sf1-e1-r0-a0.json", "q01", "warm", 1, 0))
    append_alone_run(tmp_path, measured_run("q02#warm-0", "sf1-e1-r0-a0.json", "q02", "warm", 1, 0, wait_share=0.9))
    (application,) = read_alone(tmp_path)
    assert application.queries.loc[application.queries.skipped == "", "query"].to_list() == ["q01#warm-0"]


def test_the_first_round_of_a_warm_up_is_left_out(folder):
    (application,) = read_mixes(folder / "mix")
    queries = set(application.queries.loc[application.queries.skipped == "", "query"])
    assert {"warm-up-1-q01#00", "b0-r1-spark_fifo-a0#01"} <= queries
    assert "warm-up-0-q01#00" not in queries


def test_what_is_missing_is_said(folder, tmp_path):
    with pytest.raises(DataUnavailableError, match="no usable run; `decima spark profile`"):
        read_alone(tmp_path)
    with pytest.raises(DataUnavailableError, match="no usable batch; `decima spark validate`"):
        read_mixes(tmp_path)
    append_alone_run(tmp_path, measured_run("q01#warm-0", "gone.json", "q01", "warm", 1, 0))
    with pytest.raises(DataUnavailableError, match=r"gone\.json is missing"):
        read_alone(tmp_path)
    with pytest.raises(WorkloadError, match="nothing can be compared"):
        fidelity_tables([], [], seeds=1)


# Batches of the experiment, recorded orders and unbound executors in the simulator.


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
