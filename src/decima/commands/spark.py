"""`decima spark`: real Spark on this machine, measured and scheduled; one module `spark_<command>` per command."""

from __future__ import annotations

import typer

from decima.commands import spark_experiment, spark_model, spark_plugin, spark_profile, spark_validate

app = typer.Typer(help="Measure real Spark on this machine and schedule its jobs.")
for command in (spark_experiment, spark_model, spark_plugin, spark_profile, spark_validate):
    command.register(app)


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="spark")
