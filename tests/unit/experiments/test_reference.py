"""Kept results, and what is said of results that are others."""

import json
import shutil
from functools import partial

import pandas
import pytest
from typer.testing import CliRunner

from decima.core.errors import ConfigError
from experiments import making, reference
from experiments import tables as store
from experiments.__main__ import app
from experiments.experiment import experiment_names
from tests.unit.experiments.kept import make_checkout


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Tables and a figure of a run of all experiments."""
    make_checkout(tmp_path, "runs: {embedded-quick: {}, tpch-quick: {}}\nresults: {}")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reports" / "embedded-quick"
    for name in experiment_names():
        (folder / "tables" / name).mkdir(parents=True)
        frame = pandas.DataFrame({"scheduler": ["fair", "fifo"], "avg_jct_s": [100.0, 200.0], "latency_ms": [1.0, 2.0]})
        frame.to_csv(folder / "tables" / name / f"{name}.csv", index=False)
    (folder / "figures" / "batch").mkdir(parents=True)
    (folder / "figures" / "batch" / "fig09a_batch.png").write_bytes(b"a figure")
    reference.record("embedded-quick")
    return folder / "tables"


def change(tables, name, **columns):
    path = tables / name / f"{name}.csv"
    pandas.read_csv(path).assign(**columns).to_csv(path, index=False)


def record_made_by(names, **stamp):
    """Keep the results, with cards that say what some experiments were made by."""
    for name in names:
        path = store.card_path(name, "embedded-quick")
        path.parent.mkdir(exist_ok=True)
        digest = store.sha256((path.parents[1] / "tables" / name / f"{name}.csv").read_bytes())
        path.write_text(json.dumps({"stamp": stamp, "versions": {"numpy": "1.0"}, "tables": {name: digest}}))
    reference.record("embedded-quick")


def outcomes(comparison):
    return {verdict.table: (verdict.outcome, verdict.details) for verdict in comparison.tables}


def test_equal_results_are_equal_and_give_an_equal_file(tables):
    comparison = reference.compare_with_kept("embedded-quick")
    assert not comparison.failed
    assert {outcome for outcome, _ in outcomes(comparison).values()} == {reference.EQUAL}
    assert (comparison.equal_figures, comparison.other_figures) == (["batch/fig09a_batch.png"], [])
    path = reference.reference_path("embedded-quick")
    before = path.read_bytes()
    reference.record("embedded-quick")
    assert path.read_bytes() == before


def test_kept_tables_are_read_where_code_and_parameters_are_those_that_made_them(tables, monkeypatch):
    record_made_by(("batch", "latency"), code="made so")
    assert not reference.compare_with_kept("embedded-quick").failed
    shutil.rmtree(tables.parent)
    computed = []
    monkeypatch.setattr(store, "run_experiment", lambda name, run, **_: computed.append(name) or {})
    monkeypatch.setattr(store, "table_stamp", lambda name, run: {"code": "made so"})
    assert list(store.load("batch", "embedded-quick")["batch"]["avg_jct_s"]) == [100.0, 200.0]
    assert (computed, tables.exists()) == ([], False)
    store.load("latency", "embedded-quick")  # timings are this machine's own
    assert computed == ["latency"]
    monkeypatch.setattr(store, "table_stamp", lambda name, run: {"code": "made otherwise"})
    store.load("batch", "embedded-quick")
    assert computed == ["latency", "batch"]


@pytest.fixture
def with_stamps(tables, monkeypatch):
    """The run, kept with stamps of other code than that of today, which also has another model for one experiment."""
    inputs = {"batch": "one", "latency": "another"}
    record_made_by(inputs, **{"code": "old", "parameters": "same", "models/a.json": "one"})
    monkeypatch.setattr(reference, "experiment_names", lambda: list(inputs))
    now = {name: {"code": "new", "parameters": "same", "models/a.json": digest} for name, digest in inputs.items()}
    for module in (reference, store):
        monkeypatch.setattr(module, "table_stamp", lambda name, run: now[name])
    return tables


def test_stamps_are_renewed_where_tables_that_were_computed_again_are_equal(with_stamps):
    assert reference.stale("embedded-quick") == ["batch: other code", "latency: other code, models/a.json"]
    assert reference.adopt("embedded-quick") == []  # nothing was computed with the code of today
    for name in ("batch", "latency"):
        path = store.card_path(name, "embedded-quick")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"stamp": reference.table_stamp(name, "")}))
    change(with_stamps, "latency", avg_jct_s=[100.0, 250.0])
    assert reference.adopt("embedded-quick") == ["batch"]
    assert reference.stale("embedded-quick") == ["latency: other code, models/a.json"]


def test_unchecked_stamps_say_so_and_those_of_other_inputs_stay(with_stamps):
    assert reference.adopt("embedded-quick", unchecked=True) == ["batch"]
    assert reference.adopt("embedded-quick", unchecked=True) == []
    said = ["batch: stamp renewed without computing", "latency: other code, models/a.json"]
    assert reference.stale("embedded-quick") == said
    answer = CliRunner().invoke(app, ["stale", "--run", "embedded-quick"])
    assert answer.exit_code == 1
    assert said[0] in answer.output
    assert "batch: computed with numpy 1.0 (here " in answer.output


def test_a_kept_table_that_was_edited_is_named(with_stamps):
    path = store.stamps_path("embedded-quick")
    cards = json.loads(path.read_text())
    cards["batch"]["tables"]["batch"] = "of another one"
    cards["batch"]["stamp"] = store.table_stamp("batch", "")
    path.write_text(json.dumps(cards))
    assert "batch: batch is not the table of its stamp" in reference.stale("embedded-quick")
    shutil.rmtree(with_stamps.parent)
    with pytest.raises(ConfigError, match=r"embedded-quick\.zip/batch/batch has changed since it was computed"):
        store.load("batch", "embedded-quick")


@pytest.mark.parametrize("content", ["", "scheduler,avg_jct_s\nfair,1.0\n"])
def test_a_table_that_changed_after_it_was_computed_is_named(content, with_stamps):
    record_made_by(["batch"], **store.table_stamp("batch", ""))
    assert list(store.load("batch", "embedded-quick")["batch"]["avg_jct_s"]) == [100.0, 200.0]
    path = with_stamps / "batch" / "batch.csv"
    path.write_text(content)
    for read in (partial(store.load, "batch"), partial(making.make, "batch"), reference.record):
        with pytest.raises(ConfigError, match=r"batch/batch\.csv has changed since it was computed; delete it, and it"):
            read(run="embedded-quick")
    store.card_path("batch", "embedded-quick").write_text("")
    with pytest.raises(ConfigError, match=r"cards/batch\.json is not the card of tables: "):
        store.load("batch", "embedded-quick")


def test_versions_are_those_of_libraries_that_the_rooms_import():
    assert {"python", "numpy", "numba"} <= set(store.versions("batch"))
    assert "tensorflow" in store.versions("cloud")
    assert "tensorflow" not in store.versions("tuning")
    assert store.other_versions("batch", {"versions": store.versions("batch")}) == ""
    assert store.other_versions("batch", {"versions": {"numba": "0.1"}}).startswith("computed with numba 0.1 (here ")


def test_timings_may_differ_but_nothing_beside_them(tables):
    change(tables, "latency", latency_ms=[1.0, 4.0])
    comparison = reference.compare_with_kept("embedded-quick")
    assert not comparison.failed
    assert outcomes(comparison)["latency/latency"] == (reference.MAY_DIFFER, "latency_ms by up to 50 %")
    change(tables, "latency", scheduler=["fair", "random"])
    comparison = reference.compare_with_kept("embedded-quick")
    assert comparison.failed
    assert outcomes(comparison)["latency/latency"][1] == "scheduler in 1 of 2 rows, latency_ms by up to 50 %"


def test_other_rows_new_tables_and_missing_tables_fail(tables):
    pandas.DataFrame({"scheduler": ["fair"], "avg_jct_s": [100.0], "latency_ms": [1.0]}).to_csv(
        tables / "stream" / "stream.csv", index=False
    )
    (tables / "tuning" / "tuning.csv").rename(tables / "tuning" / "tuned.csv")
    found = outcomes(reference.compare_with_kept("embedded-quick"))
    assert found["stream/stream"] == (reference.DIFFERS, "1 rows of 3 columns instead of 2 rows of 3 columns")
    assert found["tuning/tuning"] == (reference.DIFFERS, "the table is gone")
    assert found["tuning/tuned"] == (reference.DIFFERS, "the table is new")


def test_what_is_missing_is_named(tables):
    with pytest.raises(ConfigError, match=r"nothing to compare run tpch-quick with: .*tpch-quick\.zip is missing"):
        reference.compare_with_kept("tpch-quick")
    (tables / "batch" / "batch.csv").unlink()
    with pytest.raises(ConfigError, match="has no tables of batch; run: decima evaluate batch --run embedded-quick"):
        reference.compare_with_kept("embedded-quick")
