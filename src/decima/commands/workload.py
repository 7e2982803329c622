"""Commands `decima workload`: show, draw, write and check workloads of every system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from decima.commands.from_logs import from_spark
from decima.commands.shared import options
from decima.commands.shared.options import option
from decima.commands.shared.outputs import TABLES, check_output, output_path, write_table, wrote
from decima.commands.shared.verbs import Verb, VerbGroup
from decima.core.errors import ConfigError
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.workload.jobs import Workload

JobsText = Annotated[
    str, typer.Argument(metavar="JOBS", help="A source with options (tpch:n=5,sizes=2g), or a file or folder of jobs.")
]


def sources(system: str) -> None:
    """List the sources that jobs are drawn from, and their options."""
    from decima.workload.sources import JOB_OPTIONS, PRESETS, get_source, list_sources

    for name in list_sources():
        source = get_source(name)
        typer.echo(f"{name:<12} {source.doc}{'' if source.available() else ' (not on this machine)'}")
        for each in source.options:
            typer.echo(f"    {each.name:<14} {each.doc}")
    typer.echo("all of them")
    for each in JOB_OPTIONS:
        typer.echo(f"    {each.name:<14} {each.doc}")
    typer.echo("with a name of their own")
    for name, text in PRESETS.items():
        typer.echo(f"    {name:<14} {text}")
    typer.echo(f"{len(list_sources())} sources; options are written behind the name: tpch:n=5,sizes=2g+10g")


def sources_cloud(system: str) -> None:
    """List the sources of jobs to be placed on VMs, and their options."""
    from decima.systems.cloud.sources import SOURCES

    for source in SOURCES.members():
        typer.echo(f"{source.name:<12} {source.doc}")
        for each in source.options:
            typer.echo(f"    {each.name:<14} {each.doc}")
    typer.echo(f"{len(SOURCES)} sources; options are written behind the name: generated:pattern=burst,n=200")


def vms(
    system: str,
    vms: Annotated[
        str, typer.Argument(metavar="VMS", help="table4, released, families, compute, or a .csv file.")
    ] = "table4",
    out: options.TableOut = None,
) -> None:
    """Show a list of VMs with their prices."""
    from decima.systems.cloud import make_cluster

    check_output(out, *TABLES, inputs=(Path(vms) if vms.endswith(".csv") else None,))
    cluster = make_cluster(vms)
    table = cluster.describe()
    if out is not None:
        write_table(out, table)
    typer.echo(table.to_string(index=False))
    typer.echo(
        f"{cluster.label}: {count(len(cluster), 'VM')}, {cluster.cores} cores, {cluster.memory_gb:g} GB, "
        f"{cluster.price_per_hour:.2f} {cluster.currency} per hour{wrote(out)}"
    )


def write_heterogeneous(
    system: str,
    *,
    cluster: options.SystemOptions,
    seed: options.Seed = 0,
    out: Annotated[Path, option("FILE", "Where to write jobs and cluster (.json).")],
) -> None:
    """Draw or read jobs and heterogeneous executors, check them and write them to a file."""
    from decima.systems.heterogeneous import save_instance

    check_output(out, ".json", inputs=cluster.files())
    instance = cluster.instance(seed)
    with output_path(out) as temporary:
        save_instance(instance, temporary)
    typer.echo(repr(instance) + wrote(out))


def check(
    system: str,
    file: Annotated[Path, typer.Argument(metavar="SCHEDULE", help="A schedule (.json) that 'decima simulate' wrote.")],
    *,
    cluster: options.SystemOptions,
    seed: options.Seed = 0,
) -> None:
    """Check a schedule on heterogeneous executors; at a violation, print it and exit with 2."""
    from decima.systems.heterogeneous import load_schedule, validate

    instance = cluster.instance(seed)
    schedule = load_schedule(file, instance)
    validate(instance, schedule)
    label = repr(instance)
    typer.echo(f"{label}: {file} is valid: {len(schedule)} copies, makespan {schedule.makespan_s:g} s")


def describe(
    system: str,
    jobs: JobsText = "tpch",
    seed: options.Seed = 0,
    out: Annotated[Path | None, option("FILE", "Write the table too: .csv or .parquet.")] = None,
) -> None:
    """Show jobs: stages, tasks, work, critical path, arrival."""
    from decima.core.display import shown_name
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, *TABLES, inputs=(spec.path,))
    workload = spec.workload(seed)
    table = workload.describe()
    typer.echo(table.assign(name=table["name"].map(shown_name)).to_string(float_format="{:.1f}".format))
    if out is not None:
        write_table(out, table)
    _summarize(workload, out)


def write(
    system: str,
    jobs: JobsText,
    out: Annotated[Path, option("FILE", "Where to write: .json (jobs with arrivals) or .parquet (profiles).")],
    seed: options.Seed = 0,
) -> None:
    """Draw or read jobs, check them and write them to a file."""
    from decima.workload import save, write_profiles
    from decima.workload.sources import parse_jobs

    spec = parse_jobs(jobs)
    check_output(out, ".json", ".parquet", inputs=(spec.path,))
    workload = spec.workload(seed)
    if out.suffix == ".parquet" and not workload.initial.all():
        raise ConfigError(f"cannot write {out}: parquet holds profiles without arrival times; expected a .json")
    with output_path(out) as temporary:
        if out.suffix == ".parquet":
            write_profiles([job.profile for job in workload.jobs], temporary, {"label": workload.label})
        else:
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
        f"last arrival {workload.arrival_ms.max() / 1000.0:,.1f} s" + wrote(out)
    )


def _plain(command, system):
    return lambda: options.grouped(command, system=system)


def _heterogeneous(command):
    return options.maker(command, "heterogeneous", "optimum")


_VERBS = (
    Verb("workload sources", {"spark": {"": _plain(sources, "spark")}, "cloud": {"": _plain(sources_cloud, "cloud")}}),
    Verb("workload describe", {"spark": {"": _plain(describe, "spark")}}),
    Verb(
        "workload write",
        {"spark": {"": _plain(write, "spark")}, "heterogeneous": {"": _heterogeneous(write_heterogeneous)}},
    ),
    Verb("workload check", {"heterogeneous": {"": _heterogeneous(check)}}),
    Verb("workload vms", {"cloud": {"": _plain(vms, "cloud")}}),
)


class WorkloadGroup(VerbGroup):
    """Commands of workloads."""

    verbs: ClassVar = {verb.name.split()[-1]: verb for verb in _VERBS}


app = typer.Typer(cls=WorkloadGroup, help="Show, draw, write and check workloads.")
for verb in _VERBS:
    verb.add_to(app, next(iter(verb.forms)))
app.command("from-spark")(from_spark)
