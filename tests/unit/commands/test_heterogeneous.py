"""Verbs with `--system heterogeneous`: what the library computes, written whole or refused in one sentence."""

import importlib
import json

import pandas
import pytest

import decima
from decima.systems.heterogeneous import canonical, load_instance, lower_bound, plan, save_instance
from decima.systems.heterogeneous.optimum.exact import PrioritySearch
from decima.systems.heterogeneous.sources import ClusterOptions, read_instance
from tests.unit.commands.calls import read_json, refuse, run, succeed, write_json

HETEROGENEOUS = ("--system", "heterogeneous")
SIMULATE = ("simulate", *HETEROGENEOUS, "--scheduler")
CHECK = ("workload", "check")
JOBS = ("--jobs", "embedded:n=3", "--edges", "ccr=2", "--executors", 4)
WORKFLOW = {
    "name": "two",
    "schemaVersion": "1.4",
    "workflow": {"tasks": [{"name": "a", "runtimeInSeconds": 2.0}, {"name": "b", "runtimeInSeconds": 3.0}]},
}


def test_the_earlier_name_of_the_system_answers_with_the_present_one(folder):
    words = ("--scheduler", "heft", "--jobs", "canonical")
    with pytest.warns(FutureWarning, match="system 'unequal' is called 'heterogeneous' now"):
        line = succeed("simulate", "--system", "unequal", *words)
    assert line == succeed("simulate", *HETEROGENEOUS, *words)
    with pytest.warns(FutureWarning, match="is called 'heterogeneous' now"):
        assert set(decima.models("unequal")["system"]) == {"heterogeneous"}
    with pytest.raises(ImportError, match=r"decima\.systems\.unequal is called decima\.systems\.heterogeneous now"):
        importlib.import_module("decima.systems.unequal")


def test_schedule_and_check(folder):
    files = [folder / name for name in ("schedule.json", "copies.csv", "chart.png")]
    line = succeed(
        *SIMULATE, "high_rank_up_deft", *JOBS, "--seed", 5, "--out", files[0], "--log", files[1], "--gantt", files[2]
    )
    jobs = folder / "instance.json"
    assert succeed("workload", "write", *HETEROGENEOUS, *JOBS, "--seed", 5, "--out", jobs).endswith(f"; wrote {jobs}")
    instance = read_instance("embedded:n=3", ClusterOptions(4), "ccr=2", 5)
    expected = plan(instance, scheduler="high_rank_up_deft")
    assert f"takes {expected.makespan_s:g} s ({expected.makespan_s / lower_bound(instance):.3f} of the lower" in line
    assert line.endswith(f"; wrote {', '.join(map(str, files))}")
    assert read_json(files[0])["makespan_s"] == expected.makespan_s
    assert pandas.read_csv(files[1])["start_s"].tolist() == expected.start_s.tolist()
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert load_instance(jobs).work.tolist() == instance.work.tolist()
    line = succeed("workload", "check", files[0], "--jobs", jobs)
    assert line.endswith(f"is valid: {len(expected)} copies, makespan {expected.makespan_s:g} s")
    broken = read_json(files[0])
    broken["copies"][0]["finish_s"] += 1.0
    write_json(files[0], broken)
    assert "without interruption" in refuse("workload", "check", files[0], "--jobs", jobs)
    del broken["copies"][:]
    write_json(files[0], broken)
    assert "has no copy (and" in refuse("workload", "check", files[0], "--jobs", jobs)


@pytest.mark.parametrize(("option", "makespan_s"), [("--duplicate", 69), ("--single", 73)])
def test_optimum(option, makespan_s, folder):
    path = folder / "best.json"
    line = succeed("optimum", *HETEROGENEOUS, "--jobs", "canonical", option, "--time-limit-s", 3600, "--out", path)
    assert f"takes {makespan_s} s, proved over" in line
    assert read_json(path)["scheduler"] == "optimum"
    succeed("workload", "check", path, "--jobs", "canonical")


def test_bound():
    result = run("optimum", *HETEROGENEOUS, "bound", "--jobs", "gauss:size=4,ccr=2", "--executors", 3, "--seed", 1)
    instance = read_instance("gauss:size=4,ccr=2", ClusterOptions(3), seed=1)
    assert f"no schedule takes less than {lower_bound(instance):g} s" in result.stdout
    assert len(result.stdout.splitlines()) == 5


def test_compare(folder):
    path = folder / "table.csv"
    options = ("--jobs", "random:nodes=20", "--seeds", 2, "--search", 30, "--out", path)
    line = succeed("compare", *HETEROGENEOUS, "heft", "random_deft", *options)
    instances = [read_instance("random:nodes=20", seed=seed) for seed in (0, 1)]
    expected = decima.compare({"heft": "heft", "random_deft": "random_deft", "search": PrioritySearch(30)}, instances)
    assert expected.scores["scheduler"].tolist() == ["heft"] * 2 + ["random_deft"] * 2 + ["search"] * 2
    pandas.testing.assert_frame_equal(pandas.read_csv(path), expected.scores)
    assert "best of 3 schedulers on" in line


def test_a_bad_instance_is_refused_by_every_verb_that_reads_one(folder):
    """What may be wrong: tests/unit/systems/heterogeneous/test_model.py."""
    nodes = [{"name": "a", "work": 2.0}, {"name": "b", "work": 3.0}]
    edges = [{"parent": "a", "child": "b", "data": 4.0}]
    body = {"jobs": [{"name": "two", "nodes": nodes, "edges": edges}], "cluster": {"speeds": [1.0, 2.0], "rate": 3.0}}
    good = write_json(folder / "good.json", body)
    assert "takes 2.5 s" in succeed(*SIMULATE, "heft", "--jobs", good)
    edges.append({"parent": "b", "child": "a"})
    bad = write_json(folder / "bad.json", body)
    optimum, out = ("optimum", *HETEROGENEOUS), ("--out", folder / "out.json")
    calls = [(*SIMULATE, "heft", *out), (*optimum, *out), (*optimum, "bound"), (*CHECK, good)]
    for words in (*calls, ("compare", "heft", *HETEROGENEOUS)):
        assert "edge 1: data is missing" in refuse(*words, "--jobs", bad), words
    assert sorted(path.name for path in folder.iterdir()) == ["bad.json", "good.json"]


def test_the_instance_that_is_read_is_not_written_and_bad_workflows_are_refused(folder):
    save_instance(canonical(), folder / "jobs.json")
    content = (folder / "jobs.json").read_text()
    assert "the command reads that file" in refuse(
        *SIMULATE, "heft", "--jobs", folder / "jobs.json", "--out", folder / "jobs.json"
    )
    assert (folder / "jobs.json").read_text() == content
    flow = write_json(folder / "flow.json", WORKFLOW | {"schemaVersion": "9.9"})
    write = ("workload", "write", *HETEROGENEOUS, "--out", folder / "new.json")
    assert "version '9.9' of WfFormat" in refuse(*write, "--jobs", flow)
    flow.write_text(json.dumps(WORKFLOW)[:60])
    assert "is not JSON" in refuse(*write, "--jobs", flow)
    assert not (folder / "new.json").exists()
