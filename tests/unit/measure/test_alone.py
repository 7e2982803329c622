"""What the profiler measures, in which order, and what it leaves out when it goes on."""

import contextlib
from dataclasses import replace

import pytest

from decima.connect.cluster import tpch_queries, tpch_tables
from decima.core.errors import ConfigError, SparkError
from measure import alone
from measure.alone import ATTEMPTS, Measurement, PlannedApplication, plan, summary
from measure.records import ALONE_RUNS, WAIT_LIMIT, AloneRun, append_alone_run, read_alone_runs

QUIET, BUSY = 0.1, WAIT_LIMIT + 0.1


def a_run(query="q01", kind="warm", scale=0.5, executors=2, repetition=0, wait_share=QUIET, **values):
    base = {
        "id": f"{query}#{kind}-{repetition}",
        "log": "log.jsonl",
        "query": query,
        "kind": kind,
        "scale": scale,
        "executors": executors,
        "repetition": repetition,
        "attempt": 0,
        "start_s": 1.5,
        "duration_s": 2.0,
        "rows": 3,
        "executor_start_s": 4.0 if kind == "fresh" else None,
        "run_s": 1.0,
        "wait_s": 1.0,
        "wait_share": wait_share,
        "foreign_share": 0.0,
        "load_average": 1.0,
        "pressure": None,
    }
    return AloneRun(**(base | values))


def test_repetitions_come_last_in_the_plan():
    applications = plan([0.25, 0.5], [4, 1], 2, fresh_at=[4])
    assert [(one.repetition, one.scale, one.executors) for one in applications] == [
        *[(0, 0.25, 4), (0, 0.25, 1), (0, 0.5, 4), (0, 0.5, 1)],
        *[(1, 0.25, 4), (1, 0.25, 1), (1, 0.5, 4), (1, 0.5, 1)],
    ]
    assert [one.kinds for one in applications] == [("warm", "fresh"), ("warm",)] * 2 + [("warm",)] * 4
    assert applications[2].name == "sf0.5-e4-r0"
    assert plan([1.0], [2, 3, 4], 1)[1].kinds == ("warm",)
    assert plan([1.0], [2, 3, 4], 1) == plan([1.0], [2, 3, 4], 1, [2, 4])


def test_queries_are_shuffled_the_same_way_every_time():
    orders = [PlannedApplication(1.0, 2, repetition).runs() for repetition in (0, 1, 2)]
    assert all(sorted(name for name, _ in order) == list(tpch_queries.NAMES) for order in orders)
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert orders[0] == PlannedApplication(0.25, 4, 0).runs()
    both = PlannedApplication(1.0, 2, 0, ("warm", "fresh")).runs()
    assert both[:22] == orders[0]
    assert {kind for _, kind in both[22:]} == {"fresh"}
    assert [name for name, _ in both[22:]] != [name for name, _ in both[:22]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([], [1], 1), "scale factors"),
        (([1.0, 1.0], [1], 1), "each once"),
        (([-1.0], [1], 1), "positive"),
        (([1.0], [0, 1], 1), "executor counts"),
        (([float("nan")], [1], 1), "scale factors"),
        (([1.0], [1], 0), "0 repetitions"),
        (([1.0], [1, 2], 1, [3]), r"fresh executors at \[3\]"),
    ],
)
def test_plan_refuses(values, message):
    with pytest.raises(ConfigError, match=message):
        plan(*values)


def test_table_of_runs_reads_as_written(tmp_path):
    runs = [a_run(), a_run("q22", "fresh", pressure=0.25, scale=0.01), a_run("q02", wait_share=0.9)]
    for run in runs:
        append_alone_run(tmp_path, run)
    assert read_alone_runs(tmp_path) == runs
    assert [run.contended for run in runs] == [False, False, True]
    assert read_alone_runs(tmp_path / "nothing") == []


def test_a_table_of_something_else_is_refused(tmp_path):
    (tmp_path / ALONE_RUNS).write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="columns"):
        read_alone_runs(tmp_path)


def test_a_row_that_was_cut_off_is_measured_again(tmp_path):
    append_alone_run(tmp_path, a_run("q01"))
    append_alone_run(tmp_path, a_run("q02"))
    path = tmp_path / ALONE_RUNS
    path.write_text(path.read_text()[:-20])
    assert read_alone_runs(tmp_path) == [a_run("q01")]
    append_alone_run(tmp_path, a_run("q03"))
    assert [run.query for run in read_alone_runs(tmp_path)] == ["q01", "q03"]


