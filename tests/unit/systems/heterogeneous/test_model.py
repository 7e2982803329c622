"""Jobs, clusters, instances and their files: what goes in comes out, and what is wrong is refused in one sentence."""

import json
from dataclasses import replace

import numpy as np
import pytest

from decima.core.errors import DataUnavailableError, WorkloadError
from decima.systems.heterogeneous import (
    Cluster,
    Instance,
    InvalidScheduleError,
    Job,
    canonical,
    load_instance,
    load_schedule,
    metrics,
    plan,
    save_instance,
    validate,
)
from decima.systems.heterogeneous.json_format import schedule_document
from decima.systems.heterogeneous.schedulers.priorities import rank_up
from tests.heterogeneous_instances import draw_instance

CHAIN = Job("chain", [1.0, 2.0, 3.0], [(0, 1), (1, 2)], [4.0, 5.0])


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"work": []}, "job 'a' has no nodes"),
        ({"work": [1.0, -1.0]}, "work: entry 1 is -1; expected a finite number of at least 0"),
        ({"work": [1.0, float("nan")]}, "work: entry 1 is nan"),
        ({"work": [1.0, "x"]}, "work: expected numbers only"),
        ({"work": [1.0, 1.0], "edges": [(0, 1)]}, "the sizes of its 1 edges are missing"),
        ({"work": [1.0, 1.0], "edges": [(0, 1)], "data": [1.0, 2.0]}, "2 sizes for 1 edges"),
        ({"work": [1.0, 1.0], "edges": [(0, 1)], "data": [-1.0]}, "data: entry 0 is -1"),
        ({"work": [1.0, 1.0], "edges": [(0, 1)], "data": [float("nan")]}, "data: entry 0 is nan"),
        ({"work": [1.0, 1.0], "edges": [(0, 2)], "data": [1.0]}, "edge 0 -> 2 names an unknown node; expected 0 to 1"),
        ({"work": [1.0, 1.0], "edges": [(0, 1)] * 2, "data": [1.0] * 2}, "the edge 0 -> 1 is given twice"),
        ({"work": [1.0] * 3, "edges": [(0, 1), (1, 0)], "data": [0.0] * 2}, "the edges form a cycle, among 0, 1"),
        ({"work": [1.0], "edges": [(0, 0)], "data": [0.0]}, "the edges form a cycle, among 0"),
        ({"work": [1.0], "arrival_s": -1.0}, "arrival_s is -1"),
        ({"work": [1e300]}, "work: 1e.300 is out of range; expected 1e-15 to 1e.15"),
        ({"work": [1.0], "arrival_s": 1e300}, "arrival_s is 1e.300; expected 1e-15 to 1e.15"),
        ({"work": [1.0], "nodes": [["x"]]}, "a node's name is ..x..; expected a non-empty Unicode text"),
        ({"work": [1.0, 2.0], "nodes": ["x", "x"]}, "2 names for 2 nodes; expected a different one for each"),
        ({"work": [1.0, 2.0], "edges": [(0.5, 1)], "data": [1.0]}, "edges are pairs of whole numbers"),
    ],
)
def test_malformed_jobs(values, sentence):
    with pytest.raises(WorkloadError, match=sentence.replace("(", r"\(")):
        Job("a", **values)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"speeds": [], "rate": 1.0}, "the cluster has no executor"),
        ({"speeds": [1.0, 0.0], "rate": 1.0}, "speeds: entry 1 is 0; expected a finite number above 0"),
        ({"speeds": [1.0, 1e-300], "rate": 1.0}, "speeds: 1e-300 is out of range"),
        ({"speeds": [1.0, 1.0], "rate": [[1.0, 1.0], 1.0]}, "rate: expected one number, or a row of numbers"),
        ({"speeds": [1.0, 1.0], "rate": 0.0}, "rate is 0; expected a number above 0"),
        ({"speeds": [1.0, 1.0]}, "the cluster has no transfer rate"),
        ({"speeds": [1.0, 1.0], "rate": [[1, 2]]}, "rate is a matrix of 1 x 2; expected 2 x 2"),
        ({"speeds": [1.0, 1.0], "rate": [[0, None], [1, 0]]}, "the rate from executor 0 to executor 1 is missing"),
        ({"speeds": [1.0, 1.0], "rate": [[0, 0], [1, 0]]}, "rate: entry .0, 1. is 0; expected a number above 0"),
        ({"speeds": [True, 1.0], "rate": 1.0}, r"speeds: expected numbers only, got \[True, 1.0\]"),
        ({"costs": [[1.0, True]], "rate": 1.0}, "costs: expected numbers only"),
        ({"speeds": [1.0, 1.0], "rate": [[1, "2"], [1, 1]]}, "rate: expected one number, or a row of numbers"),
        ({"speeds": [1.0, 1.0], "rate": [[1, True], [1, 1]]}, "rate: expected one number, or a row of numbers"),
        ({"speeds": [1.0], "rate": 1.0, "names": [None]}, "an executor's name is None; expected a non-empty"),
        ({"speeds": [1.0], "rate": 1.0, "names": [{"a": 1}]}, "an executor's name is {'a': 1}; expected"),
        ({"speeds": [1.0], "rate": 1.0, "latency_s": -1}, "latency_s is -1"),
        ({"speeds": [1.0], "costs": [[1.0]]}, "either speeds or a matrix of costs"),
        ({"rate": 1.0}, "either speeds or a matrix of costs"),
        ({"costs": [[1.0, 2.0], [1.0]], "rate": 1.0}, "costs: the rows have different lengths"),
        ({"costs": [[1.0, -2.0]], "rate": 1.0}, "costs: entry .0, 1. is -2"),
        ({"costs": [[1.0, 2.0], [np.inf, np.inf]], "rate": 1.0}, "costs: no executor can execute node 1"),
        ({"speeds": [1.0, 1.0], "rate": 1.0, "names": ["a", "a"]}, "2 names for 2 executors"),
    ],
)
def test_malformed_clusters(values, sentence):
    with pytest.raises(WorkloadError, match=sentence):
        Cluster(**values)


