"""`decima spark profile` and `model`: measured TPC-H queries, workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from decima.commands.shared.outputs import check_folder, output_path, write_json
from decima.core.errors import ConfigError
from decima.core.progress import progress_bar
from decima.plotting.words import count

if TYPE_CHECKING:
    from measure.records import AloneRun

PROFILE = "profile.parquet"
CONDITIONS = "conditions.json"
LISTS = ("--scale", "--executors", "--fresh-at")
MOST_DURATIONS = 1000  # per stage, level and wave in the profile
DURATIONS_OF_MODEL = 60


class _Lists(TyperCommand):
    """Takes `--executors 1 2 3 4` as well as `--executors 1,2,3,4`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        joined: list[str] = []
        for arg in args:
            # A list goes on until the next option; no argument without a dash can follow.
            if len(joined) > 1 and joined[-2] in LISTS and not arg.startswith("-"):
                joined[-1] += f" {arg}"
            else:
                joined.append(arg)
        return super().parse_args(ctx, joined)


def register(group: typer.Typer) -> None:
    """Add the commands to the group `decima spark`."""
    group.command(cls=_Lists)(profile)
    group.command()(model)


def profile(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of event logs, runs.csv, profile.parquet; continued if present.")
    ],
    scale: Annotated[str, typer.Option(metavar="SF...", help="TPC-H scale factors.")] = "1",
    executors: Annotated[str, typer.Option(metavar="N...", help="Numbers of one-core executors.")] = "1 2 3 4",
    repetitions: Annotated[int, typer.Option(metavar="N", help="Repetitions of every measurement.")] = 3,
    fresh_at: Annotated[
        str | None,
        typer.Option(
            metavar="N...",
            help="Executor counts at which repetition 0 also runs each query on new executors.",
            show_default="the smallest and the largest",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tables.", show_default="the platform's cache")
    ] = None,
    memory_mb: Annotated[int, typer.Option(metavar="MIB", min=512, help="Memory of an executor.")] = 2048,
) -> None:
    """Measure the 22 TPC-H queries on a standalone Spark of this machine.

    After an interruption, the same call continues. Queries that ran while the machine was too busy are left out of the
    profile and measured again.
    """
    from decima.connect.cluster import machine
    from decima.connect.cluster.processes import ended_by_signals
    from decima.workload import write_profiles
    from measure import workloads
    from measure.alone import Measurement, plan

    applications = plan(
        _numbers("--scale", scale, float),
        _numbers("--executors", executors, int),
        repetitions,
        None if fresh_at is None else _numbers("--fresh-at", fresh_at, int),
    )
    check_folder(out)
    measurement = Measurement(out, applications, data, memory_mb)
    with ended_by_signals(), progress_bar("queries", measurement.total(), "run") as bar:

        def finished(run: AloneRun) -> None:
            bar.set_postfix_str(f"{run.log} {run.query}", refresh=False)
            bar.update()
            if run.contended:
                bar.total += 1

        if measurement.total():
            measurement.check()
            write_json(out / CONDITIONS, machine.describe())
            measurement.measure(finished)
    profiles, _, facts = workloads.measured_from(out, MOST_DURATIONS)
    with output_path(out / PROFILE) as temporary:
        write_profiles(profiles, temporary, facts | machine.describe())
    typer.echo(f"wrote {count(len(profiles), 'profile')} to {out / PROFILE}")


def _numbers(option: str, text: str, number: type[int] | type[float]) -> list:
    try:
        return [number(part) for part in text.replace(",", " ").split()]
    except ValueError:
        expected = "whole numbers" if number is int else "numbers"
        raise ConfigError(f"{option} {text}: expected {expected}") from None


def model(
    measured: Annotated[Path, typer.Argument(metavar="FOLDER", help="Output folder of `decima spark profile`.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the three files.")],
    note: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=TEXT", help="Note about the measurement, such as machine=...", show_default=False),
    ] = None,
    most_durations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Durations to keep per stage, level and wave, as quantiles.")
    ] = DURATIONS_OF_MODEL,
) -> None:
    """Make the measured workload from logs, fit the scaling model to it, and extrapolate."""
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
