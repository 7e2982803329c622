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
    """List schedulers, their parameters, defaults and ranges, and their presets."""
    from decima.systems.spark.schedulers import (
        describe_scheduler,
        form_for,
        list_schedulers,
        make_scheduler,
        scheduler_options,
        scheduler_presets,
    )

    names = list_schedulers() if name is None else [name]
    for each in names:
        typer.echo(f"{each:<20} {describe_scheduler(each).replace('``', '')}")
        options = scheduler_options(each)
        for option in options:
            typer.echo(f"    {option.name:<12} {option.doc}")
        if not options:
            made = make_scheduler(each)
            parameters = getattr(made, "parameters", ())
            forms = [form_for(made, streaming).values for streaming in (False, True)]
            # Of a batch and of jobs that arrive over time, where they differ.
            defaults = ["|".join(dict.fromkeys(f"{form[item.name]:g}" for form in forms)) for item in parameters]
            width = max(6, *map(len, defaults), 0)
            for parameter, default in zip(parameters, defaults, strict=True):
                span = f"{parameter.low:g} to {parameter.high:g}"
                tunable = " (tunable)" if parameter.tunable else ""
                typer.echo(f"    {parameter.name:<12} {default:>{width}}  {span:<14} {parameter.doc}{tunable}")
        for preset in scheduler_presets(each):
            values = ", ".join(f"{key} {value:g}" if options == () else value for key, value in preset.values.items())
            typer.echo(f"    :{preset.name:<11} {preset.doc} ({values})")
    if name is None:
        typer.echo(
            f"{len(names)} schedulers; parameters and presets are written behind the name: "
            "weighted_fair:alpha=-1,sticky=0, weighted_fair:paper; A|B: of a batch, of jobs that arrive over time"
        )
