"""Commands `decima workload`: look at workloads, draw and write them, and make them of Spark event logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, output_path, write_table
from decima.commands.spark.from_logs import from_spark
from decima.commands.trace import alibaba
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.workload.jobs import Workload

JobsText = Annotated[
    str, typer.Argument(metavar="JOBS", help="A source with options (tpch:n=5,sizes=2g), or a file (.json, .parquet).")
]

app = typer.Typer(help="Look at workloads, draw and write them.")
app.command("from-spark")(from_spark)
app.command("alibaba")(alibaba)


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="workload")


@app.command()
def sources() -> None:
    """List the sources that jobs are drawn from, and their options."""
    from decima.workload.sources import JOB_OPTIONS, PRESETS, get_source, list_sources

    for name in list_sources():
        source = get_source(name)
        typer.echo(f"{name:<12} {source.doc}{'' if source.available() else ' (not on this machine)'}")
        for option in source.options:
            typer.echo(f"    {option.name:<14} {option.doc}")
    typer.echo("all of them")
    for option in JOB_OPTIONS:
        typer.echo(f"    {option.name:<14} {option.doc}")
    typer.echo("with a name of their own")
    for name, text in PRESETS.items():
        typer.echo(f"    {name:<14} {text}")
    typer.echo(f"{len(list_sources())} sources; options are written behind the name: tpch:n=5,sizes=2g+10g")


@app.command()
def describe(
    jobs: JobsText = "tpch",
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table too: .csv or .parquet.")] = None,
) -> None:
    """Show jobs: stages, tasks, work, critical path, arrival."""
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".csv", ".parquet", inputs=(spec.path,))
    workload = spec.workload(seed)
    table = workload.describe()
    typer.echo(table.to_string(float_format="{:.1f}".format))
    if out is not None:
        write_table(out, table)
    _summarize(workload, out)


@app.command()
def write(
    jobs: JobsText,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write: .json (jobs with arrivals) or .parquet (profiles).")
    ],
    seed: options.Seed = 0,
) -> None:
    """Draw jobs, or read and check those of a file, and write them to a file."""
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".json", ".parquet", inputs=(spec.path,))
    _write(spec.workload(seed), out)


def _write(workload: Workload, out: Path) -> None:
    from decima.workload import save, write_profiles

    if out.suffix == ".parquet":
        if not workload.initial.all():
            raise ConfigError(f"cannot write {out}: parquet holds profiles without arrival times; expected a .json")
        with output_path(out) as temporary:
            write_profiles([job.profile for job in workload.jobs], temporary, {"label": workload.label})
    else:
        with output_path(out) as temporary:
            save(workload, temporary)
    _summarize(workload, out)


def _summarize(workload: Workload, out: Path | None) -> None:
    jobs = [job.profile for job in workload.jobs]
    stages = sum(len(profile.stages) for profile in jobs)
    tasks = sum(profile.num_tasks for profile in jobs)
    work_s = sum(profile.work_ms for profile in jobs) / 1000.0
    typer.echo(
        f"{workload.label}: {count(len(jobs), 'job')}, {count(stages, 'stage')}, {count(tasks, 'task')}, "
        f"work {work_s:,.1f} s, longest critical path "
        f"{max(profile.critical_path_ms for profile in jobs) / 1000.0:,.1f} s, "
        f"last arrival {workload.arrival_ms.max() / 1000.0:,.1f} s" + ("" if out is None else f"; wrote {out}")
    )
