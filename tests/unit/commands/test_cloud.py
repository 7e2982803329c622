"""Verbs with `--system cloud` and `decima data fetch cloud-vm`."""

import pandas
import pytest

from decima.systems.cloud import TABLE_4, simulate
from decima.systems.cloud.sources import SOURCES
from tests.unit.commands.calls import read_json, refuse, run, show, succeed
from tests.unit.systems.cloud.cases import mirrored

JOBS = "arrival_s,id,type,cores,memory_gb,executors,duration_s\n0,1,cpu,2,4,3,50\n2,2,network,1,2,2,10\n"
VMS = "type,cores,memory_gb,quantity,price_per_hour,currency\nsmall,4,16,2,0.2,EUR\n"
CLOUD = ("--system", "cloud")
SMALL = ("--jobs", "generated:pattern=burst,n=6")
SPARSE = ("--jobs", "generated:n=6")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "vms.csv").write_text(VMS)
    return tmp_path


def test_lists(files, folder):
    for name in SOURCES:
        assert name in run("workload", "sources", *CLOUD).stdout
    shown = show("workload", "vms")
    assert "m1.xlarge" in shown
    assert shown.splitlines()[-1] == "Table 4: 12 VMs, 96 cores, 384 GB, 5.76 USD per hour"
    path = folder / "vms.csv"
    assert succeed("workload", "vms", files / "vms.csv", "--out", path).endswith(f"0.40 EUR per hour; wrote {path}")
    assert pandas.read_csv(path)["price_per_core_hour"].tolist() == [0.05]


def test_simulate_writes_what_the_package_says(folder):
    out, log, gantt = folder / "r.json", folder / "log.csv", folder / "g.png"
    line = succeed("simulate", *CLOUD, *SMALL, "--seed", 3, "--out", out, "--log", log, "--gantt", gantt)
    expected = simulate("generated:pattern=burst,n=6", "ilp_exact", seed=3)
    assert line.startswith("ilp_exact on generated, burst (6 jobs, Table 4, 12 VMs, billed per second, beta 1): cost ")
    assert f"cost {expected.cost:.4f} USD, mean duration {expected.mean_duration_s:.2f} s" in line
    document = read_json(out)
    assert document["cost"] == expected.cost
    assert len(document["vms"]) == len(TABLE_4)
    assert [job["run_s"] for job in document["jobs"]] == expected.run_s.tolist()
    assert pandas.read_csv(log)["vm"].tolist() == expected.where.tolist()
    assert gantt.read_bytes().startswith(b"\x89PNG")


def test_compare(folder):
    path, gantt = folder / "scores.csv", folder / "g.svg"
    shown = show("compare", *CLOUD, "aep", "ilp_exact", *SMALL, "--seeds", 3, "--out", path, "--gantt", gantt)
    lines = shown.splitlines()
    assert lines[0].startswith("cost, generated, burst, Table 4")
    assert "baseline" in shown
    assert lines[-1].startswith("best of 2 schedulers on generated, burst: ilp_exact with 0.")
    table = pandas.read_csv(path)
    assert set(table["scheduler"]) == {"aep", "ilp_exact"}
    assert {"cost", "duration_s", "response_s", "good", "waits", "reward"} <= set(table.columns)
    assert b"<svg" in gantt.read_bytes()
    good = succeed("compare", *CLOUD, "aep", "ilp", *SMALL, "--seeds", 2, "--metric", "good")
    assert good.startswith("best of 2 schedulers on generated, burst: aep with ")


def test_bad_rows_are_named(files, folder):
    """One row per file; the others are in the tests of the package."""
    head, first = JOBS.splitlines()[:2]  # beside others it would be left out
    (files / "jobs.csv").write_text(f"{head}\n{first.replace('1,cpu,2,', '1,cpu,0,')}\n")
    (files / "vms.csv").write_text(VMS + "large,8,32,1,0.4,USD\n")
    for command in ("simulate", "optimum"):
        sentence = refuse(command, *CLOUD, "--jobs", files / "jobs.csv", "--gantt", folder / "g.png")
        assert "jobs.csv, line 2: cores is '0'; expected a whole number of at least 1" in sentence
    assert "currency is 'USD' after 'EUR'" in refuse("compare", *CLOUD, "aep", "--vms", files / "vms.csv")
    assert list(folder.iterdir()) == []


def test_fetch(tmp_path, monkeypatch):
    mirror = mirrored(tmp_path, monkeypatch)
    assert "run 'decima data fetch cloud-vm'" in refuse("simulate", *CLOUD, "--jobs", "burst")
    folder = tmp_path / "data" / "raw" / "cloud_vm"
    expected = f"cloud-vm: 2 files in {folder}, verified (source: {tmp_path / 'mirror'})"
    assert succeed("data", "fetch", "cloud-vm") == expected
    assert "cloud-vm:           2 of 2 files verified, 2 present" in run("data", "status").stdout
    assert succeed("simulate", *CLOUD, "--jobs", "burst").startswith("ilp_exact on burst trace (1 job")
    (mirror / "jobs.csv").write_bytes(b"corrupt")
    (folder / "jobs.csv").unlink()
    assert "jobs.csv: got SHA-256" in refuse("data", "fetch", "cloud-vm")
    assert not (folder / "jobs.csv").exists()


def test_optimum(folder):
    out, log = folder / "best.json", folder / "log.csv"
    shown = show("optimum", *CLOUD, *SPARSE, "--out", out, "--log", log)
    lines = shown.splitlines()
    rows = ["aep", "ilp_exact", "ilp_beta", "good_first", "exact optimum"]
    assert [line.split("  ")[0] for line in lines[1:6]] == rows
    assert lines[-1].startswith("exact optimum of generated, normal (6 jobs, Table 4")
    document = read_json(out)
    assert document["optimum"]["kind"] == "exact optimum"
    assert document["optimum"]["interval_bound"] <= document["cost"]
    assert document["cost"] <= simulate("generated:n=6", "ilp_exact").cost + 1e-9
    assert len(pandas.read_csv(log)) == sum(job["executors"] for job in document["jobs"])
    searched = succeed("optimum", *CLOUD, *SPARSE, "--waits", "--budget", 300)
    assert searched.startswith("best found by search of generated, normal")
    assert "voluntary waits allowed" in searched
