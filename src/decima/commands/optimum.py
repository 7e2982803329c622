"""`decima exhaustive` and `decima bound`: how far from the best possible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands import options
from decima.commands.outputs import check_output, write_json
from decima.commands.source import JobSource, count

ResultOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result (.json).")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.command()(exhaustive)


def exhaustive(
    jobs: options.JobsFile = None,
    kind: options.Kind = None,
    n: Annotated[
        int | None,
        typer.Option("--n", metavar="N", max=options.MOST, help="Jobs to draw; time grows as n!.", show_default="10"),
    ] = None,
    sizes: options.Sizes = None,
    seed: options.Seed = 0,
    executors: options.Executors = 50,
    wait: Annotated[
        bool, typer.Option("--wait", help="Executors wait for tasks of earlier jobs whose parents still run.")
    ] = False,
    best_only: Annotated[
        bool, typer.Option("--best-only", help="Rule orders out by a bound: the same best order, no distribution.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=20, help="Largest batch accepted.")] = 10,
    threads: options.Threads = None,
    out: ResultOut = None,
) -> None:
    """Try every order of a batch, simplified as in appendix H."""
    from decima.evaluation.exhaustive import exhaustive_search

    check_output(out, ".json", inputs=(jobs,))
    if jobs is None and n is None:
        n = 10
    workload = JobSource(jobs, kind, n, sizes=sizes).workload(seed)
    result = exhaustive_search(
        workload,
        executors,
        runnable_only=not wait,
        distribution=not best_only,
        limit=limit,
        threads=threads,
        progress="exhaustive",
    )
    if out is not None:
        skipped = ("workload", "distribution", "elapsed_s")
        document = {"label": workload.label, "jobs": [job.name for job in workload.jobs]}
        document |= {name: value for name, value in vars(result).items() if name not in skipped}
        document["distribution"] = None if result.distribution is None else vars(result.distribution)
        write_json(out, document)
    typer.echo(
        f"{workload.label} ({count(len(workload), 'job')}, {count(result.executors, 'executor')}): {result}"
        + ("" if out is None else f"; wrote {out}")
    )
