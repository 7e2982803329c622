"""`decima workload from-spark`."""

import shutil

import pandas
import pytest

import decima
from decima.workload import load, save
from tests.unit.commands.calls import names, read_json, refuse, run, show, succeed
from tests.unit.connect.event_lines import LOGS, small_log, write

SIDE = ["jobs.report.csv", "jobs.runs.csv", "jobs.sizes.csv"]


def test_profiles_and_tables_of_a_real_log(folder):
    line = succeed("workload", "from-spark", LOGS / "queries.zstd", "--out", folder / "jobs.parquet")
    assert line == f"1 event log: 3 profiles of 6 runs, 52 tasks; wrote {folder / 'jobs.parquet'}"
    assert names(folder) == ["jobs.parquet", *SIDE]
    workload = load(folder / "jobs.parquet")
    assert workload.label == "jobs"
    assert [job.name for job in workload.jobs] == ["join", "subquery", "scan"]
    sizes, runs, report = (pandas.read_csv(folder / name, keep_default_na=False) for name in reversed(SIDE))
    assert sizes["job"].unique().tolist() == ["join", "subquery", "scan"]
    assert runs["job"].tolist() == ["join", "join", "subquery", "subquery", "scan", "scan"]
    assert report.columns.tolist() == ["application", "item", "reason", "count", "detail"]


def test_what_was_used_and_skipped_is_printed(folder):
    shown = show("workload", "from-spark", LOGS / "failed-task.zstd", "--anyway", "--out", folder / "jobs.parquet")
    printed = [line.strip() for line in shown.splitlines()]
    assert "1  query: used" in printed
    assert "1  query: a job failed or was cancelled" in printed
    assert "1  task: task failed or was killed" in printed


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds no event of a Spark event log (it is empty)"),
        (b"hello\n", "holds no event of a Spark event log (1 lines not a JSON event)"),
        (b"ZV\x01\x00", "is compressed with lzf, which is not supported"),
    ],
)
def test_files_that_are_no_log(content, sentence, folder):
    path = folder / "log"
    path.write_bytes(content)
    assert sentence in refuse("workload", "from-spark", path, "--out", folder / "jobs.parquet")
    assert names(folder) == ["log"]


def test_log_without_a_complete_query(folder):
    path = write(folder / "log", small_log()[:-1])
    result = run("workload", "from-spark", path, "--out", folder / "jobs.parquet")
    assert result.exit_code == 2
    assert result.stderr == "error: no complete query in 1 event log; nothing was written\n"
    assert "1  query: a job did not end in the log" in result.stdout
    assert names(folder) == ["log"]


def test_bad_paths(folder):
    missing = folder / "missing"
    assert refuse("workload", "from-spark", missing, "--out", folder / "j.parquet") == f"no event log at {missing}"
    sentence = refuse("workload", "from-spark", LOGS / "plain", "--out", folder / "j.json")
    assert sentence == f"cannot write {folder / 'j.json'}: expected a name that ends in .parquet"
    sentence = refuse("workload", "from-spark", "s3a://bucket/logs", "--out", folder / "j.parquet")
    assert "s3a:// is not a folder of this machine; copy the logs here first" in sentence


def test_a_copy_of_a_log_counts_once(folder, tmp_path):
    for name in ("logs", "copy"):
        (tmp_path / name).mkdir()
        shutil.copy(LOGS / "queries.zstd", tmp_path / name / "queries.zstd")
    result = run("workload", "from-spark", tmp_path / "logs", tmp_path / "copy", "--out", folder / "jobs.parquet")
    assert "3 profiles of 6 runs, 52 tasks" in result.stdout
    assert "1  event log: another copy of an application that is counted once" in result.stdout


# Options that are given, and the settings of the run: the log's, unless one is given that it contradicts.
BROUGHT = [
    ({}, (0.0, False)),
    ({"moving_delay_ms": 500.0}, (500.0, True)),
    ({"startup": True}, (0.0, True)),
    ({"moving_delay_ms": 0.0}, (0.0, False)),
]


@pytest.mark.parametrize(("given", "settings"), BROUGHT)
@pytest.mark.parametrize("form", ["logs", "jobs.parquet", "jobs.json"])
def test_a_log_brings_the_settings_of_its_cluster(form, given, settings, folder):
    jobs = decima.from_logs(LOGS / "queries.zstd")
    if form == "jobs.parquet":
        jobs = folder / form
        succeed("workload", "from-spark", LOGS / "queries.zstd", "--out", jobs)
    elif form == "jobs.json":
        save(jobs, folder / form)
        jobs = folder / form
    result = decima.simulate(jobs, "fifo", executors=2, **given)
    assert (result.settings.moving_delay_ms, result.settings.startup) == settings
    if form == "logs":
        return
    options = [word for name, value in given.items() for word in ("--set", f"settings.{name}={str(value).lower()}")]
    call = ("--jobs", jobs, "--executors", 2, *options)
    shown = show("simulate", "--scheduler", "fifo", *call, "--out", folder / "run.json")
    assert read_json(folder / "run.json")["avg_jct_ms"] == result.avg_jct_ms
    assert ("startup=false (--set settings.NAME=VALUE changes them)" in shown) == (not settings[1])
    if not given:
        for command in (
            ("compare", "fifo", "fair", "--seeds", 1),
            ("tune", "weighted_fair", "--budget", 1, "--train", 1),
        ):
            assert "brings settings of its cluster: moving_delay_ms=0, startup=false" in show(*command, *call)
