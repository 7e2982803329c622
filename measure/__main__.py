"""Tools that measure on a real Spark: `python -m measure --help`, in the checkout."""

from __future__ import annotations

import typer

from decima.commands.shared.verbs import DecimaGroup
from measure.commands import elastic, experiment, profile, validate

app = typer.Typer(
    cls=DecimaGroup,
    help="Measure real Spark on this machine, and compare it with the simulator.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (elastic, experiment, profile, validate):
    command.register(app)

if __name__ == "__main__":
    app(prog_name="python -m measure")
