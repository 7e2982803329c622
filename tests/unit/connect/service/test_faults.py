"""Services that go away, answer nonsense, or are treated badly."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent import futures
from pathlib import Path

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decima
from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service import web
from decima.connect.service.client import ClientSession, ServiceAwayError, ServiceClient
from decima.connect.service.limits import Limits
from decima.connect.service.simulator_client import RemoteScheduler
from decima.connect.service.wire import NAME
from decima.core.errors import ServiceError
from decima.systems.spark.schedulers import make_scheduler
from decima.workload import synthetic_batch
from tests.drivers import Watching
from tests.services import leave, process, running, sessions_of, until
from tests.unit.connect.service.test_server import (
    ask,
    code_of,
    full_request,
    open_request,
    raw,
    require_works,
    watching,
)

JOBS = synthetic_batch(4, seed=2)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Interrupting(Watching):
    """Does something before its n-th decision."""

    def __init__(self, inner, number, action):
        self.left = number

        def look(_):
            self.left -= 1
            if self.left == 0:
                action()

        super().__init__(inner, look)


# Services at a port; the first is stopped at the end of its context, the second is killed.
SERVED = {
    "stopped": lambda port: running(sessions_of("fair"), port=port),
    "killed": lambda port: process("--scheduler", "fair", "--port", port),
}


@pytest.mark.parametrize("how", SERVED)
def test_service_started_again_under_a_client(how):
    """The schedule is that of an undisturbed run: nothing is decided twice, nothing is left out."""
    here = decima.simulate(JOBS, "fair", 10, 1, log=True)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        target = first.enter_context(SERVED[how](0)).target
        remote = RemoteScheduler(target, patience_s=120.0)

        def restart():
            first.close()
            stack.enter_context(SERVED[how](int(target.rsplit(":", 1)[1])))

        interrupted = Interrupting(remote, 25, restart)
        there = decima.simulate(JOBS, interrupted, 10, 1, log=True)
        assert interrupted.left < -5
        assert there.log.decision_lists() == here.log.decision_lists()
        assert (remote._session.times_opened, remote.fallbacks) == (2, 0)
        remote.close()


def test_killed_service_and_fallback():
    """FIFO in this process goes on where fair in the other one was killed; nothing is left undone."""
    with process("--scheduler", "fair", "--port", 0) as service:
        fallback = make_scheduler("fifo")
        remote = RemoteScheduler(service.target, fallback=fallback, patience_s=0.0)
        killing = Interrupting(remote, 20, lambda: (os.kill(service.pid, signal.SIGKILL), service.wait(60)))
        there = decima.simulate(JOBS, killing, 10, 1, log=True)
    assert there.num_unfinished == 0
    assert remote.fallbacks == 20 - killing.left - 19 > 10
    fair = decima.simulate(JOBS, "fair", 10, 1, log=True).log.decision_lists()
    assert there.log.decision_lists()[:19] == fair[:19]


def test_service_away_without_fallback():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        remote = RemoteScheduler(f"127.0.0.1:{probe.getsockname()[1]}", patience_s=0.1)
        with pytest.raises(ServiceAwayError, match=r"the service at 127\.0\.0\.1:\d+ does not answer"):
            decima.simulate(JOBS, remote, 3)


@contextlib.contextmanager
def false_service(answer):
    """Opens sessions; `answer(request)` gives the bytes that it answers to Decide."""

    def decide(data, _context):
        return answer(protocol.DecideRequest.FromString(data))

    reply = protocol.OpenReply(session="s", version=1, scheduler="false").SerializeToString()
    methods = {"Open": lambda *_: reply, "Decide": decide, "Close": lambda *_: b""}
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def decision(**fields):
    return lambda request: protocol.Decision(**({"sequence": request.sequence} | fields)).SerializeToString()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: b"\xff\xff nonsense", "answered Decide with no Decision"),
        (decision(sequence=77, idle=True), "answered call 1 as call 77"),
        (decision(job="0", stage=99, limit=1), "stage 99 of job 0, which cannot be chosen"),
        (decision(job="0", stage=-1, limit=1), "stage -1 of job 0, which cannot be chosen"),
        (decision(job="12", limit=1), "chose job '12', which does not exist"),
        (decision(job="first", limit=1), "chose job 'first', which does not exist"),
        (decision(), "chose job '', which does not exist"),
    ],
)
def test_wrong_answers(answer, message):
    with false_service(answer) as target:
        with pytest.raises(ServiceError, match=message):
            decima.simulate(JOBS, RemoteScheduler(target), 3)
        remote = RemoteScheduler(target, fallback=make_scheduler("fair"))
        there = decima.simulate(JOBS, remote, 3, 1)
        assert 0 < remote.fallbacks <= there.num_decisions
        assert there.completion_ms.tolist() == decima.simulate(JOBS, "fair", 3, 1).completion_ms.tolist()


@settings(max_examples=60)
@given(st.binary(max_size=300), st.sampled_from([b"", PREFACE, PREFACE + b"\0\0\0\4\0\0\0\0\0"]))
def test_random_bytes_on_a_connection(service, data, start):
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", service.port), 20) as connection:
        connection.sendall(start + data)
    assert code_of(raw, service.target, "Decide", b"") is grpc.StatusCode.NOT_FOUND


def test_thousand_connections(service):
    """Half of them silent, half of them with a client that opens a session and is never heard of again."""
    before = len(service.sessions)
    with contextlib.ExitStack() as stack:
        for number in range(500):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 60))
            if number % 2:
                connection.sendall(PREFACE[: number % len(PREFACE)])
        waiting = []
        for number in range(500):
            channel = stack.enter_context(grpc.insecure_channel(service.target, [("number", number)]))
            call = channel.unary_unary(f"/{NAME}/Open")
            waiting.append(call.future(open_request().SerializeToString(), timeout=600, wait_for_ready=True))
        for call in waiting:
            assert protocol.OpenReply.FromString(call.result()).session
        assert len(service.sessions) == before + 500
        require_works(service.target)
    for key in list(service.sessions._open):
        leave(service.sessions, key)
    require_works(service.target)


def test_slow_readers_do_not_pile_up_commands():
    """Drivers that never read their stream, and one whose target goes up and down."""
    with running(sessions_of("fifo")) as service, grpc.insecure_channel(service.target) as channel:
        opening = open_request(shared_cluster="c")
        keys = [ask(channel, "Open", opening, protocol.OpenReply).session for _ in range(20)]
        streams = [watching(channel, key) for key in keys]
        for stream in streams:
            next(stream)
        for sequence in range(1, 200):
            request = full_request() if sequence % 2 else protocol.DecideRequest()
            request.session, request.sequence, request.full = keys[0], sequence, True
            request.executors = 3 if request.jobs else 2
            request.offer.executors = request.executors
            reply = ask(channel, "Decide", request, protocol.Decision)
            assert reply.command.number <= 2 * sequence + 2
        read = [next(streams[0]).number]
        while read[-1] < reply.command.number:
            read.append(next(streams[0]).number)
        assert read == sorted(set(read))


def test_concurrent_sessions_are_isolated(service):
    """Several simulations at once on one service: each has the schedule it has alone."""
    expected = [decima.simulate(JOBS, "fair", 10, seed) for seed in range(4)]
    results = [None] * 4

    def simulate(seed):
        remote = RemoteScheduler(service.target, "fair")
        results[seed] = decima.simulate(JOBS, remote, 10, seed)
        remote.close()

    threads = [threading.Thread(target=simulate, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for mine, theirs in zip(results, expected, strict=True):
        np.testing.assert_array_equal(mine.completion_ms, theirs.completion_ms)


def test_a_service_that_fails_is_not_asked_again():
    calls = []

    def abort(request):
        calls.append(request.full)
        raise LookupError

    with false_service(abort) as target, ServiceClient(target) as client, pytest.raises(ServiceError, match="refuses"):
        ClientSession(client, open_request()).decide(full_request)
    assert calls == [True]


# ---- clients that are killed, silent or slow: they harm themselves, and what they held is given back -----------------

ENDLESS = """
import decima, sys
from decima.connect.service.simulator_client import RemoteScheduler
from decima.workload import synthetic_batch
remote = RemoteScheduler(sys.argv[1])
print("begins", flush=True)
while True:
    decima.simulate(synthetic_batch(8, seed=1), remote, 10)
