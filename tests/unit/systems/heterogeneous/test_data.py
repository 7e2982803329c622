"""Where instances come from: TPC-H, generators, WfCommons, texts."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from decima.connect.eventlog.application import read_event_log
from decima.connect.eventlog.profiles import collect_profiles
from decima.core.errors import ConfigError, WorkloadError
from decima.systems.heterogeneous import Cluster, plan, validate
from decima.systems.heterogeneous.generators import (
    PATH,
    fft,
    from_workload,
    gaussian_elimination,
    measured_data,
    random_dag,
    shuffle_bytes,
    tpch_instance,
)
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from decima.workload import synthetic_batch
from decima.workload.profile import JobProfile, Stage
from decima.workload.sources import get_source

ROOT = Path(__file__).parents[4]


def test_stages_become_nodes():
    workload = get_source("embedded").batch(5, 3, "2g+100g")
    cluster = Cluster.drawn(10, 0)
    instance = from_workload(workload, 2.0, cluster, seed=1)
    profile = workload.jobs[2].profile
    job = instance.jobs[2]
    assert job.work.tolist() == pytest.approx([stage.work_ms * 2.85 / 1000.0 for stage in profile.stages])
    assert [tuple(edge) for edge in job.edges.tolist()] == [
        (parent, child) for child, stage in enumerate(profile.stages) for parent in stage.parents
    ]
    data = instance.parents[2]
    mean_data = 2.0 * instance.mean_time_s.mean() * cluster.rate
    assert data.max() <= 2.0 * mean_data
    assert data.mean() == pytest.approx(mean_data, rel=0.3)
    again = from_workload(workload, 4.0, cluster, seed=1)
    assert again.parents[2] == pytest.approx(2.0 * data)


def test_setting_of_the_paper():
    instance = tpch_instance(4, 7, edges="measured", interarrival_s=45.0)
    assert len(instance.jobs) == 4
    assert instance.jobs[0].arrival_s == 0.0
    assert instance.arrival_s.max() > 0.0
    assert len(instance.cluster) == 50
    assert instance.ccr < 1.0
    validate(instance, plan(instance))


def test_measured_bytes_are_those_of_the_event_log():
    log = read_event_log(ROOT / "data" / "spark" / "events" / "sf0.5-e4-r0-a0.jsonl.zstd")
    sizes = collect_profiles([log]).sizes
    for query, written in shuffle_bytes().items():
        logged = sizes[sizes["job"] == f"q{query:02d}"].sort_values("stage_index")["shuffle_write_bytes"]
        assert written.tolist() == np.round(logged).tolist(), query
    assert len(shuffle_bytes()) == 22
    assert PATH.read_text().count("\n") == 1 + sum(map(len, shuffle_bytes().values()))


def test_measured_bytes_grow_with_the_size_and_follow_the_rank():
    small, large = (get_source("embedded").query_profile(size, 3) for size in (2.0, 100.0))
    assert measured_data(large) == pytest.approx(50.0 * measured_data(small))
    assert measured_data(small)[-2:].tolist() == pytest.approx((shuffle_bytes()[3][[0, 3]] * 4.0 / 1e6).tolist())

    def stage(name, parents, duration_ms):
        nothing, one = (np.empty(0),), (np.array([duration_ms]),)
        return Stage(name, 10, parents, (1,), nothing, nothing, one)

    other = JobProfile("q3-2g", (stage("a", (), 100.0), stage("b", (), 900.0), stage("c", (0, 1), 5.0)), "tpch")
    (reference,) = get_source("measured").profiles(sizes="0.5g", queries=[3])
    inner = sorted((s for s in range(5) if reference.children[s]), key=lambda s: -reference.stages[s].work_ms)
    per_ms = [shuffle_bytes()[3][s] / 1e6 / reference.stages[s].work_ms for s in inner]
    assert measured_data(other).tolist() == pytest.approx([per_ms[1] * 1000.0, per_ms[0] * 9000.0])


def test_sizes_of_ones_own_and_missing_ones():
    workload = synthetic_batch(2, 0, ["xs"])
    edges = {profile.name: np.ones(sum(len(s.parents) for s in profile.stages)) for profile in workload.profiles}
    instance = from_workload(workload, edges, Cluster([1.0, 2.0], 1.0))
    assert set(instance.parents[2].tolist()) <= {1.0}
    with pytest.raises(WorkloadError, match="is not a TPC-H query"):
        from_workload(workload, "measured", Cluster([1.0], 1.0))
    wide = next(profile for profile in workload.profiles if any(stage.parents for stage in profile.stages))
    with pytest.raises(WorkloadError, match="edges are missing; expected data for each"):
        from_workload(workload, {name: data for name, data in edges.items() if name != wide.name}, Cluster([1.0]))
    with pytest.raises(ConfigError, match="needs a finite transfer rate"):
        from_workload(workload, 1.0, Cluster([1.0, 1.0], np.inf))
    with pytest.raises(ConfigError, match="less than the latency"):
        from_workload(workload, 0.1, Cluster([1.0, 1.0], 1.0, 1e9))


def test_gaussian_elimination_and_fft_have_their_shapes():
    gauss = gaussian_elimination(5, 3)
    assert len(gauss) == 14
    degrees = np.diff(gauss.parents[0])
    assert (degrees == 0).sum() == 1
    assert degrees.max() == 2
    transform = fft(8, 3)
    assert len(transform) == 2 * 8 - 1 + 8 * 3
    assert (np.diff(transform.children[0]) == 0).sum() == 8
    assert np.diff(transform.parents[0])[15:].tolist() == [2] * 24
    with pytest.raises(ConfigError, match="points is 6; expected a power of 2"):
        fft(6)


@pytest.mark.parametrize("make", [random_dag, gaussian_elimination, fft])
def test_generated_dags(make):
    instance = make(seed=3, executors=4, ccr=5.0, beta=0.5)
    assert instance.ccr == pytest.approx(5.0)
    costs = instance.cluster.costs
    assert (costs.max(axis=1) <= costs.min(axis=1) * 1.25 / 0.75 + 1e-9).all()
    assert make(seed=3, executors=4, ccr=5.0, beta=0.5).parents[2].tolist() == instance.parents[2].tolist()
    validate(instance, plan(instance, scheduler="high_rank_up_deft"))
    with pytest.raises(ConfigError, match="beta is 3"):
        make(beta=3)


def test_random_dags_are_long_or_wide():
    def depth(instance):
        level = np.zeros(len(instance), int)
        start, parents, _ = instance.parents
        for node in instance.order:
            level[node] = 1 + max((level[p] for p in parents[start[node] : start[node + 1]]), default=0)
        return level.max()

    assert depth(random_dag(100, 2, 1, shape=0.5)) > 2 * depth(random_dag(100, 2, 1, shape=2.0))


OLD = {
    "name": "old",
    "schemaVersion": "1.4",
    "workflow": {
        "tasks": [
            {"name": "split", "id": "t1", "runtimeInSeconds": 3.5, "parents": [],
             "files": [{"link": "output", "name": "a", "sizeInBytes": 2_000_000}]},
            {"name": "work", "id": "t2", "runtimeInSeconds": 10, "parents": ["split"],
             "files": [{"link": "input", "name": "a", "sizeInBytes": 2_000_000},
                       {"link": "input", "name": "given", "sizeInBytes": 9_000_000}]},
        ]
    },
}  # fmt: skip
SPLIT = {"name": "split", "id": "t1", "parents": [], "children": ["t2"], "inputFiles": [], "outputFiles": ["a"]}
WORK = {"name": "work", "id": "t2", "parents": ["t1"], "children": [], "inputFiles": ["a", "given"]}
NEW = {
    "name": "new",
    "schemaVersion": "1.6",
    "workflow": {
        "specification": {
            "tasks": [SPLIT, WORK],
            "files": [{"id": "a", "sizeInBytes": 2_000_000}, {"id": "given", "sizeInBytes": 9_000_000}],
        },
        "execution": {"tasks": [{"id": "t1", "runtimeInSeconds": 3.5}, {"id": "t2", "runtimeInSeconds": 10}]},
    },
}


@pytest.mark.parametrize("body", [OLD, NEW, NEW | {"schemaVersion": "1.5"}])
def test_wfcommons(body, tmp_path):
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(body))
    (job,) = read_instance(str(path), ClusterOptions(speeds="1+1")).jobs
    assert job.nodes == ("t1", "t2")
    assert job.work.tolist() == [3.5, 10.0]
    assert job.edges.tolist() == [[0, 1]]
    assert job.data.tolist() == [2.0]


def executed(body):
    return body["workflow"]["execution"]["tasks"]


@pytest.mark.parametrize(
    ("good", "change", "sentence"),
    [
        (NEW, lambda body: body["workflow"].pop("execution"), "task 't1' has no runtime; expected a workflow"),
        (OLD, lambda body: body["workflow"]["tasks"][1].pop("runtimeInSeconds"), "task 't2' has no runtime"),
        (NEW, lambda body: body.update(schemaVersion="2.0"), "version '2.0' of WfFormat is unknown; expected 1.0"),
        (NEW, lambda body: body.pop("schemaVersion"), "schemaVersion is missing"),
        (NEW, lambda body: body["workflow"].pop("specification"), "specification is missing"),
        (NEW, lambda body: body["workflow"]["specification"]["tasks"].clear(), "has no tasks"),
        (OLD, lambda body: body["workflow"]["tasks"].clear(), "has no tasks"),
        (NEW, lambda body: body["workflow"]["specification"]["tasks"][1].update(parents=["x"]), "unknown parent 'x'"),
        (NEW, lambda body: body["workflow"]["specification"]["files"].pop(0), "file 'a' has no size"),
        (NEW, lambda body: executed(body)[0].update(runtimeInSeconds=-1), "runtime of task 't1' is -"),
    ],
)
def test_malformed_workflows(good, change, sentence, tmp_path):
    body = copy.deepcopy(good)
    change(body)
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(body))
    with pytest.raises(WorkloadError, match=sentence):
        read_instance(str(path))
    path.write_text(json.dumps(good)[:200])
    with pytest.raises(WorkloadError, match="is not JSON"):
        read_instance(str(path))


def test_texts():
    assert len(read_instance("canonical")) == 10
    assert len(read_instance("random:nodes=12,ccr=2", ClusterOptions(executors=3), seed=1).cluster) == 3
    assert len(read_instance("gauss:size=4")) == 9
    instance = read_instance("embedded:n=2", ClusterOptions(speeds="1+2.5", rate=10.0), "ccr=3")
    assert instance.cluster.speeds.tolist() == [1.0, 2.5]
    assert instance.cluster.rate == 10.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("embedded:n=2",), "have no sizes of edges; expected --edges"),
        (("embedded:n=2", None, "ccr=-1"), "ccr is -1.0"),
        (("embedded:n=2", None, "half"), "expected measured, own or ccr=NUMBER"),
        (("canonical", None, "ccr=1"), "edges of canonical are its own"),
        (("canonical:x=1",), "jobs 'canonical:x=1' has no option 'x'"),
        (("gauss", ClusterOptions(rate=1.0)), "rate cannot be set for gauss"),
        (("embedded:n=2", ClusterOptions(2, "1+2+3"), "ccr=1"), "3 speeds are given for 2 executors"),
        (("embedded:n=2", ClusterOptions(0), "ccr=1"), "executors must be a whole number of at least 1"),
        (("nowhere",), "unknown jobs 'nowhere'"),
    ],
)
def test_bad_texts(arguments, sentence):
    with pytest.raises(ConfigError, match=sentence.replace("(", r"\(")):
        read_instance(*arguments)
