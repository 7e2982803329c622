"""The command `decima`: what it offers is in `decima.commands`, one module per topic."""

from __future__ import annotations

from typing import Annotated

import typer

from decima import __version__
from decima.commands import (
    cloud,
    compare,
    data,
    doctor,
    optimum,
    pipeline,
    plan,
    schedulers,
    serve,
    simulate,
    spark,
    train,
    workload,
)
from decima.commands.shared.errors import PlainErrors

app = typer.Typer(
    name="decima",
    cls=PlainErrors,
    help="Schedule DAG-structured jobs on simulated clusters: workloads, heuristics, comparisons, figures.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"decima-sched {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for topic in (
    doctor,
    data,
    workload,
    schedulers,
    serve,
    simulate,
    compare,
    train,
    optimum,
    plan,
    cloud,
    pipeline,
    spark,
):
    topic.register(app)


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="decima")
