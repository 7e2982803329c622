"""Command `decima spark plugin`: builds the jar of the plugin for a real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared.outputs import check_output


def register(group: typer.Typer) -> None:
    """Add the command to `decima spark`."""
    group.command()(plugin)


def plugin(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to put the jar.", show_default="the user's cache folder"),
    ] = None,
) -> None:
    """Compile the Spark plugin against the installed pyspark and say how to use it."""
    check_output(out, ".jar")
    from decima.connect.plugin.build import plugin_jar

    jar = plugin_jar(out).absolute()
    typer.echo("spark.master                 spark-decima://HOST:PORT")
    typer.echo(f"spark.driver.extraClassPath  {jar}")
