"""Clients that are killed, silent or slow: they harm themselves, and what they held is given back."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import grpc

from decima.connect.service import web
from decima.connect.service.limits import Limits
from tests.services import process, running, sessions_of, until
from tests.unit.connect.service.test_server import require_works

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
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
