"""`decima spark model`: from measured runs to the workloads in the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared.outputs import check_folder
from decima.core.errors import ConfigError

MOST_DURATIONS = 60


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("model")(model)


def model(
    measured: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `decima spark profile` wrote.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the three files go.")],
    note: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=TEXT", help="What to say of the measurement, as in machine=...", show_default=False),
    ] = None,
    most_durations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Durations to keep per stage, level and wave, as quantiles.")
    ] = MOST_DURATIONS,
) -> None:
    """Make the measured workload of logs, fit the scaling model to it, and extrapolate."""
    from measure.workloads import write_workloads

    check_folder(out)
    notes = {}
    for one in note or ():
        key, separator, text = one.partition("=")
        if not separator or not key or not text:
            raise ConfigError(f"--note {one}: expected KEY=TEXT")
        notes[key] = text
    fitted = write_workloads(measured, out, notes, most_durations)
    for effect, group in (("executors", fitted.parallelism), ("input size", fitted.size)):
        for name, pooled in group.items():
            typer.echo(
                f"{effect}, {name}: exponent {pooled.mean:.3f} [{pooled.low:.3f}, {pooled.high:.3f}], "
                f"between queries {pooled.spread:.3f}, noise {pooled.noise:.3f}"
            )
    typer.echo(f"overhead of a task: {fitted.overhead_ms:.1f} ms; wrote {out}")
