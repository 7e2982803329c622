"""Unequal executors as clients of the service: exactly the schedule of the scheduler in this process."""

import grpc
import numpy as np
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ServiceClient
from decima.connect.service.errors import RefusalError
from decima.connect.service.node_client import schedule_by_service
from decima.connect.service.steps import finish
from decima.core.errors import ConfigError, ServiceError
from decima.systems.heterogeneous import canonical, make_scheduler, validate
from decima.systems.heterogeneous.tpch import tpch_instance
from tests.heterogeneous_instances import draw_instance
from tests.services import leave, running, sessions_of

NAMES = (
    "heft",
    "high_rank_up_deft",
    "high_rank_up_deft:decision=event",
    "discounted_rank:transfers=decision",
    "cpop",
    "peft:decision=event",
    "fifo_deft",
    "sjf_deft",
    "hrrn_deft",
    "random_deft",
    "lachesis",
    "decima_deft:decision=event",
    "lachesis:decision=idle,policy=lachesis-stream",
)
INSTANCES = {
    "batch": tpch_instance(4, 1, edges=5.0, executors=5),
    "stream": tpch_instance(5, 2, edges=5.0, executors=3, interarrival_s=20.0),
    "rates, whole numbers": draw_instance(4, kind="rates", stream=True, whole=True),
    "costs": canonical(),
}


@pytest.fixture(scope="module")
def service():
    """One regular scheduler, and all these."""
    with running(sessions_of("fair", unequal=NAMES)) as service, ServiceClient(service.target) as client:
        service.client = client
        yield service


