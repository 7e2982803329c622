"""Tables of real logs (`logs/`, made by `make_logs.py`) and of lines made by hand."""

import numpy as np
import pytest

import decima
from decima.connect.eventlog.application import read_event_log, read_event_logs
from decima.connect.eventlog.profiles import collect_profiles
from decima.core.errors import EventLogError
from tests.unit.connect.event_lines import (
    LOGS,
    T0,
    application_end,
    application_start,
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

APPLICATION_END = line("SparkListenerApplicationEnd", Timestamp=T0 + 10_000)
NO_END = "no end of the application: it was running, or the log is cut"


def read(tmp_path, lines):
    return read_event_log(write(tmp_path / "log", lines))


def counts(application, item):
    report = application.report.table.query("item == @item")
    return dict(zip(report["reason"], report["count"], strict=True))


def dag(application, query):
    return application.stages[application.stages["query"] == query].parents.tolist()


def test_queries_without_adaptive_execution():
    log = read_event_log(LOGS / "queries.zstd")
    assert (log.name, log.adaptive, log.ended) == ("queries", False, True)
    assert log.spark_version.startswith("4.")
    assert log.queries["query"].tolist() == [f"{name}#{n}" for n in (0, 1) for name in ("join", "subquery", "scan")]
    assert log.queries.name.tolist() == ["join", "subquery", "scan"] * 2
    # Three scans, two joins, the sum; the subquery is a job of its own, which the main job waits for.
    for repetition in (0, 1):
        assert dag(log, f"join#{repetition}") == [(), (), (), (1, 2), (0, 3), (4,)]
        assert dag(log, f"subquery#{repetition}") == [(), (0,), (1,), (2,)]
        assert dag(log, f"scan#{repetition}") == [(), (0,)]
    assert (log.queries.job_ids.map(len) == [1, 2, 1] * 2).all()
    assert (log.tasks.use == "used").all()
    assert (log.queries.executors == 2).all()
    assert log.queries.alone.all()
    assert (log.queries.skipped == "").all()


def test_adaptive_execution_gives_one_dag_per_query():
    log = read_event_log(LOGS / "adaptive.zstd")
    for repetition in (0, 1):
        # Each scan, join and sum was a Spark job with repeated ancestors; the limit reads the last shuffle.
        assert dag(log, f"join#{repetition}") == [(), (), (), (0, 1), (2, 3), (4,)]
        assert dag(log, f"scan#{repetition}") == [(), (0,)]
    assert log.queries.job_ids.map(len).min() > 1
    # Repeated ancestors were skipped: each stage ran under one id, and no task ran twice.
    assert (log.stages.spark_stage_ids.map(len) == 1).all()
    assert (log.stages.num_tasks == log.stages.tasks_seen).all()


def test_broadcast_jobs_come_before_the_stages_that_wait_for_them():
    log = read_event_log(LOGS / "broadcast.lz4")
    for repetition in (0, 1):
        assert dag(log, f"join#{repetition}") == [(), (), (0, 1), (2,)]
        # A scalar subquery beside the first shuffle of the query itself.
        assert dag(log, f"subquery#{repetition}") == [(), (), (0,), (1, 2)]
    kinds = log.stages[log.stages["query"] == "join#0"].kind.tolist()
    assert kinds == ["result", "result", "shuffle", "result"]


def test_queries_without_a_name_are_executions_groups_or_jobs():
    log = read_event_log(LOGS / "unnamed.snappy")
    assert log.queries["query"].tolist() == ["execution-0", "group-night"]
    assert log.queries.name.tolist() == [f"{log.key.app_id}/execution-0", "nightly count"]
    # Two actions of one group, the second after the first; its first shuffle reads the cached table.
    assert dag(log, "group-night") == [(), (0,), (1,), (2,)]


def test_failed_tasks_are_left_out_and_a_failed_query_too():
    log = read_event_log(LOGS / "failed-task.zstd")
    assert log.queries.skipped.tolist() == ["", "a job failed or was cancelled"]
    retry = log.tasks[log.tasks["query"] == "retry#0"]
    assert sorted(retry[retry.stage == 0].status) == ["failed", "success", "success", "success"]
    assert retry[retry.status == "failed"].use.tolist() == ["task failed or was killed"]
    assert log.stages.tasks_seen.tolist() == [3, 2]
    assert set(log.tasks[log.tasks["query"] == "broken#0"].use) == {"query not used"}


def test_speculative_copy_that_won_is_used_and_the_killed_one_is_not():
    log = read_event_log(LOGS / "speculation.zstd")
    slow = log.tasks[log.tasks.partition == 0]
    assert sorted(zip(slow.speculative, slow.status, slow.use, strict=True)) == [
        (False, "killed", "task failed or was killed"),
        (True, "success", "used"),
    ]
    assert log.stages.tasks_seen.tolist() == [8]
    assert set(log.executors.host) == {"127.0.0.2", "127.0.0.3"}


def test_killed_executor():
    log = read_event_log(LOGS / "killed-executor.zstd")
    removed = log.executors[log.executors.removed_ms.notna()]
    assert len(removed) == 1
    assert (log.queries.skipped == "").all()
    lost = log.tasks[log.tasks.end_reason == "ExecutorLostFailure"]
    assert set(lost.executor) == set(removed.executor)
    assert not (lost.use == "used").any()
    # The lost map outputs were computed again, by later attempts of the stage, and each partition counts once.
    assert "task had succeeded before" in set(log.tasks.use)
    assert (log.stages.tasks_seen == log.stages.num_tasks).all()
    assert log.tasks.stage_attempt.max() > 0


def test_times_and_sizes_by_hand(tmp_path):
    metrics = {
        "Executor Run Time": 60,
        "Executor CPU Time": 50_000_000,
        "Executor Deserialize Time": 7,
        "Result Serialization Time": 3,
        "JVM GC Time": 4,
        "Shuffle Read Metrics": {"Remote Bytes Read": 100, "Local Bytes Read": 11, "Fetch Wait Time": 2},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 5},
        "Input Metrics": {"Bytes Read": 9},
    }
    lines = [
        executor_added(cores=1, **{"Request Time": T0 - 2500}),
        job_start(0, [stage(0)], 10),
        task_end(0, 0, 20, 120, info={"Getting Result Time": T0 + 110}, **{"Task Metrics": metrics}),
        job_end(0, 130),
    ]
    log = read(tmp_path, lines)
    (task,) = log.tasks.to_dict("records")
    assert task["duration_ms"] == 100.0
    assert (task["run_ms"], task["cpu_ms"], task["deserialize_ms"], task["gc_ms"]) == (60.0, 50.0, 7.0, 4.0)
    assert task["getting_result_ms"] == 10.0
    assert task["scheduler_delay_ms"] == 100 - 60 - 7 - 3 - 10
    assert (task["shuffle_read_bytes"], task["shuffle_write_bytes"], task["input_bytes"]) == (111.0, 5.0, 9.0)
    assert np.isnan(task["output_bytes"])
    assert log.executors.start_delay_ms.tolist() == [2500.0]
    assert log.queries.duration_ms.tolist() == [120.0]
    assert log.queries.busy.tolist() == [100 / 120]


