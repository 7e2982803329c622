"""Logs of versions of Spark that lack a field: what is concluded, row by row of the table."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from decima.connect.eventlog.application import read_event_log
from decima.connect.eventlog.events import FIELDS
from decima.connect.eventlog.files import Damage, find_logs, read_lines
from tests.unit.connect.event_lines import LOGS, T0, executor_added, job_end, job_start, line, stage, task_end, write

DOCS = Path(__file__).parents[4] / "docs" / "event-logs.md"
SQL = "org.apache.spark.sql.execution.ui.SparkListener"
EXECUTION = {"spark.sql.execution.id": "4"}
ABORTED = "Job aborted due to stage failure: Task 0 in stage 5.0 failed 4 times"


def small(executor_cores=3):
    """Log with every field: a query of two stages, three tasks, and a SQL execution that succeeded."""
    scan, total = stage(0, 2, (), 10), stage(1, 1, (0,), 11)
    for info, name in ((scan, "Scan t"), (total, "HashAggregate")):
        info["RDD Info"][0]["Scope"] = json.dumps({"id": "1", "name": name})
        info["Resource Profile Id"] = 0
    fields = {"App Name": "n", "App ID": "app-1", "App Attempt ID": "2", "Timestamp": T0}
    more = {"info": {"Partition ID": 0}}
    return [
        line("SparkListenerLogStart", **{"Spark Version": "4.0.0"}),
        line("SparkListenerApplicationStart", **fields),
        executor_added(cores=executor_cores, at=1, **{"Resource Profile Id": 0}),
        line(f"{SQL}SQLExecutionStart", executionId=4, rootExecutionId=4, description="report", time=T0 + 9),
        job_start(0, [scan, total], 10, **EXECUTION),
        task_end(0, 0, 20, 120, 0, kind="ShuffleMapTask", **more),
        task_end(1, 0, 20, 130, 1, kind="ShuffleMapTask", info={"Partition ID": 1}),
        task_end(2, 1, 140, 200, 0, **more),
        job_end(0, 210),
        line(f"{SQL}SQLExecutionEnd", executionId=4, time=T0 + 215, errorMessage=""),
        line("SparkListenerApplicationEnd", Timestamp=T0 + 300),
    ]


def without(lines, name):
    """The lines without a field, wherever it is."""

    def drop(value):
        if isinstance(value, dict):
            return {key: drop(item) for key, item in value.items() if key != name}
        return [drop(item) for item in value] if isinstance(value, list) else value

    return [json.dumps(drop(json.loads(each)), separators=(",", ":")).encode() + b"\n" for each in lines]


CONCLUSIONS = {
    "App ID": lambda log: log.key.app_id == "log",
    "App Attempt ID": lambda log: (log.key.attempt, log.key.start_ms) == ("", T0),
    "Submission Time": lambda log: log.queries.submit_ms.tolist() == [T0 + 20],
    "Completion Time": lambda log: log.queries.finish_ms.tolist() == [T0 + 200],
    "Parent IDs": lambda log: log.stages.parents.tolist() == [(), (0,)],
    "Scope": lambda log: log.stages.operators.tolist() == ["scan", "scan"],
    "Resource Profile Id": lambda log: log.executors.slots.tolist() == [3],
    "Executor CPU Time": lambda log: bool(np.isnan(log.tasks.cpu_ms).all()),
    "Killed": lambda log: set(log.tasks.status) == {"success"},
    "Partition ID": lambda log: log.tasks.partition.tolist() == [0, 1, 0],
    "Total Cores": lambda log: log.executors.slots.tolist() == [2],
    "errorMessage": lambda log: log.queries.skipped.tolist() == [""],
    "rootExecutionId": lambda log: log.queries["query"].tolist() == ["execution-4"],
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_log_without_a_field(field, tmp_path):
    whole = read_event_log(write(tmp_path / "whole", small()))
    assert not [note for note in whole.report.notices if note.item == "note field"]
    log = read_event_log(write(tmp_path / "log", without(small(), field.name)))
    assert CONCLUSIONS[field.name](log)
    assert log.queries.name.tolist() == ["report"]
    assert log.report.completeness.least == 1.0
    notes = [note.reason for note in log.report.notices if note.item == "note field"]
    assert len(notes) == field.noted
    assert all(field.name in note and field.since in note and field.conclusion in note for note in notes)


def test_the_page_has_the_table():
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| ([\d.]+) \| ([^|]+) \|$", DOCS.read_text("utf-8"), re.MULTILINE)
    assert rows == [(field.event, field.name, field.since, field.conclusion) for field in FIELDS]


@pytest.mark.parametrize("name", ["queries.zstd", "broadcast.lz4", "adaptive.zstd"])
def test_inferred_parents_of_real_logs_lose_no_edge(name, tmp_path):
    lines = list(read_lines(find_logs([LOGS / name])[0], Damage()))
    whole, log = read_event_log(LOGS / name), read_event_log(write(tmp_path / "log", without(lines, "Parent IDs")))
    for query, stages in whole.stages.groupby("query"):
        other = log.stages[log.stages["query"] == query]
        reach = {tuple(ids): set() for ids in other.spark_stage_ids}
        of = other.spark_stage_ids.map(tuple).tolist()
        for ids, parents in zip(of, other.parents, strict=True):
            reach[ids] = set().union(*({of[each]} | reach[of[each]] for each in parents))
        real = stages.spark_stage_ids.map(tuple).tolist()
        for ids, parents in zip(real, stages.parents, strict=True):
            assert {real[each] for each in parents} <= reach[ids]


@pytest.mark.parametrize(
    ("failed", "message", "later", "skipped"),
    [
        # The stage of a job failed, and nothing was submitted after it.
        (1, ABORTED, False, "a job failed or was cancelled"),
        # It failed, and a job that was submitted later succeeded: the query tried it again.
        (0, ABORTED, True, ""),
        # It failed while another job ran, which ended later.
        (0, ABORTED, False, "a job failed or was cancelled"),
        # Adaptive execution cancelled a job and went on.
        (0, "Job 0 cancelled because the result is not needed", False, ""),
        # A person cancelled the last job.
        (1, "Job 1 cancelled part of cancelled job group x", False, "a job failed or was cancelled"),
    ],
)
@pytest.mark.parametrize("known", [None, "", "boom"])
def test_success_of_an_execution(failed, message, later, skipped, known, tmp_path):
    result = {"Result": "JobFailed", "Exception": {"Message": message, "Stack Trace": []}}
    first, second = 30, 60
    ends = [
        line("SparkListenerJobEnd", **{"Job ID": job, "Completion Time": T0 + at, "Job Result": result})
        if job == failed
        else job_end(job, at)
        for job, at in ((0, first), (1, second))
    ]
    error = {} if known is None else {"errorMessage": known}
    lines = [
        executor_added(cores=2),
        job_start(0, [stage(0, rdd=1)], 0, **EXECUTION),
        job_start(1, [stage(1, rdd=2)], 40 if later else 5, **EXECUTION),
        task_end(0, 0, 5, 20),
        task_end(1, 1, 45, 50),
        *ends,
        line(f"{SQL}SQLExecutionEnd", executionId=4, time=T0 + 70, **error),
    ]
    log = read_event_log(write(tmp_path / "log", lines))
    expected = {None: skipped, "": "", "boom": "the SQL execution failed or was cancelled"}[known]
    assert log.queries.skipped.tolist() == [expected]


def test_execution_that_failed_after_its_jobs_and_one_that_did_not_end(tmp_path):
    lines = small()
    failed = [each.replace(b'"errorMessage":""', b'"errorMessage":"boom"') for each in lines]
    assert read_event_log(write(tmp_path / "log", failed)).queries.skipped.tolist() == [
        "the SQL execution failed or was cancelled"
    ]
    cut = lines[:-2]
    assert read_event_log(write(tmp_path / "log", cut)).queries.skipped.tolist() == [
        "the SQL execution did not end in the log"
    ]
    assert read_event_log(write(tmp_path / "log", [*cut, lines[-1]])).queries.skipped.tolist() == [""]
