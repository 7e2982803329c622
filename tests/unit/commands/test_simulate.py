"""`decima simulate`: result file, task log, Gantt chart, replay."""

import pandas
import pytest

import decima
from tests.unit.commands.calls import read_json, refuse, show, simulated, succeed, write_json

OPTIONS = ("--executors", 5, "--set", "settings.moving_delay_ms=100")


def test_result_file_says_what_the_library_says(jobs, folder):
    line = succeed("simulate", "--jobs", jobs, "--scheduler", "fifo", *OPTIONS, "--seed", 3, "--out", folder / "r.json")
    expected = decima.simulate(jobs, "fifo", executors=5, seed=3, moving_delay_ms=100.0, log=True)
    document = read_json(folder / "r.json")
    assert document["scheduler"] == "fifo"
    assert document["seed"] == 3
    assert document["label"] == "jobs"
    assert document["settings"]["mode"] == "paper"
    assert document["settings"]["moving_delay_ms"] == 100.0
    assert document["settings"]["time_limit_ms"] is None
    assert document["parameters"] == {"sticky": 1.0, "stage_rule": 0.0}
    assert [job["arrival_ms"] for job in document["jobs"]] == [0, 2500, 1000, 0]
    assert [job["initial"] for job in document["jobs"]] == [True, False, False, False]
    assert document["completion_ms"] == expected.completion_ms.tolist()
    assert document["completion_order"] == expected.completion_order.tolist()
    assert document["makespan_ms"] == expected.makespan_ms
    assert document["avg_jct_ms"] == expected.avg_jct_ms
    assert document["num_decisions"] == expected.num_decisions == len(document["decisions"])
    assert document["num_events"] == expected.num_events
    assert document["node_finish_ms"] == [times.tolist() for times in expected.stage_finish_ms]
    assert document["decisions"] == expected.log.decision_lists()
    assert line.startswith("fifo on jobs (4 jobs, 5 executors, mode paper, sampled durations): average JCT ")
    assert f"{expected.avg_jct_s:.2f} s, makespan {expected.makespan_s:.1f} s, " in line
    assert line.endswith(f"; wrote {folder / 'r.json'}")


@pytest.mark.parametrize("verb", ["simulate --scheduler decima", "optimum decima --instances 1 --budget 1"])
def test_the_policy_that_decima_took_is_named(verb):
    shown = show(*verb.split(), "--jobs", "embedded:n=3", "--executors", 3)
    assert "decima: policy embedded-batch, trained on batches of TPC-H extrapolated from Spark\n" in shown


@pytest.mark.parametrize("mode", ["paper", "released", "simplified"])
def test_modes_set_rules_and_durations(mode, jobs, folder):
    settings = simulated(folder, "--jobs", jobs, "--mode", mode, "--durations", "mean")["settings"]
    assert settings["mode"] == mode
    assert settings["level_rule"] == {"released": "left"}.get(mode, "interpolate")
    changed = ("--set", "settings.level_rule=right")
    if mode == "simplified":
        refusal = refuse("simulate", "--jobs", jobs, "--mode", mode, *changed)
        assert "level_rule is 'right' but has no effect in mode simplified with inflation off" in refusal
        return
    settings = simulated(folder, "--jobs", jobs, "--mode", mode, *changed)["settings"]
    assert settings["level_rule"] == "right"
    assert settings["durations"] == "sampled"


def test_time_limit_leaves_null_for_what_did_not_finish(jobs, folder):
    call = ("simulate", "--jobs", jobs, *OPTIONS, "--out", folder / "r.json", "--set")
    line = succeed(*call, "settings.time_limit_ms=1500")
    document = read_json(folder / "r.json")
    assert document["truncated"] is True
    assert document["end_ms"] == 1500.0
    assert document["makespan_ms"] is None
    assert document["num_unfinished"] == document["completion_ms"].count(None) > 0
    assert document["node_finish_ms"][1] == [None]
    assert f"{document['num_unfinished']} unfinished" in line
    assert "makespan" not in line
    line = succeed(*call, "settings.time_limit_ms=1")
    assert "no job finished in 0.0 s" in line
    assert read_json(folder / "r.json")["avg_jct_ms"] is None


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_task_log(ending, jobs, folder):
    path = folder / f"tasks.{ending}"
    succeed("simulate", "--jobs", jobs, *OPTIONS, "--log", path)
    tasks = pandas.read_parquet(path) if ending == "parquet" else pandas.read_csv(path)
    assert list(tasks.columns) == ["job", "stage", "executor", "wave", "start_s", "finish_s"]
    assert tasks.groupby(["job", "stage"]).size().tolist() == [6, 3, 2, 1, 3, 4, 1]
    assert (tasks["finish_s"] > tasks["start_s"]).all()
    assert set(tasks["executor"]) <= set(range(5))


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")])
def test_gantt_chart(ending, magic, jobs, folder):
    path = folder / f"chart.{ending}"
    succeed("simulate", "--jobs", jobs, *OPTIONS, "--gantt", path)
    assert path.read_bytes().startswith(magic)
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("mode", ["paper", "released", "simplified"])
@pytest.mark.parametrize("scheduler", ["random", "capped_srw"])
def test_replay_of_a_result_file_repeats_the_run(mode, scheduler, jobs, folder):
    options = OPTIONS[: OPTIONS.index("--set")] if mode == "simplified" else OPTIONS  # no delays there
    call = ("--jobs", jobs, "--mode", mode, *options, "--seed", 7)
    first = simulated(folder, *call, "--scheduler", scheduler)
    rows = [row[4:7] for row in first["decisions"]]
    for name, content in (("rows", rows), ("log", first["decisions"]), ("object", {"decisions": rows})):
        decisions = write_json(folder / f"{name}.json", content)
        line = succeed("simulate", *call, "--scheduler", f"replay:{decisions}", "--out", folder / "again.json")
        again = read_json(folder / "again.json")
        assert line.startswith("replay on jobs")
        assert again.pop("scheduler") == "replay"
        assert again.pop("parameters") == {"file": str(decisions)}
        assert again == {key: value for key, value in first.items() if key not in ("scheduler", "parameters")}
