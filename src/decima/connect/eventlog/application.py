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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.eventlog.events import EventRecords
from decima.connect.eventlog.files import MAX_LINE_BYTES, Damage, LogFiles, find_logs, read_lines
from decima.connect.eventlog.queries import find_runs
from decima.connect.eventlog.report import (
    USED,
    ApplicationKey,
    Completeness,
    LogReport,
    Notice,
    join_reports,
)
from decima.connect.eventlog.tables import executor_table, query_table, stage_table, task_table
from decima.core.errors import ConfigError, EventLogError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Application:
    """Tables and facts of one Spark application, read from its event log."""

    path: Path  # the log
    key: ApplicationKey  # its identity
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
    report: LogReport  # what was read, what was not and why

    @property
    def left_out(self) -> pandas.DataFrame:
        """When queries that are not used held the cluster, one row each, by submission.

        Columns: `query`, `reason`, `submit_ms`, `end_ms` (its end; where it has none, the end of its last task),
        `tasks` and `task_ms` (how many tasks ended and their total time). The last row, without a query, has the tasks
        whose job is not in the log.
        """
        import pandas

        rows = []
        tasks = self.tasks.groupby("query_number")
        names = self.queries["query"].tolist()
        for number in [*np.flatnonzero(self.queries.skipped != "").tolist(), -1]:
            mine = tasks.get_group(number) if number in tasks.groups else self.tasks.iloc[:0]
            if number < 0 and mine.empty:
                continue
            row = self.queries.iloc[number] if number >= 0 else None
            begin = mine.launch_ms.min() if row is None else row.submit_ms
            last = mine.finish_ms.max() if len(mine) else begin
            end = last if row is None or np.isnan(row.finish_ms) else max(last, row.finish_ms)
            reason = "job of the stage is not in the log" if row is None else row.skipped
            name = "" if row is None else names[number]
            rows.append((name, reason, float(begin), float(end), len(mine), float(mine.duration_ms.sum())))
        return pandas.DataFrame(rows, columns=["query", "reason", "submit_ms", "end_ms", "tasks", "task_ms"])

    @property
    def streams(self) -> pandas.DataFrame:
        """Streaming queries, one row each: `stream` (Spark's id), `name`, `batches` and `interval_ms`.

        The interval is the median time from the submission of one micro-batch to the next; NaN for a single batch.
        """
        batches = self.queries[self.queries.stream != ""].groupby("stream", sort=False)
        interval = batches.submit_ms.apply(lambda times: times.diff().median())
        table = batches.agg(name=("name", "first"), batches=("query", "size"))
        return table.assign(interval_ms=interval).reset_index()

    def only(self, ids: Collection[str]) -> Application:
        """Copy of the application with all queries except ``ids`` marked as skipped.

        Args:
            ids: column `query` of the queries to keep.
        """
        others = ~self.queries["query"].isin(list(ids)) & (self.queries.skipped == "")
        skipped = self.queries.skipped.mask(others, "not asked for")
        return replace(self, queries=self.queries.assign(skipped=skipped))


@dataclass(frozen=True, eq=False)
class EventLogs(Sequence[Application]):
    """Applications of some event logs, and the report on all of them."""

    applications: tuple[Application, ...]
    report: LogReport

    def __len__(self) -> int:
        return len(self.applications)

    def __getitem__(self, index):
        return self.applications[index]

    def __iter__(self) -> Iterator[Application]:
        return iter(self.applications)


def read_event_log(path: str | os.PathLike, progress: Callable[[int], object] = lambda size: None) -> Application:
    """Read the log of one application: a file, compressed or not, or an `eventlog_v2_` folder.

    `progress` is called with the bytes that were read.

    Raises:
        DataUnavailableError: there is no such file, or it cannot be read.
        EventLogError: it is no event log, or compressed in a way that is not supported.
        ConfigError: it holds several applications.
    """
    logs = find_logs([path])
    if len(logs) > 1:
        raise ConfigError(f"{path} holds {len(logs)} event logs; read them with read_event_logs")
    return _read(logs[0], progress)


def read_event_logs(
    paths: Iterable[str | os.PathLike],
    progress: Callable[[int], object] = lambda size: None,
    *,
    all_attempts: bool = False,
) -> EventLogs:
    """Read the logs of files, `eventlog_v2_` folders and folders of these, in the paths' order.

    Of copies of one log, the one with more tasks is used; of the attempts of an application, the last one. The report
    names the others.

    Args:
        paths: Where the logs are.
        progress: It is called with the bytes that were read.
        all_attempts: Whether to use all attempts.

    Raises:
        DecimaError: as for :func:`read_event_log`.
    """
    applications: dict[ApplicationKey, Application] = {}
    notices = []
    for log in find_logs(paths):
        application = _read(log, progress)
        key = application.key
        if key in applications:
            why = "another copy of an application that is counted once"
            notices.append(Notice("event log", why, 1, str(application.path), str(key)))
        if key not in applications or len(application.tasks) > len(applications[key].tasks):
            applications[key] = application
    attempts: dict[str, list[ApplicationKey]] = defaultdict(list)
    for key in applications:
        if key.attempt and not all_attempts:
            attempts[key.app_id].append(key)
    for keys in attempts.values():
        for key in sorted(keys, key=lambda key: key.start_ms)[:-1]:
            why = "earlier attempt of an application, left out: the last one is used"
            notices.append(Notice("application", why, 1, str(applications.pop(key).path), str(key)))
    used = tuple(applications.values())
    return EventLogs(used, join_reports([application.report for application in used], notices))


