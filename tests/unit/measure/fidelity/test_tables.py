"""From folders of measured runs to the tables of appendix D."""

import numpy as np
import pytest

from decima.connect.eventlog.slim import slim_log
from decima.core.errors import DataUnavailableError, WorkloadError
from measure.fidelity.tables import FIRST_RUN, FRESH, MIX, REAL, WARM, fidelity_tables
from measure.logs import read_alone, read_mixes, scheduler_of
from measure.records import CONTROL, append_alone_run
from tests.unit.connect.planted_logs import measured_run, write_folders
from tests.unit.measure.fidelity.test_simulation import LEVELS, job


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    rng = np.random.default_rng(2)
    write_folders(folder, [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    return folder


def test_tables_of_both_settings(folder):
    tables = fidelity_tables(read_alone(folder / "alone"), read_mixes(folder / "mix"), seeds=3, threads=1)
    runs, floor, summary = (tables[f"fidelity_{name}"] for name in ("runs", "floor", "summary"))
    assert set(runs["name"]) == {"q1-1g", "q2-1g"}
    assert set(runs["setting"]) == {FIRST_RUN, FRESH, WARM, MIX}
    assert (runs["error"] - (runs["simulated_s"] / runs["real_s"] - 1.0)).abs().max() < 1e-2
    assert not runs.isna().any(axis=None)
    # 2 queries, 2 repetitions: first runs and fresh ones at 2 levels, second runs and mixes at one.
    assert len(floor) == 2 * 2 * (2 + 2 + 1 + 1)
    all_effects = summary[(summary["variant"] == "all effects") & summary["bound"]].set_index(["setting", "profile"])
    assert (all_effects["mean_percent"] < 5.0).all()
    assert (summary["simulations"] == 3).all()
    startup = summary[summary["variant"] == "no start-up of executors"]
    assert set(startup["setting"]) == {FRESH}
    assert set(summary[summary["profile"] == REAL]["setting"]) == {FIRST_RUN, FRESH, WARM, MIX}


def test_slim_copies_give_the_same_runs(folder, tmp_path):
    from measure.fidelity.runs import Measurements

    (tmp_path / "events").mkdir()
    (tmp_path / "runs.csv").write_text((folder / "alone" / "runs.csv").read_text())
    for path in (folder / "alone" / "events").iterdir():
        slim_log(path, tmp_path / "events" / f"{path.name}.zstd")
    assert Measurements(read_alone(tmp_path)).runs.equals(Measurements(read_alone(folder / "alone")).runs)


def test_contended_runs_are_left_out(folder, tmp_path):
    (tmp_path / "events").symlink_to(folder / "alone" / "events")
    append_alone_run(tmp_path, measured_run("q01#warm-0", "sf1-e1-r0-a0.json", "q01", "warm", 1, 0))
    append_alone_run(tmp_path, measured_run("q02#warm-0", "sf1-e1-r0-a0.json", "q02", "warm", 1, 0, wait_share=0.9))
    (application,) = read_alone(tmp_path)
    assert application.queries.loc[application.queries.skipped == "", "query"].to_list() == ["q01#warm-0"]


def test_the_first_round_of_a_warm_up_is_left_out(folder):
    (application,) = read_mixes(folder / "mix")
    queries = set(application.queries.loc[application.queries.skipped == "", "query"])
    assert {"warm-up-1-q01#00", "b0-r1-spark_fifo-a0#01"} <= queries
    assert "warm-up-0-q01#00" not in queries


def test_what_is_missing_is_said(folder, tmp_path):
    with pytest.raises(DataUnavailableError, match="no usable run; `decima spark profile`"):
        read_alone(tmp_path)
    with pytest.raises(DataUnavailableError, match="no usable batch; `decima spark validate`"):
        read_mixes(tmp_path)
    append_alone_run(tmp_path, measured_run("q01#warm-0", "gone.json", "q01", "warm", 1, 0))
    with pytest.raises(DataUnavailableError, match=r"gone\.json is missing"):
        read_alone(tmp_path)
    with pytest.raises(WorkloadError, match="nothing can be compared"):
        fidelity_tables([], [], seeds=1)


def test_ids_tell_the_scheduler():
    assert scheduler_of("b0-r1-weighted_fair-a0#03") == "weighted_fair"
    assert scheduler_of("q05#mix") == CONTROL
