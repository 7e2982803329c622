"""Recount Spark event logs without the reader of this project, and compare the two.

    python -m measure.recount FOLDER

The counts follow Spark's documentation of its events (`SparkListener`, `JsonProtocol`). Only `reader_counts` imports
`decima`. The exit code is 1 when a number differs.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import struct
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import cramjam
import pyarrow

GROUPS = ("decima.query", "spark.sql.execution.root.id", "spark.sql.execution.id", "spark.jobGroup.id")
AT_ONCE = "tasks at once on executors not announced"
SUCCESS, RUN_AGAIN = "Success", "Resubmitted"


def texts(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the plain files inside a file, whatever packs them."""
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from texts(f"{name}/{member}", archive.read(member))
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in filter(tarfile.TarInfo.isfile, archive.getmembers()):
                yield from texts(f"{name}/{member.name}", archive.extractfile(member).read())
    elif opener := next((UNPACK[magic] for magic in UNPACK if content.startswith(magic)), None):
        parts = []
        with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError, cramjam.DecompressionError):
            parts.extend(opener(content))  # a damaged file is read as far as it goes
        yield from texts(name, b"".join(parts))
    else:
        yield name, content.removeprefix(b"\xef\xbb\xbf")


def chunks(stream) -> Iterator[bytes]:
    """Yield what a stream holds, piece by piece."""
    while part := stream.read(2**16):
        yield part


def lz4_blocks(content: bytes) -> Iterator[bytes]:
    """Yield the blocks that lz4-java's `LZ4BlockOutputStream` wrote."""
    at = 0
    while at < len(content):
        method, packed, size = struct.unpack_from("<BII", content, at + 8)
        block = content[at + 21 : at + 21 + packed]
        yield block if method & 0xF0 == 0x10 else bytes(cramjam.lz4.decompress_block(block, output_len=size))
        at += 21 + packed


def snappy_blocks(content: bytes) -> Iterator[bytes]:
    """Yield the blocks that snappy-java's `SnappyOutputStream` wrote."""
    at = 16
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        yield bytes(cramjam.snappy.decompress_raw(content[at + 4 : at + 4 + size]))
        at += 4 + size