def test_executor_that_was_never_announced_is_inferred(tmp_path):
    log = read(tmp_path, small_log()[1:])
    assert log.executors[["added_ms", "slots", "inferred"]].to_dict("records") == [
        {"added_ms": float(T0), "slots": 1, "inferred": True}
    ]
    assert counts(log, "note executor") == {"not announced in the log: cores and times inferred": 1}


@pytest.mark.parametrize(
    ("properties", "query", "name"),
    [
        ({"decima.query": "q5#3"}, "q5#3", "q5"),
        ({"decima.query": "q5#3", "decima.profile": "five"}, "q5#3", "five"),
        ({"spark.sql.execution.id": "4"}, "execution-4", "log/execution-4"),
        ({"spark.sql.execution.id": "4", "spark.sql.execution.root.id": "3"}, "execution-3", "log/execution-3"),
        ({"spark.sql.execution.id": "4", "spark.job.description": " nightly "}, "execution-4", "nightly"),
        ({"spark.jobGroup.id": "g"}, "group-g", "log/group-g"),
        ({"spark.sql.execution.id": "4", "spark.jobGroup.id": "g"}, "execution-4", "log/execution-4"),
        ({"decima.query": "x", "spark.sql.execution.id": "4"}, "x", "x"),
        ({}, "job-0", "log/job-0"),
    ],
)
def test_what_makes_a_query_and_its_name(properties, query, name, tmp_path):
    lines = [executor_added(), job_start(0, [stage(0)], **properties), task_end(0, 0, 0, 5), job_end(0, 5)]
    log = read(tmp_path, lines)
    assert log.queries[["query", "name"]].to_numpy().tolist() == [[query, name]]