def _read(log: LogFiles, progress: Callable[[int], object] = lambda size: None) -> Application:
    damage = Damage()
    records = EventRecords()
    for line in read_lines(log, damage, progress):
        records.read(line)
    if not records.lines["read"]:
        counts = ", ".join(f"{count} lines {group}" for group, count in records.lines.items() if group != "all")
        raise EventLogError(f"{log.path} holds no event of a Spark event log ({counts or 'it is empty'})")
    first = min((job.submit_ms for job in records.jobs.values()), default=records.last_ms)
    start_ms = records.start_ms if records.start_ms is not None else first
    key = ApplicationKey(records.app_id or log.path.name, records.attempt, start_ms)
    runs = find_runs(records, str(key))
    executors = executor_table(records)
    tasks = task_table(records, runs, executors)
    stages = stage_table(runs, tasks)
    queries = query_table(runs, tasks, executors)
    return Application(
        path=log.path,
        key=key,
        name=records.app_name,
        spark_version=records.spark_version,
        adaptive=records.adaptive,
        start_ms=start_ms,
        end_ms=records.end_ms if records.end_ms is not None else records.last_ms,
        ended=records.end_ms is not None,
        tasks=tasks,
        stages=stages,
        queries=queries,
        executors=executors,
        report=log_report(log, str(key), records, damage, tasks, stages, queries, executors),
    )


# What differs between failures for one cause: numbers of tasks and stages, task ids, executors and their addresses.
_ONCE = re.compile(r" \d+(\.\d+)? in stage \d+(\.\d+)?| \(TID \d+\)| \([^()]* executor \w+\)")
_EXPECTED = ("stage of a job that was cancelled", "task had succeeded before", "task failed or was killed")


def log_report(
    log: LogFiles,
    name: str,
    records: EventRecords,
    damage: Damage,
    tasks: pandas.DataFrame,
    stages: pandas.DataFrame,
    queries: pandas.DataFrame,
    executors: pandas.DataFrame,
) -> LogReport:
    """Make the report on the log of an application of that name."""
    rows = [("line", reason, count, "") for reason, count in records.lines.items() if reason != "all"]
    if damage.long_lines:
        rows.append(("line", f"longer than {MAX_LINE_BYTES:,} bytes", damage.long_lines, ""))
    rows += [("task", str(reason), int(count), "") for reason, count in tasks.use.value_counts().items() if count]
    rows += [("task", reason, count, "") for reason, count in records.skipped_tasks.items()]
    for reason, group in queries.groupby("skipped"):
        rows.append(("query", reason or USED, len(group), "" if not reason else ", ".join(group["query"][:10])))
    rows += [("note event", reason, count, "") for reason, count in records.skipped_events.items()]
    rows += [("note file", reason, 1, file) for file, reason in damage.files.items()]
    if damage.cut_line:
        rows.append(("note file", "the last line has no end", 1, ""))
    if log.compacted:
        rows.append(("note file", "compacted by Spark, events of finished jobs are gone", 1, ""))
    failures = defaultdict(list)
    for (stage, attempt), why in records.stage_failures.items():
        failures[f"attempt failed: {_cause(why)}"].append(f"stage {stage} attempt {attempt}")
    rows += [("note stage", why, len(which), ", ".join(which)) for why, which in failures.items()]
    missing = stages[stages.tasks_seen < stages.num_tasks]
    lost = int((missing.num_tasks - missing.tasks_seen).sum())
    if lost:
        rows.append(("note task", "not in the log although the job succeeded", lost, f"{len(missing)} stages"))
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
    return LogReport(
        tuple(Notice(*row, name) for row in rows),
        _completeness(records, tasks, stages, queries, max(lost, running, 0)),
    )


def _completeness(records, tasks, stages, queries, lost: int) -> Completeness:
    """Shares of a log that could be used; failed and repeated tasks, and cancelled jobs, lose nothing."""
    again = "output lost, the task is run again"
    expected = tasks[~tasks.use.isin(_EXPECTED)]
    unread = records.skipped_tasks.total() - records.skipped_tasks[again]
    used = int((tasks.use == USED).sum())
    whole = int((stages.tasks_seen >= stages.num_tasks).sum())
    others = expected[expected.use != USED].spark_stage_id.nunique()
    return Completeness({
        "tasks": (used, len(expected) + unread + lost),
        "stages": (whole, len(stages) + others),
        "queries": (int((queries.skipped == "").sum()), len(queries)),
    })  # fmt: skip


def _cause(reason: str) -> str:
    """First line of Spark's message, the same for all failures of one cause."""
    return _ONCE.sub("", (reason.splitlines() or [""])[0])[:200]
