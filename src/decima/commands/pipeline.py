"""Commands of the pipeline, which a checkout has beside the package: they start ``python -m experiments`` there."""

from __future__ import annotations

import os
import sys

import typer

from decima.core.config import checkout_root
from decima.core.errors import ConfigError

COMMANDS = {
    "evaluate": "Compute the tables of an experiment.",
    "plot": "Draw the figures of an experiment.",
    "notebook": "Execute a notebook.",
    "report": "Build one HTML page from the executed notebooks of a run.",
    "results": "Write the figures and tables that the repository shows.",
    "site": "Build the site from documentation and executed notebooks.",
    "reproduce": "Run the whole pipeline, from data to report.",
}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for name, doc in COMMANDS.items():
        app.command(
            name,
            help=f"{doc} In a checkout; `python -m experiments {name} --help` lists the options.",
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        )(_start)


def _start(context: typer.Context) -> None:
    if (root := checkout_root()) is None or not (root / "experiments").is_dir():
        raise ConfigError(
            f"decima {context.info_name} needs a checkout of the project (experiments, params.yaml, models, reports); "
            "the current folder is in none"
        )
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    words = [sys.executable, "-m", "experiments", context.info_name, *context.args]
    sys.stdout.flush()
    os.execve(sys.executable, words, os.environ | {"PYTHONPATH": os.pathsep.join(paths)})  # signals reach it directly
