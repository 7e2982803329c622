"""Command `decima serve`: the scheduling service."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.options import option
from decima.core.errors import ConfigError
from decima.core.grammar import hint

LEVELS = ("debug", "info", "warning", "error")
FORMS = ("text", "json")
#: Beginning of the variables that give options. (Kubernetes sets DECIMA_SERVICE_HOST and so on for a service `decima`.)
PREFIX = "DECIMA_SERVE"


def _configure(context: typer.Context, file: Path | None) -> Path | None:
    """Take options from a file, for those that neither command line nor environment give.

    Raises:
        ConfigError: The file cannot be read, or it or the environment has an unknown option.
    """
    known = {option.name: option for option in context.command.params if option.name not in ("config", "help")}
    variables = [name.removeprefix(f"{PREFIX}_").lower() for name in os.environ if name.startswith(f"{PREFIX}_")]
    for name in variables:
        if name not in known and name != "config":
            raise ConfigError(f"{PREFIX}_{name.upper()} is set, but there is no option {name!r}{hint(name, known)}")
    if file is None:
        return None
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"cannot read the configuration {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    values = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in known:
            raise ConfigError(f"{file}: there is no option {key!r}{hint(name, known)}")
        if name in values:
            raise ConfigError(f"{file}: option {key!r} is given twice")
        several = known[name].multiple
        parts = value if several and isinstance(value, list) else [value]
        if several != isinstance(value, list) or any(isinstance(part, (list, dict)) for part in parts):
            expected = "a list" if several else "one value"
            raise ConfigError(f"{file}: option {key!r} is {value!r:.60}; expected {expected}")
        # As text, so that it is checked as on the command line.
        values[name] = [str(part) for part in parts] if several else str(value)
    context.default_map = values
    return file


def serve(
    config: Annotated[
        Path | None,
        option(
            "FILE",
            "TOML file with options; environment (DECIMA_SERVE_PORT) and command line take precedence.",
            callback=_configure,
            is_eager=True,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check all options, make the schedulers, and exit.")] = False,
    scheduler: options.SchedulerText = "fair",
    also: Annotated[
        list[str] | None, option("SCHEDULER", "A further scheduler that clients may ask for; may be repeated.")
    ] = None,
    unequal: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    host: Annotated[str, option("ADDRESS", "Interface to listen at.")] = "127.0.0.1",
    port: Annotated[int, option("N", "Port; 0: any free one.", min=0, max=65535)] = 50051,
    metrics_port: Annotated[
        int | None, option("N", "Port of the metrics for Prometheus; 0: any.", min=0, max=65535, show_default="none")
    ] = None,
    processes: Annotated[int, typer.Option(hidden=True)] = 1,
    profiles: Annotated[
        str | None, option("JOBS", "File or source with measured durations, for jobs that name their profile.")
    ] = None,
    token_file: Annotated[
        Path | None, option("FILE", "Token that clients must show; else DECIMA_SERVICE_TOKEN, if set.")
    ] = None,
    tls_cert: Annotated[Path | None, option("FILE", "Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Key of the certificate (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None, option("FILE", "Clients must show a certificate that this one signed (PEM).")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show sessions and decisions at /live of the metrics port, behind the token.")
    ] = False,
    log_level: Annotated[str, option("|".join(LEVELS), "Lowest level to log on stderr.")] = "warning",
    log_format: Annotated[str, option("|".join(FORMS), "Format of the log's lines.")] = "text",
    max_sessions: Annotated[int, option("N", "Limit of sessions.", min=1, max=100_000)] = 2048,
    max_executors: Annotated[
        int, option("N", "Maximum number of executors of all sessions together.", min=1)
    ] = 1_000_000,
    max_stages: Annotated[int, option("N", "Maximum number of stages of all sessions together.", min=1)] = 500_000,
    max_memory_mb: Annotated[
        float, option("MB", "Maximum memory for the clusters and jobs of all sessions together.")
    ] = 2048.0,
    lease_s: Annotated[float, option("S", "Forget a session that is unused for this long.")] = 600.0,
    first_lease_s: Annotated[
        float, option("S", "The same before the first decision, while the service is half full.")
    ] = 15.0,
) -> None:
    """Serve a scheduler to clients: Spark through the plugin, or simulated clusters."""
    # A client without TLS is told so; what gRPC's C++ logs about it would be a dozen lines here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from decima.connect.service.limits import Limits
    from decima.connect.service.logs import set_up
    from decima.connect.service.security import Security, is_loopback, read_token
    from decima.connect.service.server import Address, Plan, run_service

    if processes != 1:
        raise ConfigError("--processes is gone: start replicas of the service, as in deploy/kubernetes/decima.yaml")
    if unequal:
        raise ConfigError("--unequal is gone: version 0.2.0 was the last with a service for heterogeneous executors")
    for name, value, known in (("--log-level", log_level, LEVELS), ("--log-format", log_format, FORMS)):
        if value not in known:
            raise ConfigError(f"{name} is {value!r}; expected one of: {', '.join(known)}")
    if live and metrics_port is None:
        raise ConfigError("--live is a page of the metrics port; expected --metrics-port too")
    security = Security(read_token(token_file), tls_cert, tls_key, tls_client_ca)
    security.check(host)
    security.certificates()
    names = [scheduler, *(also or ())]
    options.require_different(names)
    limits = Limits(
        sessions=max_sessions,
        total_executors=max_executors,
        total_stages=max_stages,
        total_bytes=max_memory_mb * 1024**2,
        lease_s=lease_s,
        first_lease_s=first_lease_s,
    )
    if not is_loopback(host) and tls_cert is None:
        typer.echo("warning: token and jobs travel unencrypted; --tls-cert and --tls-key prevent that", err=True)

    def ready(at: int, metrics_at: int | None) -> None:
        metrics = "" if metrics_at is None else f", metrics at http://{host}:{metrics_at}/metrics"
        typer.echo(f"serving {', '.join(names)} at {host}:{at}{metrics}")

    set_up(log_level, log_format)
    address = Address(host, port, metrics_port, security, live=live)
    service = Plan(tuple(names), profiles, limits, address, token_file).service()
    if check:
        typer.echo(f"the options are right: {', '.join(names)} at {host}:{port}")
        return
    run_service(service, lambda: ready(service.port, service.metrics_port))
    typer.echo(f"stopped after {service.decisions} decisions")
