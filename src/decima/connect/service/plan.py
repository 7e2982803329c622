"""Plan of a service, by which it starts and reloads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from decima.connect.service.durations import ProfileBook
from decima.connect.service.limits import Limits
from decima.connect.service.security import Security, read_token
from decima.connect.service.server import Address, Service
from decima.connect.service.sessions import Offering, Sessions
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import parse_jobs


@dataclass(frozen=True)
class Plan:
    """Service as its operator describes it."""

    schedulers: tuple[str, ...]  # texts; the first is for clients that ask for none
    profiles: str | None = None  # jobs with measured durations, as a text
    limits: Limits = field(default_factory=Limits)
    address: Address = field(default_factory=Address)
    token_file: Path | None = None  # file of the token, None: from the environment

    def offering(self) -> Offering:
        """Make the schedulers.

        Raises:
            DecimaError: One cannot be made.
        """
        return Offering({name: partial(make_scheduler, name) for name in self.schedulers})

    def security(self) -> Security:
        """Token as its file has it now; certificates are read when they are used.

        Raises:
            ServiceError: The token cannot be read.
        """
        return replace(self.address.security, token=read_token(self.token_file))

    def service(self) -> Service:
        """Make the service, which is not started yet.

        Raises:
            DecimaError: A scheduler cannot be made, or the profiles cannot be read.
        """
        jobs = self.profiles
        book = ProfileBook() if jobs is None else ProfileBook(parse_jobs(jobs).workload(0).universe)
        return Service(Sessions(self.offering(), book, self.limits), self.address, self)
