"""The recount: written apart from the reader, right on logs counted by hand, and loud where the reader differs."""

import ast
import gzip
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from measure import recount
from tests.unit.connect.event_lines import (
    LOGS,
    T0,
    executor_added,
    executor_removed,
    job_end,
    job_start,
    line,
    small_log,
    stage,
    task_end,
    write,
)

ROOT = Path(__file__).parents[2]


def start(app="app-1", at=0, attempt=None):
    identity = {"App Name": "nightly", "App ID": app, "Timestamp": T0 + at}
    return line("SparkListenerApplicationStart", **identity, **({"App Attempt ID": attempt} if attempt else {}))


def test_only_the_comparison_knows_the_reader():
    tree = ast.parse(Path(recount.__file__).read_text(encoding="utf-8"))
    (comparison,) = (node for node in tree.body if getattr(node, "name", "") == "reader_counts")
    inside = set(ast.walk(comparison))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in inside]
    names = {alias.name for node in imports for alias in node.names} | {getattr(node, "module", "") for node in imports}
    assert not [name for name in names if name and name.split(".")[0] in ("decima", "measure", "tests", "experiments")]
    code = f"import sys, pathlib; from measure import recount; recount.applications(pathlib.Path({str(LOGS)!r}))"
    code += "; assert not [name for name in sys.modules if name.split('.')[0] == 'decima']"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_counts_of_a_log_by_hand(tmp_path):
    lines = [
        start(),
        *small_log(executors=2),  # 2 stages, 3 tasks of 400, 300 and 100 ms
        job_start(1, [stage(20, 2, (), 7), stage(21, 0, (), 8), stage(22, 2, (20, 21), 9)], 1000),
        task_end(20, 20, 1000, 1500, reason="ExceptionFailure"),
        task_end(21, 20, 1500, 2000),
        task_end(21, 20, 1500, 2000, reason="Resubmitted"),
        task_end(22, 20, 1500, 2500, 1, executor="9"),
        task_end(23, 22, 2500, 2600, executor="9"),
        task_end(24, 22, 2500, 2600, 1, executor="9", reason="TaskKilled"),
        executor_removed("1", 2600),
        job_end(1, 2700, "JobFailed"),
        b'{"Event":"SparkListenerTaskEnd"\n',
        executor_added("1", 3000),
        line("SparkListenerApplicationEnd", Timestamp=T0 + 4000),
    ]
    (counts,) = map(recount.count, recount.applications(write(tmp_path / "log", lines)).values())
    assert counts == {
        "jobs": 2, "stages that ran": 4, "tasks succeeded": 6, "tasks failed": 1, "tasks killed": 1,
        "task time (ms)": 800 + 500 + 500 + 1000 + 100 + 100, "executors announced": 3,
        "life of executors (ms)": 2600 + 4000 + 1000, "tasks at once on executors not announced": 2,
        "queries": 2, "queries that succeeded": 1, "edges": {(1, 2)}, "lines not readable": 1,
    }  # fmt: skip
    (shuffled,) = map(recount.count, recount.applications(write(tmp_path / "log", lines[::-1])).values())
    assert shuffled == counts


def sql(event, execution=0, **fields):
    return line(f"org.apache.spark.sql.execution.ui.SparkListenerSQLExecution{event}", executionId=execution, **fields)


CANCELLED = {"Result": "JobFailed", "Exception": {"Message": "Job 0 cancelled because it is superfluous"}}
ABORTED = {"Result": "JobFailed", "Exception": {"Message": "Job aborted due to stage failure: Task 0 failed 4 times"}}
GOOD = {"Result": "JobSucceeded"}


@pytest.mark.parametrize(
    ("ends", "end", "succeeded"),
    [
        ((GOOD, GOOD), {}, True),
        ((GOOD, GOOD), None, False),
        ((GOOD, GOOD), {"errorMessage": "boom"}, False),
        ((CANCELLED, GOOD), {"errorMessage": ""}, True),
        ((CANCELLED, GOOD), {}, True),
        ((GOOD, CANCELLED), {}, False),
        ((ABORTED, GOOD), {}, False),
        ((GOOD, ABORTED), {}, False),
        ((GOOD, None), {"errorMessage": ""}, False),
    ],
)
def test_success_of_a_sql_execution(ends, end, succeeded):
    events = [{"Event": "x.SparkListenerSQLExecutionStart", "executionId": 3}]
    for job, result in enumerate(ends):
        infos = [{"Stage ID": job}]
        properties = {"spark.sql.execution.id": "3"}
        events.append({
            "Event": "SparkListenerJobStart", "Job ID": job, "Submission Time": job, "Stage Infos": infos,
            "Properties": properties,
        })  # fmt: skip
        info = {"Task ID": job, "Launch Time": 0, "Finish Time": 1, "Executor ID": "1"}
        task = {"Stage ID": job, "Task End Reason": {"Reason": "Success"}, "Task Info": info}
        events.append({"Event": "SparkListenerTaskEnd", **task})
        if result:
            events.append({"Event": "SparkListenerJobEnd", "Job ID": job, "Completion Time": 9, "Job Result": result})
    if end is not None:
        events.append({"Event": "x.SparkListenerSQLExecutionEnd", "executionId": 3, **end})
    counts = recount.count(events)
    assert (counts["queries"], counts["queries that succeeded"]) == (1, succeeded)


def test_applications_are_told_apart_whatever_packs_them(tmp_path):
    first, second = [start(at=0, attempt="1"), *small_log()], [start(at=9, attempt="2"), *small_log(query="r#0")]
    other = [start("app-2"), *small_log()]
    write(tmp_path / "one", [b"\xef\xbb\xbf", *first, *other])
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("application_1_2.gz", gzip.compress(b"".join(second)))
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "eventlog-2024-01-01--10-00", [start("app-3"), *small_log()[:3]])
    write(tmp_path / "deep" / "eventlog", small_log()[3:])
    with tarfile.open(tmp_path / "deep" / "two.tar.gz", "w:gz") as archive:
        archive.add(write(tmp_path / "four", [start("app-4"), *small_log()]), "four")
    os.remove(tmp_path / "four")
    counted = {key[:2]: recount.count(events) for key, events in recount.applications(tmp_path).items()}
    assert set(counted) == {("app-1", "1"), ("app-1", "2"), ("app-2", ""), ("app-3", ""), ("app-4", "")}
    assert {counts["tasks succeeded"] for counts in counted.values()} == {3}


def test_reader_and_recount_agree_on_recorded_logs(tmp_path):
    for log in LOGS.iterdir():
        if log.suffix != ".py" and log.is_file():
            (tmp_path / log.name).symlink_to(log)
    lines, differences = recount.compare(tmp_path)
    assert not [text for text in lines if "differs" in text]
    assert (differences, sum(text.startswith(("app-", "local-")) for text in lines)) == (0, 8)


def test_a_difference_is_marked_and_is_the_exit_code(tmp_path, monkeypatch, capsys):
    write(tmp_path / "log", [start(), *small_log()])
    assert recount.main(str(tmp_path)) == 0
    counts = recount.reader_counts(tmp_path)
    (key,) = counts
    counts[key]["tasks succeeded"] -= 1
    monkeypatch.setattr(recount, "reader_counts", lambda folder: counts)
    capsys.readouterr()
    assert recount.main(str(tmp_path)) == 1
    (row,) = (text for text in capsys.readouterr().out.splitlines() if "differs" in text)
    assert row.split() == ["tasks", "succeeded", "3", "2", "differs"]
