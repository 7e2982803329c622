"""`decima workload`: describe, generate, convert."""

import pandas
import pytest

from decima.workload import load, synthetic_batch, synthetic_poisson
from tests.unit.cli.calls import refuse, run, succeed


def test_describe_shows_a_row_per_job_and_a_summary(jobs, folder):
    result = run("workload", "describe", jobs, "--out", folder / "t.csv")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
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


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_generate_writes_the_drawn_jobs(ending, folder):
    path = folder / f"w.{ending}"
    line = succeed("workload", "generate", "--kind", "synthetic-batch", "--n", 3, "--seed", 8, "--out", path)
    assert line.startswith("synthetic: 3 jobs, ")
    assert line.endswith(f"; wrote {path}")
    expected = synthetic_batch(3, 8)
    written = load(path)
    assert all(a.profile.equals(b.profile) for a, b in zip(written.jobs, expected.jobs, strict=True))
    assert list(folder.iterdir()) == [path]


def test_generate_keeps_arrivals(folder):
    options = ("--kind", "synthetic-poisson", "--n", 6, "--interarrival-s", 4, "--initial", 2, "--seed", 1)
    succeed("workload", "generate", *options, "--out", folder / "w.json")
    expected = synthetic_poisson(6, 4.0, 1, initial=2)
    assert load(folder / "w.json").arrival_ms.tolist() == expected.arrival_ms.tolist()
    assert load(folder / "w.json").initial.tolist() == [True] * 2 + [False] * 6
    assert "parquet holds profiles without arrival times" in refuse(
        "workload", "generate", *options, "--out", folder / "w.parquet"
    )
    assert [path.name for path in folder.iterdir()] == ["w.json"]


def test_convert_there_and_back(folder):
    succeed("workload", "generate", "--kind", "synthetic-batch", "--n", 3, "--out", folder / "a.json")
    succeed("workload", "convert", folder / "a.json", "--out", folder / "b.parquet")
    succeed("workload", "convert", folder / "b.parquet", "--out", folder / "c.json")
    first, last = load(folder / "a.json"), load(folder / "c.json")
    assert all(a.profile.equals(b.profile) for a, b in zip(first.jobs, last.jobs, strict=True))
    assert "the command reads that file" in refuse("workload", "convert", folder / "a.json", "--out", folder / "a.json")
    assert "ends in .json or .parquet" in refuse("workload", "convert", folder / "a.json", "--out", folder / "a.csv")


def test_tpch_is_the_default(tpch_data):
    line = succeed("workload", "describe")
    assert line.startswith("TPC-H: 20 jobs, ")
    assert succeed("workload", "describe", "--sizes", "2g,5g", "--kind", "tpch-batch") != line
    assert succeed("workload", "describe", "--kind", "tpch-poisson", "--n", 4).startswith("TPC-H: 5 jobs, ")
