"""Metrics of the service for Prometheus."""

from __future__ import annotations

import functools
import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from decima import __version__
from decima.connect.service.sessions import Sessions

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
        self.reloads = Counter(
            "decima_reloads", "Reloads of policies, token and certificates.", ["outcome"], registry=registry
        )
        build = Gauge("decima_build_info", "1; labels: versions.", ["version", "python"], registry=registry)
        build.labels(__version__, platform.python_version()).set(1)
        # To find what belongs to labels takes longer than to count.
        self.of = functools.cache(lambda metric, *labels: metric.labels(*labels))
        ProcessCollector(registry=registry)
        Gauge("decima_sessions", "Open sessions.", registry=registry).set_function(lambda: len(sessions))
        Gauge("decima_active_jobs", "Jobs in all sessions.", registry=registry).set_function(lambda: sessions.num_jobs)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
