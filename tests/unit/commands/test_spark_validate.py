"""`decima spark validate`: refusals, and what is compared and written once everything was measured."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from decima.connect.cluster import machine, tpch_queries, tpch_tables
from measure.validation import Validation
from tests.unit.commands.calls import refuse, show
from tests.unit.connect.planted_logs import write_folders
from tests.unit.measure.fidelity.test_simulation import LEVELS, job


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Spark needs Java 17" in refuse("spark", "validate", "--out", tmp_path / "o")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "pip install 'decima-sched[spark]'" in refuse("spark", "validate", "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--repetitions", 1), "repetitions"),
        (("--executors", 0), "executors"),
        (("--memory-mb", 10**7), "MiB are free"),
    ],
)
def test_wrong_options(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(machine, "require_spark", lambda: None)
    monkeypatch.setattr(tpch_tables, "generator", lambda: ["tpchgen-cli"])
    assert message in refuse("spark", "validate", "--out", tmp_path / "o", *options)
    assert not (tmp_path / "o").exists()


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").touch()
    assert "it is not a folder" in refuse("spark", "validate", "--out", tmp_path / "file")


def test_the_plan_measures_alone_and_together(tmp_path):
    validation = Validation(tmp_path, 0.5, 4, 2)
    alone = validation.alone(None).applications
    assert [(one.executors, one.repetition, one.kinds) for one in alone] == [
        (1, 0, ("warm",)),
        (4, 0, ("warm", "fresh")),
        (1, 1, ("warm",)),
        (4, 1, ("warm", "fresh")),
    ]
    (block,) = validation.mixes().missing()
    assert block.control
    assert [run.repetition for run in block.runs] == [0, 1]
    assert sorted(validation.plan.batch(0)) == sorted(tpch_queries.NAMES)


def test_measured_runs_are_compared_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "require_spark", lambda: None)
    monkeypatch.setattr(machine, "check_memory", lambda *_: None)
    monkeypatch.setattr(tpch_tables, "generator", lambda: ["tpchgen-cli"])
    rng = np.random.default_rng(2)
    write_folders(tmp_path, [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    # Everything is there: nothing is left to be measured.
    monkeypatch.setattr(Validation, "mixes", lambda _: SimpleNamespace(missing=list))
    monkeypatch.setattr(Validation, "measure_alone", lambda *_: None)
    monkeypatch.setattr(Validation, "measure_mixes", lambda *_: None)
    shown = show("spark", "validate", "--out", tmp_path, "--simulations", 2, "--threads", 1)
    lines = shown.splitlines()
    assert lines[-1] == f"wrote fidelity_runs.csv, fidelity_floor.csv, fidelity_summary.csv to {tmp_path}"
    assert any(line.startswith("mix") and "profile alone" in line for line in lines)
    assert set(pandas.read_csv(tmp_path / "fidelity_runs.csv")["name"]) == {"q1-1g", "q2-1g"}
