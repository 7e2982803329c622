import json

import numpy as np
import pytest

import decima
from decima.exceptions import ConfigError, UnknownSchedulerError, WorkloadError
from decima.schedulers import make_scheduler
from decima.workload import save, synthetic_batch

JOBS = synthetic_batch(4, seed=1)


def batch(seed):
    return synthetic_batch(4, seed=seed)


def test_scores_and_summary():
    result = decima.compare(["fair", "fifo", "capped_srw"], batch, executors=10, seeds=range(6), workers=2)
    assert list(result.scores.columns) == ["scheduler", "seed", "avg_jct_s", "makespan_s"]
    assert len(result.scores) == 18
    row = result.scores.query("scheduler == 'fifo' and seed == 3").iloc[0]
    run = decima.simulate(batch(3), "fifo", 10, 3)
    assert (row.avg_jct_s, row.makespan_s) == (run.avg_jct_s, run.makespan_s)
    summary = result.summary().set_index("scheduler")
    assert list(summary.mean_s) == sorted(summary.mean_s)
    assert (summary.low_s < summary.mean_s).all()
    assert (summary.mean_s < summary.high_s).all()
    assert tuple(summary.loc["fair", ["change_percent", "change_low", "change_high"]]) == (0.0, 0.0, 0.0)
    change = 100.0 * (summary.mean_s["fifo"] / summary.mean_s["fair"] - 1.0)
    assert summary.change_percent["fifo"] == pytest.approx(change)
    assert summary.change_low["fifo"] < change < summary.change_high["fifo"]
    assert list(result.summary("makespan_s").columns) == list(result.summary().columns)
    assert result.summary("makespan_s").mean_s.min() == result.scores.groupby("scheduler").makespan_s.mean().min()


def test_kinds_of_jobs_agree(tmp_path):
    seeds = [0, 1, 2]
    one = decima.compare(["fair"], JOBS, 10, seeds).scores
    assert one.equals(decima.compare(["fair"], [JOBS] * 3, 10).scores)
    assert one.equals(decima.compare(["fair"], lambda seed: JOBS, 10, seeds, workers=1).scores)
    save(JOBS, tmp_path / "jobs.json")
    assert one.equals(decima.compare(["fair"], tmp_path / "jobs.json", 10, seeds).scores)
    assert one.avg_jct_s.nunique() == 3  # durations vary with the seed


def test_settings_reach_the_cluster():
    slow = decima.compare(["fair"], JOBS, 10, [0], mode="released", durations="mean", moving_delay_ms=9000.0)
    run = decima.simulate(JOBS, "fair", 10, 0, mode="released", durations="mean", moving_delay_ms=9000.0)
    assert slow.scores.avg_jct_s[0] == run.avg_jct_s


def test_labels():
    two = [make_scheduler("weighted_fair", alpha=alpha) for alpha in (-1.0, 0.5)]
    labels = decima.compare([*two, "fair"], JOBS, 10, [0]).scores.scheduler
    assert labels[0].startswith("weighted_fair(alpha=-1,")
    assert labels[2] == "fair"
    named = decima.compare({"ours": two[0], "theirs": "fair"}, JOBS, 10, [0, 1], baseline="theirs")
    assert set(named.summary().scheduler) == {"ours", "theirs"}
    assert named.baseline == "theirs"


def test_shown_to_people():
    result = decima.compare(["fair", "fifo"], batch, 10, range(3))
    text = str(result)
    assert "average JCT, synthetic, 10 executors, mode paper, 3 runs each" in text
    assert "against fair" in text
    assert "%" in text
    assert "<table" in result._repr_html_()
    single = str(decima.compare(["fair", "fifo"], JOBS, 10, [0]))
    assert "nan" not in single


def test_result_does_not_depend_on_the_rest_of_the_list():
    alone = decima.compare(["random"], batch, 10, range(3), workers=1).scores
    both = decima.compare(["fifo", "random"], batch, 10, range(3), workers=3).scores
    assert np.array_equal(alone.avg_jct_s, both.query("scheduler == 'random'").avg_jct_s)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["fast"], JOBS), UnknownSchedulerError, "unknown scheduler 'fast'.*known: "),
        (([], JOBS), ConfigError, "no scheduler given"),
        (("fair", JOBS), ConfigError, "must be a list"),
        ((["fair", "fair"], JOBS), ConfigError, "given twice"),
        ((["fair"], []), ConfigError, "no workload given"),
        ((["fair"], JOBS, 10, []), ConfigError, "no seed given"),
        ((["fair"], JOBS, 10, [1, 1]), ConfigError, "seed is given twice"),
        ((["fair"], JOBS, 10, [-1]), ConfigError, "seed must be"),
        ((["fair"], [JOBS], 10, [1, 2]), ConfigError, "2 seeds for 1 workloads"),
        ((["fair"], JOBS, 0), ConfigError, "executors must be"),
        ((["fair"], 7), ConfigError, "jobs must be workloads"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        decima.compare(*arguments)


def test_more_bad_input(tmp_path):
    with pytest.raises(ConfigError, match="baseline 'fifo' is not among"):
        decima.compare(["fair"], JOBS, baseline="fifo")
    with pytest.raises(ConfigError, match="unknown objective"):
        decima.compare(["fair"], JOBS, metric="speed")
    with pytest.raises(ConfigError, match="unknown simulator setting: speed"):
        decima.compare(["fair"], JOBS, speed=1)
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": []}))
    with pytest.raises(WorkloadError):
        decima.compare(["fair"], str(tmp_path / "jobs.json"))
