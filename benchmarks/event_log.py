"""Reading a big event log: time and peak memory, to `results/event_log.csv`.

    python -m benchmarks.event_log [--gigabytes 1.0]

The log is made of a small real one (`tests/unit/spark/logs`): its queries again and again under new ids and times,
every stage with as many tasks as a big log has per stage. The reader runs in a process of its own; its CPU time tells
how long it takes on a quiet machine.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from decima.connect.eventlog.files import Damage, find_logs, read_lines
from decima.core.files import atomic_path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "tests" / "unit" / "spark" / "logs" / "queries.zstd"
RESULT = HERE / "results" / "event_log.csv"
TASKS_PER_TASK = 20
COLUMNS = ("log", "megabytes", "lines", "tasks", "queries", "seconds", "cpu_s", "peak_mb", "load_1m")


def make_log(path: Path, size: int, tasks_per_task: int = TASKS_PER_TASK) -> None:
    """Write a log of at least `size` bytes."""
    events = [json.loads(line) for line in read_lines(find_logs([SOURCE])[0], Damage())]
    kinds = ("SparkListenerJob", "SparkListenerStage", "SparkListenerTask", "org.apache.spark.sql")
    head = [event for event in events if not event["Event"].startswith(kinds)]
    body = [event for event in events if event["Event"].startswith(kinds)]
    span = max(_times(body)) - min(_times(body)) + 1000
    task_id = 0
    with open(path, "w", encoding="utf-8") as file:
        for event in head[:-1]:
            file.write(_line(event))
        copy = 0
        while file.tell() < size:
            for event in body:
                moved = _shifted(event, copy, span, tasks_per_task)
                if not event["Event"].startswith("SparkListenerTask"):
                    file.write(_line(moved))
                    continue
                index = moved["Task Info"]["Index"]
                for number in range(tasks_per_task):
                    place = index * tasks_per_task + number
                    moved["Task Info"] |= {"Task ID": task_id, "Index": place, "Partition ID": place}
                    task_id += 1
                    file.write(_line(moved))
            copy += 1
        file.write(_line(head[-1]))


def _times(events):
    return [event["Submission Time"] for event in events if event["Event"] == "SparkListenerJobStart"] + [
        event["Completion Time"] for event in events if event["Event"] == "SparkListenerJobEnd"
    ]


def _line(event: dict) -> str:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n"


def _shifted(value, copy: int, span: int, tasks: int, key: str = ""):
    """The event of another round: ids and times moved, stages with more tasks."""
    if isinstance(value, dict):
        return {name: _shifted(item, copy, span, tasks, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_shifted(item, copy, span, tasks, key) for item in value]
    if key == "decima.query":
        return f"{value}.{copy}"
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return value
    if key in ("Job ID", "Stage ID", "Stage IDs", "RDD ID", "Parent IDs", "executionId"):
        return value + 1000 * copy
    if key in ("Number of Tasks", "Number of Partitions"):
        return value * tasks
    if key.endswith("Time") and value > 10**12:
        return value + copy * span
    return value


def read_once(path: str) -> dict:
    """Read in this process; time in seconds and peak memory in megabytes, everything imported included."""
    from decima.connect.eventlog.application import read_event_log
    from decima.connect.eventlog.profiles import collect_profiles

    begin = time.perf_counter()
    application = read_event_log(path)
    collected = collect_profiles([application])
    seconds = time.perf_counter() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = application.report
    assert collected.profiles
    return {
        "lines": int(report[report["item"] == "line"]["count"].sum()),
        "tasks": len(application.tasks),
        "queries": len(application.queries),
        "seconds": round(seconds, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--read", metavar="LOG", help="only read that log, and print the row as JSON")
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read_once(options.read)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain"
        make_log(plain, int(options.gigabytes * 1e9))
        packed = Path(folder) / "zstd"
        _compress(plain, packed)
        for path in (plain, packed):
            command = [sys.executable, "-m", "benchmarks.event_log", "--read", str(path)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            megabytes = plain.stat().st_size / 1e6
            row |= {"log": path.name, "megabytes": round(megabytes)}
            row |= {"load_1m": round(os.getloadavg()[0], 1)}
            rows.append(row)
            print(row)
    with atomic_path(RESULT) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _compress(source: Path, target: Path) -> None:
    import pyarrow

    with (
        open(source, "rb") as file,
        pyarrow.OSFile(str(target), "wb") as raw,
        pyarrow.CompressedOutputStream(raw, "zstd") as stream,
    ):
        while chunk := file.read(2**20):
            stream.write(chunk)


if __name__ == "__main__":
    main()
