"""`decima spark`: real Spark on this machine, measured and scheduled; one module per command."""

from __future__ import annotations

import typer

from decima.commands.spark import experiment, model, plugin, profile, validate

app = typer.Typer(help="Measure real Spark on this machine and schedule its jobs.")
for command in (experiment, model, plugin, profile, validate):
    command.register(app)


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="spark")
