"""Commands of a checkout (pipeline, measuring) and `decima spark plugin`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_output
from decima.commands.shared.verbs import VerbGroup
from decima.core.config import checkout_root
from decima.core.errors import ConfigError

PIPELINE = {
    "evaluate": "Compute the tables of an experiment.",
    "plot": "Draw the figures of an experiment.",
    "notebook": "Execute a notebook.",
    "report": "Build one HTML page from the executed notebooks of a run.",
    "results": "Write the figures and tables that the repository shows.",
    "site": "Build the site from documentation and executed notebooks.",
    "reproduce": "Run the whole pipeline, from data to report.",
}
MEASURING = {
    "elastic": "Compare executors that come, go and are killed with the simulator.",
    "experiment": "Compare schedulers on batches of queries on a real Spark.",
    "model": "Make workloads from measured runs.",
    "profile": "Measure TPC-H queries on a real Spark.",
    "validate": "Compare recorded runs with the simulator.",
}


def register(app: typer.Typer) -> None:
    """Add the commands to the application; the group `spark` has those on Spark."""
    _add(app, "experiments", PIPELINE)
    spark = typer.Typer(cls=VerbGroup, help="Measure real Spark on this machine and schedule its jobs.")
    _add(spark, "measure", MEASURING)
    spark.command()(plugin)
    app.add_typer(spark, name="spark")


def _add(group: typer.Typer, package: str, commands: dict[str, str]) -> None:
    def start(context: typer.Context) -> None:
        if (root := checkout_root()) is None or not (root / package).is_dir():
            raise ConfigError(
                f"decima {context.info_name} needs a checkout of the project, which holds the folder {package}; "
                "the current folder is in none"
            )
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        words = [sys.executable, "-m", package, context.info_name, *context.args]
        sys.stdout.flush()
        os.execve(sys.executable, words, os.environ | {"PYTHONPATH": os.pathsep.join(paths)})  # signals reach it

    for name, doc in commands.items():
        group.command(
            name,
            help=f"{doc} In a checkout; `python -m {package} {name} --help` lists the options.",
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
            add_help_option=False,  # the tool answers --help
        )(start)


def plugin(
    out: Annotated[Path | None, option("FILE", "Where to put the jar.", show_default="the user's cache folder")] = None,
    spark: Annotated[
        Path | None,
        option(
            "DIR",
            "The Spark that it is for: its folder, or that of its jars.",
            show_default="SPARK_HOME, else the installed pyspark",
        ),
    ] = None,
) -> None:
    """Compile the Spark plugin for a Spark and print how to use it."""
    check_output(out, ".jar")
    from decima.connect.plugin.build import plugin_jar

    jar = plugin_jar(out, spark).absolute()
    typer.echo("spark.master                 spark-decima://HOST:PORT")
    typer.echo(f"spark.driver.extraClassPath  {jar}")
