"""Recordings of event logs: order of queries, driver time, size, input, contention; all by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from decima.connect.eventlog import prediction
from decima.connect.eventlog.application import read_event_log, read_event_logs
from decima.connect.eventlog.recordings import cluster_slots, read_recordings, shares_host
from decima.core.errors import ConfigError, EventLogError
from decima.systems.spark.capacity import run_recording, sweep
from decima.systems.spark.schedulers import make_scheduler
from tests.unit.connect.event_lines import (
    LOGS,
    T0,
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


def failed(number, at, end, executors=("1",)):
    """A query that fails at its end and holds the executors until then."""
    lines = query(number, at, end, [(at, end, executor) for executor in executors])
    return [*lines[:-1], job_end(number, end, "JobFailed")]


# Between two queries of 2 s each: what fills the 600 s, the seconds that are left out and unexplained, those of a run.
BETWEEN = {
    "a failed query": (lambda: failed(2, 2000, 602_000), 600.0, 0.0, 4.0),
    "a failed query for a part": (lambda: failed(2, 102_000, 502_000), 400.0, 200.0, 204.0),
    "nothing": (list, 0.0, 600.0, 604.0),
    "a query without its end": (lambda: query(2, 2000, 602_000, [(2000, 602_000, "1")])[:-1], 600.0, 0.0, 4.0),
    "tasks without their job": (lambda: query(2, 2000, 602_000, [(2000, 602_000, "1")])[1:], 600.0, 0.0, 4.0),
    "a job without tasks": (lambda: [job_start(2, [], 2000), job_end(2, 602_000)], 0.0, 0.0, 604.0),
}


@pytest.mark.parametrize("what", BETWEEN)
def test_time_without_a_used_query(what, tmp_path):
    lines, left_out_s, unexplained_s, run_s = BETWEEN[what]
    ends = query(1, 0, 2000, [(0, 2000, "1")]), query(3, 602_000, 604_000, [(602_000, 604_000, "1")])
    read = application(tmp_path, [start(0), executor_added("1")], ends[0], lines(), ends[1])
    recorded, log = only(read, unit="application")
    assert (recorded.total_s, recorded.left_out_s, recorded.unexplained_s) == (604.0, left_out_s, unexplained_s)
    assert run_recording(log, make_scheduler("fifo"), 1).makespan_ms == 1000.0 * run_s
    assert log.unexplained_ms.sum() == 1000.0 * unexplained_s
    # The comparison has the queries alone on both sides.
    (compared,) = recorded.compared
    assert compared.recorded_ms.tolist() == [4000.0]
    assert run_recording(compared, make_scheduler("fifo"), 1).makespan_ms == 4000.0


def test_driver_time_is_without_what_another_query_held(tmp_path):
    # The second stage is ready at 1000 and begins at 9000; from 2000 to 8000 a failed query holds one of two executors.
    lines = [
        *(start(0), executor_added("1"), executor_added("2")),
        job_start(0, [stage(1, 1, (), 1), stage(2, 1, (1,), 2)]),
        task_end(0, 1, 0, 1000, 0, "1", kind="ShuffleMapTask"),
        *failed(5, 2000, 8000),
        task_end(1, 2, 9000, 9500, 0, "1"),
        job_end(0, 9500),
    ]
    _, log = only(application(tmp_path, lines), unit="query")
    assert log.driver_ms.tolist() == [0.0, 2000.0]


# Executors (added, removed, cores), tasks (launch, finish, executor): the slots of the cluster that worked.
CLUSTERS = {
    "late": ([(5000, None, 4)], [(5100, 6100, "1")], 4),
    "one after the other": ([(0, None, 3), (1000, None, 3), (2000, None, 3)], [(100, 60_000, "1")], 9),
    "one lost at the end": ([(0, None, 3), (0, 50_000, 3)], [(100, 60_000, "1")], 6),
    "never two at once": ([(0, 1000, 2), (1000, None, 2)], [(0, 1000, "1"), (1000, 2000, "2")], 2),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_recorded_cluster_is_the_one_that_worked(name, tmp_path):
    executors, tasks, slots = CLUSTERS[name]
    added = [executor_added(str(number), at, cores) for number, (at, _, cores) in enumerate(executors, 1)]
    gone = [executor_removed(str(number), end) for number, (_, end, _) in enumerate(executors, 1) if end]
    log = application(tmp_path, [start(0)], added, query(1, 0, max(each[1] for each in tasks), tasks), gone)
    assert cluster_slots(log) == slots
    assert read_recordings([log]).sizes == (slots,)


def test_waiting_for_the_first_executor_is_not_compared(tmp_path):
    lines = [start(0), executor_added("1", 4000, 4)], query(1, 1000, 5000, [(4000, 5000, "1")])
    recorded, _ = only(application(tmp_path, *lines))
    assert recorded.late == 1
    assert recorded.compared[0].recorded_ms.tolist() == [1000.0]


@pytest.mark.parametrize("sign", ["setting", "removed"])
def test_dynamic_allocation_is_recognised_with_its_settings(sign, tmp_path):
    settings = {"spark.dynamicAllocation.executorIdleTimeout": "5s", "spark.executor.instances": "2"}
    settings |= {"spark.dynamicAllocation.enabled": "true"} if sign == "setting" else {}
    log = application(
        tmp_path,
        [line("SparkListenerEnvironmentUpdate", **{"Spark Properties": settings})],
        [start(0), executor_added("1", 0, 2), executor_added("2", 1000, 2)],
        query(1, 0, 4000, [(0, 4000, "1"), (1000, 3000, "2")]),
        [executor_removed("2", 3600, "Executor killed by driver." if sign == "removed" else "lost")],
    )
    recorded, single = only(log)
    assert recorded.dynamic
    assert (single.slots, single.plan.executors, single.plan.cores, single.plan.dynamic) == (4, (2,), 2, 0)
    assert single.plan.changes == {"idle_timeout_ms": 5000.0, "initial_executors": 2, "shuffle_service": False}
    assert recorded.executor_hours == pytest.approx((4.0 + 2.6) / 3600.0)
    assert single.plan.cluster(2).dynamic


def seconds(recording, slots):
    """Time of a recording without chance: all durations of a kind are equal."""
    return run_recording(recording, make_scheduler("spark_fifo"), slots).makespan_ms / 1000.0


def runs_of_one_query(tasks, *executors):
    """Two runs of a query; a task is (launch, end, executor) in s."""
    lines = [start(0), *(executor_added(each) for each in executors)]
    for number, each in enumerate(tasks):
        times = [(1000 * begin, 1000 * end, executor) for begin, end, executor in each]
        at, last = min(time[0] for time in times), max(time[1] for time in times)
        lines += query(number, at, last, times, **{"decima.query": f"q#{number}"})
    return lines


# A new executor takes 20 s for its first task, 1 s for others. Runs of a query of two tasks on one and on two
# executors, and the times of both on 1, 2 and 4 executors.
COLD = {
    "one": ([[(0, 20, "1"), (20, 21, "1")], [(21, 22, "1"), (22, 23, "1")]], "1", (23.0, 21.0, 21.0)),
    "two": ([[(0, 20, "1"), (0, 20, "2")], [(20, 21, "1"), (20, 21, "2")]], "12", (23.0, 21.0, 21.0)),
    # Four tasks in the second run: on four executors two of them are new.
    "more": (
        [[(0, 20, "1"), (20, 21, "1")], [(21 + each, 22 + each, "1") for each in range(4)]],
        *("1", (25.0, 22.0, 40.0)),
    ),
    # Nothing but first tasks: how long later ones take is not known.
    "alone": ([[(0, 20, "1"), (0, 20, "2")]], "12", (40.0, 20.0, 20.0)),
}


@pytest.mark.parametrize("case", COLD)
def test_an_executor_is_new_once_for_an_application(case, tmp_path):
    tasks, executors, expected = COLD[case]
    log = application(tmp_path, runs_of_one_query(tasks, *executors))
    recorded, single = only(log, hosts="many")
    assert recorded.warmup_s == (0.0 if case == "alone" else 19.0)
    assert tuple(seconds(single, slots) for slots in (1, 2, 4)) == expected
    assert seconds(single, len(executors)) * 1000.0 == single.recorded_ms.sum()


def test_first_and_later_runs_are_told_apart_where_queries_share_a_cluster(tmp_path):
    tasks, _, _ = COLD["one"]
    log = application(tmp_path, runs_of_one_query(tasks, "1"))
    _, shared = only(log, unit="query")
    assert run_recording(shared, make_scheduler("fifo"), 1).jct_ms.tolist() == shared.recorded_ms.tolist()
    assert shared.warmup_ms is None
    # Parts of a log know which of its runs came first.
    _, later = only(log.only(["q#1"]), unit="query")
    assert later.workload.jobs[0].profile.num_tasks == 2


@pytest.mark.parametrize(("back", "took"), [(None, 6.0), (3500, 5.0)])
def test_a_lost_executor_is_lost_in_the_comparison(back, took, tmp_path):
    # Eight tasks of 1 s; an executor is lost at 2.5 s with a task, which runs again, and comes back or not.
    ends = [(0, 1, "1"), (0, 1, "2"), (1, 2, "1"), (1, 2, "2"), (2, 3, "1")]
    left = [(3, 4, "1"), (3.5, 4.5, "3"), (4, 5, "1")] if back else [(3 + n, 4 + n, "1") for n in range(3)]
    ends = [(int(1000 * begin), int(1000 * end), each) for begin, end, each in ends + left]
    lines = query(1, 0, ends[-1][1], ends)
    lost = task_end(999, 1, 2000, 2500, 5, "2", reason="ExecutorLostFailure")
    came = [executor_added("3", back)] if back else []
    log = application(
        tmp_path,
        *([start(0), executor_added("1"), executor_added("2")], lines[:-1]),
        *([lost, executor_removed("2", 2500)], came, lines[-1:]),
    )
    recorded = read_recordings([log], hosts="many")
    (each,) = recorded.compared
    assert not recorded.dynamic
    assert each.plan.changes["loss_times_ms"] == (2500.0,)
    fifo = {"spark_fifo": make_scheduler("spark_fifo")}
    swept = sweep([each], fifo, replace(each.plan, draws=1), threads=1)
    assert swept.run_s.tolist() == [each.recorded_ms[0] / 1000.0] == [took]


def test_tasks_of_another_resource_profile_take_more_slots(tmp_path):
    # Two cores: four tasks of one core take 2 s, then three of both cores 3 s.
    wide = stage(2, 3, (), 2) | {"Resource Profile Id": 1}
    sides = {"Executor Resource Requests": {}, "Task Resource Requests": {"cpus": {"Amount": 2.0}}}
    log = application(
        tmp_path,
        [start(0), executor_added("1", 0, 2)],
        [line("SparkListenerResourceProfileAdded", **{"Resource Profile Id": 1}, **sides)],
        query(1, 0, 2000, [(1000 * (each // 2), 1000 * (each // 2 + 1), "1") for each in range(4)]),
        [job_start(2, [wide], 2000)],
        [task_end(200 + each, 2, 2000 + 1000 * each, 3000 + 1000 * each, each) for each in range(3)],
        [job_end(2, 5000)],
    )
    assert log.stages.task_slots.tolist() == [1.0, 2.0]
    assert log.tasks.wave.tolist()[-3:] == ["first", "rest", "rest"]
    _, single = only(log, hosts="many")
    assert [seconds(single, slots) for slots in (2, 4)] == [5.0, 3.0]


def test_attempts_are_joined_by_their_identity(tmp_path):
    first = [application_start("app-1", 0, "1"), executor_added("1"), *query(0, 0, 4000, [(0, 4000, "1")])]
    last = [
        application_start("app-1", 9000, "2"),
        executor_added("1", 9000),
        *query(0, 9000, 10_000, [(9000, 10_000, "1")]),
    ]
    for name, lines in (("a", first), ("b", last)):
        write(tmp_path / name, lines)
    recorded = read_recordings(read_event_logs([tmp_path]))
    assert [each.recorded_ms.tolist() for each in recorded.recordings] == [[1000.0]]
    assert any("earlier attempt" in notice.reason for notice in recorded.report.notices)
    both = read_recordings(read_event_logs([tmp_path], all_attempts=True))
    assert [each.recorded_ms.tolist() for each in both.recordings] == [[4000.0], [1000.0]]


def test_a_stream_is_queries_with_an_interval(tmp_path):
    properties = {"sql.streaming.queryId": "s", "spark.job.description": "words"}
    batches = [
        query(each, 2000 * each, 2000 * each + 500, [(2000 * each, 2000 * each + 500, "1")], **properties)
        for each in range(4)
    ]
    log = application(tmp_path, [start(0), executor_added("1")], *batches)
    recorded, single = only(log)
    assert (recorded.unit, recorded.interval_s, recorded.unexplained_s) == ("query", 2.0, 0.0)
    assert recorded.streams == ("stream words: 4 micro-batches, one every 2 s",)
    assert len(single.workload) == 4
    with pytest.raises(ConfigError, match="the logs have a stream"):
        read_recordings([log], unit="application")


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


# Recorded runs predicted from logs of other sizes.


EVENTS = Path(__file__).parents[4] / "data" / "spark" / "events"


def planted(tmp_path, name, executors, factor=1):
    lines = [executor_added(str(number + 1), 0) for number in range(executors)]
    return read_event_log(write(tmp_path / name, lines + small_log(executors, f"q#{name}", factor=factor)[executors:]))


def warm(name):
    """Queries of a recorded log that ran on executors that were there."""
    application = read_event_log(EVENTS / f"{name}.jsonl.zstd")
    queries = application.queries["query"]
    return application.only(queries[queries.str.contains("#warm-")])


def test_prediction_by_hand(tmp_path):
    # One slot: scan 400 and 300 ms, sum 100 ms: 800 ms. Two slots: 400 ms, the driver's gap of 300 ms, 100 ms.
    one, two = planted(tmp_path, "one", 1), planted(tmp_path, "two", 2)
    runs = prediction.predict_runs([one], [two], draws=1)
    assert runs[["name", "slots", "recorded_s"]].to_numpy().tolist() == [["q", 2, 0.8]]
    errors = prediction.cross_errors([one, two])
    assert sorted(errors) == [1, 2]
    assert prediction.cross_errors([one]) == {}


def test_recorded_runs_on_two_and_three_executors():
    two, three = warm("sf0.25-e2-r0-a0"), warm("sf0.25-e3-r0-a0")
    assert list(prediction.sizes_of([two, three])) == [2, 3]
    errors = prediction.cross_errors([two, three])
    assert errors[2].query[0] < 20.0
    assert errors[3].query[0] < 20.0
    # Without contention on the one host, what three executors waited for counts as work of two.
    assert prediction.error_of(prediction.predict_runs([three], [two])).total[0] < 10.0


@pytest.mark.slow
def test_the_error_that_is_shown_is_that_of_the_recorded_runs():
    percent, data = [], []
    logs = {
        scale: {size: [warm(f"sf{scale}-e{size}-r{run}-a0") for run in (0, 1)] for size in (1, 2, 3, 4)}
        for scale in ("0.25", "0.5")
    }
    for of_size in logs.values():
        for source, sources in of_size.items():
            for size, targets in of_size.items():
                if size != source:
                    percent.append(prediction.error_of(prediction.predict_runs(sources, targets)).query[0])
    assert len(percent) == 24
    assert float(np.mean(percent)) == pytest.approx(prediction.REFERENCE_PERCENT, abs=0.5)
    for size, sources in logs["0.25"].items():
        runs = prediction.predict_runs(sources, logs["0.5"][size], data=2.0)
        data.append(prediction.error_of(runs).query[0])
    assert float(np.mean(data)) < 22.0
