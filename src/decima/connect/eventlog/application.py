"""Tables of a Spark event log: tasks, stages, queries, executors, and unusable parts.

    application = read_event_log("logs/app-20260101120000-0000.zstd")
    application.tasks.groupby(["name", "wave"]).duration_ms.mean()

Columns and rules are in `docs/spark.md`. Times are milliseconds since 1970; the duration of a task is its finish minus
its launch time, scheduler delay and deserialisation included, since that is how long its core is taken.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decima.connect.eventlog.events import EventRecords
from decima.connect.eventlog.files import MAX_LINE_BYTES, Damage, LogFiles, find_logs, read_lines
from decima.connect.eventlog.queries import find_runs
from decima.connect.eventlog.tables import USED, executor_table, query_table, stage_table, task_table
from decima.core.errors import ConfigError, EventLogError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Application:
    """Tables and facts of one Spark application, read from its event log."""

    path: Path  # the log
    app_id: str  # Spark's id, or the name of the log when it has none
    name: str  # the application's name
    spark_version: str  # empty when the log does not tell
    adaptive: bool | None  # whether adaptive execution was switched on; None where the log does not tell
    start_ms: int  # start of the application, or its first event
    end_ms: int  # end of the application, or its last event
    ended: bool  # whether the log has the end of the application
    tasks: pandas.DataFrame  # one row per ended task
    stages: pandas.DataFrame  # one row per stage of a merged query
    queries: pandas.DataFrame  # one row per query
    executors: pandas.DataFrame  # one row per executor process
    # Columns `item`, `reason`, `count`, `detail`: the counts of an item (line, task, query) add up to all there are.
    report: pandas.DataFrame

    def only(self, ids: Collection[str]) -> Application:
        """Copy of the application with all queries except ``ids`` marked as skipped.

        Args:
            ids: column `query` of the queries to keep.
        """
        others = ~self.queries["query"].isin(list(ids)) & (self.queries.skipped == "")
        skipped = self.queries.skipped.mask(others, "not asked for")
        return replace(self, queries=self.queries.assign(skipped=skipped))


def read_event_log(path: str | os.PathLike, progress: Callable[[int], object] = lambda size: None) -> Application:
    """Read one log: a file, compressed or not, or an `eventlog_v2_` folder.

    `progress` is called with the bytes that were read.

    Raises:
        DataUnavailableError: there is no such file, or it cannot be read.
        EventLogError: it is no event log, or compressed in a way that is not supported.
        ConfigError: the folder holds several logs.
    """
    logs = find_logs([path])
    if len(logs) > 1:
        raise ConfigError(f"{path} holds {len(logs)} event logs; read them with read_event_logs")
    return _read(logs[0], progress)


def read_event_logs(paths: Iterable[str | os.PathLike]) -> list[Application]:
    """Read the logs of files, `eventlog_v2_` folders and folders of these, in the paths' order.

    Raises:
        DecimaError: as for :func:`read_event_log`.
    """
    return [_read(log) for log in find_logs(paths)]


def _read(log: LogFiles, progress: Callable[[int], object] = lambda size: None) -> Application:
    damage = Damage()
    records = EventRecords()
    for line in read_lines(log, damage, progress):
        records.read(line)
    if not records.lines["read"]:
        counts = ", ".join(f"{count} lines {group}" for group, count in records.lines.items() if group != "all")
        raise EventLogError(f"{log.path} holds no event of a Spark event log ({counts or 'it is empty'})")
    app_id = records.app_id or log.path.name
    runs = find_runs(records, app_id)
    executors = executor_table(records)
    tasks = task_table(records, runs, executors)
    stages = stage_table(runs, tasks)
    queries = query_table(runs, tasks, executors)
    first = min((job.submit_ms for job in records.jobs.values()), default=records.last_ms)
    return Application(
        path=log.path,
        app_id=app_id,
        name=records.app_name,
        spark_version=records.spark_version,
        adaptive=records.adaptive,
        start_ms=records.start_ms if records.start_ms is not None else first,
        end_ms=records.end_ms if records.end_ms is not None else records.last_ms,
        ended=records.end_ms is not None,
        tasks=tasks,
        stages=stages,
        queries=queries,
        executors=executors,
        report=log_report(log, records, damage, tasks, stages, queries, executors),
    )


# What differs between failures for one cause: numbers of tasks and stages, task ids, executors and their addresses.
_ONCE = re.compile(r" \d+(\.\d+)? in stage \d+(\.\d+)?| \(TID \d+\)| \([^()]* executor \w+\)")


def log_report(
    log: LogFiles,
    records: EventRecords,
    damage: Damage,
    tasks: pandas.DataFrame,
    stages: pandas.DataFrame,
    queries: pandas.DataFrame,
    executors: pandas.DataFrame,
) -> pandas.DataFrame:
    """Make the report of a log, with columns `item`, `reason`, `count` and `detail`.

    The counts of `line` add up to the lines of the log, those of `task` to its events of ended tasks, those of `query`
    to the queries. Items that begin with `note` are remarks and add up to nothing.
    """
    import pandas

    rows = [("line", reason, count, "") for reason, count in records.lines.items() if reason != "all"]
    if damage.long_lines:
        rows.append(("line", f"longer than {MAX_LINE_BYTES:,} bytes", damage.long_lines, ""))
    rows += [("task", str(reason), int(count), "") for reason, count in tasks.use.value_counts().items() if count]
    rows += [("task", reason, count, "") for reason, count in records.skipped_tasks.items()]
    for reason, group in queries.groupby("skipped"):
        rows.append(("query", reason or USED, len(group), "" if not reason else ", ".join(group["query"][:10])))
    rows += [("note event", reason, count, "") for reason, count in records.skipped_events.items()]
    rows += [("note file", reason, 1, name) for name, reason in damage.files.items()]
    if damage.cut_line:
        rows.append(("note file", "the last line has no end", 1, ""))
    if log.compacted:
        rows.append(("note file", "compacted by Spark, events of finished jobs are gone", 1, ""))
    failures = defaultdict(list)
    for (stage, attempt), why in records.stage_failures.items():
        failures[f"attempt failed: {_cause(why)}"].append(f"stage {stage} attempt {attempt}")
    rows += [("note stage", why, len(which), ", ".join(which)) for why, which in failures.items()]
    missing = stages[stages.tasks_seen < stages.num_tasks]
    if len(missing):
        count = int((missing.num_tasks - missing.tasks_seen).sum())
        rows.append(("note task", "not in the log although the job succeeded", count, f"{len(missing)} stages"))
    running = records.events["SparkListenerTaskStart"] - records.events["SparkListenerTaskEnd"]
    if running > 0:
        rows.append(("note task", "started but did not end in the log", running, ""))
    removed = executors[executors.removed_ms.notna()]
    rows += [
        ("note executor", f"removed: {reason}", len(group), ", ".join(group.executor))
        for reason, group in removed.groupby(removed.removed_reason.map(_cause))
    ]
    inferred = executors[executors.inferred]
    if len(inferred):
        why = "not announced in the log: cores and times inferred"
        rows.append(("note executor", why, len(inferred), ", ".join(inferred.executor)))
    beside = int((~queries.alone.astype(bool)).sum())
    if beside:
        why = "ran beside others: the most tasks it ran at once stand for its executors"
        rows.append(("note query", why, beside, ""))
    return pandas.DataFrame(rows, columns=["item", "reason", "count", "detail"])


def _cause(reason: str) -> str:
    """First line of Spark's message, the same for all failures of one cause."""
    return _ONCE.sub("", (reason.splitlines() or [""])[0])[:200]
