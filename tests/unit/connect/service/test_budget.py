"""What all clients together may take: refused with the name of the limit, given back when a session ends."""

import grpc
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError
from decima.connect.service.limits import TOTALS, Limits
from tests.services import expire, largest_report, leave, running, sessions_of
from tests.unit.connect.service.test_server import code_of, open_request, raw, report_of


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
    sessions = sessions_of("decima", limits=Limits(total_bytes=400_000))
    first, second = opened(sessions), opened(sessions)
    before = dict(sessions.budget.taken)
    refused(r"bytes of memory; the service takes 400000 \(total_bytes\)", opened, sessions)
    refused("bytes of memory", report, sessions, first, 20)
    assert sessions.budget.taken["total_bytes"] == before["total_bytes"]
    # It goes on with what it had.
    assert report(sessions, first, 1, sequence=2).job == "j0"
    leave(sessions, second)
    leave(sessions, first)
    assert sessions.budget.taken == dict.fromkeys(TOTALS, 0)


def test_a_session_may_wait_for_its_first_query_while_there_is_room():
    """As a notebook does; the short lease is for a service that is half full."""
    sessions = sessions_of("fair", limits=Limits(lease_s=100.0, first_lease_s=10.0, sessions=4))
    for number, forgotten in enumerate((0, 2)):
        opened(sessions)
        for entry in sessions._open.values():
            entry.used -= 11.0
        assert expire(sessions) == forgotten, number
    assert len(sessions) == 0
    key = opened(sessions)
    sessions.find(key).used -= 101.0
    assert expire(sessions) == 1


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


def test_sessions_in_which_nothing_was_named_keep_the_short_lease():
    limits = Limits(lease_s=100.0, first_lease_s=10.0)
    sessions = sessions_of("fair", limits=limits)
    key = sessions.open(open_request()).session
    entry = sessions.find(key)

    def ask(target, sequence, jobs):
        empty = {"executors": 4, "offer": protocol.Offer(executors=1), "full": True}
        request = report_of(key, sequence) if jobs else protocol.DecideRequest(session=key, sequence=sequence, **empty)
        return not protocol.Decision.FromString(raw(target, "Decide", request.SerializeToString())).idle

    with running(sessions) as service:
        for sequence, jobs, lease_s in ((1, False, 10.0), (2, True, 100.0), (3, False, 100.0)):
            assert ask(service.target, sequence, jobs) is jobs
            assert entry.lease_s == lease_s


def test_messages_under_way():
    with running(sessions_of("fair", limits=Limits(pending_bytes=1_000))) as service:
        data = protocol.DecideRequest(session="x" * 1_000).SerializeToString()
        assert code_of(raw, service.target, "Decide", data) is grpc.StatusCode.RESOURCE_EXHAUSTED
        data = protocol.DecideRequest(session="x" * 900).SerializeToString()
        for _ in range(3):
            assert code_of(raw, service.target, "Decide", data) is grpc.StatusCode.NOT_FOUND
