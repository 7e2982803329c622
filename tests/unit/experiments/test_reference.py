"""Kept results, and what is said of results that are others."""

import json
import shutil

import pandas
import pytest
from typer.testing import CliRunner

from decima.core.errors import ConfigError
from experiments import reference, report
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
        path.write_text(json.dumps({"stamp": stamp, "tables": [name]}))
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


def test_adopting_renews_the_code_of_a_stamp_and_nothing_that_has_other_inputs(tables, monkeypatch):
    inputs = {"batch": "one", "latency": "another"}
    record_made_by(inputs, **{"code": "old", "parameters": "same", "models/a.json": "one"})
    monkeypatch.setattr(reference, "experiment_names", lambda: list(inputs))
    stamps = {name: {"code": "new", "parameters": "same", "models/a.json": digest} for name, digest in inputs.items()}
    monkeypatch.setattr(reference, "table_stamp", lambda name, run: stamps[name])
    assert reference.adopt("embedded-quick") == ["batch"]
    assert reference.adopt("embedded-quick") == []


def test_a_number_that_may_not_differ_fails_with_its_largest_relative_difference(tables):
    change(tables, "batch", avg_jct_s=[100.0, 250.0])
    comparison = reference.compare_with_kept("embedded-quick")
    assert comparison.failed
    assert outcomes(comparison)["batch/batch"] == (reference.DIFFERS, "avg_jct_s by up to 20 %")
    assert "batch/batch: DIFFERS (avg_jct_s by up to 20 %)" in list(comparison.lines())


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


def test_figures_with_other_bytes_are_named_and_fail_nothing(tables):
    (tables.parent / "figures" / "batch" / "fig09a_batch.png").write_bytes(b"another font")
    comparison = reference.compare_with_kept("embedded-quick")
    assert comparison.other_figures == ["batch/fig09a_batch.png"]
    assert not comparison.failed


def test_what_is_missing_is_named(tables):
    with pytest.raises(ConfigError, match=r"nothing to compare run tpch-quick with: .*tpch-quick\.zip is missing"):
        reference.compare_with_kept("tpch-quick")
    (tables / "batch" / "batch.csv").unlink()
    with pytest.raises(ConfigError, match="has no tables of batch; run: decima evaluate batch --run embedded-quick"):
        reference.compare_with_kept("embedded-quick")


def test_the_command_fails_where_a_table_differs_that_may_not(tables, monkeypatch):
    monkeypatch.setattr(report, "reproduce", lambda profile: "embedded-quick")
    answer = CliRunner().invoke(app, ["reproduce", "--check"])
    assert answer.exit_code == 0
    assert f"{len(experiment_names())} of {len(experiment_names())} tables equal the kept ones" in answer.output
    change(tables, "batch", avg_jct_s=[100.0, 250.0])
    answer = CliRunner().invoke(app, ["reproduce", "--check"])
    assert answer.exit_code == 1
    assert "batch/batch: DIFFERS" in answer.output
    CliRunner().invoke(app, ["reproduce", "--record"])
    assert CliRunner().invoke(app, ["reproduce", "--check"]).exit_code == 0
