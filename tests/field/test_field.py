"""Kinds of event logs that were once read wrongly, made here in small, with their right answers.

The same answers hold for the files in the folder that ``DECIMA_FIELD`` names.
"""

import os
from pathlib import Path

import pytest

from decima.connect.eventlog.application import read_event_logs
from decima.connect.eventlog.profiles import collect_profiles
from decima.connect.eventlog.recordings import cluster_slots
from measure import recount
from tests.field.test_recount import sql, start
from tests.unit.connect.event_lines import (
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

END = line("SparkListenerApplicationEnd", Timestamp=T0 + 90_000)
FAILURE = {"Result": "JobFailed", "Exception": {"Message": "Job aborted due to stage failure: Task 0 failed 4 times"}}


def two_queries(version, end_of_second):
    """Two SQL executions, the second of which fails; its first job succeeds."""
    lines = [line("SparkListenerLogStart", **{"Spark Version": version}), start(), executor_added(cores=2)]
    for execution in (0, 1):
        at, properties = 5000 * execution, {"spark.sql.execution.id": str(execution)}
        lines.append(sql("Start", execution, description=f"report {execution}", time=T0 + at))
        for job in (2 * execution, 2 * execution + 1):
            begin = at + 1000 * (job % 2)
            lines += [
                job_start(job, [stage(job, rdd=job)], begin, **properties),
                task_end(job, job, begin, begin + 900, reason="ExceptionFailure" if job == 3 else "Success"),
            ]
            ended = {"Job ID": job, "Completion Time": T0 + begin + 950}
            lines.append(
                line("SparkListenerJobEnd", **ended, **{"Job Result": FAILURE})
                if job == 3
                else job_end(job, begin + 950)
            )
        lines.append(sql("End", execution, time=T0 + at + 2000, **(end_of_second if execution else {})))
    return [*lines, END]


def attempts(folder):
    write(folder / "application_1_0001_1", [start(attempt="1"), *small_log(2), END])
    write(folder / "application_1_0001_2", [start(attempt="2", at=60_000), *small_log(at=61_000), END])


def databricks(folder):
    lines = [start(), *small_log(2), *small_log(at=2000, query="r#0", first_id=1)[1:], END]
    write(folder / "eventlog-2024-01-31--15-00", lines[:6])
    write(folder / "eventlog", lines[6:])


def dropped_events(folder):
    tasks = [task_end(index, 0, 100, 1100, index) for index in range(3)]
    lines = [start(), executor_added(cores=10), job_start(0, [stage(0, 100)]), *tasks, job_end(0, 12_000), END]
    write(folder / "log", lines)


def lost_executors(folder):
    lines = [start(), job_start(0, [stage(0, 2)])]
    for number in (0, 1):
        at = 10_000 * number
        lines += [
            executor_added(f"a{number}", at),
            task_end(2 * number, 0, at, at + 800, number, f"a{number}", "ExecutorLostFailure"),
            executor_removed(f"a{number}", at + 900, "Container killed by YARN for exceeding memory limits"),
            executor_added(f"b{number}", at + 1000),
            task_end(2 * number + 1, 0, at + 1000, at + 1900, number, f"b{number}"),
        ]  # fmt: skip
    write(folder / "log", [*lines, job_end(0, 12_000), END])


def cut(folder):
    lines = [start(), *small_log(2)]
    write(folder / "cut.inprogress", [*lines[:-1], lines[-1][:40]])


def no_executors(folder):
    tasks = [task_end(index, 0, 0, 1000, index, f"{index // 2}") for index in range(4)]
    write(folder / "log", [start(), job_start(0, [stage(0, 4)]), *tasks, job_end(0, 1100), END])


def zero_task_stage(folder):
    stages = [stage(0, 0, rdd=1), stage(1, 2, rdd=2), stage(2, 2, (0, 1), 3)]
    tasks = [
        task_end(index, 1 + index // 2, 1000 * (index // 2), 1000 * (index // 2) + 900, index % 2) for index in range(4)
    ]
    write(folder / "log", [start(), executor_added(cores=2), job_start(0, stages), *tasks, job_end(0, 2000), END])


def broadcast_name(folder):
    lines = [start(), executor_added()]
    for run in (0, 1):
        at, properties = 5000 * run, {"spark.sql.execution.id": str(run)}
        names = (f"broadcast exchange (runId 0000000{run}-1111-2222-3333-444444444444)", "report daily")
        lines.append(sql("Start", run, description="report daily", time=T0 + at))
        for number, description in enumerate(names):
            job, begin = 2 * run + number, at + 1000 * number
            infos = [stage(job, rdd=job)]
            lines += [
                job_start(job, infos, begin, **properties, **{"spark.job.description": description}),
                task_end(job, job, begin, begin + 900), job_end(job, begin + 950),
            ]  # fmt: skip
        lines.append(sql("End", run, time=T0 + at + 2000))
    write(folder / "log", [*lines, END])


def late_executor(folder):
    tasks = [task_end(index, 0, 5100 + 500 * (index // 4), 5600 + 500 * (index // 4), index) for index in range(8)]
    write(
        folder / "log",
        [start(), job_start(0, [stage(0, 8)], 1000), executor_added("1", 5000, 4), *tasks, job_end(0, 6150), END],
    )


def no_parents(folder):
    lines = [start(), *small_log(2), END]
    write(
        folder / "log",
        [each.replace(b'"Parent IDs":[1]', b'"X":0').replace(b'"Parent IDs":[]', b'"X":0') for each in lines],
    )


def one_bad_file(folder):
    write(folder / "app-1", [start(), *small_log(2), END])
    write(folder / "app-2", [line("SparkListenerBlockManagerAdded", Timestamp=1)])


def two_apps(folder):
    write(folder / "log", [start(), *small_log(2), END, start("app-2", 99), *small_log(), END])


def failed_sql(version, **end):
    return lambda folder: write(folder / "log", two_queries(version, end))


def report_has(*words):
    return lambda logs: all(any(word in text for text in logs.report.lines()) for word in words)


def slots(*numbers):
    return lambda logs: [cluster_slots(application) for application in logs] == list(numbers)


def used(*numbers):
    return lambda logs: (
        [((log.queries.skipped == "").sum(), (log.queries.skipped != "").sum()) for log in logs] == [numbers]
    )


def incomplete(logs):
    return logs.report.completeness.least < 1.0


# Input in the folder of `DECIMA_FIELD`: how it is made here, applications, what else holds.
CASES = {
    "attempts": (attempts, 1, [report_has("earlier attempt"), slots(1)], [report_has("earlier attempt"), slots(2)]),
    "databricks": (databricks, 1, [used(2, 0), slots(2)], [used(2, 0), slots(4)]),
    "failed-sql-3.3.log": (failed_sql("3.3.1"), 1, [used(1, 1)], None),
    "failed-sql-3.5.log": (failed_sql("3.5.1", errorMessage="boom"), 1, [used(1, 1)], None),
    "dropped-events.log": (dropped_events, 1, [incomplete, report_has("not in the log although")], None),
    "lost-executors.log": (lost_executors, 1, [report_has("removed: Container killed")], None),
    "cut.inprogress": (cut, 1, [incomplete, report_has("the last line has no end"), used(0, 1)], None),
    "no-executors.log": (no_executors, 1, [slots(4), report_has("not announced in the log")], None),
    "zero-task-stage.log": (zero_task_stage, 1, [used(1, 0)], None),
    "broadcast-name.log": (
        broadcast_name, 1,
        [used(2, 0), lambda logs: [each.name for each in collect_profiles(logs).profiles] == ["report daily"]], None,
    ),
    "late-executor.log": (late_executor, 1, [slots(4)], None),
    "no-parents.log": (no_parents, 1, [report_has("Parent IDs"), lambda logs: any(logs[0].stages.parents)], None),
    "one-bad-file": (one_bad_file, 1, [report_has("left out"), lambda logs: logs[0].key.app_id == "app-1"], None),
    "two-apps.log": (two_apps, 2, [report_has("holds several applications")], None),
}  # fmt: skip


def check(path, applications, answers):
    lines, differences = recount.compare(path)
    assert not differences, "\n".join(lines)
    logs = read_event_logs([path])
    assert len(logs) == applications
    assert [answer(logs) for answer in answers] == [True] * len(answers), "\n".join(logs.report.lines())


@pytest.mark.parametrize("name", CASES)
def test_right_answers(name, tmp_path):
    make, applications, answers, _ = CASES[name]
    make(tmp_path)
    check(tmp_path, applications, answers)


@pytest.mark.parametrize("name", CASES)
def test_right_answers_of_the_files_of_the_field(name):
    path = Path(os.environ.get("DECIMA_FIELD", "no folder")) / "logs" / name
    if not path.exists():
        pytest.skip("DECIMA_FIELD names no folder with these logs")
    _, applications, answers, of_field = CASES[name]
    check(path, applications, of_field or answers)
