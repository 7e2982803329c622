"""Command `decima models`: stored policies and how they were learned."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from decima.commands.shared.verbs import SYSTEMS

_SHOWN = ("name", "system", "paper", "from", "algorithm", "iterations", "kept", "cpu_s", "seed")


def models(
    system: Annotated[str | None, typer.Option(metavar="|".join(SYSTEMS), help="Only policies of this system.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All columns as JSON, an object per policy.")] = False,
) -> None:
    """List stored policies: what they were learned from, how, and which iteration was kept.

    The algorithm is that of the kept iteration.
    """
    from decima.core.files import plain
    from decima.learning.cards import models as table_of

    table = table_of(system)
    if as_json:
        typer.echo(json.dumps(plain(table.astype(object).where(table.notna(), None).to_dict("records")), indent=2))
        return
    table = table.rename(columns={"kept_iteration": "kept"}).assign(cpu_s=table["cpu_s"].round())
    cells = table[list(_SHOWN)].astype(object).where(table[list(_SHOWN)].notna(), "")
    cells = cells.map(lambda value: f"{value:.0f}" if isinstance(value, float) else str(value))
    widths = {name: max(len(name), *cells[name].str.len()) for name in _SHOWN}
    for row in ({name: name for name in _SHOWN}, *cells.to_dict("records")):
        typer.echo("  ".join(row[name].ljust(width) for name, width in widths.items()).rstrip())
    typer.echo(f"{len(table)} policies; as schedulers: decima:NAME, lachesis:policy=NAME, learned:policy=NAME")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("models")(models)
