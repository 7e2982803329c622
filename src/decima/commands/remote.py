"""Options of a scheduler that is a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from decima.exceptions import ConfigError

REMOTE = "remote"


@dataclass(frozen=True)
class Remote:
    """The options that lead to a service; they belong to scheduler ``remote``."""

    service: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Service that scheduler 'remote' asks ('decima serve').")
    ] = None
    service_scheduler: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which of its schedulers.", show_default="the service's default")
    ] = None
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Token for the service; else DECIMA_SERVICE_TOKEN, if set.")
    ] = None
    tls_ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate to trust; none: no TLS.")] = None

    @contextmanager
    def using(self, scheduler) -> Iterator[None]:
        """End the session of a scheduler that has one when the block ends."""
        try:
            yield
        finally:
            if self.service is not None:
                scheduler.close()

    def scheduler(self, name: str):
        """The scheduler, None if another one is named.

        Raises:
            ConfigError: An option was given for another scheduler, or the address is missing.
            ServiceError: Token or certificate cannot be read.
        """
        if name != REMOTE:
            for option in ("service", "service_scheduler", "token_file", "tls_ca"):
                if getattr(self, option) is not None:
                    shown = f"--{option.replace('_', '-')}"
                    raise ConfigError(f"{shown} has no meaning for {name}; it is for scheduler {REMOTE!r}")
            return None
        if self.service is None:
            raise ConfigError(f"scheduler {REMOTE!r} asks a service; name it with --service HOST:PORT")
        from decima.service.security import read_token
        from decima.service.simulator_client import RemoteScheduler

        return RemoteScheduler(
            self.service, self.service_scheduler or "", token=read_token(self.token_file), tls_ca=self.tls_ca
        )