@pytest.mark.parametrize(("ended", "skipped"), [(True, ""), (False, "a job failed or was cancelled")])
def test_job_cancelled_by_adaptive_execution_does_not_spoil_its_query(ended, skipped, tmp_path):
    execution = {"spark.sql.execution.id": "1"}
    end = line("org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd", executionId=1, errorMessage="")
    lines = [
        executor_added(),
        job_start(0, [stage(0)], 0, **execution),
        job_start(1, [stage(1)], 0, **execution),
        task_end(0, 0, 0, 5),
        task_end(1, 1, 5, 6, reason="TaskKilled"),
        job_end(0, 5),
        job_end(1, 6, "JobFailed"),
    ]
    log = read(tmp_path, lines + [end] * ended)
    assert log.queries.skipped.tolist() == [skipped]
    if ended:
        assert set(log.tasks.use) == {"used", "stage of a job that was cancelled"}


@pytest.mark.parametrize(
    ("change", "skipped"),
    [
        (lambda lines: lines[:-1], "a job did not end in the log"),
        (lambda lines: [*lines[:2], lines[-1]], "no task of it in the log, or its stages form a cycle"),
        (lambda lines: [*lines[:-1], job_end(0, 900, "JobFailed")], "a job failed or was cancelled"),
        (lambda lines: [lines[0], lines[1].replace(b'"Number of Tasks":1', b'"Number of Tasks":0'), *lines[2:]],
         "a stage of a job could not be read"),
        (lambda lines: [lines[0], lines[1].replace(b'"Parent IDs":[]', b'"Parent IDs":[2]', 1), *lines[2:]],
         "no task of it in the log, or its stages form a cycle"),
    ],
)  # fmt: skip
def test_why_a_query_is_skipped(change, skipped, tmp_path):
    log = read(tmp_path, change(small_log()))
    assert log.queries.skipped.tolist() == [skipped]
    assert counts(log, "query") == {skipped: 1}
    assert not (log.tasks.use == "used").any()


def test_lines_that_are_no_events_are_counted(tmp_path):
    junk = [b"\n", b"not json\n", b"[1]\n", b"{}\n", b"\xff\xfe\n", b'{"Event":5}\n', b'{"Event":"Unknown"}\n']
    log = read(tmp_path, [*small_log(), *junk, b'{"Event":"Sp'])
    # A number is an event name nobody knows; the cut line is no JSON.
    assert counts(log, "line") == {"read": 6, "empty": 1, "not a JSON event": 5, "not needed": 2}
    assert set(counts(log, "note file")) == {"the last line has no end", NO_END}
    assert counts(log, "query") == {"used": 1}


def attempt(number, at, **options):
    return [application_start("application_1_0001", at, attempt=str(number)), *small_log(at=at + 10, **options)]


def test_attempts_of_an_application_are_distinct_and_the_last_one_is_used(tmp_path):
    write(tmp_path / "second", attempt(2, 60_000, executors=2))
    write(tmp_path / "first", attempt(1, 0))
    logs = read_event_logs([tmp_path])
    assert [str(log.key) for log in logs] == ["application_1_0001_2"]
    assert [(note.reason, note.application) for note in logs.report.notices if note.item == "application"] == [
        ("earlier attempt of an application, left out: the last one is used", "application_1_0001_1")
    ]
    both = read_event_logs([tmp_path], all_attempts=True)
    assert sorted(log.key.attempt for log in both) == ["1", "2"]
    runs = collect_profiles(both)
    assert [runs.jobs_of(log.key) for log in both] == [{"q#0": "q"}, {"q#0": "q"}]


def test_applications_of_one_id_without_attempts_are_told_apart_by_their_start(tmp_path):
    for number, at in enumerate((0, 50_000)):
        write(tmp_path / f"log-{number}", [application_start("app-1", at), *small_log(at=at + 10)])
    logs = read_event_logs([tmp_path])
    assert [log.key.start_ms for log in logs] == [T0, T0 + 50_000]
    assert [collect_profiles(logs).jobs_of(log.key) for log in logs] == [{"q#0": "q"}] * 2


