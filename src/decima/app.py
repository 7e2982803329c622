"""All verbs and topics of the command `decima`, one module each."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from decima import __version__
from decima.commands import (
    bench,
    capacity,
    checkout,
    compare,
    data,
    doctor,
    optimum,
    schedulers,
    serve,
    train,
    workload,
)
from decima.commands.shared.verbs import SYSTEMS, DecimaGroup

VERBS = (*compare.VERBS, train.VERB, optimum.VERB, schedulers.VERB)


class _Group(DecimaGroup):
    verbs: ClassVar = {verb.name: verb for verb in VERBS}
    apart: ClassVar = {"Commands of a clone, which reproduce and measure": frozenset({*checkout.PIPELINE, "spark"})}


app = typer.Typer(
    name="decima",
    cls=_Group,
    help="Schedule DAG-structured jobs on simulated clusters: workloads, heuristics, comparisons, figures.",
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


for verb in VERBS:
    verb.add_to(app, next(iter(verb.forms)))
app.command()(capacity.capacity)
app.command()(schedulers.models)
app.command()(doctor.doctor)
app.command(context_settings={"auto_envvar_prefix": serve.PREFIX})(serve.serve)
app.add_typer(workload.app, name="workload")
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
checkout.register(app)


def _system_app(system: str) -> typer.Typer:
    """Application with the verbs of one system alone."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    for verb in VERBS:
        for method in verb.forms.get(system, {}):
            verb.add_to(alone, system, method)
    return alone


def __getattr__(name: str) -> typer.Typer:
    """Verbs of another system as an application of their own, for the documentation (PEP 562)."""
    if name not in SYSTEMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _system_app(name)
