"""Commands `decima schedulers` and `decima models`: what may be set, and what was learned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

import decima
from decima.commands.shared import options as shared
from decima.commands.shared.options import option
from decima.commands.shared.verbs import DEFAULT_SYSTEM, SYSTEMS, Verb

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Show only this scheduler.", show_default=False)]
EXAMPLES = {
    "spark": "weighted_fair:alpha=-1,sticky=0, weighted_fair:paper; A|B: of a batch, of jobs that arrive over time",
    "heterogeneous": "heft:decision=event",
    "cloud": "ilp_beta:beta=0.5",
}


def schedulers(system: str, name: Name = None) -> None:
    """List schedulers with their sources, options, parameters (defaults and ranges) and presets."""
    kept = _table(system)
    group = "decima.schedulers" if system == DEFAULT_SYSTEM else f"decima.{system}.schedulers"
    names = sorted({*kept, *entry_points(group=group).names}) if name is None else [name]
    for each in names:
        typer.echo(kept.get(each) or described(system, each))
    if name is None:
        typer.echo(f"{len(names)} schedulers; set options after the name, e.g. {EXAMPLES[system]}")


def _table(system: str) -> dict[str, str]:
    """Kept text of each scheduler: to import them all costs a second."""
    text = (Path(decima.__file__).parent / "systems" / system / "schedulers.txt").read_text(encoding="utf-8")
    return {each.split()[0]: each.rstrip() for each in re.split(r"\n(?=\S)", text)}


def described(system: str, name: str) -> str:
    """Lines of a scheduler, from the registry."""
    entry = shared.registry_of(system).SCHEDULERS.find(name)
    lines = [f"{name:<20} {entry.doc.replace('``', '')}"]
    lines += [f"    source: {entry.source}"] * bool(entry.source)
    return "\n".join([*lines, *(f"    {line}" for line in _lines(entry))])


def _lines(entry: Any) -> Iterator[str]:
    """A line per option, parameter, setting that may be changed, and preset."""
    for each in entry.options:
        default = f" (default {each.default})" if each.default else ""
        yield f"{each.name:<12} {each.doc}{default}"
    yield from _parameter_lines(entry)
    if open_settings := getattr(entry, "open", ()):
        yield ", ".join(f"{key}={getattr(entry.rules, key)}".lower() for key in open_settings)
    for preset in getattr(entry, "presets", {}).values():
        values = (f"{key} {f'{x:g}' if isinstance(x, float | int) else x}" for key, x in preset.values.items())
        yield f":{preset.name:<11} {preset.doc} ({', '.join(values)})"


def _parameter_lines(entry: Any) -> Iterator[str]:
    from decima.core.system import form_for

    parameters = getattr(entry, "parameters", ())
    forms = [{each.name: each.default for each in parameters}]
    if not parameters and not entry.options:
        scheduler = entry.make({})
        parameters = getattr(scheduler, "parameters", ())
        forms = [getattr(form_for(scheduler, streaming), "values", {}) for streaming in (False, True)]
    # Of a batch and of jobs that arrive over time, where they differ.
    defaults = ["|".join(dict.fromkeys(f"{form[item.name]:g}" for form in forms)) for item in parameters]
    width = max(6, *map(len, defaults), 0)
    for parameter, default in zip(parameters, defaults, strict=True):
        span = f"{parameter.low:g} to {parameter.high:g}"
        tunable = " (tunable)" if parameter.tunable else ""
        yield f"{parameter.name:<12} {default:>{width}}  {span:<14} {parameter.doc}{tunable}"


_FORMS = {name: {"": lambda name=name: shared.grouped(schedulers, system=name, compiles=False)} for name in SYSTEMS}
VERB = Verb("schedulers", _FORMS)
_SHOWN = ("name", "system", "paper", "from", "algorithm", "iterations", "kept_iteration", "cpu_s", "seed")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.0f}" if isinstance(value, float) else str(value)


def models(
    system: Annotated[str | None, option("|".join(SYSTEMS), "Only policies of this system.")] = None,
) -> None:
    """List stored policies: what they were learned from, how, and which iteration was kept.

    The algorithm is that of the kept iteration.
    """
    from decima.learning.cards import list_models

    rows = list_models(system)
    lines = [[name.removesuffix("_iteration") for name in _SHOWN]]
    lines += [[_cell(row[name]) for name in _SHOWN] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    typer.echo(f"{len(rows)} policies; as schedulers: decima:NAME, lachesis:policy=NAME, learned:policy=NAME")