def test_only_what_is_missing_or_contended_is_measured(tmp_path):
    application = PlannedApplication(0.5, 2, 0, ("warm", "fresh"))
    for query in tpch_queries.NAMES[3:]:
        append_alone_run(tmp_path, a_run(query))
        append_alone_run(tmp_path, a_run(query, "fresh"))
    append_alone_run(tmp_path, a_run("q01", wait_share=BUSY))
    append_alone_run(tmp_path, a_run("q01", executors=3))
    append_alone_run(tmp_path, a_run("q02", "fresh", repetition=1))
    for _ in range(ATTEMPTS):
        append_alone_run(tmp_path, a_run("q03", wait_share=BUSY))
    measurement = Measurement(tmp_path, [application])
    missing = measurement.missing(application)
    assert sorted(missing) == sorted(
        [("q01", "warm"), ("q02", "warm"), ("q01", "fresh"), ("q02", "fresh"), ("q03", "fresh")]
    )
    assert missing == [run for run in application.runs() if run in missing]
    assert measurement.total() == 5


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measurements without Spark: what an application would measure is noted; a query can be busy or fail."""
    noted, busy, broken = [], {}, set()

    def application(self, cluster, one, missing, data):
        assert data == tmp_path / "tables"
        for query, kind in missing:
            if query in broken:
                raise SparkError(f"{query} failed")
            noted.append((one.name, query, kind))
            contended = busy.get(query, 0) > 0
            busy[query] = busy.get(query, 0) - 1
            yield a_run(query, kind, one.scale, one.executors, one.repetition, BUSY if contended else QUIET)

    monkeypatch.setattr(Measurement, "_application", application)
    monkeypatch.setattr(alone, "StandaloneCluster", lambda **_: contextlib.nullcontext())
    monkeypatch.setattr(tpch_tables, "generate", lambda scale, data: tmp_path / "tables")
    return noted, busy, broken


def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path, measured):
    noted, _, broken = measured
    applications = plan([0.5], [2, 1], 1, [])
    broken.add(applications[0].runs()[5][0])
    with pytest.raises(SparkError):
        Measurement(tmp_path, applications).measure()
    assert len(noted) == 5
    assert len(read_alone_runs(tmp_path)) == 5
    broken.clear()
    finished = []
    second = Measurement(tmp_path, applications)
    assert second.total() == 39
    second.measure(finished.append)
    assert len(finished) == 39
    assert len(noted) == len(set(noted)) == 44
    third = Measurement(tmp_path, applications)
    assert third.total() == 0
    third.measure()
    assert len(noted) == 44


def test_contended_queries_are_measured_again_but_not_for_ever(tmp_path, measured):
    noted, busy, _ = measured
    busy |= {"q05": 1, "q06": 1000}
    (application,) = plan([0.5], [2], 1, [])
    measurement = Measurement(tmp_path, [application])
    measurement.measure()
    assert noted.count((application.name, "q05", "warm")) == 2
    assert noted.count((application.name, "q06", "warm")) == ATTEMPTS
    assert len(noted) == 22 + 1 + ATTEMPTS - 1
    assert measurement.missing(application) == []
    assert sum(run.contended for run in read_alone_runs(tmp_path)) == 1 + ATTEMPTS


def test_logs_get_their_names_when_their_application_has_ended(tmp_path):
    for name, log in (("sf1-e2-r0-a0", "app-1"), ("sf1-e2-r0-a1", "app-2.inprogress")):
        (tmp_path / name).mkdir()
        (tmp_path / name / log).write_text(log)
        (tmp_path / name / f".{log}.crc").write_text("checksum")
    (tmp_path / "sf1-e1-r0-a0").mkdir()  # killed before Spark opened the log
    alone.finish_logs(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "sf1-e2-r0-a0.jsonl": "app-1",
        "sf1-e2-r0-a1.jsonl": "app-2.inprogress",
    }


def test_summary_leaves_contended_runs_out():
    runs = [
        a_run("q01", duration_s=1.0),
        a_run("q01", duration_s=3.0, repetition=1),
        a_run("q02", duration_s=10.0),
        a_run("q02", duration_s=99.0, repetition=1, wait_share=BUSY),
        a_run("q01", "fresh", duration_s=7.0),
    ]
    table = summary(runs).set_index("kind")
    warm, fresh = table.loc["warm"], table.loc["fresh"]
    assert (warm["runs"], warm["contended"], warm["repetitions"]) == (4, 1, 2)
    assert warm["pass_s"] == 2.0 + 10.0
    assert warm["noise"] == pytest.approx(2**0.5 / 2.0)
    assert fresh["start_s"] == 4.0
    assert fresh["pass_s"] == 7.0
    assert replace(runs[3], wait_share=QUIET).contended is False
