"""`decima workload`: sources, describe, write."""

import json

import pandas
import pytest

from decima.core import config
from decima.workload import load, synthetic_batch, synthetic_poisson
from decima.workload.sources import JOB_OPTIONS, PRESETS, get_source, list_sources
from decima.workload.tpch import raw as tpch_raw
from tests.profiles import write_set
from tests.unit.commands.calls import refuse, run, show, succeed


def test_describe_shows_a_row_per_job_and_a_summary(jobs, folder):
    shown = show("workload", "describe", jobs, "--out", folder / "t.csv")
    lines = shown.splitlines()
    assert lines[0].split() == ["name", "stages", "tasks", "work_s", "critical_path_s", "arrival_s"]
    assert [line.split()[1] for line in lines[1:4]] == ["diamond", "late", "early"]
    # 6 tasks of (900 + 700 + 300 + 350.5) / 4, 3 of 400, 2 of (3 x 500 + 600) / 4 and one of 100 ms
    assert lines[1].split()[2:] == ["4", "12", "5.7", "1.2", "0.0"]
    assert lines[-1].startswith(
        "jobs: 4 jobs, 7 stages, 20 tasks, work 9.2 s, longest critical path 1.2 s, last arrival 2.5 s"
    )
    table = pandas.read_csv(folder / "t.csv")
    assert table["tasks"].tolist() == [12, 3, 4, 1]
    assert table["arrival_s"].tolist() == [0.0, 2.5, 1.0, 0.0]


def test_names_of_a_file_are_shown_escaped_and_cut(folder):
    stages = [{"tasks": 1, "duration_ms": 1}]
    names = ["plain", "a\x1b[31mred\n\tb\u202e", "n" * 10_000]
    path = folder / "names.json"
    path.write_text(json.dumps([{"name": name, "stages": stages} for name in names]), encoding="utf-8")
    shown = show("workload", "describe", path)
    assert all(each in shown for each in ("plain", "a\\x1b[31mred\\n\\tb\\u202e", "n" * 30 + "..." + "n" * 27))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) < 200


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_write_keeps_profiles_of_the_drawn_jobs(ending, folder):
    path = folder / f"w.{ending}"
    line = succeed("workload", "write", "synthetic:n=3", "--seed", 8, "--out", path)
    assert line.startswith("synthetic: 3 jobs, ")
    assert line.endswith(f"; wrote {path}")
    expected = synthetic_batch(3, 8)
    written = load(path)
    assert all(a.profile.equals(b.profile) for a, b in zip(written.jobs, expected.jobs, strict=True))
    assert list(folder.iterdir()) == [path]


def test_write_keeps_arrivals(folder):
    options = ("synthetic:n=6,interarrival_s=4,initial=2", "--seed", 1)
    succeed("workload", "write", *options, "--out", folder / "w.json")
    expected = synthetic_poisson(6, 4.0, 1, initial=2)
    assert load(folder / "w.json").arrival_ms.tolist() == expected.arrival_ms.tolist()
    assert load(folder / "w.json").initial.tolist() == [True] * 2 + [False] * 6
    assert "parquet holds profiles without arrival times" in refuse(
        "workload", "write", *options, "--out", folder / "w.parquet"
    )
    assert [path.name for path in folder.iterdir()] == ["w.json"]


def test_every_source_is_listed_with_its_options():
    lines = run("workload", "sources").stdout.splitlines()
    words = [line.split()[0] for line in lines]
    for name in list_sources():
        place = words.index(name)
        options = [option.name for option in get_source(name).options]
        assert words[place + 1 : place + 1 + len(options)] == options
    shared, named = words.index("all"), words.index("with")
    assert words[shared + 1 : named] == [option.name for option in JOB_OPTIONS]
    assert words[named + 1 : -1] == list(PRESETS)


# `decima data`: fetch, prepare, status.


FILES = {f"2g/adj_mat_{query}.npy": f"content {query}".encode() for query in range(1, 4)}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Mirror with three small files that the package expects; no data yet."""
    write_set(tmp_path / "mirror" / "tpch", monkeypatch, FILES)
    monkeypatch.setenv(config.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    return tmp_path / "mirror" / "tpch"


def test_what_is_there_is_not_fetched_again(mirror, tmp_path):
    raw = tmp_path / "data" / "raw" / "tpch"
    expected = f"TPC-H: 3 files in {raw}, verified (source: {mirror.parent})"
    assert succeed("data", "fetch", "tpch") == expected
    first = {path: path.stat().st_ino for path in raw.rglob("*.npy")}
    assert {path.name: path.read_bytes() for path in first} == {
        name.partition("/")[2]: content for name, content in FILES.items()
    }
    assert succeed("data", "fetch", "tpch") == expected
    assert {path: path.stat().st_ino for path in raw.rglob("*.npy")} == first


def test_status_tells_missing_and_damaged_files(tmp_path, monkeypatch):
    raw = tmp_path / "data" / "raw" / "tpch"
    write_set(raw, monkeypatch, FILES)
    monkeypatch.setenv(config.DATA_DIR_VARIABLE, str(tmp_path / "data"))
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)
    assert succeed("data", "status") == "TPC-H is ready to use"
    (raw / "2g" / "adj_mat_1.npy").write_bytes(b"damage")
    (raw / "2g" / "adj_mat_2.npy").unlink()
    result = run("data", "status")
    assert f"2 of 3 in {raw}, 1 damaged" in result.stdout
    assert f"none ({config.MIRROR_VARIABLE} is not set)" in result.stdout
    assert "not prepared" in result.stdout
    assert result.stdout.endswith("TPC-H is missing or damaged: run 'decima data fetch tpch'\n")


def test_prepare_and_status_of_the_real_profiles(tpch_data):
    assert succeed("data", "prepare", "tpch").startswith("TPC-H: profiles of 7 sizes x 22 queries in ")
    result = run("data", "status")
    assert f"{len(tpch_raw.checksums())} of {len(tpch_raw.checksums())} in " in result.stdout
    assert "tpch.parquet" in result.stdout
    assert result.stdout.endswith("TPC-H is ready to use\n")
