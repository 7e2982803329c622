"""Schedulers that a service offers, and its open sessions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.coordinator import Driver, SharedCluster
from decima.connect.service.durations import ProfileBook
from decima.connect.service.errors import RefusalError, exhausted, invalid, unknown_session
from decima.connect.service.limits import Account, Budget, Limits
from decima.connect.service.mirror import Mirror
from decima.connect.service.session import Session, chance, check_client, cluster_settings
from decima.core.errors import ConfigError
from decima.systems.spark.schedulers.interface import GAP, CompiledScheduler, Scheduler
from decima.systems.spark.settings import Settings

# Decisions of a compiled scheduler keep no state outside the mirror, so all sessions share one.
Maker = Callable[[], Scheduler]


class Offering:
    """Schedulers of a service, by the name that a client asks for.

    Args:
        makers: Functions that make them, by name; the first is for clients that ask for none.

    Raises:
        ConfigError: There is none.
        DecimaError: A scheduler cannot be made.
    """

    def __init__(self, makers: Mapping[str, Maker]) -> None:
        if not makers:
            raise ConfigError("a service needs at least one scheduler")
        self.default = next(iter(makers))
        self._makers = dict(makers)
        self._shared: dict[str, CompiledScheduler] = {}
        for name, make in makers.items():
            scheduler = make()
            if isinstance(scheduler, CompiledScheduler):
                self._shared[name] = scheduler
            _warm_up(scheduler)

    @property
    def names(self) -> list[str]:
        """Names of the schedulers, the default first."""
        return list(self._makers)

    def scheduler(self, name: str) -> tuple[str, Scheduler]:
        """Name and scheduler for a session; those of the default if the name is empty.

        Raises:
            RefusalError: There is none of that name here.
        """
        name = name or self.default
        if name not in self._makers:
            raise invalid(f"scheduler {name!r:.60} is not offered here; offered: {', '.join(self._makers)}")
        return name, self._shared.get(name) or self._makers[name]()


def _warm_up(scheduler: Scheduler) -> None:
    """Decide once, so that compilation on first use happens before clients wait."""
    request = protocol.DecideRequest(sequence=1, full=True, executors=1, offer=protocol.Offer(executors=1))
    request.jobs.add(job="first", stages=[protocol.Stage(stage=0, num_tasks=1)])
    request.states.add(job="first", runnable=[0], schedulable=[0])
    limits = Limits()
    rng, account = np.random.default_rng(0), Budget(limits).account()
    hint_ms = 1000.0 if GAP in getattr(scheduler, "reads", ()) else 0.0
    mirror = Mirror(scheduler, Settings(executors=1), rng, hint_ms, account, delays=True, running=True)
    Session("warm-up", mirror, ProfileBook(), limits).decide(request)


@dataclass(slots=True)
class Entry:
    """Open session with its scheduler's name, permitted idle time and last use."""

    session: Session | Driver
    scheduler: str
    lease_s: float
    decided: bool = False  # a stage was named in it
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """Open sessions by id."""

    def __init__(self, offering: Offering, book: ProfileBook | None = None, limits: Limits | None = None) -> None:
        self.offering = offering
        self.book = book or ProfileBook()
        self.limits = limits or Limits()
        self.budget = Budget(self.limits)
        self._open: dict[str, Entry] = {}
        self._clusters: dict[str, tuple[str, SharedCluster]] = {}  # scheduler and cluster by name

    def __len__(self) -> int:
        return len(self._open)

    @property
    def num_jobs(self) -> int:
        """Number of jobs in all sessions."""
        # A copy: metrics are asked for in another thread.
        return sum(entry.session.num_jobs for entry in list(self._open.values()))

    def open(self, request: protocol.OpenRequest) -> protocol.OpenReply:
        """Begin a session.

        Raises:
            RefusalError: The request is wrong, or there are too many sessions.
        """
        check_client(request, self.limits)
        described = cluster_settings(request)
        if len(self._open) >= self.limits.sessions:
            raise exhausted(f"{len(self._open)} sessions are open, the maximum of the service (sessions)")
        key = secrets.token_urlsafe(12)
        reply = protocol.OpenReply(session=key, version=request.version)
        account = self.budget.account()
        try:
            lease_s = min(self.limits.first_lease_s, self.limits.lease_s)
            if request.shared_cluster:
                reply.scheduler, session = self._join(key, request, described, account)
                reply.command.CopyFrom(session.command())
                lease_s = self.limits.driver_lease_s
            else:
                reply.scheduler, mirror = self._mirror(request, described, account)
                session = Session(request.client, mirror, self.book, self.limits)
        except ConfigError as error:
            account.close()
            raise invalid(str(error)) from error
        except RefusalError:
            account.close()
            raise
        self._open[key] = Entry(session, reply.scheduler, lease_s)
        reply.lease_ms = int(1000 * lease_s)
        return reply

    def _mirror(self, request: protocol.OpenRequest, settings: Settings, account: Account) -> tuple[str, Mirror]:
        """Make a mirror for a client; returns the name of its scheduler too."""
        name, scheduler = self.offering.scheduler(request.scheduler)
        known = {"delays": request.delays, "running": request.running, "unlike": request.unlike}
        return name, Mirror(scheduler, settings, chance(request), request.interarrival_ms, account, **known)

    def _join(
        self, key: str, request: protocol.OpenRequest, settings: Settings, account: Account
    ) -> tuple[str, Driver]:
        """Make a driver of a shared cluster, which exists as long as it has drivers."""
        name = request.shared_cluster
        if name in self._clusters:
            scheduler, cluster = self._clusters[name]
            for setting in ("executors", "mode", "moving_delay_ms"):
                present, asked = getattr(cluster.settings, setting), getattr(settings, setting)
                if present != asked:
                    raise invalid(f"shared cluster {name!r:.60} has {setting} {present}, got {asked}")
            if request.scheduler not in ("", scheduler):
                raise invalid(f"shared cluster {name!r:.60} has scheduler {scheduler}, got {request.scheduler!r:.60}")
        else:
            scheduler, mirror = self._mirror(request, settings, account)
            cluster = SharedCluster(mirror, settings, self.book, self.limits)
            self._clusters[name] = scheduler, cluster
        return scheduler, Driver(key, request.client, cluster, lambda: self._clusters.pop(name))

    def find(self, key: str) -> Entry:
        """Find a session and note that it is used.

        Raises:
            RefusalError: There is none of that id.
        """
        entry = self._open.get(key)
        if entry is None:
            raise unknown_session()
        entry.used = time.monotonic()
        return entry

    def peek(self, key: str) -> Entry | None:
        """Entry of a session, which does not count as used; None if there is none."""
        return self._open.get(key)

    def overview(self, most: int) -> list[tuple[str, int, float, list[dict]]]:
        """Sessions that were used last: id, executors, seconds since then, jobs."""
        entries = sorted(self._open.copy().items(), key=lambda item: -item[1].used)[:most]
        now = time.monotonic()
        return [
            (key, entry.session.num_executors, now - entry.used, entry.session.overview(most)) for key, entry in entries
        ]

    def decided(self, entry: Entry) -> None:
        """Record that a stage was named: the client does more than open sessions."""
        entry.decided = True
        if isinstance(entry.session, Session):
            entry.lease_s = self.limits.lease_s

    def remove(self, key: str) -> Session | Driver | None:
        """Remove a session, which the caller has to leave; None for an unknown id."""
        entry = self._open.pop(key, None)
        return None if entry is None else entry.session

    def expired(self) -> list[str]:
        """Ids of the sessions that were not used for their lease.

        The short lease of those in which nothing was decided yet counts while the service is half full: a notebook
        may open its session long before its first query, and a flood of sessions that ask nothing must not last.
        """
        now = time.monotonic()
        half_full = self.budget.half_full or 2 * len(self._open) >= self.limits.sessions
        for entry in self._open.values():
            if not entry.decided and isinstance(entry.session, Session):
                entry.lease_s = (
                    min(self.limits.first_lease_s, self.limits.lease_s) if half_full else self.limits.lease_s
                )
        return [
            key for key, entry in self._open.items() if now - entry.used > entry.lease_s and not entry.session.watched
        ]
