"""`decima workload`: look at, draw, convert workloads, and make them of Spark event logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands import options
from decima.commands.from_spark import from_spark
from decima.commands.outputs import check_output, output_path, write_table
from decima.commands.source import JobSource, count
from decima.exceptions import ConfigError

if TYPE_CHECKING:
    from decima.workload.jobs import Workload

WorkloadFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A .json of jobs or a .parquet of profiles.", show_default=False)
]
WorkloadOut = Annotated[
    Path, typer.Option(metavar="FILE", help="Where to write: .json (jobs with arrivals) or .parquet (profiles).")
]

app = typer.Typer(help="Look at, draw and convert workloads.")
app.command("from-spark")(from_spark)


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="workload")


@app.command()
def describe(
    file: WorkloadFile = None,
    kind: options.Kind = None,
    n: options.NumJobs = None,
    interarrival_s: options.InterarrivalS = None,
    initial: options.Initial = None,
    sizes: options.Sizes = None,
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table too: .csv or .parquet.")] = None,
) -> None:
    """Show jobs: stages, tasks, work, critical path, arrival."""
    check_output(out, ".csv", ".parquet", inputs=(file,))
    workload = JobSource(file, kind, n, interarrival_s, initial, sizes).workload(seed)
    table = workload.describe()
    typer.echo(table.to_string(float_format="{:.1f}".format))
    if out is not None:
        write_table(out, table)
    _summarize(workload, out)


@app.command()
def generate(
    out: WorkloadOut,
    kind: options.Kind = None,
    n: options.NumJobs = None,
    interarrival_s: options.InterarrivalS = None,
    initial: options.Initial = None,
    sizes: options.Sizes = None,
    seed: options.Seed = 0,
) -> None:
    """Draw a workload and write it to a file."""
    check_output(out, ".json", ".parquet")
    workload = JobSource(None, kind, n, interarrival_s, initial, sizes).workload(seed)
    _write(workload, out)


@app.command()
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .json of jobs or a .parquet of profiles.")],
    out: WorkloadOut,
) -> None:
    """Read a workload file, check it and write it in the other format."""
    check_output(out, ".json", ".parquet", inputs=(file,))
    _write(JobSource(file).workload(0), out)


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
