"""`decima workload from-spark`: job profiles out of Spark event logs."""

from __future__ import annotations

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
    import pandas

    from decima.connect.eventlog.application import Application

TABLES = ("sizes", "runs", "report")


def read_applications(logs: Sequence[Path]) -> tuple[list[Application], int, int]:
    """Read the applications of logs, each once, with a progress bar.

    Returns:
        The applications, the number of logs, and how many of them were another copy of an application.
    """
    from decima.connect.eventlog.application import read_event_log
    from decima.connect.eventlog.files import find_logs

    files = find_logs(logs)
    applications: dict[tuple[str, int], Application] = {}
    twice = 0
    total = max(1, sum(log.size for log in files))
    with progress_bar("event logs", 1, share=True) as bar:
        for log in files:
            application = read_event_log(log.path, lambda size: bar.update(size / total))
            key = application.app_id, application.start_ms
            twice += key in applications
            # Of two copies, the one with more tasks counts.
            if key not in applications or len(application.tasks) > len(applications[key].tasks):
                applications[key] = application
    return list(applications.values()), len(files), twice


def from_spark(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG", help="Event logs: files, eventlog_v2_ folders, or folders of these.")
    ],
    out: Annotated[Path, option("FILE", "Where to write the profiles: a .parquet.")],
    named_only: Annotated[
        bool, typer.Option("--named-only", help="Only queries named by a decima property or a job description.")
    ] = False,
) -> None:
    """Make job profiles from Spark event logs.

    The command writes three tables beside FILE: FILE.sizes.csv (bytes read and written per stage), FILE.runs.csv (runs
    of each query) and FILE.report.csv (what was skipped and why).
    """
    tables = {name: out.with_suffix(f".{name}.csv") for name in TABLES}
    for path in (out, *tables.values()):
        check_output(path, ".parquet" if path is out else ".csv", inputs=tuple(logs))
    from decima.connect.eventlog.profiles import collect_profiles
    from decima.workload import write_profiles

    applications, logs_read, twice = read_applications(logs)
    collected = collect_profiles(applications, named_only=named_only)
    _print(collected.report)
    if twice:
        typer.echo(f"{twice:>12,}  event log: another copy of an application that is counted once")
    if not collected.profiles:
        raise EventLogError(f"no complete query in {count(logs_read, 'event log')}; nothing was written")
    for name, path in tables.items():
        write_table(path, getattr(collected, name))
    with output_path(out) as temporary:
        write_profiles(collected.profiles, temporary, {"label": out.stem})
    tasks = collected.report
    used = int(tasks[(tasks["item"] == "task") & (tasks["reason"] == "used")]["count"].sum())
    typer.echo(
        f"{count(logs_read, 'event log')}: {count(len(collected.profiles), 'profile')} of "
        f"{count(int((collected.runs['job'] != '').sum()), 'run')}, {count(used, 'task')}; wrote {out}"
    )


def _print(report: pandas.DataFrame) -> None:
    """Print what was used, what was not, and remarks, added up over all logs."""
    total = report.groupby(["item", "reason"], sort=False)["count"].agg(["sum", "size"])
    for (item, reason), row in total.iterrows():
        typer.echo(f"{row['sum']:>12,}  {item.removeprefix('note ')}: {reason}")
