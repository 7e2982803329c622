"""The measurement in data/spark: complete, and its table and its logs tell the same."""

import json
from collections import Counter
from pathlib import Path

import pandas
import pytest

from decima.connect.cluster import tpch_queries
from decima.connect.eventlog.application import read_event_log
from measure.elastic import CASES, compare_runs
from measure.records import LOGS, read_alone_runs

DATA = Path(__file__).parents[3] / "data" / "spark"


@pytest.fixture(scope="module")
def runs():
    return read_alone_runs(DATA)


def test_every_query_was_measured_everywhere(runs):
    cells = Counter((run.scale, run.executors, run.query) for run in runs if run.kind == "warm" and not run.contended)
    assert cells.keys() == {
        (scale, count, name) for scale in (0.25, 0.5) for count in (1, 2, 3, 4) for name in tpch_queries.NAMES
    }
    assert Counter(cells.values()) == {2: 174, 1: 2}
    assert Counter(run.query for run in runs if run.kind == "fresh") == dict.fromkeys(tpch_queries.NAMES, 1)
    assert sum(run.contended for run in runs) == 2


def test_every_log_is_there_and_nothing_else(runs):
    assert {run.log for run in runs} == {path.name for path in (DATA / LOGS).iterdir()}


def test_table_and_log_agree(runs):
    log = "sf0.25-e4-r0-a0.jsonl.zstd"
    application = read_event_log(DATA / LOGS / log)
    found = application.queries.set_index("query")
    mine = [run for run in runs if run.log == log]
    assert len(mine) == 44
    for run in mine:
        # The client waits for planning and for the rows, too.
        assert 0 < found.loc[run.id, "duration_ms"] < 1000 * run.duration_s
        assert found.loc[run.id, "skipped"] == ""
        assert found.loc[run.id, "name"] == run.query
        assert found.loc[run.id, "executors"] == pytest.approx(4)
    started = application.executors["start_delay_ms"].dropna() / 1000.0
    assert max(run.executor_start_s for run in mine if run.kind == "fresh") < 6
    assert len(started) >= 22 * 4


def test_elastic_runs_are_simulated_as_the_table_says():
    folder = DATA / "elastic"
    kept = pandas.read_csv(folder / "runs.csv")
    pandas.testing.assert_frame_equal(
        compare_runs(folder / "events", json.loads((folder / "loads.json").read_text())).round(4), kept
    )
    assert Counter(kept.case) == dict.fromkeys(CASES, 3)
    assert (kept.spark_wait_share < 0.65).all()
    for name in ("run_s", "executor_hours"):
        assert (kept[f"simulated_{name}"] / kept[name] - 1.0).abs().max() < 0.15