def require_same(mine, theirs):
    for name in ("node", "executor", "start_s", "finish_s", "duplicate"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


@pytest.mark.parametrize("kind", INSTANCES)
@pytest.mark.parametrize("name", NAMES)
def test_same_schedule(service, name, kind):
    instance = INSTANCES[kind]
    here = make_scheduler(name).schedule(instance, 3)
    there = schedule_by_service(instance, service.client, name, seed=3)
    validate(instance, there)
    require_same(there, here)
    require_same(schedule_by_service(instance, service.client, name, seed=3, most=1), here)
    assert len(service.sessions) == 0
    assert not any(service.sessions.budget.taken.values())


@pytest.mark.parametrize("name", ["heft", "fifo_deft", "high_rank_up_deft:decision=event"])
def test_finished_jobs_may_be_forgotten(service, name):
    """Rules that look at nothing but the jobs in the system decide the same without those that are gone."""
    instance = tpch_instance(12, 5, edges=1.0, executors=4, interarrival_s=60.0)
    here = make_scheduler(name).schedule(instance)
    require_same(schedule_by_service(instance, service.client, name, forget=True), here)


def test_a_service_that_lost_the_session_is_told_everything(service):
    instance = INSTANCES["stream"]
    name = NAMES[-1]
    here = make_scheduler(name).schedule(instance)
    calls = 0
    call = service.client.call

    def losing(method, request, kind):
        nonlocal calls
        calls += method == "Assign"
        if method == "Assign" and calls % 4 == 0:
            leave(service.sessions, request.session)
        return call(method, request, kind)

    service.client.call = losing
    try:
        require_same(schedule_by_service(instance, service.client, name), here)
    finally:
        service.client.call = call
    assert calls > 8


# ---- sessions without a network -----------------------------------------------------------------------------------


def opened(sessions, **changes):
    unequal = changes.pop("unequal", protocol.UnequalExecutors(speeds=[1.0, 2.0], rate=1.0))
    request = protocol.OpenRequest(**({"version": 1, "executors": 2, "unequal": unequal} | changes))
    return sessions.find(sessions.open(request).session).session


def chain(job="a", arrival_s=0.0):
    """Job of two nodes, 7 and 8, of which the second reads the first."""
    nodes = [
        protocol.Node(node=7, work=4.0),
        protocol.Node(node=8, work=4.0, inputs=[protocol.Input(parent=7, data=9.0)]),
    ]
    return protocol.NodeJob(job=job, arrival_s=arrival_s, nodes=nodes)


def asked(session, sequence=1, **report):
    request = protocol.AssignRequest(sequence=sequence, full=sequence == 1, **report)
    return finish(session.assign(request))


def test_one_node_after_the_other():
    session, known = opened(sessions_of("fair", unequal=["high_rank_up_deft"])), [protocol.NodeJob(job="a")]
    first = asked(session, jobs=[chain()], most=1)
    assert [(each.job, each.node, each.executor, each.finish_s) for each in first.assignments] == [("a", 7, 1, 2.0)]
    assert session.overview(5) == [{"job": "a", "stages": 2, "waiting": 1}]
    second = asked(session, 2, jobs=known, copies=first.assignments)
    assert [(each.node, each.executor, each.start_s) for each in second.assignments] == [(8, 1, 2.0)]
    assert second.decide_us > 0.0
    assert session.overview(5) == [{"job": "a", "stages": 2, "waiting": 0}]
    assert not asked(session, 3, jobs=known, copies=[*first.assignments, *second.assignments]).assignments
    # The second copy never was; then the job is gone.
    assert asked(session, 4, jobs=known, copies=first.assignments).assignments == second.assignments
    assert not asked(session, 5).assignments
    assert session.num_jobs == 0


def test_what_happened_counts_not_what_was_expected():
    session = opened(sessions_of("fair", unequal=["high_rank_up_deft:decision=event"]))
    assert [each.node for each in asked(session, jobs=[chain()]).assignments] == [7]
    # It should have finished at 2; at 3 it has not, at 5 it has.
    known, copy = [protocol.NodeJob(job="a")], {"job": "a", "node": 7, "executor": 1, "start_s": 0.0}
    expected = [protocol.Copy(**copy, finish_s=2.0)]
    assert not asked(session, 2, now_s=3.0, jobs=known, copies=expected).assignments
    late = [protocol.Copy(**copy, finish_s=5.0, executed=True)]
    assert [each.start_s for each in asked(session, 3, now_s=5.0, jobs=known, copies=late).assignments] == [5.0]


def test_an_executor_that_is_not_available_is_not_waited_for():
    session = opened(sessions_of("fair", unequal=["heft"]))
    held = [protocol.ExecutorTime(executor=1, available_s=100.0)]
    reply = asked(session, jobs=[chain()], executors=held)
    assert [each.executor for each in reply.assignments] == [0, 0]


def test_a_copy_is_answered_with_the_node_it_is_for():
    """Two children of a node that cannot wait for its data: one executor executes a copy of it."""
    nodes = [protocol.Node(node=0, work=1.0)]
    nodes += [protocol.Node(node=n, work=10.0, inputs=[protocol.Input(parent=0, data=50.0)]) for n in (1, 2)]
    unequal = protocol.UnequalExecutors(speeds=[1.0, 1.0], rate=1.0)
    session = opened(sessions_of("fair", unequal=["high_rank_up_deft"]), unequal=unequal)
    reply = asked(session, jobs=[protocol.NodeJob(job="v", nodes=nodes)])
    rows = [(each.node, each.start_s, each.finish_s) for each in reply.assignments]
    assert rows == [(0, 0.0, 1.0), (1, 1.0, 11.0), (0, 0.0, 1.0), (2, 1.0, 11.0)]
    executors = [each.executor for each in reply.assignments]
    assert executors[:2] != executors[2:]
    assert len(set(executors[:2])) == len(set(executors[2:])) == 1


BAD_OPENINGS = {
    "speeds": ({"unequal": protocol.UnequalExecutors(speeds=[1.0], rate=1.0)}, "1 speeds are given for 2 executors"),
    "speed 0": ({"unequal": protocol.UnequalExecutors(speeds=[1.0, 0.0], rate=1.0)}, "speeds: entry 1 is 0"),
    "rate 0": ({"unequal": protocol.UnequalExecutors(speeds=[1.0, 2.0])}, "rate is 0; expected a number above 0"),
    "rates": ({"unequal": protocol.UnequalExecutors(speeds=[1.0, 2.0], rates=[1.0])}, "1 rates are given for 2"),
    "costs, rate 0": ({"unequal": protocol.UnequalExecutors()}, "rate is 0"),
    "no executors": ({"executors": 0}, "executors is 0; expected 1 to 10000"),
    "unknown": ({"scheduler": "fair"}, "'fair' is not offered for unequal executors here; offered: heft"),
    "shared": ({"shared_cluster": "c"}, "belong to one driver"),
    "version": ({"version": 2}, "protocol version is 2"),
}


@pytest.mark.parametrize("case", BAD_OPENINGS)
def test_bad_clusters_are_refused(case):
    changes, message = BAD_OPENINGS[case]
    sessions = sessions_of("fair", unequal=["heft"])
    with pytest.raises(RefusalError, match=message):
        opened(sessions, **changes)
    assert len(sessions) == 0
    assert not any(sessions.budget.taken.values())


def changed(**values):
    job = chain()
    for name, value in values.items():
        setattr(job.nodes[1], name, value)
    return job


def with_input(**values):
    job = chain()
    job.nodes[1].inputs.add(**values)
    return job


A_COPY = {"job": "a", "node": 7, "executor": 0, "start_s": 0.0, "finish_s": 4.0}
BAD_REPORTS = {
    "time": ({"now_s": float("nan")}, "now_s is nan"),
    "arrival": ({"jobs": [chain(arrival_s=9.0)]}, "arrives at 9.0; expected at most the time now, 0.0"),
    "twice": ({"jobs": [chain(), chain()]}, "job 'a' is told a second time"),
    "no nodes": ({"jobs": [protocol.NodeJob(job="a")]}, "job 'a' has no nodes and is not known"),
    "no name": ({"jobs": [chain(job="")]}, "a job is ''"),
    "work": ({"jobs": [changed(work=-1.0)]}, "work: entry 1 is -1"),
    "same node": ({"jobs": [changed(node=7)]}, "a node is given twice"),
    "parent": ({"jobs": [with_input(parent=3)]}, "node 8 has the parent 3, which the job has not"),
    "cycle": ({"jobs": [with_input(parent=8, data=1.0)]}, "cycle"),
    "data": ({"jobs": [with_input(parent=7, data=float("inf"))]}, "data: entry 1 is inf"),
    "times": ({"jobs": [protocol.NodeJob(job="a", nodes=[protocol.Node(times_s=[1.0])])]}, "has 1 times; expected 0"),
    "executor": ({"jobs": [chain()], "executors": [protocol.ExecutorTime(executor=2)]}, "executor 2 is not there"),
    "copy of nothing": ({"copies": [protocol.Copy(**A_COPY)]}, "has a copy, but is not known"),
    "copy's node": ({"jobs": [chain()], "copies": [protocol.Copy(**A_COPY | {"node": 1})]}, "has no node 1"),
    "copy's times": ({"jobs": [chain()], "copies": [protocol.Copy(**A_COPY | {"start_s": 5.0})]}, "finish_s is 4.0"),
    "copy twice": ({"jobs": [chain()], "copies": [protocol.Copy(**A_COPY)] * 2}, "is told twice on executor 0"),
    "child first": ({"jobs": [chain()], "copies": [protocol.Copy(**A_COPY | {"node": 8})]}, "before its parents"),
    "too many": (
        {"jobs": [chain()], "copies": [protocol.Copy(**A_COPY), protocol.Copy(**A_COPY | {"executor": 1})]},
        "2 copies of 1 nodes",
    ),
    "overlap": (
        {"jobs": [chain()], "copies": [protocol.Copy(**A_COPY), protocol.Copy(**A_COPY | {"node": 8})]},
        "from 0 to 4 lies on a copy",
    ),
    "future": ({"jobs": [chain()], "copies": [protocol.Copy(**A_COPY, executed=True)]}, "was executed by 4"),
}


@pytest.mark.parametrize("case", BAD_REPORTS)
def test_bad_reports_are_refused_and_nothing_stays(case):
    report, message = BAD_REPORTS[case]
    session = opened(sessions_of("fair", unequal=["heft"]))
    with pytest.raises(RefusalError, match=message):
        asked(session, **report)
    with pytest.raises(RefusalError, match="not known"):
        asked(session, 2)
    reply = finish(session.assign(protocol.AssignRequest(sequence=3, full=True, jobs=[chain()])))
    assert [each.node for each in reply.assignments] == [7, 8]


def test_calls_of_the_other_kind_are_refused(service):
    request = protocol.OpenRequest(version=1, executors=2)
    usual = service.client.call("Open", request, protocol.OpenReply).session
    request.unequal.CopyFrom(protocol.UnequalExecutors(speeds=[1.0, 2.0], rate=1.0))
    unequal = service.client.call("Open", request, protocol.OpenReply).session
    with pytest.raises(grpc.RpcError, match="executors of this session are alike"):
        service.client.call("Assign", protocol.AssignRequest(session=usual), protocol.Assignments)
    with pytest.raises(grpc.RpcError, match="expected Assign, not Decide"):
        service.client.call("Decide", protocol.DecideRequest(session=unequal), protocol.Decision)
    for key in (usual, unequal):
        service.client.call("Close", protocol.CloseRequest(session=key), protocol.CloseReply)


def test_a_service_without_such_schedulers_says_so():
    with (
        running(sessions_of("fair")) as plain,
        ServiceClient(plain.target) as client,
        pytest.raises(ServiceError, match="not offered for unequal executors here; none is"),
    ):
        schedule_by_service(canonical(), client, "heft")


@pytest.mark.parametrize("name", ["tds", "tdca", "dls", "heft:drop_unread=true"])
def test_schedulers_that_need_the_whole_plan_cannot_be_offered(name):
    with pytest.raises(ConfigError, match="expected one that takes node after node"):
        sessions_of("fair", unequal=[name])


def test_limits_hold_for_nodes():
    sessions = sessions_of("fair", unequal=["peft"])
    session = opened(sessions)
    job = protocol.NodeJob(job="a", nodes=[protocol.Node(node=n) for n in range(2_001)])
    with pytest.raises(RefusalError, match="job 'a' has 2001 of them; the service takes 2000"):
        asked(session, jobs=[job])