def test_completeness_and_what_held_the_cluster(tmp_path):
    lost = small_log()
    broken = [*small_log(at=2000, query="r#0", first_id=1)[1:-1], job_end(1, 3000, "JobFailed")]
    log = read(tmp_path, [*lost[:2], *lost[3:], *broken, task_end(6, 99, 4000, 4100)])
    assert log.report.completeness.counts == {"tasks": (2, 7), "stages": (1, 5), "queries": (1, 2)}
    assert log.report.completeness.least == 0.2
    assert "28 % of tasks, 20 % of stages, 50 % of queries" in log.report.lines()[-1]
    assert log.left_out.to_numpy().tolist() == [
        ["r#0", "a job failed or was cancelled", T0 + 2000, T0 + 3000, 3, 800.0],
        ["", "job of the stage is not in the log", T0 + 4000, T0 + 4100, 1, 100.0],
    ]
    with pytest.raises(EventLogError, match=r"only 28 % of tasks, .* --anyway"):
        log.report.check()
    log.report.check(anyway=True)
    assert decima.from_logs(log.path, anyway=True).report.completeness == log.report.completeness
    with pytest.raises(EventLogError, match="only 28 %"):
        decima.from_logs(log.path)


def profile(number, executor=(), task=()):
    sides = {"Executor Resource Requests": dict(executor), "Task Resource Requests": dict(task)}
    requests = {side: {name: {"Amount": amount} for name, amount in each.items()} for side, each in sides.items()}
    return line("SparkListenerResourceProfileAdded", **{"Resource Profile Id": number, **requests})


