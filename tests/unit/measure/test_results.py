"""From records and event logs of the experiment on real Spark to its tables, on made-up logs."""

import json
import types
from dataclasses import replace

import pandas
import pytest

from decima.connect.cluster.contention import Load
from decima.core.errors import ConfigError, DataUnavailableError
from experiments.decima import s07_real_spark as real_spark
from measure import collect as collecting
from measure import results
from measure.collect import collect
from measure.experiment import Experiment, Plan
from measure.records import CONTROL, BatchRecord, QueryTimes, query_id, write_record

PLAN = Plan(0.5, executors=2, queries=2, batches=1, repetitions=2, schedulers=("fifo", "fair"), warmups=0)
QUIET = Load(run_s=9.0, wait_s=1.0, foreign_share=0.05, load_average=1.0, pressure=0.2)
# Of the first and the second job, per scheduler.
ENDS_S = {CONTROL: (3.0, 5.0), "fifo": (3.0, 4.0), "fair": (2.0, 4.0)}
START_MS = 1_000_000.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An experiment that was measured, and the event logs it would have: one per run, two tasks per job."""
    found = Experiment(tmp_path, PLAN, {"schedulers": {"fifo": {}, "fair": {}}})
    logs = {}
    for run in PLAN.runs():
        ends = [START_MS + 1000.0 * (end + run.repetition) for end in ENDS_S[run.scheduler]]
        times = tuple(
            QueryTimes(name, START_MS + 20.0 * job, ends[job] + 5.0, 7) for job, name in enumerate(PLAN.batch(0))
        )
        record = BatchRecord(run, 0, f"{run.key}.jsonl", times, QUIET.row(), contended=False)
        write_record(tmp_path, record)
        logs[record.log] = log_of(record, ends)
        if run.scheduler != CONTROL:
            write_decisions(tmp_path, record.log, [(stage, f"{run.scheduler}:alpha=1") for stage in (0, 1, 10, 11)])
    monkeypatch.setattr(collecting, "read_event_log", lambda path: logs[path.name])
    return reopened(found)


def log_of(record, ends_ms):
    ids = [query_id(record.key, job) for job in range(len(ends_ms))]
    queries = pandas.DataFrame({"query": ids, "submit_ms": START_MS + 100.0, "finish_ms": ends_ms, "tasks": 2})
    rows = [
        (ids[job], 10 * job + stage, stage, str(stage + 3), START_MS + 500 * stage, ends_ms[job] - 10)
        for job in range(len(ids))
        for stage in (0, 1)
    ]
    columns = ["query", "spark_stage_id", "stage", "executor", "launch_ms", "finish_ms"]
    tasks = pandas.DataFrame(rows, columns=columns).assign(status="success")
    return types.SimpleNamespace(queries=queries, tasks=tasks)


def write_decisions(folder, log, choices):
    lines = [
        json.dumps({"time_ms": START_MS + 10, "stage": stage, "round_trip_ms": 2.0, "jobs": 2, "scheduler": scheduler})
        for stage, scheduler in choices
    ]
    path = folder / "events" / f"{log.removesuffix('.jsonl')}.decisions.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + '\n{"time_ms": 12', encoding="utf-8")


def reopened(experiment):
    return Experiment(experiment.folder, experiment.plan, experiment.about)


def test_scores_count_from_the_submission_of_the_batch_to_the_ends_of_its_spark_jobs(folder):
    measured = collect(folder)
    scores = measured.scores().set_index(["repetition", "scheduler"])
    for scheduler, ends in ENDS_S.items():
        for repetition in range(2):
            row = scores.loc[(repetition, scheduler)]
            assert row["avg_jct_s"] == pytest.approx(sum(ends) / 2 + repetition)
            assert row["makespan_s"] == pytest.approx(ends[1] + repetition)
    assert measured.jobs.groupby("run")["submit_s"].max().unique() == pytest.approx([0.02])
    assert measured.jobs["arrival_s"].unique() == pytest.approx([0.1])
    assert set(measured.tasks["executor"]) == {0, 1}
    assert measured.tasks.groupby("run").size().unique().tolist() == [4]


def test_decisions_of_the_scheduler_of_the_run_count(folder):
    runs = collect(folder).runs.set_index("scheduler")
    assert runs.loc["fair", "decisions"].tolist() == [4, 4]
    assert runs.loc["fair", "steered_share"].tolist() == [1.0, 1.0]
    assert runs.loc["fair", "round_trip_ms_median"].tolist() == [2.0, 2.0]
    assert runs.loc[CONTROL, "decisions"].tolist() == [0, 0]
    assert runs["usable"].all()


def test_a_run_that_the_service_did_not_steer_is_not_used(folder):
    log = next(record.log for record in folder.records if record.run.scheduler == "fair")
    write_decisions(folder.folder, log, [(0, "fair"), (1, "fair"), (10, "fifo"), (11, "fifo")])
    measured = collect(folder)
    (row,) = measured.runs[measured.runs["log"] == log].to_dict("records")
    assert row["steered_share"] == 0.5
    assert not row["usable"]
    assert row["run"] not in set(measured.tasks["run"])
    assert len(measured.scores()) == len(PLAN.runs()) - 1


def test_what_is_written_is_read_again(folder):
    measured = collect(folder)
    results.write(measured, folder.folder)
    again = results.read(folder.folder)
    assert again.plan == PLAN
    for name in results.TABLES:
        pandas.testing.assert_frame_equal(getattr(again, name), getattr(measured, name))
    (folder.folder / "tasks.parquet").unlink()
    with pytest.raises(DataUnavailableError, match=r"tasks\.parquet is missing"):
        results.read(folder.folder)


def test_logs_without_the_queries_of_a_record_are_refused(folder, monkeypatch):
    queries = pandas.DataFrame({"query": [], "submit_ms": [], "finish_ms": []})
    empty = types.SimpleNamespace(queries=queries, tasks=pandas.DataFrame())
    monkeypatch.setattr(collecting, "read_event_log", lambda path: empty)
    with pytest.raises(ConfigError, match="lacks query"):
        collect(folder)


def test_changes_are_paired_by_round(folder):
    scores = collect(folder).scores().assign(where="real Spark")
    table = real_spark.changes(scores).set_index(["metric", "against", "scheduler"])
    row = table.loc[("avg_jct_s", "fifo", "fair")]
    assert row["pairs"] == 2
    assert row["change_percent"] == pytest.approx(100 * ((3.0 + 4.0) / (3.5 + 4.5) - 1))
    assert row["low"] < row["change_percent"] < row["high"]
    cut = scores[~((scores["scheduler"] == "fair") & (scores["repetition"] == 1))]
    row = real_spark.changes(cut).set_index(["metric", "against", "scheduler"]).loc[("avg_jct_s", "fifo", "fair")]
    assert row["pairs"] == 1
    assert row["change_percent"] == pytest.approx(100 * (3.0 / 3.5 - 1))


def test_the_round_that_is_shown_is_complete(folder):
    measured = collect(folder)
    assert real_spark.shown_round(measured) == (0, 0)
    first = measured.runs["repetition"] == 0
    runs = measured.runs.assign(usable=~(first & (measured.runs["scheduler"] == "fair")))
    assert real_spark.shown_round(replace(measured, runs=runs)) == (0, 1)
    with pytest.raises(ConfigError, match="no round in which every scheduler"):
        real_spark.shown_round(replace(measured, runs=measured.runs.assign(usable=False)))
