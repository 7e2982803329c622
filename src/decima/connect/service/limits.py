"""Limits on requests to the service, per client and in total, against exhaustion."""

from __future__ import annotations

from dataclasses import dataclass, fields

from decima.connect.service.errors import exhausted
from decima.core.errors import ConfigError

#: What is limited in total: kind -> how a refusal calls it.
TOTALS = {"total_executors": "executors", "total_stages": "stages", "total_bytes": "bytes of memory"}


@dataclass(frozen=True)
class Limits:
    """Largest sizes the service accepts."""

    sessions: int = 2048  # open sessions
    jobs: int = 2_000  # jobs in the system of a session (of a shared cluster: of all its drivers)
    stages: int = 50_000  # stages of these jobs
    edges: int = 500_000  # edges between them
    job_stages: int = 2_000  # stages of one job
    job_edges: int = 20_000  # edges of one job
    tasks: int = 10_000_000  # tasks of one stage
    executors: int = 10_000  # executors of a cluster
    text: int = 500  # characters of a name
    message_bytes: int = 4 * 1024 * 1024  # size of a message
    # Of all sessions together.
    total_executors: int = 1_000_000
    total_stages: int = 500_000
    total_bytes: float = 2 * 1024**3  # memory of their clusters and jobs, counted generously
    pending_bytes: int = 64 * 1024**2  # messages that are being worked on or wait for it
    lease_s: float = 600.0  # a session without a call for this long is forgotten
    first_lease_s: float = 15.0  # the same where no stage was named in it yet, while the service is half full
    # A driver of a shared cluster without a call for this long, and without a Watch, is dead.
    driver_lease_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigError(f"the service's limit on {field.name} must be above 0, got {value!r}")

    def check(self, name: str, count: int, what: str) -> None:
        """Check that a count is within one of the limits.

        Raises:
            RefusalError: It is not; the message begins with ``what``.
        """
        most = getattr(self, name)
        if count > most:
            raise exhausted(f"{what}; the service takes {most} ({name})")


class Budget:
    """What all sessions together take of what the service has.

    Attributes:
        taken: What is taken, by kind (``TOTALS``).
    """

    def __init__(self, limits: Limits) -> None:
        self._most = {item: getattr(limits, item) for item in TOTALS}
        self.taken = dict.fromkeys(TOTALS, 0)

    @property
    def half_full(self) -> bool:
        """Whether half of some limited resource is taken."""
        return any(2 * self.taken[item] >= most for item, most in self._most.items())

    def account(self) -> Account:
        """Open an account for a session, or for a shared cluster."""
        return Account(self)

    def move(self, item: str, more: int) -> None:
        """Take more of a resource, or return some (below 0).

        Raises:
            RefusalError: There is not so much left.
        """
        total = self.taken[item] + more
        most = self._most[item]
        if more > 0 and total > most:
            raise exhausted(
                f"all sessions together would have {total} {TOTALS[item]}; the service takes {most:.0f} ({item})"
            )
        self.taken[item] = total


class Account:
    """What one session, or one shared cluster, takes of a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._held = dict.fromkeys(TOTALS, 0)

    def hold(self, item: str, amount: int) -> None:
        """Hold this amount of a resource from now on.

        Raises:
            RefusalError: There is not so much left; what was held before is kept.
        """
        self._budget.move(item, amount - self._held[item])
        self._held[item] = amount

    def close(self) -> None:
        """Give everything back."""
        for item in TOTALS:
            self.hold(item, 0)
