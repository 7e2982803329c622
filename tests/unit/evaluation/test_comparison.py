"""Comparisons of schedulers and their statistics."""

import math
import re

import numpy as np
import pytest
from scipy import stats

import decima
from decima.core.errors import ConfigError, UnknownSchedulerError
from decima.core.objectives import Objective
from decima.evaluation.statistics import mean_interval, paired_change
from decima.systems.spark.schedulers import make_scheduler
from decima.workload import embedded_batch, save, synthetic_batch
from tests.toy_jobs import one_stage, workload

JOBS = synthetic_batch(4, seed=1)


def batch(seed):
    return synthetic_batch(4, seed=seed)


def test_scores_and_summary():
    result = decima.compare(["fair", "fifo", "capped_srw"], batch, executors=10, seeds=range(6), workers=2)
    assert list(result.scores.columns) == ["scheduler", "seed", "avg_jct_s", "makespan_s", "unfinished"]
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


def test_labels():
    two = [make_scheduler("weighted_fair", alpha=alpha) for alpha in (-1.0, 0.5)]
    labels = decima.compare([*two, "fair"], JOBS, 10, [0]).scores.scheduler
    assert labels[0].startswith("weighted_fair(alpha=-1,")
    assert labels[2] == "fair"
    named = decima.compare({"ours": two[0], "theirs": "fair"}, JOBS, 10, [0, 1], baseline="theirs")
    assert set(named.summary().scheduler) == {"ours", "theirs"}
    assert named.baseline == "theirs"


def test_small_numbers_have_more_decimals():
    share = Objective("short", "share of short jobs", "", lambda outcome: float(np.mean(outcome.jct_ms < 20_000)), len)
    text = str(decima.compare(["fair", "fifo"], batch, 10, range(3), metric=share))
    assert re.search(r"fifo +0\.\d{3} ", text), text


def test_jobs_of_one_duration_are_run_once():
    jobs = workload(one_stage(3, 10.0), one_stage(2, 5.0, at_s=4.0))
    assert not jobs.draws
    result = decima.compare(["fifo", "fair"], jobs, 2, range(5))
    assert result.num_runs == 1
    assert not result.drawn
    assert decima.compare(["fifo", "random"], jobs, 2, range(5)).num_runs == 5
    assert JOBS.draws


def test_shown_to_people():
    result = decima.compare(["fair", "fifo"], batch, 10, range(3))
    text = str(result)
    assert "average JCT, synthetic, 10 executors, mode paper, 3 runs each" in text
    assert "against fair" in text
    assert "%" in text
    assert "<table" in result._repr_html_()
    single = str(decima.compare(["fair", "fifo"], JOBS, 10, [0]))
    assert "nan" not in single


def test_runs_that_were_cut_are_not_judged_by_the_jobs_that_finished():
    jobs = workload(one_stage(1, 10.0), one_stage(1, 10.0), one_stage(1, 300.0), one_stage(1, 10.0, at_s=500.0))
    limited = {"durations": "mean", "moving_delay_ms": 0.0, "time_limit_ms": 100_000.0}
    # Two jobs finish, after 10 and 20 s; the third is cut at 100 s, the last never arrives.
    result = decima.compare(["fifo", "random"], jobs, 1, [0, 1], metric="p50_jct", **limited)
    fifo = result.scores[result.scores.scheduler == "fifo"]
    assert fifo.avg_jct_s.tolist() == pytest.approx([130.0 / 3] * 2)
    assert fifo.p50_jct_s.tolist() == [20.0] * 2
    assert fifo.makespan_s.tolist() == [100.0] * 2
    assert fifo.unfinished.tolist() == [2, 2]
    assert fifo.to_come.tolist() == [1, 1]
    assert result.summary("avg_jct").set_index("scheduler").unfinished["fifo"] == 4
    run = decima.simulate(jobs, "fifo", 1, **limited)
    assert (run.avg_jct_s, run.score("avg_jct")) == (15.0, pytest.approx(130.0 / 3))