"""


def test_killed_clients_are_forgotten_with_all_they_held():
    with running(sessions_of("fair", limits=Limits(lease_s=1.0))) as service:
        clients = [
            subprocess.Popen([sys.executable, "-c", ENDLESS, service.target], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        try:
            until(lambda: service.sessions.num_jobs > 2)
        finally:
            for client in clients:
                client.kill()
                client.wait(60)
                client.stdout.close()
        assert service.decisions > 0
        until(lambda: len(service.sessions) == 0)
        assert not any(service.sessions.budget.taken.values())
        require_works(service.target)


def test_slow_and_silent_connections_are_closed():
    """Nothing at all, half a preface, a preface byte by byte; others work meanwhile."""
    with running(sessions_of("fair"), handshake_s=1.0) as service:
        with contextlib.ExitStack() as stack:
            connections = [
                stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 60)) for _ in range(30)
            ]
            for number, connection in enumerate(connections):
                connection.sendall(PREFACE[: number % 3 * 8])
                connection.settimeout(30.0)
            begin = time.monotonic()
            slow = connections[0]
            with contextlib.suppress(ConnectionError):
                for byte in PREFACE[:-1]:
                    slow.sendall(bytes([byte]))
                    time.sleep(0.1)
            require_works(service.target)
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    while connection.recv(4096):
                        pass
            assert time.monotonic() - begin < 25.0
        require_works(service.target)


def test_readers_who_send_a_byte_now_and_then_lose_their_connection(monkeypatch):
    """The time is that of the whole request, and the one who came first makes room."""
    monkeypatch.setattr(web, "READER_S", 1.0)
    monkeypatch.setattr(web, "MOST_READERS", 8)
    with running(sessions_of("fair"), metrics_port=0) as service, contextlib.ExitStack() as stack:
        before = threading.active_count()
        address = ("127.0.0.1", service.metrics_port)
        readers = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(24)]
        until(lambda: threading.active_count() <= before + 9)
        last = readers[-1]
        lost_at = None
        begin = time.monotonic()
        while lost_at is None and time.monotonic() < begin + 60.0:
            try:
                last.sendall(b"G")
                time.sleep(0.1)
            except OSError:
                lost_at = time.monotonic()
        assert lost_at is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}/healthz", timeout=600) as page:
            assert page.read() == b"alive\n"
        until(lambda: threading.active_count() <= before + 1)


def test_messages_of_strangers_are_not_read(tmp_path):
    """Calls with a wrong token and 3.9 MB each: the memory of the service does not grow by them."""
    token = tmp_path / "token"
    token.write_text("the-right-one-of-all\n")
    data = bytes(3_900_000)
    with process("--scheduler", "fair", "--port", 0, "--token-file", token) as service:

        def resident_mb():
            pages = int(Path(f"/proc/{service.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

        before, most = resident_mb(), 0.0
        for _ in range(2):
            with grpc.insecure_channel(service.target) as channel:
                call = channel.unary_unary("/decima.service.Scheduler/Decide")
                calls = [call.future(data, metadata=[("authorization", "Bearer of-nothing")]) for _ in range(24)]
                codes = {each.exception(60).code() for each in calls}
                most = max(most, resident_mb())
            assert codes == {grpc.StatusCode.UNAUTHENTICATED}
        assert most < before + 60.0
