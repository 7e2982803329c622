"""`decima spark validate`: the simulator against this machine's Spark, measured anew (appendix D)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared import options
from decima.commands.shared.outputs import check_folder, write_table
from decima.core.progress import progress_bar


def register(group: typer.Typer) -> None:
    """Add the command to the group `decima spark`."""
    group.command()(validate)


def validate(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for logs and tables; continued if it exists.")],
    scale: Annotated[float, typer.Option(metavar="SF", help="TPC-H scale factor.")] = 0.25,
    executors: Annotated[int, typer.Option(metavar="N", min=1, help="One-core executors of the cluster.")] = 4,
    repetitions: Annotated[
        int, typer.Option(metavar="N", min=2, help="Repetitions of all runs; each is predicted from the others.")
    ] = 3,
    alone: Annotated[
        bool, typer.Option("--alone/--mix-only", help="Measure the queries alone, also on new executors.")
    ] = True,
    simulations: Annotated[int, typer.Option(metavar="N", min=1, help="Simulations of each run.")] = 20,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tables.", show_default="the platform's cache")
    ] = None,
    memory_mb: Annotated[int, typer.Option(metavar="MIB", min=512, help="Memory of an executor.")] = 2048,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Measure the TPC-H queries alone and as a mix, and simulate both.

    After an interruption, the same call continues. Runs on a machine that is busy with other things are rejected.
    """
    from decima.connect.cluster.machine import check_memory, require_spark
    from decima.connect.cluster.processes import ended_by_signals
    from decima.connect.cluster.standalone import StandaloneCluster
    from decima.connect.cluster.tpch_tables import generate, generator
    from measure.fidelity.tables import fidelity_tables
    from measure.logs import read_alone, read_mixes
    from measure.together import SparkBench
    from measure.validation import ALONE, MIX, Validation

    check_folder(out)
    require_spark()
    check_memory(executors, memory_mb)
    generator()
    validation = Validation(out, scale, executors, repetitions, memory_mb, seed)
    with ended_by_signals():
        if alone:
            queries = validation.alone(data)
            with progress_bar("queries alone", queries.total(), "run") as bar:
                if queries.total():
                    queries.measure(lambda run: bar.update())
        mixes = validation.mixes()
        total = sum(len(block.runs) for block in mixes.missing())
        with progress_bar("mixes", total, "mix") as bar:
            if total:
                folder = generate(scale, data)
                with StandaloneCluster(executors=executors, memory_mb=memory_mb) as cluster:
                    bench = SparkBench(cluster, validation.plan, mixes.folder, folder, {})
                    mixes.measure(bench, lambda record: bar.update(not record.contended))
    tables = fidelity_tables(read_alone(out / ALONE) if alone else [], read_mixes(out / MIX), simulations, threads)
    for name, table in tables.items():
        write_table(out / f"{name}.csv", table)
    summary = tables["fidelity_summary"]
    for row in summary[summary["variant"] == "all effects"].itertuples(index=False):
        typer.echo(
            f"{row.setting:<12} profile {row.profile:<9} {row.runs:>4} runs: mean error {row.mean_percent:.1f} %, "
            f"95th percentile {row.p95_percent:.1f} %, bias {row.bias_percent:+.1f} %"
        )
    typer.echo(f"wrote {', '.join(f'{name}.csv' for name in tables)} to {out}")
