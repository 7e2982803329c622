"""Large messages: in parts, and in linear time."""

import time
from itertools import chain

import grpc
import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ClientSession, ServiceClient
from decima.connect.service.dag import Dag
from decima.connect.service.errors import RefusalError
from decima.connect.service.limits import TOTALS, Limits
from decima.connect.service.wire import REPORT_STAGES, parse, parts, stages_in
from tests.services import expire, largest_report, leave, running, sessions_of
from tests.unit.connect.service.test_server import code_of, full_request, open_request, raw, report_of


def decide(sessions, request, **opening):
    request.session = sessions.open(open_request(**opening)).session
    request.sequence = 1
    return sessions.find(request.session).session.decide(request)


def test_the_largest_report_of_an_older_client_is_taken():
    """In linear time: twenty times what it takes; with a graph library it took 22 s."""
    sessions, request = sessions_of("fair"), largest_report()
    begin = time.thread_time()
    reply = decide(sessions, parse(protocol.DecideRequest, request.SerializeToString()))
    assert (reply.job, reply.stage, reply.executors) == ("j0", 1_999, 1)  # fair: 4 executors for 25 jobs
    assert time.thread_time() - begin < 10.0


def test_a_report_of_a_client_takes_little_time():
    """1,000 stages with as many edges as there may be, of ten jobs: a tenth of a second of the processor at most."""
    sessions = sessions_of("fair")
    decide(sessions, largest_report(jobs=2, stages=10, edges=10))
    request = largest_report(jobs=10, stages=100, edges=4_000)
    begin = time.thread_time()
    assert not decide(sessions, request).idle
    assert time.thread_time() - begin < 0.3


@given(st.lists(st.integers(0, 1_300), max_size=9), st.lists(st.integers(0, 1_300), max_size=9), st.booleans())
def test_parts_of_a_report_say_what_it_says(graphs, states, full):
    whole = protocol.DecideRequest(time_ms=3.0, executors=4, full=full, gone=["x"], offer=protocol.Offer(executors=2))
    for name, sizes in (("jobs", graphs), ("states", states)):
        kind = protocol.Stage if name == "jobs" else protocol.StageState
        for number, size in enumerate(sizes):
            getattr(whole, name).add(job=str(number), stages=[kind(stage=stage) for stage in range(size)])
    messages = parts(whole)
    together = protocol.DecideRequest()
    for message in messages:
        assert stages_in(message) <= REPORT_STAGES or len(message.jobs) + len(message.states) == 1
        assert (message.time_ms, message.executors) == (3.0, 4)
        together.MergeFrom(message)
    assert together == whole
    assert [message.full for message in messages] == [full, *[False] * (len(messages) - 1)]
    assert [message.HasField("offer") for message in messages] == [*[False] * (len(messages) - 1), True]


def test_a_long_report_in_parts_gives_the_decision_of_the_whole():
    """25 jobs of 300 stages: the client sends fifteen messages, an older one a single message, which is logged."""
    request = largest_report(jobs=25, stages=300, edges=600)
    expected = decide(sessions_of("fair"), request)
    with running(sessions_of("fair")) as service, ServiceClient(service.target, deadline_s=60.0) as client:
        reply = ClientSession(client, open_request()).decide(lambda full: request)
        assert (reply.job, reply.stage, reply.limit) == (expected.job, expected.stage, expected.limit)
        assert service.metrics.registry.get_sample_value("decima_calls_total", {"method": "Decide", "code": "OK"}) > 8
        old = report_of(client.call("Open", open_request(), protocol.OpenReply).session, 1)
        old.jobs.MergeFrom(request.jobs)
        assert client.call("Decide", old, protocol.Decision).job == "j"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gone": ["x"] * 6}, "a report has 6 gone; the service takes 5"),
        ({"states": [protocol.JobState(job="j")] * 6}, "a report has 6 states; the service takes 5"),
        ({"jobs": [protocol.Job(job="j")] * 6}, "a report has 6 jobs; the service takes 5"),
        ({"states": [protocol.JobState(job="j", schedulable=[0, 0])]}, "1 stages, but entries: .* 2 in schedulable"),
        ({"states": [protocol.JobState(job="j", stages=[protocol.StageState()] * 2)]}, "entries: 2 in stages"),
    ],
)
def test_work_is_bounded_by_the_jobs(fields, message):
    sessions = sessions_of("fair", limits=Limits(jobs=5))
    jobs = [protocol.Job(job="j", stages=[protocol.Stage(num_tasks=1)])]
    with pytest.raises(RefusalError, match=message):
        decide(sessions, protocol.DecideRequest(**({"full": True, "jobs": jobs} | fields)))


