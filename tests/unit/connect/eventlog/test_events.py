"""What is taken from a line, and what becomes of fields that are missing or of another type."""

import json

import pytest

from decima.connect.eventlog.events import EventRecords, integer
from decima.connect.eventlog.files import Damage, find_logs, read_lines
from tests.unit.connect.event_lines import LOGS, T0, job_end, job_start, line, stage, task_end


def read(*lines):
    records = EventRecords()
    for each in lines:
        records.read(each)
    records.complete()
    return records


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((5, 5), (5.0, 5), ("5", 5), (0, 0), (-1, None), (5.5, None), (True, None), (None, None), ("x", None)),
        *((float("nan"), None), (float("inf"), None), (2**53, 2**53), (2**53 + 1, None), ("9" * 5000, None)),
        *(([], None), ({}, None)),
    ],
)
def test_integer(value, expected):
    assert integer(value) == expected


def test_events_of_no_use_are_counted_without_being_parsed():
    records = read(b'{"Event":"SparkListenerSQLAdaptiveSQLMetricUpdates",this is no JSON}\n')
    assert records.lines == {"all": 1, "not needed": 1}


@pytest.mark.parametrize("name", ["queries.zstd", "unnamed.snappy", "failed-task.zstd"])
def test_tasks_are_the_same_with_and_without_their_accumulables(name, monkeypatch):
    lines = list(read_lines(find_logs([LOGS / name])[0], Damage()))
    quick = read(*lines)
    monkeypatch.setattr("decima.connect.eventlog.events._without_accumulables", lambda each: each)
    full = read(*lines)
    assert len(full.tasks) > 0
    assert repr(quick.tasks.__dict__) == repr(full.tasks.__dict__)  # NaN equals itself here
    assert quick.lines == full.lines


def test_accumulables_with_tricky_texts():
    text = ']},"Task Metrics":{ "Accumulables":['
    info = {"Accumulables": [{"ID": 1, "Name": text, "Update": text}]}
    event = task_end(3, 1, 0, 9, info=info)
    assert list(read(event).tasks.numbers["finish_ms"]) == [T0 + 9]
    assert list(read(event).tasks.metrics["run_ms"]) == [9.0]


@pytest.mark.parametrize(
    ("replace", "by", "reason"),
    [
        ('"Task ID":3,', "", "no valid task id"),
        ('"Stage ID":1,', "", "no valid stage id"),
        ('"Index":0,', "", "no valid task index"),
        (f'"Launch Time":{T0}', '"Launch Time":0', "no valid launch time"),
        (f'"Finish Time":{T0 + 9}', '"Finish Time":null', "no valid finish time"),
        (f'"Finish Time":{T0 + 9}', '"Finish Time":1e300', "no valid finish time"),
        (f'"Finish Time":{T0 + 9}', f'"Finish Time":{T0 - 1}', "finished before its launch"),
        ('"Executor ID":"1"', '"Executor ID":{}', "no executor id"),
        ('"Success"', '"Resubmitted"', "output lost, the task is run again"),
        ('"Task Info":{', '"Info":{', "no valid task id"),
    ],
)
def test_task_without_a_needed_field_is_left_out(replace, by, reason):
    text = task_end(3, 1, 0, 9).decode()
    assert replace in text
    records = read(text.replace(replace, by).encode())
    assert records.skipped_tasks == {reason: 1}
    assert len(records.tasks) == 0
    assert records.lines["without a needed field"] == 1


@pytest.mark.parametrize("drop", ["Task Metrics", "Task Type", "Stage Attempt ID", "Task End Reason"])
def test_task_without_another_field_is_kept(drop):
    event = json.loads(task_end(3, 1, 0, 9))
    del event[drop]
    records = read(json.dumps(event).encode())
    assert len(records.tasks) == 1
    # Without a reason nobody knows that it succeeded.
    assert next(iter(records.tasks.texts["status"])) == ("failed" if drop == "Task End Reason" else "success")


def test_events_that_do_not_fit_together_are_noted():
    start = job_start(0, [stage(0)], 100)
    records = read(
        start, start, job_end(0, 50), job_end(0, 200), job_end(0, 300), job_end(5, 9), line("SparkListenerJobStart")
    )
    assert records.skipped_events == {
        "SparkListenerJobStart: the job started before": 1,
        "SparkListenerJobStart: no job id": 1,
        "SparkListenerJobEnd: no completion time after the submission": 1,
        "SparkListenerJobEnd: the job ended before": 1,
        "SparkListenerJobEnd: no start of that job": 1,
    }
    assert records.jobs[0].finish_ms == T0 + 200
    assert records.lines == {"all": 7, "read": 2, "without a needed field": 5}


def test_settings_as_pairs_of_older_spark():
    pairs = [["spark.task.cpus", "3"], ["spark.sql.adaptive.enabled", "TRUE"], "odd", ["too", "many", "x"]]
    records = read(line("SparkListenerEnvironmentUpdate", **{"Spark Properties": pairs}))
    assert (records.task_cpus(), records.adaptive) == (3, True)


def test_text_that_utf8_cannot_hold_is_replaced():
    records = read(job_start(0, [stage(0)], **{"decima.query": "a\ud800b"}))
    assert records.jobs[0].properties["decima.query"] == "a?b"