UNPACK = {
    b"\x1f\x8b": lambda content: chunks(gzip.GzipFile(fileobj=io.BytesIO(content))),
    b"BZh": lambda content: chunks(bz2.BZ2File(io.BytesIO(content))),
    b"\xfd7zXZ": lambda content: chunks(lzma.LZMAFile(io.BytesIO(content))),  # noqa: SIM115
    b"\x28\xb5\x2f\xfd": lambda content: chunks(pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd")),
    b"LZ4Block": lz4_blocks,
    b"\x82SNAPPY\x00": snappy_blocks,
}


def read_events(content: bytes) -> Iterator[dict | None]:
    """Yield the events of a log, and None for a line that is not one."""
    for line in content.splitlines():
        if line.strip():
            try:
                event = json.loads(line)
                yield event if isinstance(event["Event"], str) else None
            except (ValueError, TypeError, KeyError, RecursionError):
                yield None


def pieces(events: Iterable[dict | None]) -> list[list[dict | None]]:
    """Split the events of a file where another application begins."""
    parts, has_start = [[]], False
    for event in events:
        name = event["Event"] if event else ""
        begins = name == "SparkListenerApplicationStart"
        if parts[-1] and (name == "SparkListenerLogStart" or (begins and has_start)):
            parts.append([])
            has_start = False
        has_start |= begins
        parts[-1].append(event)
    return parts


def applications(folder: Path) -> dict[tuple, list[dict | None]]:
    """Events by application: (id, attempt, start in ms), else (name of the file, "", "")."""
    paths = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    known, homes, orphans = defaultdict(list), defaultdict(set), []
    for path in paths:
        hidden = path.name.startswith((".", "_", "appstatus_")) or path.name.endswith(".crc")
        for name, content in texts(str(path), path.read_bytes()) if path.is_file() and not hidden else ():
            for piece in pieces(read_events(content)):
                whole = [event for event in piece if event]
                starts = [event for event in whole if event["Event"] == "SparkListenerApplicationStart"]
                context = {event["SparkContext Id"] for event in whole if "SparkContext Id" in event}
                sources = {name.rpartition("/")[0], name, *context}
                if starts:
                    fields = ("App ID", "App Attempt ID", "Timestamp")
                    app, *rest = (str(starts[0].get(field, "")) for field in fields)
                    key = (app or Path(name).name, *rest)
                    known[key] += piece
                    for source in sources:
                        homes[source].add(key)
                elif any(event["Event"].startswith(("Spark", "org.apache.spark")) for event in whole):
                    orphans.append((name, context, piece))
    for name, context, piece in orphans:
        # A part without a start belongs to the application of its Spark context, of its file, or of its folder.
        for source in (*context, name, name.rpartition("/")[0]):
            if len(homes[source]) == 1:
                known[next(iter(homes[source]))] += piece
                break
        else:
            known[Path(name).name, "", ""] += piece
    return dict(known)


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """Largest number of spans (begin, end) that overlap; ends come first."""
    running = most = 0
    for _, step in sorted(step for begin, end in spans for step in ((begin, 1), (end, -1))):
        running += step
        most = max(most, running)
    return most


def executor_lives(added: set[tuple], removed: set[tuple], end_ms: int) -> list[tuple[str, int, int]]:
    """Lives (executor, begin, end) in ms of announced executors."""
    lives = []
    for name, begin in sorted(added):
        later = [time for other, time in added if other == name and time > begin]
        ends = [time for other, time in removed if other == name and begin <= time <= min(later, default=time)]
        lives.append((name, begin, min([*ends, *later], default=max(begin, end_ms))))
    return lives


def count(events: Iterable[dict | None]) -> dict[str, object]:
    """Count the events of one application, in any order; a repeated event counts once."""
    jobs, job_ends, stages, tasks, sql, added, removed = {}, {}, {}, {}, defaultdict(dict), set(), set()
    unreadable, times, end_ms = 0, [], None
    for event in events:
        try:
            name = event["Event"].rpartition(".")[2].removeprefix("SparkListener")
            if name == "JobStart":
                infos = {info["Stage ID"]: info for info in event["Stage Infos"]}
                job = (
                    event["Job ID"],
                    event.get("Submission Time", 0),
                    infos.keys(),
                    dict(event.get("Properties") or ()),
                )
                jobs.setdefault(job[0], job)
                stages = infos | stages
                times.append(job[1])
            elif name == "JobEnd":
                times.append(event.get("Completion Time", 0))
                job_ends.setdefault(event["Job ID"], event["Job Result"])
            elif name == "TaskEnd" and event["Task End Reason"]["Reason"] != RUN_AGAIN:
                info, reason = event["Task Info"], event["Task End Reason"]["Reason"]
                killed = reason == "TaskKilled" or info.get("Killed") is True
                failed = reason != SUCCESS or info.get("Failed") is True
                result = "killed" if killed else "failed" if failed else "succeeded"
                span = info["Launch Time"], info["Finish Time"]
                tasks.setdefault(info["Task ID"], (event["Stage ID"], info["Executor ID"], result, span))
                times.append(span[1])
            elif name == "ExecutorAdded":
                added.add((event["Executor ID"], event["Timestamp"]))
                times.append(event["Timestamp"])
            elif name == "ExecutorRemoved":
                removed.add((event["Executor ID"], event["Timestamp"]))
            elif name in ("SQLExecutionStart", "SQLExecutionEnd"):
                sql[str(event["executionId"])][name] = event
            elif name == "ApplicationEnd":
                end_ms = event["Timestamp"]
        except (TypeError, KeyError, AttributeError, ValueError):
            unreadable += 1
    whole = end_ms is not None
    end_ms = end_ms if whole else max(times, default=0)
    ran = {stage for stage, *_ in tasks.values()}
    results = Counter(result for _, _, result, _ in tasks.values())
    spans = defaultdict(list)
    for _, executor, _, span in tasks.values():
        spans[executor].append(span)
    of_query = defaultdict(list)
    for job in sorted(jobs.values(), key=lambda job: job[1::-1]):
        groups = [(group, job[3][group]) for group in GROUPS if job[3].get(group)] or [("job", job[0])]
        # The root of an execution and the execution itself have ids of one counter.
        of_query[groups[0][0].replace(".root", ""), groups[0][1]].append(job)
    good = {}  # stages that ran, of queries that succeeded
    for query, mine in of_query.items():
        stages_of = ran & set().union(*(job[2] for job in mine))
        if stages_of and query_succeeded(query, [job_ends.get(job[0]) for job in mine], sql, whole):
            good[query] = stages_of
    lives = executor_lives(added, removed, end_ms)
    announced = {name for name, _, _ in lives}
    return {
        "jobs": len(jobs), "stages that ran": len(ran), "tasks succeeded": results["succeeded"],
        "tasks failed": results["failed"], "tasks killed": results["killed"],
        "task time (ms)": sum(end - begin for *_, (begin, end) in tasks.values()),
        "executors announced": len(lives),
        "life of executors (ms)": sum(end - begin for _, begin, end in lives),
        AT_ONCE: sum(
            most_at_once(mine) for name, mine in spans.items() if name not in announced
        ),
        "queries": len(of_query), "queries that succeeded": len(good),
        "edges": set().union(*(edges(stages, ran_in) for ran_in in good.values())), "lines not readable": unreadable,
    }  # fmt: skip


def query_succeeded(query: tuple[str, object], ends: list[dict | None], sql: dict, whole: bool) -> bool:
    """Whether a query succeeded.

    Its SQL execution says so from Spark 3.4 on, else the ends of its jobs, which come in the order of submission.
    In a log without the end of the application, an SQL execution that did not end may have jobs to come.
    Adaptive execution cancels jobs that became superfluous; the last job of a query is none of them.
    """
    if None in ends:
        return False
    failed = [end.get("Result") != "JobSucceeded" for end in ends]
    execution = sql.get(str(query[1]), {}) if "execution" in query[0] else {}
    if not whole and "SQLExecutionStart" in execution and "SQLExecutionEnd" not in execution:
        return False
    said = execution.get("SQLExecutionEnd", {}).get("errorMessage")
    if said is not None:
        return not said
    cancelled = ["cancel" in str(end.get("Exception", "")).lower() for end in ends]
    return not any(failed) or (
        bool(execution)
        and not failed[-1]
        and all(cancel for cancel, fail in zip(cancelled, failed, strict=True) if fail)
    )


def edges(stages: dict, ran: set) -> set[tuple[int, int]]:
    """Edges (parent, child) between stages of a query that ran.

    In place of a skipped parent stands the stage that computed its RDD.
    """
    pairs = set()
    for child in ran:
        for parent in stages[child].get("Parent IDs", ()):
            of_rdd = rdd(stages.get(parent, {}))
            computed = {each for each in ran if each < child and of_rdd is not None and rdd(stages[each]) == of_rdd}
            pairs |= {(each, child) for each in {parent} & ran or computed}
    return pairs


def rdd(info: dict) -> int | None:
    """Id of the RDD that a stage computes: the first of its list."""
    return next((each.get("RDD ID") for each in info.get("RDD Info") or ()), None)


def reader_counts(folder: Path) -> dict[tuple, dict[str, object]]:
    """Count the same in what `decima` reads of a folder."""
    from decima.connect.eventlog.application import read_event_logs

    counts = {}
    for application in read_event_logs([folder], all_attempts=True):
        tasks, queries, executors = application.tasks, application.queries, application.executors
        used = queries[queries.skipped == ""]
        status = tasks.status.value_counts()
        announced = executors[~executors.inferred]
        ends = announced.removed_ms.fillna(float(application.end_ms))
        stages = {(row.query, row.stage): row for row in application.stages.itertuples()}
        pairs = {
            (parent, child)
            for (query, _), row in stages.items()
            for above in row.parents
            for parent in stages[query, above].spark_stage_ids
            for child in row.spark_stage_ids
        }
        notes = application.report.notices
        lines = Counter({each.reason: each.count for each in notes if each.item == "line"})
        # Whole events whose counterpart is missing.
        lone = sum(each.count for each in notes if each.reason.endswith(("was never added", "no start of that job")))
        key = application.key
        counts[key.app_id, key.attempt, str(key.start_ms)] = {
            "jobs": sum(map(len, queries.job_ids)), "stages that ran": tasks.spark_stage_id.nunique(),
            "tasks succeeded": int(status.get("success", 0)), "tasks failed": int(status.get("failed", 0)),
            "tasks killed": int(status.get("killed", 0)), "task time (ms)": int(tasks.duration_ms.sum()),
            "executors announced": len(announced),
            "life of executors (ms)": int((ends - announced.added_ms).sum()),
            AT_ONCE: int(executors[executors.inferred].slots.sum()),
            "queries": len(queries), "queries that succeeded": len(used), "edges": pairs,
            "lines not readable": lines["not a JSON event"] + lines["without a needed field"] - lone,
        }  # fmt: skip
    return counts


def compare(folder: Path) -> tuple[list[str], int]:
    """Lines of a table of both counts, and how many numbers differ."""
    recounted = {key: count(events) for key, events in applications(folder).items()}
    # Where a log does not have the start of its application, the reader takes the first event.
    read = {key if key in recounted else (*key[:2], ""): counts for key, counts in reader_counts(folder).items()}
    lines, differences = [], 0
    for key in sorted(recounted.keys() | read.keys()):
        mine, theirs = recounted.get(key, {}), read.get(key, {})
        lines.append(" ".join(filter(None, key)))
        for name in mine or theirs:
            number, other = mine.get(name, "-"), theirs.get(name, "-")
            if name == "edges":  # the reader infers more, where results go through the driver
                shared = mine.get(name, set()) & theirs.get(name, set())
                number, other = len(mine.get(name, ())), len(shared)
            # An executor that is not announced may have had room for more tasks than it ever ran.
            differs = number != other if name != AT_ONCE or "-" in (number, other) else number > other
            differences += differs
            lines.append(f"  {name:<42}{number:>16}{other:>16}{'  differs' * differs}")
    return lines, differences


def main(folder: str) -> int:
    """Print the counts of a folder; returns the exit code."""
    lines, differences = compare(Path(folder))
    print(f"  {'':<42}{'recount':>16}{'reader':>16}", *lines, f"{differences} numbers differ", sep="\n")  # noqa: T201
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
