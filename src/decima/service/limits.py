"""Limits on what one client may ask of the service, so that no message can exhaust it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from decima.exceptions import ConfigError


@dataclass(frozen=True)
class Limits:
    """Largest sizes the service accepts."""

    sessions: int = 2048  # open sessions
    jobs: int = 2_000  # jobs in the system of a session (of a shared cluster: of all its drivers)
    stages: int = 50_000  # stages of these jobs
    job_stages: int = 2_000  # stages of one job
    job_edges: int = 20_000  # edges of one job
    tasks: int = 10_000_000  # tasks of one stage
    executors: int = 10_000  # executors of a cluster
    text: int = 500  # characters of a name
    message_bytes: int = 4 * 1024 * 1024  # size of a message
    lease_s: float = 600.0  # a session without a call for this long is forgotten
    # A driver of a shared cluster without a call for this long, and without a Watch, is dead.
    driver_lease_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigError(f"the service's limit on {field.name} must be above 0, got {value!r}")
