"""Command `decima schedulers`: schedulers of a system and their parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from decima.commands.shared import options as shared
from decima.commands.shared.verbs import Verb
from decima.core.errors import UnknownSchedulerError
from decima.core.grammar import hint

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one.", show_default=False)]


def schedulers(
    system: str,
    name: Name = None,
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


def schedulers_unequal(system: str, name: Name = None) -> None:
    """List schedulers of unequal executors with their sources and settings."""
    from decima.systems.unequal import list_schedulers
    from decima.systems.unequal.registry import find

    names = list_schedulers() if name is None else [name]
    for each in names:
        entry = find(each)
        typer.echo(f"{each:<20} {entry.doc}")
        settings = [f"{key}={getattr(entry.rules, key)}" for key in entry.open]
        settings += [f"{number.name}={number.default:g}" for number in entry.numbers]
        settings += [f"{text.name}={text.default or 'NAME'}" for text in entry.texts]
        typer.echo(f"{'':<20} {entry.source}; {', '.join(settings).lower()}")
    if name is None:
        typer.echo(f"{len(names)} schedulers; settings are written behind the name: heft:decision=event")


def schedulers_cloud(system: str, name: Name = None) -> None:
    """List schedulers that place executors on VMs, with their sources and options."""
    from decima.systems.cloud.schedulers.registry import placement_entries

    entries = {entry.name: entry for entry in placement_entries()}
    if name is not None and name not in entries:
        raise UnknownSchedulerError(f"unknown scheduler {name!r}{hint(name, entries)}; known: {', '.join(entries)}")
    for entry in entries.values() if name is None else [entries[name]]:
        typer.echo(f"{entry.name:<20} {entry.doc} ({entry.source})")
        for option in entry.options:
            typer.echo(f"    {option.name:<20} {option.doc}")
    if name is None:
        typer.echo(f"{len(entries)} schedulers; options are written behind the name: ilp_beta:beta=0.5")


VERB = Verb(
    "schedulers",
    {
        name: {"": lambda name=name, command=command: shared.grouped(command, system=name)}
        for name, command in (("spark", schedulers), ("unequal", schedulers_unequal), ("cloud", schedulers_cloud))
    },
)