def test_one_infinite_rate_does_not_make_the_mean_transfer_free():
    rate = np.array([[0.0, 2.0, np.inf], [4.0, 0.0, 6.0], [8.0, 10.0, 0.0]])
    finite = Cluster([1.0, 1.0, 1.0], np.where(np.isinf(rate), 6.0, rate))
    cluster = Cluster([1.0, 1.0, 1.0], rate)
    assert (finite.mean_rate, cluster.mean_rate) == (6.0, 6.0)
    assert cluster.mean_transfer_s(np.array([12.0])).tolist() == [2.0]
    assert cluster.least_transfer_s(np.array([12.0])).tolist() == [0.0]
    assert Cluster([1.0, 1.0], [[1.0, np.inf], [np.inf, 1.0]]).mean_rate == np.inf
    jobs = [Job("a", [1.0, 1.0], [(0, 1)], [12.0])]
    ranks = [rank_up(Instance(jobs, each)).tolist() for each in (cluster, finite)]
    assert ranks[0] == ranks[1] == [4.0, 1.0]


def test_malformed_instances():
    with pytest.raises(WorkloadError, match="the instance has no jobs"):
        Instance([], Cluster([1.0]))
    with pytest.raises(WorkloadError, match="the matrix of costs is 2 x 1; expected 3 x 1, a row for each node"):
        Instance([CHAIN], Cluster(costs=[[1.0], [2.0]]))
    with pytest.raises(WorkloadError, match="the cluster is NoneType"):
        plan([CHAIN])


def test_layout_of_an_instance():
    second = Job("second", [1.0, 1.0], [(1, 0)], [7.0], arrival_s=2.0)
    instance = Instance([CHAIN, second], Cluster([1.0, 3.0], 2.0, 0.5))
    assert instance.first_node.tolist() == [0, 3, 5]
    assert instance.arrival_s.tolist() == [0.0, 0.0, 0.0, 2.0, 2.0]
    assert [each.tolist() for each in instance.parents] == [[0, 0, 1, 2, 3, 3], [0, 1, 4], [4.0, 5.0, 7.0]]
    assert [each.tolist() for each in instance.children] == [[0, 1, 2, 2, 2, 3], [1, 2, 3], [4.0, 5.0, 7.0]]
    assert instance.order.tolist() == [0, 4, 1, 3, 2]
    assert instance.mean_time_s.tolist() == [0.5, 1.0, 1.5, 0.5, 0.5]
    assert instance.transfer_s(4.0, 0, 1) == 2.5
    assert instance.transfer_s(4.0, 1, 1) == 0.0
    assert instance.ccr == pytest.approx((0.5 + 16.0 / 3.0 / 2.0) / 0.8)
    assert instance.node_name(4) == "second/1"


