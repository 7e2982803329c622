"""Duels: what is kept is exact, confirmed on unseen seeds, and shows weaknesses that are known."""

import numpy as np
import pytest

from decima.bench.duel import CHAINS, DIRECTIONS, EXECUTORS, JOBS, SEEDS, UNSEEN, Case, duel, start_case
from decima.core.system import get_system
from decima.workload.sources import get_source
from tests.unit.commands.calls import read_json, refuse, run

GROUPS = ("start", *DIRECTIONS)


@pytest.fixture(scope="module")
def against_fifo():
    return duel("fifo", "capped_srw:plain", evaluations=200, workers=1)


def mean(document, group, trait):
    return np.mean([row["traits"][trait] for row in document[group]])


def test_a_rule_against_itself_has_ratio_one():
    document = duel("fair", "fair", evaluations=8, workers=1)
    rows = [row for group in GROUPS for row in document[group]]
    assert len(rows) == 3 * CHAINS
    assert {row[name] for row in rows for name in ("ratio", "confirmed", "low", "high")} == {1.0}


def test_fifo_loses_where_a_long_job_is_first(against_fifo):
    worst, *_ = against_fifo["first_loses"]
    assert worst["ratio"] > max(row["ratio"] for row in against_fifo["start"]) > 1.0
    assert worst["traits"]["first_share"] == worst["traits"]["largest_share"] > 0.5
    shares = [mean(against_fifo, group, "first_share") for group in ("second_loses", "start", "first_loses")]
    assert shares == sorted(shares)
    assert all(row["low"] > 1.0 for row in against_fifo["first_loses"])


def test_kept_instances_are_not_worse_than_the_start_and_hold_on_unseen_seeds(against_fifo):
    assert not set(SEEDS) & set(UNSEEN)
    least = {"first_loses": [row["ratio"] for row in against_fifo["start"]]}
    least["second_loses"] = [1.0 / value for value in least["first_loses"]]
    for name in DIRECTIONS:
        ratios = [row["ratio"] for row in against_fifo[name]]
        assert ratios == sorted(ratios, reverse=True)
        assert all(kept >= first - 1e-12 for kept, first in zip(ratios, sorted(least[name], reverse=True), strict=True))
        for row in against_fifo[name]:
            assert row["low"] <= row["confirmed"] <= row["high"]
            assert row["confirmed"] == pytest.approx(row["ratio"], rel=0.1)


@pytest.mark.parametrize("name", GROUPS)
def test_a_kept_instance_is_complete(against_fifo, name):
    """From the document alone another program gets the same numbers."""
    row, profiles = against_fifo[name][0], get_source("embedded").profiles()
    names = [profile.name for profile in profiles]
    jobs, arrivals_s = zip(*row["jobs"], strict=True)
    gaps_s = (0.0, *np.diff(arrivals_s).tolist())
    case = Case(profiles, tuple(map(names.index, jobs)), gaps_s, row["executors"], row["moving_delay_s"])
    assert case.traits() == row["traits"]
    spark = get_system("spark")
    schedulers = tuple(spark.make_scheduler(against_fifo[side]) for side in ("first", "second"))
    means = case.scores_s(schedulers, UNSEEN).mean(axis=1)
    assert means == pytest.approx([row["first_s"], row["second_s"]])


def test_the_seed_decides_and_workers_do_not():
    documents = [duel("fair", "sjf_cp", evaluations=12, seed=seed, workers=n) for seed, n in ((0, 1), (0, 2), (1, 1))]
    assert documents[0] == documents[1]
    assert documents[0]["start"] != documents[2]["start"]
    assert documents[0]["evaluations"] == 24


def test_changes_stay_in_their_limits():
    case, rng = start_case(get_source("embedded").profiles(), 0, 1), np.random.default_rng(0)
    seen = []
    for _ in range(500):
        case = case.changed(rng)
        seen.append(case)
        assert len(case.jobs) == len(case.gaps_s) == len(case.workload)
    assert {len(case.jobs) for case in seen} == set(range(JOBS[0], JOBS[1] + 1))
    assert {min(case.executors for case in seen), max(case.executors for case in seen)} == set(EXECUTORS)
    assert len({case.moving_delay_s for case in seen}) > 20


def test_the_command_writes_one_file_and_shows_tables(tmp_path):
    out = tmp_path / "duel.json"
    shown = run("bench", "duel", "fair", "fifo", "--evaluations", 8, "--workers", 1, "--out", out).stdout
    assert read_json(out) == duel("fair", "fifo", evaluations=8, workers=1)
    assert shown.startswith("A: fair\nB: fifo\n")
    assert shown.count("A loses") == CHAINS + 1  # and a column
    assert "first job's share of the work" in shown
    assert shown.endswith(f"\n16 instances tried; wrote {out}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fairr", "fifo"), "unknown scheduler 'fairr'; did you mean 'fair'"),
        (("fair", "heft"), "unknown scheduler 'heft'"),
        (("fair", "fifo", "--jobs", "embeded"), "unknown workload source 'embeded'; did you mean 'embedded'"),
        (("fair", "fifo", "--jobs", "file"), "source 'file' needs path; expected one without"),
        (("fair", "fifo", "--evaluations", 3), "evaluations must be a whole number of at least 4, got 3"),
        (("fair", "fifo", "--seed", -1), "seed must be a whole number of at least 0, got -1"),
        (("fair", "fifo", "--out", "duel.csv"), "ends in .json"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    assert sentence in refuse("bench", "duel", *arguments)
