"""The measurement in data/spark: complete, its table and logs tell the same, the files of the package are from it."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas
import pytest

from decima.connect.cluster import tpch_queries
from decima.connect.eventlog.application import read_event_log
from decima.core.errors import DataUnavailableError
from decima.workload import embedded, measured
from decima.workload.measured import read_arrays
from measure.elastic import CASES, compare_runs
from measure.records import LOGS, read_alone_runs
from measure.scaling_model import MODEL_PATH
from measure.workloads import measured_from, quantiles
from tests.unit.commands.calls import refuse, succeed

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and last line of the command that made the files of the package."""
    folder = tmp_path_factory.mktemp("model")
    notes = [f"{key}={measured.conditions()[key]}" for key in ("machine", "java")]
    return folder, succeed("spark", "model", DATA, "--out", folder, "--note", notes[0], "--note", notes[1])


def test_measured_profiles_are_those_of_the_logs(made):
    folder, _ = made
    profiles = read_arrays(folder / measured.PATH.name)
    assert len(profiles) == 44
    for one, stored in zip(profiles, measured.measured_profiles(), strict=True):
        assert one.equals(stored)
    assert (folder / measured.PATH.name).read_bytes() == measured.PATH.read_bytes()


def test_the_model_is_the_fit_to_them(made):
    folder, line = made
    new, stored = (json.loads(path.read_text()) for path in (folder / MODEL_PATH.name, MODEL_PATH))
    for wave, one in stored["parallelism"].items():
        for key in ("mean", "low", "high", "spread", "noise"):
            assert new["parallelism"][wave][key] == pytest.approx(one[key], abs=2e-4)
    assert new["overhead_ms"] == stored["overhead_ms"]
    assert line == f"overhead of a task: {stored['overhead_ms']:.1f} ms; wrote {folder}"


def test_extrapolated_profiles_are_those_of_the_model(made):
    folder, _ = made
    for one, stored in zip(read_arrays(folder / embedded.PATH.name), embedded.embedded_profiles(), strict=True):
        assert one.name == stored.name
        np.testing.assert_allclose(one.work_ms, stored.work_ms, rtol=1e-3)


def test_long_lists_become_quantiles():
    np.testing.assert_array_equal(quantiles([3.0, 1.0, 2.0], 3), [1.0, 2.0, 3.0])
    kept = quantiles(np.arange(1001.0), 10)
    np.testing.assert_array_equal(kept, np.arange(50.0, 1000.0, 100.0))


def test_folders_without_runs_and_malformed_notes_are_refused(tmp_path):
    with pytest.raises(DataUnavailableError, match="holds no run"):
        measured_from(tmp_path, 60)
    assert "holds no run" in refuse("spark", "model", tmp_path, "--out", tmp_path / "out")
    assert "expected KEY=TEXT" in refuse("spark", "model", DATA, "--out", tmp_path / "out", "--note", "machine")