def test_the_table_says_what_a_time_limit_did():
    long, short = workload(one_stage(1, 300.0)), workload(one_stage(1, 30.0))
    limited = {"executors": 1, "durations": "mean", "time_limit_ms": 100_000.0}
    assert decima.compare(["fair", "fifo"], short, seeds=[0], **limited).note == ""
    shown = decima.compare(["fair", "fifo"], [short, long], **limited)
    for text in (str(shown), shown._repr_html_()):
        assert "unfinished jobs" in text
        assert "≥ " in text
        assert "~ +0.0 %" in text
        assert "The time limit cut runs: unfinished jobs count up to it" in text
    late = decima.compare(["fair", "fifo"], workload(one_stage(1, 1.0, at_s=500.0)), seeds=[0], **limited)
    assert late.summary().mean_s.isna().all()
    assert "nan" not in str(late)
    assert "A dash: cut before any job arrived" in late.note


@pytest.mark.parametrize(
    ("late", "metric", "mark"),
    [
        (True, "avg_jct", "~"),
        (True, "p90_jct", "~"),
        (True, "slowdown", "~"),
        (True, "makespan", "≥"),
        (False, "avg_jct", "≥"),
        (False, "p90_jct", "≥"),
        (False, "slowdown", "≥"),
    ],
)
def test_only_bounds_are_marked_as_bounds(late, metric, mark):
    """Jobs of 1,800 s and 1 s, and 19 of 1 s at 2,000 s or 0: what is counted up to 1,500 s may be too much."""
    late_s = 2000.0 if late else 0.0
    jobs = workload(one_stage(1, 1800.0), one_stage(1, 1.0), *(one_stage(1, 1.0, at_s=late_s) for _ in range(19)))
    settings = {"executors": 1, "mode": "simplified", "seeds": range(2), "metric": metric}
    whole = decima.compare(["fifo"], jobs, **settings)
    cut = decima.compare(["fifo", "fair"], jobs, **settings, time_limit_ms=1500e3)
    assert f" {mark} " in str(cut).splitlines()[2]
    assert cut.summary()["mark"].tolist() == [mark, mark]
    assert whole.summary()["mark"].tolist() == [""]
    (exact,), (counted, _) = (each.summary().iloc[:, 1] for each in (whole, cut))
    assert counted <= exact if mark == "≥" else counted > exact
    run = decima.simulate(jobs, "fifo", 1, mode="simplified", time_limit_ms=1500e3)
    assert (run.mark(metric), run.score(metric)) == (mark, counted)
    assert decima.simulate(jobs, "fifo", 1, mode="simplified").mark(metric) == ""


@pytest.mark.parametrize(("baseline", "sign"), [("fair", "≥ +"), ("fifo", "≤ -")])
def test_signs_say_which_way_the_bound_of_a_change_goes(baseline, sign):
    jobs = embedded_batch(n=8, seed=1)
    fair_ms, fifo_ms = (decima.simulate(jobs, name, 10).makespan_ms for name in ("fair", "fifo"))
    assert fair_ms < fifo_ms
    limit_ms = (fair_ms + fifo_ms) / 2.0
    text = str(decima.compare(["fair", "fifo"], jobs, 10, [0], baseline=baseline, time_limit_ms=limit_ms))
    assert sign in text
    assert sign.startswith("≥") or "≥ -" not in text


class First:
    """A rule in Python: the first stage, or one by chance."""

    name = "first"

    def __init__(self, chance=False, draws=None):
        self.chance = chance
        if draws is not None:
            self.draws = draws

    def reset(self, rng):
        self.rng = rng

    def decide(self, observation):
        number = self.rng.integers(len(observation.frontier)) if self.chance else 0
        return observation.grant(observation.frontier[int(number)], observation.num_free_executors)


