"""`decima spark`: options, what is refused before any Spark is started, what is written."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from decima.connect.cluster import machine, tpch_queries, tpch_tables
from decima.workload import read_profiles
from measure import alone
from measure.alone import Measurement, PlannedApplication
from measure.records import append_alone_run, read_alone_runs
from measure.validation import Validation
from tests.unit.commands.calls import refuse, show, succeed
from tests.unit.connect.planted_logs import write_folders
from tests.unit.measure.fidelity.test_simulation import LEVELS, job

DATA = Path(__file__).parents[3] / "data" / "spark"
LOGS = Path(__file__).parents[1] / "connect" / "logs"


@pytest.fixture
def asked(monkeypatch):
    """Plans of the measurements that would be made; none is."""
    plans = []

    def check(self):
        plans.append(self)
        raise machine.SparkError("no Spark in this test")

    monkeypatch.setattr(Measurement, "check", check)
    return plans


@pytest.fixture
def installed(monkeypatch):
    """A machine that seems to have Spark and the generator of tables."""
    monkeypatch.setattr(machine, "require_spark", lambda: None)
    monkeypatch.setattr(alone, "require_spark", lambda: None)
    monkeypatch.setattr(tpch_tables, "generator", lambda: ["tpchgen-cli"])


@pytest.mark.parametrize("counts", [("1", "2", "4"), ("1,2,4",), ("1 2 4",)])
def test_lists_may_be_written_with_blanks_or_commas(tmp_path, asked, counts):
    options = ("--scale", "0.5", "1", "--executors", *counts, "--repetitions", 2, "--out", tmp_path / "o")
    sentence = refuse("spark", "profile", *options)
    assert sentence == "no Spark in this test"
    applications = asked[0].applications
    assert len(applications) == 2 * 3 * 2
    assert applications[0] == PlannedApplication(0.5, 1, 0, ("warm", "fresh"))
    assert applications[1] == PlannedApplication(0.5, 2, 0, ("warm",))
    assert applications[2] == PlannedApplication(0.5, 4, 0, ("warm", "fresh"))
    assert applications[-1] == PlannedApplication(1.0, 4, 1, ("warm",))
    assert not (tmp_path / "o").exists()


def test_fresh_runs_where_asked(tmp_path, asked):
    refuse("spark", "profile", "--executors", 1, 2, 3, "--fresh-at", 2, "--out", tmp_path)
    assert [one.kinds for one in asked[0].applications[:3]] == [("warm",), ("warm", "fresh"), ("warm",)]
    refuse("spark", "profile", "--executors", "1,2", "--fresh-at", "", "--out", tmp_path)
    assert {one.kinds for one in asked[1].applications} == {("warm",)}


def test_a_folder_of_another_experiment(tmp_path):
    path = tmp_path / "card.json"
    path.write_text('{"plan": {"scale": 1}, "limits": {}, "schedulers": {}}')
    assert "belongs to an experiment with another plan" in refuse("spark", "experiment", "fifo", "--out", tmp_path)


@pytest.mark.parametrize("command", ["profile", "validate"])
def test_what_is_missing_is_said(tmp_path, monkeypatch, command):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Spark needs Java 17" in refuse("spark", command, "--out", tmp_path / "o")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "pip install '.[spark]'" in refuse("spark", command, "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_what_was_measured_already_becomes_a_profile_without_spark(tmp_path, asked):
    one = "sf0.25-e4-r0-a0.jsonl.zstd"
    (tmp_path / "events").mkdir()
    shutil.copy(DATA / "events" / one, tmp_path / "events" / one)
    runs = [run for run in read_alone_runs(DATA) if run.log == one]
    for run_ in runs:
        append_alone_run(tmp_path, run_)
    options = ("--scale", 0.25, "--executors", 4, "--repetitions", 1, "--out", tmp_path)
    last = succeed("spark", "profile", *options)
    assert asked == []  # 22 warm and 22 fresh runs are there
    assert last == f"wrote 22 profiles to {tmp_path / 'profile.parquet'}"
    profiles = {profile.name: profile for profile in read_profiles(tmp_path / "profile.parquet")}
    assert profiles.keys() == {f"q{number}-0.25g" for number in range(1, 23)}
    for name, profile_ in profiles.items():
        (warm,) = (one for one in runs if one.query == f"q{int(name[1:-6]):02d}" and one.kind == "warm")
        # One-core executors: what warm tasks took fits into the duration of the query on four of them.
        work_ms = sum(stage.num_tasks * np.mean([*stage.first[0], *stage.rest[0]]) for stage in profile_.stages)
        assert warm.duration_s < work_ms / 1000.0 < 4 * warm.duration_s
        assert all(stage.levels == (4,) for stage in profile_.stages)


def test_validation_measures_alone_and_together(tmp_path):
    validation = Validation(tmp_path, 0.5, 4, 2)
    applications = [(one.executors, one.repetition, one.kinds) for one in validation.alone(None).applications]
    kinds = ((1, ("warm",)), (4, ("warm", "fresh")))
    assert applications == [(executors, number, each) for number in (0, 1) for executors, each in kinds]
    (block,) = validation.mixes().missing()
    assert block.control
    assert [run.repetition for run in block.runs] == [0, 1]
    assert sorted(validation.plan.batch(0)) == sorted(tpch_queries.NAMES)


def test_measured_runs_are_compared_and_written(tmp_path, monkeypatch, installed):
    monkeypatch.setattr(machine, "check_memory", lambda *_: None)
    rng = np.random.default_rng(2)
    write_folders(tmp_path, [job(f"q{number:02d}", 1.0, rng) for number in (1, 2)], LEVELS)
    # Everything is there: nothing is left to be measured.
    monkeypatch.setattr(Validation, "mixes", lambda _: SimpleNamespace(missing=list))
    monkeypatch.setattr(Measurement, "measure", lambda *_: None)
    shown = show("spark", "validate", "--out", tmp_path, "--simulations", 2, "--threads", 1)
    lines = shown.splitlines()
    assert lines[-1] == f"wrote fidelity_runs.csv, fidelity_floor.csv, fidelity_summary.csv to {tmp_path}"
    assert any(line.startswith("mix") and "profile alone" in line for line in lines)
    assert set(pandas.read_csv(tmp_path / "fidelity_runs.csv")["name"]) == {"q1-1g", "q2-1g"}
