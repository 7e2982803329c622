"""Command `decima schedulers`: who can decide, and with which parameters."""

from __future__ import annotations

from typing import Annotated

import typer


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command()(schedulers)


def schedulers(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one.", show_default=False)] = None,
) -> None:
    """List schedulers, their parameters, defaults and ranges."""
    from decima.schedulers import describe_scheduler, list_schedulers, make_scheduler, scheduler_options

    names = list_schedulers() if name is None else [name]
    for each in names:
        typer.echo(f"{each:<20} {describe_scheduler(each).replace('``', '')}")
        options = scheduler_options(each)
        for option in options:
            typer.echo(f"    {option.name:<12} {option.doc}")
        if options:
            continue
        made = make_scheduler(each)
        for parameter in getattr(made, "parameters", ()):
            default = f"{made.values[parameter.name]:g}"
            span = f"{parameter.low:g} to {parameter.high:g}"
            tunable = " (tunable)" if parameter.tunable else ""
            typer.echo(f"    {parameter.name:<12} {default:>6}  {span:<14} {parameter.doc}{tunable}")
    if name is None:
        typer.echo(f"{len(names)} schedulers; parameters are written behind the name: weighted_fair:alpha=-1,sticky=0")
