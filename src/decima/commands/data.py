"""Commands `decima data`: fetch and prepare the data sets, and show what is there."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from decima.core.errors import ChecksumError, ConfigError

DataSet = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set: tpch, alibaba, cloud-vm.")]

# Data sets of other packages, and the modules with ``fetch_line(force)`` and ``status_line()``; imported when they are
# asked for.
_ELSEWHERE = {"alibaba": "decima.workload.alibaba.hour", "cloud-vm": "decima.systems.cloud.traces"}

app = typer.Typer(help="Fetch and prepare data sets, and show what is there.", no_args_is_help=False)


@app.command()
def fetch(data_set: DataSet) -> None:
    """Fetch missing files of a data set from $DECIMA_DATA_MIRROR or the public repository."""
    from decima.core import config
    from decima.workload import fetch_tpch
    from decima.workload.tpch import raw as tpch_raw

    if data_set in _ELSEWHERE:
        typer.echo(import_module(_ELSEWHERE[data_set]).fetch_line(False))
        return
    _check_name(data_set, "tpch", *_ELSEWHERE)
    folder = fetch_tpch(progress=True)
    source = config.mirror_dir() or "the public repository"
    typer.echo(f"TPC-H: {len(tpch_raw.checksums())} files in {folder}, verified (source: {source})")


@app.command()
def prepare(data_set: DataSet) -> None:
    """Prepare the file of profiles of a data set before its first use."""
    from decima.workload import prepare_tpch
    from decima.workload.tpch import profiles as tpch

    _check_name(data_set, "tpch")
    path = prepare_tpch()
    typer.echo(f"TPC-H: profiles of {len(tpch.RELEASED_SIZES)} sizes x {len(tpch.QUERIES)} queries in {path}")


@app.command()
def status() -> None:
    """Show the folders that are searched and which data sets are complete."""
    from decima.core import config
    from decima.workload.tpch import profiles as tpch
    from decima.workload.tpch import raw as tpch_raw

    raw, prepared = config.raw_tpch_dir(), config.workloads_dir() / tpch.PREPARED_NAME
    names = tpch_raw.checksums()
    present = [name for name in names if (raw / name).is_file()]
    damaged = [name for name in present if not _verified(raw / name, name)]
    rows = {
        "data folder": config.data_root(),
        "mirror": config.mirror_dir() or f"none ({config.MIRROR_VARIABLE} is not set)",
        "TPC-H files": f"{len(present)} of {len(names)} in {raw}, {len(damaged)} damaged",
        "TPC-H profiles": prepared if prepared.is_file() else f"not prepared ({prepared})",
        "embedded workload": "part of the package",
    }
    rows |= {name: import_module(module).status_line() for name, module in _ELSEWHERE.items()}
    for name, value in rows.items():
        typer.echo(f"{name + ':':<19} {value}")
    usable = tpch.tpch_available() and not damaged
    typer.echo("TPC-H is ready to use" if usable else "TPC-H is missing or damaged: run 'decima data fetch tpch'")


def _check_name(data_set: str, *known: str) -> None:
    if data_set not in known:
        raise ConfigError(f"unknown data set {data_set!r}; expected {' or '.join(known)}")


def _verified(path, name: str) -> bool:
    from decima.workload.tpch import raw as tpch_raw

    try:
        tpch_raw.check_digest(path.read_bytes(), name, path)
    except ChecksumError:
        return False
    return True
