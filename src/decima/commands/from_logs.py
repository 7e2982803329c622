"""`decima workload from-spark`: job profiles out of Spark event logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decima.commands.shared.options import option
from decima.commands.shared.outputs import check_output, output_path, write_table
from decima.core.errors import EventLogError
from decima.core.progress import progress_bar
from decima.plotting.words import count

if TYPE_CHECKING:
    from decima.connect.eventlog.application import EventLogs

TABLES = ("sizes", "runs", "report")


def read_logs(logs: Sequence[Path]) -> EventLogs:
    """Read the applications of logs with a progress bar."""
    from decima.connect.eventlog.application import read_event_logs

    with progress_bar("event logs", 1, share=True) as bar:
        return read_event_logs(logs, bar.update)


def from_spark(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG", help="Event logs: files, archives, or folders of these.")
    ],
    out: Annotated[Path, option("FILE", "Where to write the profiles: a .parquet.")],
    named_only: Annotated[
        bool, typer.Option("--named-only", help="Only queries named by a decima property or a job description.")
    ] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also use logs of which less than half is usable.")] = False,
) -> None:
    """Make job profiles from Spark event logs.

    The command writes three tables next to FILE: FILE.sizes.csv (bytes read and written per stage), FILE.runs.csv (runs
    of each query) and FILE.report.csv (what was skipped and why).
    """
    tables = {name: out.with_suffix(f".{name}.csv") for name in TABLES}
    for path in (out, *tables.values()):
        check_output(path, ".parquet" if path is out else ".csv", inputs=tuple(logs))
    from decima.connect.eventlog.profiles import LOG_SETTINGS, collect_profiles
    from decima.connect.eventlog.report import USED
    from decima.workload import write_profiles

    logs_read = read_logs(logs)
    collected = collect_profiles(logs_read, named_only=named_only)
    for line in collected.report.lines():
        typer.echo(line)
    if not collected.profiles:
        raise EventLogError(f"no complete query in {count(len(logs_read), 'event log')}; nothing was written")
    collected.report.check(anyway)
    for name, path in tables.items():
        table = getattr(collected, name)
        write_table(path, table.table if name == "report" else table)
    with output_path(out) as temporary:
        write_profiles(collected.profiles, temporary, {"label": out.stem, "settings": json.dumps(LOG_SETTINGS)})
    tasks = sum(note.count for note in collected.report.notices if (note.item, note.reason) == ("task", USED))
    typer.echo(
        f"{count(len(logs_read), 'event log')}: {count(len(collected.profiles), 'profile')} of "
        f"{count(int((collected.runs['job'] != '').sum()), 'run')}, {count(tasks, 'task')}; wrote {out}"
    )