def test_drawn_speeds_are_the_papers():
    speeds = Cluster.drawn(2000, seed=3).speeds
    assert set(speeds.tolist()) == {round(2.1 + 0.1 * step, 1) for step in range(16)}
    assert speeds.mean() == pytest.approx(2.85, abs=0.05)
    assert np.array_equal(Cluster.drawn(2000, seed=3).speeds, speeds)


@pytest.mark.parametrize("kind", ["speeds", "rates", "costs"])
def test_instances_and_schedules_come_back_from_files(kind, tmp_path):
    instance = draw_instance(4, kind=kind, stream=True)
    save_instance(instance, tmp_path / "instance.json")
    again = load_instance(tmp_path / "instance.json")
    schedule = plan(instance, scheduler="high_rank_up_deft")
    assert plan(again, scheduler="high_rank_up_deft").finish_s.tolist() == schedule.finish_s.tolist()
    (tmp_path / "schedule.json").write_text(json.dumps(schedule_document(schedule)))
    read = load_schedule(tmp_path / "schedule.json", again)
    for name in ("node", "executor", "start_s", "finish_s", "duplicate"):
        assert getattr(read, name).tolist() == getattr(schedule, name).tolist(), name


@pytest.mark.parametrize("infinity", ["inf", None])
def test_costs_of_infinity_are_read_and_written(infinity, tmp_path):
    jobs = [{"name": "two", "nodes": [{"name": "a"}, {"name": "b"}], "edges": []}]
    cluster = {"costs": [[1.0, infinity], [infinity, 2.5]], "rate": "inf"}
    (tmp_path / "in.json").write_text(json.dumps({"jobs": jobs, "cluster": cluster}))
    instance = load_instance(tmp_path / "in.json")
    assert instance.cluster.costs.tolist() == [[1.0, np.inf], [np.inf, 2.5]]
    save_instance(instance, tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())["cluster"]
    assert (written["costs"], written["rate"]) == ([[1.0, "inf"], ["inf", 2.5]], "inf")
    assert load_instance(tmp_path / "out.json").signature() == instance.signature()
    schedule = plan(instance)
    assert schedule.executor[np.argsort(schedule.node)].tolist() == [0, 1]
    assert np.isnan(metrics(schedule).speedup)  # no executor can execute all nodes
    wrong = replace(schedule, executor=schedule.executor[::-1].copy())
    with pytest.raises(InvalidScheduleError, match="cannot be: this executor cannot execute the node"):
        validate(instance, wrong)


SPEEDS = {"speeds": [1.0, 2.0, 4.0], "rate": 1.0}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda body: body.pop("cluster"), "describes no cluster"),
        (lambda body: body.pop("jobs"), "jobs is missing"),
        (lambda body: body.update(job=1), "unknown key 'job'"),
        (lambda body: body["jobs"][0]["nodes"][0].update(work=None), "work of node 0 is None; expected a number"),
        (lambda body: body["cluster"].update(rate=None), "no transfer rate"),
        (lambda body: body.update(cluster=SPEEDS) or body["jobs"][0]["nodes"][2].pop("work"), "2: work is missing"),
        (lambda body: body["cluster"].update(speeds="fast", costs=None), "speeds: expected numbers only|dimension"),
    ],
)
def test_malformed_files(change, sentence, tmp_path):
    path = tmp_path / "instance.json"
    save_instance(canonical(), path)
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))
    with pytest.raises(WorkloadError, match=sentence):
        load_instance(path)


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "instance.json"
    with pytest.raises(DataUnavailableError, match="No such file"):
        load_instance(path)
    path.write_text('{"jobs": [')
    with pytest.raises(WorkloadError, match="is not JSON"):
        load_instance(path)
    path.write_text('{"jobs": [], "cluster": {"speeds": [1.0], "rate": 1, "speeds": [4.0]}}')
    with pytest.raises(WorkloadError, match=r"instance\.json: key 'speeds' is given twice in one object"):
        load_instance(path)
    path.write_text('{"copies": [], "copies": []}')
    with pytest.raises(InvalidScheduleError, match="key 'copies' is given twice in one object"):
        load_schedule(path, canonical())
    path.write_text('{"copies": [{"job": 0, "node": "n1", "executor": "7", "start_s": 0, "finish_s": 1}]}')
    with pytest.raises(InvalidScheduleError, match="the cluster has no executor '7'"):
        load_schedule(path, canonical())
