"""`decima compare` and `decima tune`."""

import pandas
import pytest

import decima
from decima.workload import synthetic_batch
from tests.unit.commands.calls import read_json, run, show, simulated, succeed

SMALL = ("--jobs", "synthetic:n=3,sizes=xs+s", "--executors", 8)


def test_scores_are_those_of_the_library(folder):
    path = folder / "scores.csv"
    shown = show(
        "compare", "fifo", "weighted_fair:alpha=0.5,sticky=0", "fair", *SMALL, "--seeds", 4, "--seed", 2, "--out", path
    )
    expected = decima.compare(
        {
            "fifo": "fifo",
            "weighted_fair:alpha=0.5,sticky=0": decima.make_scheduler("weighted_fair", alpha=0.5, sticky=0),
            "fair": "fair",
        },
        lambda seed: synthetic_batch(3, seed, ["xs", "s"]),
        executors=8,
        seeds=range(2, 6),
    )
    pandas.testing.assert_frame_equal(pandas.read_csv(path), expected.scores, check_exact=True)
    lines = shown.splitlines()
    assert lines[:-1] == str(expected).splitlines()
    best = expected.summary().iloc[0]
    assert lines[-1].startswith(f"best of 3 schedulers on synthetic: {best.scheduler} with {best.mean_s:.2f} s")
    assert lines[-1].endswith(f"; wrote {path}")


@pytest.mark.parametrize("ending", ["png", "html"])
def test_schedules_of_the_first_seed_above_each_other(ending, folder):
    path = folder / f"both.{ending}"
    assert succeed("compare", "fifo", "fair", *SMALL, "--seeds", 2, "--gantt", path).endswith(f"; wrote {path}")
    assert path.stat().st_size > 10_000
    if ending == "html":
        page = path.read_text(encoding="utf-8")
        assert "FIFO: average JCT" in page
        assert "fair: average JCT" in page


def test_baseline_metric_and_file_of_jobs(jobs, folder):
    path = folder / "scores.parquet"
    call = ("compare", "random", "fair", "--jobs", jobs, "--seeds", 3, "--executors", 4)
    line = succeed(*call, "--baseline", "fair", "--metric", "makespan_s", "--out", path)
    table = pandas.read_parquet(path)
    assert table["seed"].tolist() == [0, 1, 2] * 2
    assert table["avg_jct_s"].nunique() > 2  # durations and decisions differ by seed
    assert "makespan, jobs, 4 executors, mode paper, 3 runs each" in run(*call, "--metric", "makespan_s").stdout
    assert line.startswith("best of 2 schedulers on jobs: fair with ")
    assert "against fair" not in line
    assert succeed(*call, "--threads", 1, "--baseline", "fair", "--metric", "makespan_s", "--out", path) == line


def tune(folder, *more):
    return succeed(
        *("tune", "capped_srw:stage_rule=0", *SMALL, "--train", 2, "--test", 2, "--budget", 12, "--seed", 1), *more
    )


def test_tuned_parameters_are_a_scheduler_everywhere(jobs, folder):
    path = folder / "tuned.json"
    line = tune(folder, "--baseline", "fair", "--out", path)
    assert line.startswith("capped_srw tuned on synthetic: ")
    assert line.endswith(f" against its defaults; wrote {path}")
    card = read_json(path)
    assert card["scheduler"] == "capped_srw"
    assert card["parameters"]["stage_rule"] == 0.0
    assert "stage_rule" not in card["tuned"]
    assert card["train"]["seeds"] == [1, 2]
    assert card["test"]["seeds"] == [1_000_001, 1_000_002]
    assert {score["policy"] for score in card["scores"]} == {"tuned", "default", "fair"}
    result = simulated(folder, "--jobs", jobs, "--scheduler", path)
    assert result["scheduler"] == "capped_srw"
    assert result["parameters"] == decima.make_scheduler(str(path)).values
    parameters = simulated(folder, "--jobs", jobs, "--scheduler", f"{path}:c0=2")["parameters"]
    assert parameters == decima.make_scheduler(str(path)).values | {"c0": 2.0}
    assert succeed("compare", path, "fair", *SMALL, "--seeds", 2).startswith("best of 2 schedulers")


def test_a_grid_keeps_the_whole_table(folder):
    table, path = folder / "grid.csv", folder / "tuned.json"
    jobs = ["weighted_fair", "--jobs", "synthetic:n=3,sizes=xs", "--executors", "5", "--train", "2", "--test", "1"]
    line = succeed("tune", *jobs, "--grid", "alpha=-1+0,order=0+1", "--table", table, "--out", path)
    assert line.startswith("weighted_fair tuned on synthetic: ")
    assert len(pandas.read_csv(table)) == 4
    assert read_json(path)["search"] == {"grid": {"alpha": [-1.0, 0.0], "order": [0.0, 1.0]}}
