"""Recordings of event logs: order of queries, driver time, size, input, contention; all by hand."""

import numpy as np
import pytest

from decima.connect.eventlog.application import read_event_log
from decima.connect.eventlog.recordings import cluster_slots, read_recordings, shares_host
from decima.core.errors import ConfigError, EventLogError
from decima.systems.spark.capacity import run_recording
from decima.systems.spark.schedulers import make_scheduler
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


def start(at, name="app-1"):
    return line("SparkListenerApplicationStart", **{"App ID": name, "App Name": "nightly", "Timestamp": T0 + at})


def query(number, at, end, tasks, **properties):
    """One stage; tasks are (launch, finish, executor)."""
    lines = [job_start(number, [stage(number, len(tasks), (), number)], at, **properties)]
    for index, (launch, finish, executor) in enumerate(tasks):
        lines.append(task_end(100 * number + index, number, launch, finish, index, executor))
    return [*lines, job_end(number, end)]


def application(tmp_path, *lines, name="log"):
    return read_event_log(write(tmp_path / name, [each for part in lines for each in part]))


def only(*applications, **options):
    recorded = read_recordings(applications, **options)
    (single,) = recorded.recordings
    return recorded, single


def test_one_query_with_time_of_the_driver(tmp_path):
    # Submitted at 300 ms, first launch at 500; the second stage begins 250 ms after the first.
    lines = [
        start(-1000),
        executor_added("1"),
        executor_added("2"),
        job_start(0, [stage(1, 2, (), 1), stage(2, 1, (1,), 2)], 300, **{"decima.query": "q#1"}),
        task_end(0, 1, 500, 900, 0, "1", kind="ShuffleMapTask"),
        task_end(1, 1, 500, 800, 1, "2", kind="ShuffleMapTask"),
        task_end(2, 2, 1150, 1350, 0, "1"),
        job_end(0, 1350),
    ]
    recorded, log = only(application(tmp_path, lines))
    assert (recorded.unit, recorded.sizes, recorded.cores) == ("application", (2,), 1)
    assert (recorded.used, recorded.left_out) == (1, 0)
    assert log.driver_ms.tolist() == [1500.0, 250.0]  # from the start of the application to the first launch
    assert log.recorded_ms.tolist() == [2350.0]
    _, as_query = only(application(tmp_path, lines), unit="query")
    assert as_query.driver_ms.tolist() == [200.0, 250.0]
    assert as_query.recorded_ms.tolist() == [1050.0]
    result = run_recording(as_query, make_scheduler("fifo"), 2)
    assert result.log.start_ms[0] == 200.0
    assert result.stage_finish_ms[0][1] - result.stage_finish_ms[0][0] == pytest.approx(450.0)


def test_a_stage_that_waits_for_slots_waits_not_for_the_driver(tmp_path):
    # Both stages are ready at 0; the one slot is free until 100, then busy with the first until 1100.
    lines = [
        start(0),
        executor_added("1"),
        job_start(0, [stage(1, 1, (), 1), stage(2, 1, (), 2), stage(3, 1, (1, 2), 3)]),
        task_end(0, 1, 100, 1100, 0, "1", kind="ShuffleMapTask"),
        task_end(1, 2, 1100, 1500, 0, "1", kind="ShuffleMapTask"),
        task_end(2, 3, 1550, 1600, 0, "1"),
        job_end(0, 1600),
    ]
    _, log = only(application(tmp_path, lines))
    assert sorted(log.driver_ms.tolist()) == [50.0, 100.0, 100.0]


def test_queries_follow_each_other(tmp_path):
    first = query(1, 0, 1000, [(0, 1000, "1")])
    second = query(2, 1400, 2500, [(1500, 2500, "1")])
    _, log = only(application(tmp_path, [start(0), executor_added("1")], first, second))
    profile = log.workload.jobs[0].profile
    assert [each.parents for each in profile.stages] == [(), (0,)]
    assert [each.name for each in profile.stages] == ["job-1/stage-0", "job-2/stage-0"]
    assert log.driver_ms.tolist() == [0.0, 500.0]
    # On any cluster the second begins 500 ms after the first.
    assert run_recording(log, make_scheduler("fifo"), 1).makespan_ms == 2500.0


def test_overlapping_queries_share_what_went_before(tmp_path):
    lines = (
        query(1, 0, 1000, [(0, 1000, "1")]),
        query(2, 1100, 2000, [(1100, 2000, "1")]),
        query(3, 1200, 1900, [(1200, 1900, "2")]),
        query(4, 2100, 2200, [(2100, 2200, "1")]),
    )
    log = application(tmp_path, [start(0), executor_added("1"), executor_added("2")], *lines)
    recorded, shared = only(log)
    assert recorded.unit == "query"
    assert [job.arrival_ms for job in shared.workload.jobs] == [0.0, 1100.0, 1200.0, 2100.0]
    _, chained = only(log, unit="application")
    assert [each.parents for each in chained.workload.jobs[0].profile.stages] == [(), (0,), (0,), (1, 2)]
    assert chained.driver_ms.tolist() == [0.0, 100.0, 200.0, 100.0]


