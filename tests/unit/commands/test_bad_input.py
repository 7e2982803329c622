"""Whatever is wrong with the input: exit code 2, one sentence, and no file is written."""

import copy
import json
import os
import re

import pytest

from decima.core import config
from tests.unit.commands.calls import DIAMOND, names, refuse, write_json

CYCLE = copy.deepcopy(DIAMOND[:1])
CYCLE[0]["stages"][0]["parents"] = ["join"]


# tests/unit/workload/test_json_jobs.py has what may be wrong.
MALFORMED = {
    "cycle.json": (json.dumps(CYCLE).encode(), "job 'diamond': .*cycle"),
    "number.json": (b"7", "expected an object"),
    "cut.json": (b'[{"stages": [', "cut.json: .*line 1, column 1"),
    "bytes.json": (b"\xff\xfe\x00", "bytes.json: not JSON text"),
    "damaged.parquet": (b"PAR1 and so on", "truncated, damaged or not a parquet file"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_jobs(name, tmp_path, folder):
    content, message = MALFORMED[name]
    jobs = tmp_path / name
    jobs.write_bytes(content)
    outputs = ("--out", folder / "r.json", "--log", folder / "t.parquet", "--gantt", folder / "g.png")
    for words in (["simulate", "--jobs", jobs, *outputs], ["workload", "describe", jobs, "--out", folder / "t.csv"]):
        assert re.search(message, refuse(*words))
    assert list(folder.iterdir()) == []


def test_job_file_that_is_not_there(tmp_path):
    assert "No such file" in refuse("simulate", "--jobs", tmp_path / "no.json")
    assert "has no file of jobs; expected .json, .parquet" in refuse("simulate", "--jobs", tmp_path)
    assert "no profile file" in refuse("workload", "describe", tmp_path / "no.parquet")


REPLAYS = {
    "stage whose parents run": ([[0, 3, 5]], "decision 0 at 0.000 s: cannot choose stage 3 of job 0"),
    "stage chosen twice": ([[0, 0, 1], [0, 0, 1]], "decision 1: cannot choose stage 0 of job 0"),
    "job that has not arrived": ([[1, 0, 1]], "cannot choose stage 0 of job 1"),
    "no such job": ([[9, 0, 1]], "there is no job 9; expected 0 to 3"),
    "too few decisions": ([[0, 0, 6]], "asks for decision 1 at 0.000 s, but only 1 are logged"),
    "every executor parked": ([[None, None, 10], [None, None, 10], [None, None, 10], [None, None, 10]], "no event is"),
    "not a list": ({"actions": []}, "expected a list of decisions"),
    "a row of two": ([[0, 0]], "decision 0 is [0, 0]; expected [job, stage, limit] and if wanted delay_ms"),
    "stage without job": ([[None, 0, 1]], "decision 0 is [null, 0, 1]"),
    "job without stage": ([[0, None, 1]], "decision 0 is [0, null, 1]"),
    "fraction": ([[0, 0, 1.5]], "decision 0 is [0, 0, 1.5]"),
    "huge": ([[0, 0, 2**70]], "expected whole numbers"),
}


@pytest.mark.parametrize(("rows", "message"), REPLAYS.values(), ids=REPLAYS)
def test_replay_that_cannot_be_followed(rows, message, jobs, tmp_path, folder):
    decisions = write_json(tmp_path / "decisions.json", rows)
    options = ("--mode", "released", "--durations", "mean", "--executors", 10)
    call = ("simulate", "--jobs", jobs, "--scheduler", f"replay:{decisions}", *options)
    sentence = refuse(*call, "--out", folder / "r.json")
    assert message in sentence
    assert list(folder.iterdir()) == []


def test_replay_file_that_cannot_be_read(jobs, tmp_path):
    assert "No such file" in refuse("simulate", "--jobs", jobs, "--scheduler", f"replay:{tmp_path / 'no.json'}")
    broken = tmp_path / "broken.json"
    broken.write_text("[[0, 0, 1")
    assert "is not JSON text" in refuse("simulate", "--jobs", jobs, "--scheduler", f"replay:{broken}")
    broken.write_bytes(b"\xff")
    assert "is not JSON text" in refuse("simulate", "--jobs", jobs, "--scheduler", f"replay:{broken}")


def test_output_that_cannot_be_written(jobs, tmp_path, folder):
    (folder / "file").write_text("content")
    call = ("simulate", "--jobs", jobs)
    assert "is not a folder" in refuse(*call, "--out", folder / "file" / "r.json")
    for command in (call, ("compare", "fair", "fifo", "--jobs", jobs)):
        assert "ends in .png or .pdf or .svg or .html" in refuse(*command, "--gantt", folder / "g.gif")
    (folder / "r.json").mkdir()
    assert "it is a folder" in refuse(*call, "--out", folder / "r.json")
    assert "the command reads that file" in refuse(*call, "--out", jobs)
    assert json.loads(jobs.read_text()) == DIAMOND
    fifo = folder / "pipe.json"
    os.mkfifo(fifo)
    assert "not a regular file" in refuse(*call, "--out", fifo)
    assert names(folder) == ["file", "pipe.json", "r.json"]
    assert (folder / "file").read_text() == "content"


def test_output_folder_without_permission(jobs, folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder)  # the superuser may write anywhere
    assert f"no permission to write in {folder}" in refuse("simulate", "--jobs", jobs, "--out", folder / "r.json")


def test_disk_that_fails_while_writing(jobs, folder, monkeypatch):
    (folder / "r.json").write_text("old")

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    sentence = refuse("simulate", "--jobs", jobs, "--out", folder / "r.json")
    assert sentence == f"cannot write {folder / 'r.json'}: No space left on device"
    assert names(folder) == ["r.json"]
    assert (folder / "r.json").read_text() == "old"


def test_data_that_was_not_fetched(tmp_path, folder, monkeypatch):
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    for command in (["workload", "describe"], ["simulate", "--out", folder / "r.json"]):
        assert "run 'decima data fetch tpch'" in refuse(*command)
    assert "is missing" in refuse("data", "prepare", "tpch")
    assert "unknown data set 'google'; expected tpch or alibaba or cloud-vm" in refuse("data", "fetch", "google")
    assert list(folder.iterdir()) == []


def test_a_module_that_is_not_installed(monkeypatch):
    from experiments import params

    def need(run):
        raise ModuleNotFoundError("No module named 'papermill'", name="papermill")

    monkeypatch.setattr(params, "resolve_run", need)
    assert refuse("report") == "papermill is not installed; 'decima doctor' lists missing parts and what needs them"
