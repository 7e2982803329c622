"""`decima spark elastic`: executors that come, go and are killed, real and simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from decima.commands.shared.outputs import check_folder, write_table
from decima.core.progress import progress_bar


def register(group: typer.Typer) -> None:
    """Add the command to the group `decima spark`."""
    group.command()(elastic)


def elastic(
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of logs and tables; resumed if present.")],
    executors: Annotated[int, typer.Option(metavar="N", min=1, help="One-core executors, all or the most.")] = 4,
    repetitions: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each case.")] = 3,
) -> None:
    """Run queries on fixed, dynamic and killed executors, and simulate them."""
    from decima.connect.cluster.processes import ended_by_signals
    from decima.connect.cluster.standalone import StandaloneCluster
    from measure.elastic import CASES, compare_runs, measure_run

    check_folder(out)
    logs, loads = out / "events", out / "loads.json"
    logs.mkdir(parents=True, exist_ok=True)
    known = json.loads(loads.read_text()) if loads.exists() else {}
    names = {f"{case}-{executors}-r{number}": case for number in range(repetitions) for case in CASES}
    with ended_by_signals(), progress_bar("Spark runs", len(names), "run", done=len(known)) as bar:
        for name in [name for name in names if name not in known]:
            with StandaloneCluster(executors, memory_mb=512) as cluster:
                known[name] = measure_run(cluster, names[name], name, logs)
            loads.write_text(json.dumps(known, indent=1) + "\n")
            bar.update()
    write_table(out / "runs.csv", compare_runs(logs, known).round(4))
    typer.echo(f"wrote runs.csv in {out}")