def test_size_is_that_while_queries_run(tmp_path):
    # Between the queries the executors are replaced, which takes 10 s.
    lines = (
        [start(0), executor_added("1"), executor_added("2")],
        query(1, 0, 1000, [(0, 1000, "1")]),
        [executor_removed("1", 1100), executor_removed("2", 1100), executor_added("3", 11_000)],
        [executor_added("4", 11_000, 2)],
        query(2, 11_000, 12_000, [(11_000, 12_000, "3")]),
    )
    assert cluster_slots(application(tmp_path, *lines)) == 2  # 2 and 3, a second each


def test_more_input_is_more_tasks_or_longer_ones(tmp_path):
    read = {"Input Metrics": {"Bytes Read": 1000}}
    shuffled = {"Shuffle Read Metrics": {"Remote Bytes Read": 10, "Local Bytes Read": 10}}
    lines = [
        start(0),
        executor_added("1"),
        job_start(0, [stage(1, 1, (), 1), stage(2, 1, (1,), 2), stage(3, 1, (2,), 3)]),
        task_end(0, 1, 0, 100, 0, "1", kind="ShuffleMapTask", **{"Task Metrics": read}),
        task_end(1, 2, 100, 300, 0, "1", kind="ShuffleMapTask", **{"Task Metrics": shuffled}),
        task_end(2, 3, 300, 400, 0, "1"),
        job_end(0, 400),
    ]
    log = application(tmp_path, lines)
    _, more = only(log, data=2.5)
    stages = more.workload.jobs[0].profile.stages
    assert [each.num_tasks for each in stages] == [3, 1, 1]
    assert [each.mean_duration_ms for each in stages] == [100.0, 500.0, 100.0]
    assert only(log)[1].workload.jobs[0].profile.num_tasks == 3


def test_contention_on_one_host(tmp_path):
    # 10 s of tasks, 4 s of it on the CPU, with two slots: 6 / 4 / 2 per slot.
    cpu = {"Task Metrics": {"Executor CPU Time": 2_000_000_000}}
    lines = [
        start(0),
        executor_added("1"),
        executor_added("2"),
        job_start(0, [stage(1, 2, (), 1)]),
        task_end(0, 1, 0, 5000, 0, "1", **cpu),
        task_end(1, 1, 0, 5000, 1, "2", **cpu),
        job_end(0, 5000),
    ]
    log = application(tmp_path, lines)
    assert shares_host(log)
    assert only(log)[1].contention.tolist() == [0.75]
    assert only(log, hosts="many")[1].contention.tolist() == [0.0]
    apart = [each.replace(b'"Host":"h"', b'"Host":"g"') if b'"Executor ID":"2"' in each else each for each in lines]
    two = application(tmp_path, apart, name="two")
    assert not shares_host(two)
    assert only(two)[1].contention.tolist() == [0.0]
    assert only(two, hosts="one")[1].contention.tolist() == [0.75]


@pytest.mark.parametrize("name", ["queries.zstd", "adaptive.zstd", "broadcast.lz4", "speculation.zstd", "plain"])
@pytest.mark.parametrize("unit", ["application", "query"])
def test_real_logs_run_again_about_as_they_were(name, unit):
    log = read_event_log(LOGS / name)
    recorded, single = only(log, unit=unit)
    assert recorded.used + recorded.left_out == len(log.queries)
    assert (single.driver_ms >= 0.0).all()
    result = run_recording(single, make_scheduler("fifo"), single.slots)
    assert result.jct_ms.sum() == pytest.approx(single.recorded_ms.sum(), rel=0.25)


def test_failed_and_killed_work_is_left_out():
    recorded = read_recordings(
        [read_event_log(LOGS / "failed-task.zstd"), read_event_log(LOGS / "killed-executor.zstd")]
    )
    assert recorded.left_out >= 1
    for single in recorded.recordings:
        assert np.isfinite(run_recording(single, make_scheduler("fifo"), 2).jct_ms).all()


def test_refusals(tmp_path):
    log = read_event_log(write(tmp_path / "log", small_log()))
    with pytest.raises(ConfigError, match="unit is 'job'"):
        read_recordings([log], unit="job")
    with pytest.raises(ConfigError, match="data is 0"):
        read_recordings([log], data=0)
    with pytest.raises(ConfigError, match="hosts is 'two'"):
        read_recordings([log], hosts="two")
    cut = read_event_log(write(tmp_path / "cut", small_log()[:-1]))
    with pytest.raises(EventLogError, match="no application in the event logs has a complete query"):
        read_recordings([cut])
