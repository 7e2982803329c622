"""Metrics of the service for Prometheus."""

from __future__ import annotations

import logging

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from decima.connect.service.sessions import Sessions
from decima.core.errors import ServiceError

#: How long the server waits for a reader of the metrics, in seconds.
READER_S = 5.0
_log = logging.getLogger(__name__)
_BUCKETS = (5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 1.0)


class ServiceMetrics:
    """Metrics of one service; names and meanings are in ``docs/service.md``.

    Args:
        sessions: Sessions, which are counted whenever Prometheus asks.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.registry = registry = CollectorRegistry()
        self.calls = Counter("decima_calls", "Calls by method and status code.", ["method", "code"], registry=registry)
        self.decisions = Counter(
            "decima_decisions", "Decisions by scheduler and outcome.", ["scheduler", "outcome"], registry=registry
        )
        self.call_seconds = Histogram(
            "decima_call_seconds",
            "Time from a request's arrival in Python to its answer.",
            ["method"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "decima_decision_seconds", "Time inside the scheduler.", ["scheduler"], buckets=_BUCKETS, registry=registry
        )
        self.expired = Counter("decima_sessions_expired", "Sessions forgotten after their lease.", registry=registry)
        Gauge("decima_sessions", "Open sessions.", registry=registry).set_function(lambda: len(sessions))
        Gauge("decima_active_jobs", "Jobs in all sessions.", registry=registry).set_function(lambda: sessions.num_jobs)

    def serve(self, host: str, port: int):
        """Answer Prometheus over HTTP; returns the server and its port.

        Raises:
            ServiceError: The address cannot be used.
        """
        try:
            server, _thread = start_http_server(port, host, self.registry)
        except OSError as error:
            raise ServiceError(f"cannot serve metrics at {host}:{port}: {error.strerror or error}") from error
        # Every reader has a thread; one that neither sends nor reads gives it back after this time.
        server.RequestHandlerClass = type("Reader", (server.RequestHandlerClass,), {"timeout": READER_S})
        server.handle_error = lambda _request, address: _log.info("a reader of the metrics at %s was lost", address)
        return server, server.server_port
