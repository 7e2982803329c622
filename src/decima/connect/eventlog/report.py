"""Report on an event log: what was used, what was not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decima.connect.eventlog.events import EventRecords
from decima.connect.eventlog.files import MAX_LINE_BYTES, Damage, LogFiles
from decima.connect.eventlog.tables import USED

if TYPE_CHECKING:
    import pandas

COLUMNS = ("item", "reason", "count", "detail")


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

    rows: list[tuple[str, str, int, str]] = []
    lines = dict(records.lines)
    lines.pop("all", None)
    rows += [("line", reason, count, "") for reason, count in lines.items()]
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
    rows += [("note stage", f"attempt failed: {why}"[:200], 1, str(key)) for key, why in records.stage_failures.items()]
    missing = stages[stages.tasks_seen < stages.num_tasks]
    if len(missing):
        count = int((missing.num_tasks - missing.tasks_seen).sum())
        rows.append(("note task", "not in the log although the job succeeded", count, f"{len(missing)} stages"))
    running = records.events["SparkListenerTaskStart"] - records.events["SparkListenerTaskEnd"]
    if running > 0:
        rows.append(("note task", "started but did not end in the log", running, ""))
    removed = executors[executors.removed_ms.notna()]
    rows += [
        ("note executor", f"removed: {reason}"[:200], len(group), ", ".join(group.executor))
        for reason, group in removed.groupby("removed_reason")
    ]
    inferred = executors[executors.inferred]
    if len(inferred):
        why = "not announced in the log: cores and times inferred"
        rows.append(("note executor", why, len(inferred), ", ".join(inferred.executor)))
    beside = int((~queries.alone.astype(bool)).sum())
    if beside:
        why = "ran beside others: the most tasks it ran at once stand for its executors"
        rows.append(("note query", why, beside, ""))
    return pandas.DataFrame(rows, columns=list(COLUMNS))
