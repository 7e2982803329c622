"""What is measured on schedules of other goals, by hand; targets and what may be said of them."""

import numpy as np
import pandas
import pytest

import decima
from experiments.decima import s07_goals as goals
from tests.toy_jobs import one_stage, workload


def test_moves_ends_and_busy_time_of_a_schedule_made_by_hand():
    """Two executors run four tasks of the first job until 4 s, one goes on with the second until 7 s."""
    jobs = workload(one_stage(4, 2.0), one_stage(1, 3.0))
    result = decima.simulate(jobs, "fifo", 2, log=True, warmup_delay_ms=0.0, moving_delay_ms=0.0)
    assert result.makespan_s == pytest.approx(7.0)
    measured = goals.measured(result)
    assert measured == pytest.approx(
        {"moves_per_100_tasks": 100.0 / 5.0, "last_fifth_percent": 50.0, "busy_percent": 100.0 * 11.0 / 14.0}
    )


@pytest.mark.parametrize(("moves", "makespan_s"), [("cost", 8.0), ("free", 4.0)])
def test_free_moves_take_no_time(moves, makespan_s):
    """One executor and two jobs of 2 s each: the optimum, which FIFO finds, is their work and two moves of 2 s."""
    jobs = workload(one_stage(1, 2.0), one_stage(1, 2.0))
    result = decima.simulate(jobs, "fifo", 1, warmup_delay_ms=0.0, **goals.ENVIRONMENTS[moves])
    assert result.makespan_s == pytest.approx(makespan_s)
    assert result.score("makespan") == pytest.approx(makespan_s)


def tables(policy, seeds=8):
    """Scores of 100 s everywhere but for policies: by goal the factor on it; and moves per task."""
    rng = np.random.default_rng(0)
    base = 100.0 + rng.normal(0.0, 5.0, seeds)
    rows, seen = [], []
    cells = [(name, goals.NOT_TUNED) for name in ("fair", *map(goals.policy_row, policy))]
    cells += [(name, objective) for objective in goals.OBJECTIVES for name in goals.FORMS]
    for moves in goals.ENVIRONMENTS:
        for name, tuned_for in cells:
            factor = policy.get(name.removeprefix("goal_"), 1.0)
            scores = dict.fromkeys(("avg_jct_s", "makespan_s", "p90_jct_s"), factor * base)
            what = {"moves": moves, "scheduler": name, "tuned_for": tuned_for, "seed": range(seeds)}
            rows.append(pandas.DataFrame(what | scores))
            seen.append(pandas.DataFrame(what | {"moves_per_100_tasks": base / factor}))
    return pandas.concat(rows), pandas.concat(seen)


def judged(policy):
    scores, seen = tables(policy)
    changes = goals._changes(scores, [goals.policy_row(goal) for goal in policy])
    return goals.targets(changes, seen, list(policy)).set_index("claim")


def test_targets_are_met_or_missed_by_so_much():
    table = judged({"average": 1.0, "free": 0.75, "makespan": 0.95, "p90": 1.05})
    assert len(table) == 7
    assert list(table["change_percent"].round(6)) == [0.0, -25.0, -5.0, 5.0, -5.0, -25.0, 33.333333]
    missed = ["missed by 3.0 points", "missed by 7.0 points"]
    assert list(table["verdict"]) == ["met", "met", "met", *missed, "met", "met"]


def test_claims_on_policies_that_are_not_there_are_left_out():
    table = judged({"average": 1.01, "makespan": 0.85})
    assert [claim.split(":")[0] for claim in table.index] == ["goal_average", "goal_makespan", "goal_makespan"]
    assert list(table["verdict"]) == ["met"] * 3


@pytest.mark.parametrize(
    ("target", "low", "change", "high", "verdict"),
    [
        (2.0, -1.0, 0.0, 1.0, "met"),
        (2.0, 1.0, 1.5, 2.5, "open: 0.5 points beyond, within the interval"),
        (2.0, 1.0, 2.5, 4.0, "open: 0.5 points short, within the interval"),
        (2.0, 3.0, 4.0, 5.0, "missed by 2.0 points"),
        (-12.0, -14.0, -13.0, -12.5, "met"),
        (25.0, 26.0, 30.0, 34.0, "met"),
        (25.0, 10.0, 20.0, 24.0, "missed by 5.0 points"),
        (25.0, 10.0, 20.0, 26.0, "open: 5.0 points short, within the interval"),
    ],
)
def test_a_verdict_says_no_more_than_its_interval(target, low, change, high, verdict):
    assert goals._verdict(target, change, low, high) == verdict
