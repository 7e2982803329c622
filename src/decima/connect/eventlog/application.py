"""Tables of a Spark event log: tasks, stages, queries, executors, and unusable parts.

    application = read_event_log("logs/app-20260101120000-0000.zstd")
    application.tasks.groupby(["name", "wave"]).duration_ms.mean()

Columns and rules are in `docs/event-log-tables.md`. Times are milliseconds since 1970; the duration of a task is its
finish minus its launch time, scheduler delay and deserialisation included, since that is how long its core is taken.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decima.connect.eventlog.events import FIELDS, EventRecords
from decima.connect.eventlog.files import MAX_LINE_BYTES, MAX_VALUES, Damage, LogFiles, find_logs, read_lines
from decima.connect.eventlog.queries import NOTHING, find_runs
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
    dynamic: bool  # whether dynamic allocation was switched on
    start_ms: int  # start of the application, or its first event
    end_ms: int  # end of the application, or its last event
    ended: bool  # whether the log has the end of the application
    tasks: pandas.DataFrame  # one row per ended task
    stages: pandas.DataFrame  # one row per stage of a merged query
    queries: pandas.DataFrame  # one row per query
    executors: pandas.DataFrame  # one row per executor process
    report: LogReport  # what was read, what was not and why
    settings: Mapping[str, str] = field(default_factory=dict)  # Spark's configuration, as far as the log has it

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


def read_event_log(path: str | os.PathLike) -> Application:
    """Read the log of one application: a file, an archive, or a folder.

    Raises:
        DataUnavailableError: there is no such file, or it cannot be read.
        EventLogError: it is not an event log, or compressed in a way that is not supported.
        ConfigError: it holds several applications.
    """
    logs = read_event_logs([path], all_attempts=True)
    if len(logs) > 1:
        raise ConfigError(f"{path} holds {len(logs)} applications; read them with read_event_logs")
    return replace(logs[0], report=logs.report)


def read_event_logs(
    paths: Iterable[str | os.PathLike],
    progress: Callable[[float], object] = lambda share: None,
    *,
    all_attempts: bool = False,
) -> EventLogs:
    """Read the logs of files, archives and folders, in the paths' order.

    Of copies of one log, the one with more tasks is used; of the attempts of an application, the last one. The report
    names the others, and files that could not be read.

    Args:
        paths: Where the logs are.
        progress: It is called with the share of all bytes that was read since the last call.
        all_attempts: Whether to use all attempts.

    Raises:
        DataUnavailableError: a path does not exist, or holds no log.
        EventLogError: no log could be read; the sentence has the reason.
    """
    left_out: dict[str, str] = {}
    logs = find_logs(paths, left_out)
    total = max(1, sum(log.size for log in logs))

    def advance(size: int) -> None:
        progress(size / total)

    reads = [read for log in logs if log.started for read in _read(log, advance)]
    # Parts without the start of an application, by time: each belongs to what ran until then.
    for log in sorted((log for log in logs if not log.started), key=lambda log: log.time_ms or 0):
        before = [read for read in reads if read.goes_on_in(log)]
        reads += _read(log, advance, before[0] if len(before) == 1 else None)
    applications: dict[ApplicationKey, Application] = {}
    notices = []
    for read in reads:
        if not read.records.lines["read"]:
            left_out[str(read.log.path)] = read.nothing()
            continue
        application = read.application()
        key = application.key
        if key in applications:
            why = "another copy of an application that is counted once"
            notices.append(Notice("event log", why, 1, str(application.path), str(key)))
        if key not in applications or len(application.tasks) > len(applications[key].tasks):
            applications[key] = application
    if not applications:
        each = [f"{path} {why}" for path, why in left_out.items()]
        more = f", and {len(each) - 3} more" if len(each) > 3 else ""
        raise EventLogError("; ".join(each[:3]) + more)
    notices += [Notice("note file", f"left out: it {why}", 1, path) for path, why in left_out.items()]
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


#: Lines without an event, of `_WINDOW` in a row, after which the rest of a log is not read.
_WINDOW, _USELESS = 2**20, 0.99
_START = b'{"Event":"SparkListenerApplicationStart"'
_LOG_START = b'{"Event":"SparkListenerLogStart"'
_LOST_TASKS = 1000  # ends that the earlier part of a log may lack
_BEFORE_START = 50  # lines that may come between the start of a log and that of its application


@dataclass
class _Read:
    """Records of one application, as far as they were read."""

    log: LogFiles
    records: EventRecords = field(default_factory=EventRecords)
    damage: Damage = field(default_factory=Damage)
    notes: list[tuple[str, str, int, str]] = field(default_factory=list)
    only: bool = True  # whether the log has no other application

    def goes_on_in(self, log: LogFiles) -> bool:
        """Whether folder, time and ids of tasks of a part follow on these records."""
        records, ids = self.records, self.records.tasks.numbers["task_id"]
        if log.files[0].parent != self.log.files[-1].parent or records.end_ms is not None:
            return False
        if records.start_ms is None or log.time_ms is None:
            return False
        running = max(0, records.events["SparkListenerTaskStart"] - records.events["SparkListenerTaskEnd"])
        follows = not log.tasks or min(log.tasks) <= max(ids, default=-1) + running + _LOST_TASKS
        # A task ends once.
        return records.last_ms <= log.time_ms and follows and not np.isin(log.tasks, np.array(ids, np.int64)).any()

    def nothing(self) -> str:
        """Why nothing was read."""
        counts = ", ".join(
            f"{count} lines {name}" for name, count in self.records.lines.items() if count and name != "all"
        )
        counts = "; ".join(self.damage.files.values()) or counts or "it is empty"
        if self.damage.files and not self.records.lines["all"]:
            return counts if counts.startswith(("is ", "cannot ")) else f"is {counts}"
        return f"holds no event of a Spark event log ({counts})"

    def application(self) -> Application:
        """Make the tables."""
        records = self.records
        records.complete()
        first = min((job.submit_ms for job in records.jobs.values()), default=records.last_ms)
        start_ms = records.start_ms if records.start_ms is not None else first
        key = ApplicationKey(records.app_id or self.log.path.name, records.attempt, start_ms)
        runs = find_runs(records, str(key))
        executors = executor_table(records)
        tasks = task_table(records, runs, executors)
        stages = stage_table(runs, tasks)
        queries = query_table(runs, tasks, executors)
        return Application(
            path=self.log.path,
            key=key,
            name=records.app_name,
            spark_version=records.spark_version,
            adaptive=records.adaptive,
            dynamic=records.settings.get("spark.dynamicAllocation.enabled", "").lower() == "true",
            start_ms=start_ms,
            end_ms=records.end_ms if records.end_ms is not None else records.last_ms,
            ended=records.end_ms is not None,
            tasks=tasks,
            stages=stages,
            queries=queries,
            executors=executors,
            report=log_report(self, str(key), tasks, stages, queries, executors),
            settings=records.settings,
        )


def _read(log: LogFiles, progress: Callable[[int], object], before: _Read | None = None) -> list[_Read]:
    """Read a log, or the part of one that follows on records.

    A second start of an application begins another one.
    """
    read = before or _Read(log)
    if before is not None:
        read.notes.append(("note file", "part without a start, read after the others", 1, str(log.path)))
    new = [] if before else [read]
    held: list[bytes] = []  # lines since the start of another log, until it is known whose they are
    useful = 0
    for number, line in enumerate(read_lines(log, read.damage, progress), 1):
        if held or (read.records.app_id and line.startswith(_LOG_START)):
            held.append(line)
            if not line.startswith(_START) and len(held) < _BEFORE_START:
                continue
        elif read.records.start_ms is not None and line.startswith(_START):
            held.append(line)
        if held and line.startswith(_START):
            ahead = EventRecords()
            ahead.read(line)
            ours = (ahead.app_id, ahead.attempt, ahead.start_ms)
            if ours != (read.records.app_id, read.records.attempt, read.records.start_ms):
                read.only = False
                read = _Read(log, damage=read.damage, only=False)
                new.append(read)
        for each in held or (line,):
            read.records.read(each)
        held = []
        if number % _WINDOW == 0:
            lines = read.records.lines
            now = lines["read"] + lines["not needed"]
            if now - useful < (1.0 - _USELESS) * _WINDOW:
                read.damage.files[log.path.name] = (
                    f"damaged: hardly an event in {_WINDOW:,} lines, the rest is not read"
                )
                break
            useful = now
    for each in held:
        read.records.read(each)
    return new


# What differs between failures for one cause: numbers of tasks and stages, task ids, executors and their addresses.
_ONCE = re.compile(r" \d+(\.\d+)? in stage \d+(\.\d+)?| \(TID \d+\)| \([^()]* executor \w+\)")
_LOSES_NOTHING = ("output lost, the task is run again", "the log has its end before")
_EXPECTED = ("stage of a job that was cancelled", "task had succeeded before", "task failed or was killed")


def log_report(
    read: _Read,
    name: str,
    tasks: pandas.DataFrame,
    stages: pandas.DataFrame,
    queries: pandas.DataFrame,
    executors: pandas.DataFrame,
) -> LogReport:
    """Make the report on the log of an application of that name."""
    log, records, damage = read.log, read.records, read.damage
    rows = [("line", reason, count, "") for reason, count in records.lines.items() if count and reason != "all"]
    if damage.long_lines:
        rows.append(
            ("line", f"longer than {MAX_LINE_BYTES // 2**20} MiB or {MAX_VALUES:,} values", damage.long_lines, "")
        )
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
    if log.lost:
        rows.append(
            ("note file", "file of the log that is not there", len(log.lost), ", ".join(map(str, log.lost[:20])))
        )
    rows += read.notes
    if not read.only:
        rows.append(("note file", "holds several applications", 1, str(log.path)))
    rows += [
        ("note field", f"{each.event} without {each.name} (Spark {each.since} writes it): {each.conclusion}", count, "")
        for each in FIELDS
        if each.noted and (count := records.missing[each.name])
    ]
    early = records.early - records.skipped_events["SparkListenerJobEnd: no start of that job"]
    if early > 0:
        rows.append(("note event", "end of a job before its start: sorted by time", early, ""))
    for stream, group in queries[queries.stream != ""].groupby("stream"):
        rows.append(
            ("note query", "micro-batch of a stream, which waits for its trigger between them", len(group), stream)
        )
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
    if records.end_ms is None:
        rows.append(("note file", "no end of the application: it was running, or the log is cut", 1, ""))
    unread = sum(count for why, count in records.skipped_tasks.items() if why not in _LOSES_NOTHING)
    # Spark numbers the tasks of an application from 0 on.
    ids = records.tasks.numbers["task_id"]
    absent = int(max(ids, default=-1)) + 1 - len(np.unique(ids)) - unread
    if absent > max(lost, running):
        rows.append(("note task", "not in the log although later ones are", absent, ""))
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
        why = "overlapped others: its executors are the maximum of its tasks at once"
        rows.append(("note query", why, beside, ""))
    return LogReport(
        tuple(Notice(*row, name) for row in rows),
        # Of what came after the end of a log that does not have the application's, at least one task is counted.
        _completeness(tasks, stages, queries, unread + max(lost, running, absent, records.end_ms is None)),
    )


def _completeness(tasks, stages, queries, lost: int) -> Completeness:
    """Shares of a log that could be used.

    Failed and repeated tasks, and cancelled jobs, lose nothing.
    """
    expected = tasks[~tasks.use.isin(_EXPECTED)]
    used = int((tasks.use == USED).sum())
    whole = int((stages.tasks_seen >= stages.num_tasks).sum())
    others = expected[expected.use != USED].spark_stage_id.nunique()
    return Completeness({
        "tasks": (used, len(expected) + lost),
        "stages": (whole, len(stages) + others),
        "queries": (int(queries.skipped.isin(["", NOTHING]).sum()), len(queries)),
    })  # fmt: skip


def _cause(reason: str) -> str:
    """First line of Spark's message, the same for all failures of one cause."""
    return _ONCE.sub("", (reason.splitlines() or [""])[0])[:200]