def at_once(tasks, executor="1", resources=0, at=0, first=0):
    """One stage in two waves of tasks; the second begins before the driver stamps the ends of the first."""
    info = stage(first, 2 * tasks) | {"Resource Profile Id": resources}
    metrics = {"Task Metrics": {"Executor Run Time": 95}}
    numbers = range(2 * tasks)
    begin = [at + 100 * (number // tasks) for number in numbers]
    ends = [
        task_end(100 * first + number, first, begin[number], begin[number] + 110, number, executor, **metrics)
        for number in numbers
    ]
    return [job_start(first, [info], at), *ends, job_end(first, at + 220)]


def settings(**values):
    return line("SparkListenerEnvironmentUpdate", **{"Spark Properties": {f"spark.{k}": v for k, v in values.items()}})


@pytest.mark.parametrize(
    ("lines", "slots"),
    [
        (at_once(5), 5),
        ([settings(**{"executor.cores": "8"}), *at_once(5)], 8),
        ([settings(**{"executor.cores": "2"}), *at_once(5)], 5),
        ([settings(**{"executor.cores": "8", "task.cpus": "2"}), *at_once(3)], 4),
        ([settings(**{"task.cpus": "2"}), *at_once(3)], 3),
        ([settings(master="local[12]"), *at_once(5, "driver")], 12),
        ([settings(master="local[*]"), *at_once(5, "driver")], 5),
        ([settings(master="local[4, 3]"), *at_once(2, "<driver>")], 4),
        ([settings(master="local-cluster[2, 6, 1024]"), *at_once(2)], 6),
        ([settings(**{"executor.cores": "8"}), *at_once(5, "driver")], 5),
        ([executor_added(cores=8), *at_once(5)], 8),
        # Resource profiles: the tasks' cores; as many as the GPUs allow; two tasks share one.
        ([executor_added(cores=8), profile(1, task={"cpus": 4.0}), *at_once(2, resources=1)], 2),
        ([executor_added(cores=8), profile(0, {"cores": 8}, {"cpus": 2.0}), *at_once(2)], 4),
        ([executor_added(cores=8), profile(0, {"gpu": 2}, {"cpus": 1.0, "gpu": 1.0}), *at_once(2)], 2),
        ([executor_added(cores=8), profile(0, {"gpu": 1}, {"cpus": 1.0, "gpu": 0.5}), *at_once(2)], 2),
        ([executor_added(cores=8), profile(0, {"gpu": 1}, {"cpus": 1.0, "gpu": 0.001}), *at_once(2)], 8),
        ([profile(0, {"cores": 16}, {"cpus": 1.0}), *at_once(2)], 16),
    ],
)
def test_slots_of_executors_as_they_were(lines, slots, tmp_path):
    log = read(tmp_path, lines)
    assert log.executors.slots.tolist() == [slots]
    assert log.queries.peak_tasks.tolist() <= [slots]


def test_executor_that_comes_back_under_its_id_is_another(tmp_path):
    lines = [
        executor_added("1", 0, cores=2),
        executor_removed("1", 1000),
        executor_added("1", 2000, cores=4),
        *at_once(2),
        *at_once(4, at=3000, first=1),
    ]
    log = read(tmp_path, lines)
    assert log.executors[["executor", "slots", "added_ms", "removed_ms"]].fillna(0).to_numpy().tolist() == [
        ["1", 2, T0, T0 + 1000],
        ["1~2", 4, T0 + 2000, 0],
    ]
    assert log.tasks.executor.tolist() == ["1"] * 4 + ["1~2"] * 8
    assert log.tasks[log.tasks.wave == "fresh"].groupby("executor", observed=True).size().tolist() == [2, 4]


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_lines_in_any_order_give_the_same_tables(turn, tmp_path):
    lines = [
        application_start(), executor_added("1", 0, cores=2), *at_once(2), executor_removed("1", 1000),
        executor_added("1", 2000, cores=4), *at_once(4, at=3000, first=1),
    ]  # fmt: skip
    right = read_event_log(write(tmp_path / "right", lines))
    mixed = read_event_log(write(tmp_path / "mixed", lines[turn:][::-1] + lines[:turn]))
    for table in ("tasks", "stages", "queries", "executors"):
        columns = [each for each in getattr(right, table).columns if each not in ("status", "host")]
        assert getattr(mixed, table)[columns].astype(str).equals(getattr(right, table)[columns].astype(str)), table
    assert mixed.report.completeness == right.report.completeness
    assert counts(mixed, "note event")


def test_repeated_lines_change_nothing(tmp_path):
    lines = small_log()
    log = read(tmp_path, [*lines, *lines, APPLICATION_END])
    assert log.tasks.use.tolist() == ["used"] * 3
    assert counts(log, "task") == {"used": 3, "the log has its end before": 3}
    assert log.report.completeness.least == 1.0


def test_stages_without_tasks_and_jobs_without_stages_are_legal(tmp_path):
    execution = {"spark.sql.execution.id": "1"}
    join = [
        executor_added(),
        job_start(0, [stage(0, 0, rdd=1), stage(1, 1, rdd=2), stage(2, 1, (0, 1), 3)], **execution),
        task_end(0, 1, 0, 5, kind="ShuffleMapTask"),
        task_end(1, 2, 5, 9),
        job_end(0, 9),
        job_start(1, [], 20, **execution),
        job_end(1, 21),
        job_start(2, [], 30),
        job_end(2, 31),
        APPLICATION_END,
    ]
    log = read(tmp_path, join)
    assert log.queries.skipped.tolist() == ["", "it had no task to run"]
    assert log.stages.parents.tolist() == [(), (0,)]
    assert log.report.completeness.least == 1.0


def test_stage_of_which_all_tasks_are_lost_is_missed(tmp_path):
    ended = [
        line("SparkListenerStageCompleted", **{"Stage Info": stage(each, tasks)}) for each, tasks in ((1, 2), (2, 1))
    ]
    lines = small_log()
    log = read(tmp_path, [*lines[:2], *lines[4:-1], *ended, lines[-1]])
    assert log.stages.num_tasks.tolist() == [2, 1]
    assert counts(log, "note task") == {"not in the log although the job succeeded": 2}
    assert log.report.completeness.share("tasks") == pytest.approx(1 / 3)


SQL_START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
RUN_ID = "a82264d0-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("description", "of_job", "name"),
    [
        ("query66", f"broadcast exchange (runId {RUN_ID})", "query66"),
        ("query66", "collect at Foo.scala:12", "query66"),
        ("collect at Foo.scala:12", "nightly report", "nightly report"),
        ("count at <console>:25", f"broadcast exchange (runId {RUN_ID})", ""),
        ("$anonfun$withThreadLocalCaptured$1 at FutureTask.java:264", "", ""),
        ("count at NativeMethodAccessorImpl.java:0", "Listing leaf files and directories for 40 paths:<br/>a", ""),
        ("SELECT *\n  FROM t\n WHERE a = 1", "", "SELECT * FROM t WHERE a = 1"),
        ("", f"native broadcast exchange (runId {RUN_ID})", ""),
    ],
)
def test_names_are_those_that_people_gave(description, of_job, name, tmp_path):
    properties = {"spark.sql.execution.id": "0"} | ({"spark.job.description": of_job} if of_job else {})
    lines = [
        application_start(),
        line(SQL_START, executionId=0, description=description, physicalPlanDescription="x" * 99, time=T0),
        *small_log(query="", **properties),
        line(SQL_START.replace("Start", "End", 1).replace("SQLExecutionStart", "SQLExecutionEnd"), executionId=0),
        application_end(999),
    ]
    log = read(tmp_path, lines)
    assert log.queries.name.tolist() == [name or "app-1/execution-0"]
    assert log.queries.named.tolist() == [bool(name)]


def runs_of(*runs):
    """One job per run: description, tasks, operator."""
    lines = [executor_added()]
    for number, (text, tasks, operator) in enumerate(runs):
        at = 100 * number
        info = stage(number, tasks, rdd=number, name=operator) | {"Stage Name": f"count at Job.scala:{len(operator)}"}
        properties = {"spark.job.description": text} if text else {}
        ends = [task_end(1000 * number + index, number, at, at + 5, index) for index in range(tasks)]
        lines += [job_start(number, [info], at, **properties), *ends, job_end(number, at + 5)]
    return lines


@pytest.mark.parametrize(
    ("runs", "profiles"),
    [
        ([("daily", 3, "Scan"), ("daily", 5, "Scan"), ("daily", 3, "Scan")], {"daily": 3}),
        ([("daily", 3, "Scan"), ("daily", 3, "Sort"), ("daily", 3, "Scan")], {"daily": 2, "daily~2": 1}),
        # A text that a platform cut may be the beginning of many cells.
        ([("import os...", 3, "Scan"), ("import os...", 50, "Scan"), ("import os...", 3, "Scan")],
         {"import os...": 2, "import os...~2": 1}),
        # Jobs without a name: the line of the program, the structure and the task counts.
        ([("", 3, "Scan"), ("", 3, "Scan"), ("", 3, "Filter"), ("", 9, "Scan")],
         {"count at Job.scala:4": 2, "count at Job.scala:4~2": 1, "count at Job.scala:6": 1}),
    ],
)  # fmt: skip
def test_runs_of_one_query_merge_and_different_queries_do_not(runs, profiles, tmp_path):
    collected = collect_profiles([read(tmp_path, runs_of(*runs))])
    assert collected.runs.groupby("job").size().to_dict() == profiles


@pytest.mark.parametrize("name", ["", "clicks\n"])
@pytest.mark.parametrize("line_end", ["\n", "<br/>"])
def test_micro_batches_of_a_stream_are_runs_of_one_query(name, line_end, tmp_path):
    lines = [executor_added()]
    for batch in range(4):
        text = f"{name}id = 8be3{line_end}runId = {RUN_ID}{line_end}batch = {batch}".replace("\n", line_end)
        properties = {
            "sql.streaming.queryId": "8be3", "spark.job.description": text, "spark.sql.execution.id": str(batch),
        }  # fmt: skip
        lines += small_log(at=10_000 * batch, query="", first_id=batch, **properties)[1:]
        lines.append(line(SQL_START, executionId=batch, description=text, time=T0))
        lines.append(line(SQL_START.replace("SQLExecutionStart", "SQLExecutionEnd"), executionId=batch))
    log = read(tmp_path, lines)
    expected = name.strip() or "stream 8be3"
    assert [each.name for each in collect_profiles([log]).profiles] == [expected]
    assert log.streams.to_numpy().tolist() == [["8be3", expected, 4, 10_000.0]]
    assert any("micro-batch of a stream" in note.reason for note in log.report.notices)


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        # Events of the first of two queries, all of them: the numbers of later tasks tell.
        (slice(1, 6), "not in the log although later ones are"),
        (slice(-1, None), NO_END),
        # The task of the last stage.
        (slice(-3, -2), "not in the log although the job succeeded"),
    ],
)
def test_events_lost_without_a_trace_lower_the_completeness(lost, reason, tmp_path):
    lines = [*small_log(), *small_log(query="r#0", at=2000, first_id=1)[1:], APPLICATION_END]
    whole = read(tmp_path, lines)
    assert whole.report.completeness.least == 1.0
    del lines[lost]
    log = read(tmp_path, lines)
    assert 0.0 < log.report.completeness.share("tasks") < 1.0
    assert reason in set(log.report.table.reason) - set(whole.report.table.reason)


def test_end_of_a_job_without_a_result_is_no_end(tmp_path):
    end = line("SparkListenerJobEnd", **{"Job ID": 0, "Completion Time": T0 + 800})
    log = read(tmp_path, [*small_log()[:-1], end, APPLICATION_END])
    assert log.queries.skipped.tolist() == ["a job did not end in the log"]