@pytest.mark.parametrize(
    ("schedulers", "settings", "runs"),
    [
        (["fifo", "fair"], {"durations": "mean"}, 1),
        (["fifo", "decima:greedy=true"], {"durations": "mean"}, 1),
        (["fifo", First(draws=False)], {"mode": "simplified"}, 1),
        (["fifo", First()], {"mode": "simplified"}, 4),  # what it keeps from run to run nobody knows
        (["fifo", First(chance=True)], {"mode": "simplified"}, 4),
        (["fifo", "random"], {"durations": "mean"}, 4),
        (["fifo", "decima:greedy=false"], {"durations": "mean"}, 4),
        (["fifo", "fair"], {}, 4),
    ],
)
def test_what_draws_nothing_is_run_once(schedulers, settings, runs):
    """All runs would be the same: an interval of their mean would say of no chance that it is small."""
    seeds = range(3, 7)
    result = decima.compare(schedulers, JOBS, 4, seeds, **settings)
    scores = result.scores
    assert scores.seed.tolist() == [*seeds][:runs] * 2
    assert result.drawn == (runs > 1)
    text = str(result)
    assert f", {runs} run{'s' if runs > 1 else ''} each" in text
    assert ("95 %" in text) == (runs > 1)
    assert ("Nothing is drawn: every run of a scheduler would be the same" in text) == (runs == 1)
    for _, row in scores.iterrows():
        chosen = schedulers[row.scheduler != "fifo"]
        assert row.avg_jct_s == decima.simulate(JOBS, chosen, 4, int(row.seed), **settings).avg_jct_s
    each = decima.compare(schedulers, [JOBS, synthetic_batch(4, seed=2)], 4, **settings)
    assert each.scores.seed.tolist() == [0, 1] * 2  # other jobs are another run
    assert each.drawn


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
        ((["fair"], JOBS, 10, 0), ConfigError, "no seed given; expected at least one"),
        ((["fair"], [JOBS], 10, [1, 2]), ConfigError, "2 seeds for 1 workloads"),
        ((["fair"], JOBS, 10, True), ConfigError, "seeds must be a list of whole numbers, got True"),
        ((["fair"], JOBS, 0), ConfigError, "executors must be"),
        ((["fair"], 7), ConfigError, "jobs must be workloads"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        decima.compare(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "fifo"}, "baseline 'fifo' is not among"),
        ({"baseline": ["fair"]}, r"baseline \['fair'\] is not among"),
        ({"seeds": [0], "workers": math.nan}, "workers must be a whole number of at least 1, got nan"),
        ({"metric": "speed"}, "unknown objective"),
        ({"speed": 1}, "unknown simulator setting: speed"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        decima.compare(["fair"], JOBS, **options)


def test_tables_for_papers_and_pages():
    comparison = decima.compare(["fifo", "capped_srw"], "synthetic:n=3,sizes=xs", executors=4, seeds=2)
    summary = comparison.summary()
    latex, markdown = comparison.to_latex().splitlines(), comparison.to_markdown().splitlines()
    assert latex[1] == r"\begin{tabular}{lrrr}"
    assert latex[-1] == r"\end{tabular}"
    assert [line.count("&") for line in latex[5:7]] == [3, 3]
    assert any(line.startswith(r"capped\_srw & ") and r"\%" in line for line in latex)
    ends = [line[line.index(" \\\\") :] for line in latex if "&" in line]  # one row each: four signs would be two rows
    assert ends == [r" \\"] * (1 + len(summary))
    assert markdown[1] == "| --- | --- | --- | --- |"
    assert f"| {summary.scheduler[0]} | {summary.mean_s[0]:.1f} |" in markdown[2]
    assert repr(comparison) == str(comparison)
    html = comparison._repr_html_()
    assert html.count("<svg") == 2
    assert "capped_srw" in html


def test_intervals_of_what_is_never_negative_do_not_go_below_zero():
    comparison = decima.compare(["fair"], "synthetic:n=2", executors=3, seeds=2)
    assert comparison.summary().low_s[0] < 0.0
    assert "-" not in str(comparison).splitlines()[2]
    assert " 0.0 to " in str(comparison)


# ---- statistics -----------------------------------------------------------------------------------------------------


def test_mean_interval_is_students():
    values = np.array([3.0, 5.0, 4.0, 8.0])
    mean, sem, low, high = mean_interval(values)
    reference = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (mean, sem) == (5.0, pytest.approx(stats.sem(values)))
    assert (low, high) == (pytest.approx(reference.low), pytest.approx(reference.high))


def test_one_value_has_no_interval():
    assert mean_interval(np.array([2.0]))[0] == 2.0
    assert all(map(math.isnan, mean_interval(np.array([2.0]))[1:]))
    change, low, high = paired_change(np.array([2.0]), np.array([4.0]))
    assert change == -50.0
    assert all(map(math.isnan, (low, high, *paired_change(np.ones(3), np.zeros(3)))))  # against a mean of zero, too


def test_paired_change_ignores_what_is_hard_for_both():
    baseline = np.array([10.0, 50.0, 200.0, 1000.0])
    assert paired_change(0.9 * baseline, baseline) == pytest.approx((-10.0, -10.0, -10.0))


def test_paired_change_covers_the_truth():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        baseline = rng.lognormal(4.0, 0.5, 30)
        low, high = paired_change(0.8 * baseline * rng.normal(1.0, 0.2, 30), baseline)[1:]
        covered += low <= -20.0 <= high
    assert 0.90 <= covered / 400 <= 0.99