def test_edges_are_limited():
    sessions = sessions_of("fair", limits=Limits(edges=25))
    with pytest.raises(RefusalError, match="27 edges; the service takes 25"):
        decide(sessions, largest_report(jobs=3, stages=10, edges=10))


def test_a_long_cycle_is_named_in_short():
    request = largest_report(jobs=1)
    request.jobs[0].stages[1_999].parents.append(0)
    with pytest.raises(RefusalError, match=r"form a cycle: (\d+ -> ){10}\.\.\. \(\d+ stages\); expected") as caught:
        decide(sessions_of("fair"), request)
    assert len(str(caught.value)) < 300


def test_a_scheduler_that_cannot_do_more_leaves_the_session_as_it_was():
    sessions = sessions_of("decima")
    request = full_request()
    request.full = True
    assert decide(sessions, request, executors=1).job == "j"
    session = sessions.find(request.session).session
    request.sequence, request.executors = 2, 201
    with pytest.raises(RefusalError, match="made for at most 200 executors"):
        session.decide(request)
    request.sequence, request.executors = 3, 4
    assert session.decide(request).job == "j"


@given(st.integers(0, 2**32 - 1))
def test_what_follows_from_a_graph(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 12))
    names = rng.permutation(size)
    parents = [[] for _ in range(size)]
    for child in range(size):
        for parent in range(child):
            if rng.random() < 0.3:
                parents[names[child]].append(int(names[parent]))
    tasks = rng.integers(1, 4, size).tolist()
    dag = Dag.of_lists(tasks, [len(of) for of in parents], list(chain(*parents)))
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((parent, child) for child in range(size) for parent in parents[child])
    place = {stage: index for index, stage in enumerate(dag.order.tolist())}
    assert sorted(place) == list(range(size))
    assert all(place[parent] < place[child] for parent, child in graph.edges)
    assert (dag.wrong_parent(), dag.cycle()) == (-1, [])
    weights = rng.random(size)
    finished = [int(rng.integers(0, count + 1)) for count in tasks]
    counted, unfinished = dag.finished(finished)
    for stage in range(size):
        children = sorted(graph.successors(stage))
        begin, end = dag.children.offset[stage : stage + 2]
        assert dag.children.neighbour[begin:end].tolist() == children
        below = networkx.descendants(graph, stage) | {stage}
        assert dag.levels[stage] == networkx.dag_longest_path_length(graph.subgraph(below))
        heaviest = max((dag.longest_path_down(weights)[child] for child in children), default=0.0)
        assert dag.longest_path_down(weights)[stage] == weights[stage] + heaviest
        above = networkx.ancestors(graph, stage)
        done = all(finished[other] == tasks[other] for other in above | {stage})
        assert (counted[stage] == tasks[stage]) == done
        assert counted[stage] == finished[stage] - (not done and finished[stage] == tasks[stage])
        assert unfinished[stage] == sum(counted[parent] < tasks[parent] for parent in parents[stage])


