"""Command `decima serve`: the scheduling service."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(serve)


def serve(
    scheduler: options.SchedulerText = "fair",
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="SCHEDULER", help="A further scheduler that clients may ask for; may be repeated."),
    ] = None,
    unequal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEDULER",
            help="A scheduler of unequal executors ('decima schedulers --system unequal'); may be repeated.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Interface to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0: any free one.")] = 50051,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="Port of the metrics for Prometheus; 0: any.", show_default="none"
        ),
    ] = None,
    profiles: Annotated[
        str | None,
        typer.Option(metavar="JOBS", help="File or source with measured durations, for jobs that name their profile."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Token that clients must show; else DECIMA_SERVICE_TOKEN, if set."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate (PEM).")] = None,
    max_sessions: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Most open sessions.")] = 2048,
    max_executors: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most executors of all sessions together.")
    ] = 1_000_000,
    max_stages: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most stages of all sessions together.")
    ] = 500_000,
    max_memory_mb: Annotated[
        float, typer.Option(metavar="MB", help="Most memory for the clusters and jobs of all sessions together.")
    ] = 2048.0,
    lease_s: Annotated[float, typer.Option(metavar="S", help="Forget a session that is unused for this long.")] = 600.0,
    first_lease_s: Annotated[
        float, typer.Option(metavar="S", help="Forget a session without any decision after this long.")
    ] = 15.0,
) -> None:
    """Serve a scheduler to clients: Spark through the plugin, or simulated clusters."""
    # A client without TLS is told so; what gRPC's C++ logs about it would be a dozen lines here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from decima.connect.service.limits import Limits
    from decima.connect.service.security import Security, is_loopback, read_token
    from decima.connect.service.server import Address, Service, run_service
    from decima.connect.service.sessions import Offering, Sessions
    from decima.systems.spark.schedulers import make_scheduler
    from decima.systems.unequal import make_scheduler as make_node_scheduler

    security = Security(read_token(token_file), tls_cert, tls_key)
    security.check(host)
    names = [scheduler, *(also or ())]
    options.require_different(names)
    node_names = list(unequal or ())
    options.require_different(node_names)
    node_schedulers = {name: make_node_scheduler(name) for name in node_names}
    makers = {name: partial(make_scheduler, name) for name in names}
    limits = Limits(
        sessions=max_sessions,
        total_executors=max_executors,
        total_stages=max_stages,
        total_bytes=max_memory_mb * 1024**2,
        lease_s=lease_s,
        first_lease_s=first_lease_s,
    )
    sessions = Sessions(Offering(makers, node_schedulers), _book(profiles), limits)
    service = Service(sessions, Address(host, port, metrics_port, security))
    if not is_loopback(host) and tls_cert is None:
        typer.echo("warning: token and jobs travel unencrypted; --tls-cert and --tls-key prevent that", err=True)

    def ready() -> None:
        metrics = "" if service.metrics_port is None else f", metrics at http://{host}:{service.metrics_port}/metrics"
        typer.echo(f"serving {', '.join(names + node_names)} at {host}:{service.port}{metrics}")

    run_service(service, ready)
    typer.echo(f"stopped after {service.decisions} decisions")


def _book(jobs: str | None):
    """Profiles of the jobs of a text; none without a text."""
    from decima.connect.service.durations import ProfileBook
    from decima.workload.sources import parse_jobs

    return ProfileBook() if jobs is None else ProfileBook(parse_jobs(jobs).workload(0).universe)
