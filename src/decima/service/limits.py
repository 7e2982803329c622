"""Limits on what one client may ask of the service, so that no message can exhaust it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from decima.exceptions import ConfigError


@dataclass(frozen=True)
class Limits:
    """Largest sizes the service accepts.

    Attributes:
        sessions: Open sessions.
        jobs: Jobs in the system of a session (of a shared cluster: of all its drivers).
        stages: Stages of these jobs.
        job_stages: Stages of one job.
        job_edges: Edges of one job.
        tasks: Tasks of one stage.
        executors: Executors of a cluster.
        text: Characters of a name.
        message_bytes: Size of a message.
        lease_s: A session without a call for this long is forgotten.
        driver_lease_s: A driver of a shared cluster without a call for this long, and without a Watch, is dead.
    """

    sessions: int = 2048
    jobs: int = 2_000
    stages: int = 50_000
    job_stages: int = 2_000
    job_edges: int = 20_000
    tasks: int = 10_000_000
    executors: int = 10_000
    text: int = 500
    message_bytes: int = 4 * 1024 * 1024
    lease_s: float = 600.0
    driver_lease_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigError(f"the service's limit on {field.name} must be above 0, got {value!r}")