@given(st.integers(0, 2**32 - 1))
def test_cycles_are_found(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    parents = [[int(other) for other in range(size) if other != stage and rng.random() < 0.3] for stage in range(size)]
    dag = Dag.of_lists([1] * size, [len(of) for of in parents], list(chain(*parents)))
    graph = networkx.DiGraph((parent, child) for child in range(size) for parent in parents[child])
    cycle = dag.cycle()
    assert bool(cycle) != networkx.is_directed_acyclic_graph(graph)
    for parent, child in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert parent in parents[child]


# What all clients together may take: refused with the name of the limit, given back when a session ends.


def opened(sessions, **opening):
    return sessions.open(open_request(**opening)).session


def report(sessions, key, jobs, sequence=1, **fields):
    request = largest_report(jobs, stages=10, edges=10)
    request.session, request.sequence = key, sequence
    request.MergeFrom(protocol.DecideRequest(**fields))
    return sessions.find(key).session.decide(request)


def refused(message, call, *arguments, **fields):
    with pytest.raises(RefusalError, match=message) as caught:
        call(*arguments, **fields)
    assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_stages_of_all_sessions():
    sessions = sessions_of("fair", limits=Limits(total_stages=50))
    first, second = opened(sessions), opened(sessions)
    report(sessions, first, 3)
    refused(r"together would have 60 stages; the service takes 50 \(total_stages\)", report, sessions, second, 3)
    report(sessions, second, 2, sequence=2)
    # Jobs that are gone count no longer, a session that ends neither.
    report(sessions, first, 1, sequence=2)
    report(sessions, second, 4, sequence=3)
    leave(sessions, second)
    report(sessions, first, 5, sequence=3)
    assert sessions.budget.taken["total_stages"] == 50


def test_executors_of_all_sessions():
    sessions = sessions_of("fair", limits=Limits(total_executors=10))
    first = opened(sessions)
    shared = [opened(sessions, shared_cluster="c") for _ in range(3)]
    assert sessions.budget.taken["total_executors"] == 8
    refused(r"would have 12 executors; the service takes 10 \(total_executors\)", opened, sessions)
    refused("would have 11 executors", opened, sessions, shared_cluster="d", executors=3)
    assert "d" not in sessions._clusters
    growing = report_of(first, 1, executors=7)
    refused("would have 11 executors", lambda: sessions.find(first).session.decide(growing))
    for key in shared:
        leave(sessions, key)
    growing.sequence = 2
    assert sessions.find(first).session.decide(growing).executors == 2
    assert sessions.budget.taken["total_executors"] == 7


def test_memory_of_all_sessions():
    sessions = sessions_of("decima", limits=Limits(total_bytes=450_000))
    first, second = opened(sessions), opened(sessions)
    before = dict(sessions.budget.taken)
    refused(r"bytes of memory; the service takes 450000 \(total_bytes\)", opened, sessions)
    refused("bytes of memory", report, sessions, first, 20)
    assert sessions.budget.taken["total_bytes"] == before["total_bytes"]
    # It goes on with what it had.
    assert report(sessions, first, 1, sequence=2).job == "j0"
    leave(sessions, second)
    leave(sessions, first)
    assert sessions.budget.taken == dict.fromkeys(TOTALS, 0)


def test_sessions_that_never_decide_are_forgotten_soon():
    sessions = sessions_of("fair", limits=Limits(lease_s=100.0, first_lease_s=10.0, sessions=4))
    reply = sessions.open(open_request())
    assert reply.lease_ms == 10_000
    with running(sessions) as service:
        for key in (reply.session, opened(sessions)):
            request = report_of(key, 1)
            if key != reply.session:
                request.ClearField("offer")  # a report only
            raw(service.target, "Decide", request.SerializeToString())
    for entry in sessions._open.values():
        entry.used -= 11.0
    assert expire(sessions) == 1
    assert list(sessions._open) == [reply.session]
    sessions._open[reply.session].used -= 90.0
    assert expire(sessions) == 1


def test_messages_under_way():
    with running(sessions_of("fair", limits=Limits(pending_bytes=1_000))) as service:
        data = protocol.DecideRequest(session="x" * 1_000).SerializeToString()
        assert code_of(raw, service.target, "Decide", data) is grpc.StatusCode.RESOURCE_EXHAUSTED
        data = protocol.DecideRequest(session="x" * 900).SerializeToString()
        for _ in range(3):
            assert code_of(raw, service.target, "Decide", data) is grpc.StatusCode.NOT_FOUND
