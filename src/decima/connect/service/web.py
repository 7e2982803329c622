"""HTTP of the service: metrics, probes, and a page with its present state."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST

from decima.connect.service.logs import event
from decima.connect.service.security import Security
from decima.core.errors import ServiceError

#: How long a reader may take for its request and for reading the answer, in seconds.
READER_S = 5.0
#: Readers at a time; one more ends the connection of the one that came first.
MOST_READERS = 32
_log = logging.getLogger(__name__)
_TEXT, _JSON, _HTML = "text/plain; charset=utf-8", "application/json", "text/html; charset=utf-8"


class Views(NamedTuple):
    """What there is to see; functions that other threads may call."""

    metrics: Callable[[], bytes]  # in the text format of Prometheus
    ready: Callable[[], bool]  # whether calls are answered
    live: Callable[[], dict] | None  # sessions and decisions; None: there is no page
    security: Callable[[], Security]  # its token opens the page


def serve_views(host: str, port: int, views: Views) -> ThreadingHTTPServer:
    """Answer readers in threads until the server is shut down.

    Raises:
        ServiceError: The address cannot be used.
    """
    handler = type("Reader", (_Reader,), {"timeout": READER_S, "views": views})
    try:
        server = _Server((host, port), handler)
    except (OSError, OverflowError) as error:
        raise ServiceError(f"cannot serve metrics at {host}:{port}: {getattr(error, 'strerror', error)}") from error
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], handler: type) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._until: dict[socket.socket, float] = {}  # when a reader loses its connection; the first came first
        super().__init__(address, handler)

    def process_request(self, request: socket.socket, client_address: tuple) -> None:
        while len(self._until) >= MOST_READERS:
            self._end(next(iter(self._until)))
        self._until[request] = time.monotonic() + READER_S
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End connections of slow readers; the server's loop calls it several times a second."""
        now = time.monotonic()
        for request, until in list(self._until.items()):
            if now > until:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        self._until.pop(request, None)
        with contextlib.suppress(OSError):  # its thread has closed it
            request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: socket.socket) -> None:
        self._until.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, _request: object, client_address: object) -> None:
        event(_log, logging.INFO, "a reader of the metrics was lost", peer=client_address)


class _Reader(BaseHTTPRequestHandler):
    """Handler of one connection, in a thread for ``READER_S`` at most."""

    views: Views
    server_version, sys_version = "decima", ""

    def do_GET(self) -> None:
        views, path = self.views, self.path.partition("?")[0]
        if path in ("/", "/metrics"):
            self._answer(200, CONTENT_TYPE_LATEST, views.metrics())
        elif path == "/healthz":
            self._answer(200, _TEXT, b"alive\n")
        elif path == "/readyz":
            ready = views.ready()
            self._answer(200 if ready else 503, _TEXT, b"ready\n" if ready else b"not ready\n")
        elif path not in ("/live", "/live.json") or views.live is None:
            self._answer(404, _TEXT, b"not found\n")
        elif not views.security().admits_reader(self.headers.get("Authorization", "")):
            self._answer(401, _TEXT, b"the token is missing or wrong\n", ("WWW-Authenticate", 'Basic realm="decima"'))
        elif path == "/live":
            self._answer(200, _HTML, files(__package__).joinpath("live.html").read_bytes())
        else:
            self._answer(200, _JSON, json.dumps(views.live()).encode())

    def _answer(self, code: int, content: str, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        for name, value in (("Content-Type", content), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        for name, value in (("Cache-Control", "no-store"), ("Content-Security-Policy", policy)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of readers that were answered."""
