"""What is measured on schedules of other goals and compared between them, by hand."""

from itertools import product

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


def test_changes_by_hand_of_policies_and_rules_in_every_cell():
    """Fair has 10, 20 and 30 by the objectives; a tuned rule counts in the cell that it is tuned for."""
    rows = []
    for moves, objective in product(goals.ENVIRONMENTS, (goals.NOT_TUNED, *goals.OBJECTIVES)):
        names = goals.FORMS if objective in goals.OBJECTIVES else ("fair", "goal_average", "goal_free")
        for name, training, seed in product(names, (1, 2), (0, 1, 2)):
            if name.startswith("goal_") or training == 1:
                factor = {"goal_average": 0.9, "goal_free": 0.7 + 0.1 * training}.get(name, 1.0) * (1.0 + seed)
                scores = {"avg_jct_s": 10.0 * factor, "makespan_s": 20.0 * factor, "p90_jct_s": 30.0 * factor}
                cell = {"moves": moves, "scheduler": name, "tuned_for": objective, "training": training, "seed": seed}
                rows.append(cell | scores)
    whole, each = goals._changes(pandas.DataFrame(rows), ["goal_average", "goal_free"])
    cells = whole.set_index(["against", "scheduler", "objective", "moves"])
    assert len(cells) == 2 * 3 * (3 * 4 + 1)  # each of three rules with the four others; free with average
    assert cells.index.is_unique
    of_free = cells.xs("goal_free", level="scheduler").sort_index()
    assert of_free.loc["fair", "change_percent"].to_numpy() == pytest.approx(-15.0)
    assert of_free.loc["goal_average", "change_percent"].to_numpy() == pytest.approx(100.0 * (0.85 / 0.9 - 1.0))
    assert (of_free["trainings"] == 2).all()
    assert (cells.xs("weighted_fair", level="scheduler")["trainings"] == 1).all()
    one = each.set_index(["against", "scheduler", "objective", "moves", "training"]).sort_index()["change_percent"]
    assert one["fair", "goal_free", "p90_jct", "cost"].to_dict() == pytest.approx({1: -20.0, 2: -10.0})


def test_tables_have_means_over_trainings():
    cell = {"moves": "cost", "tuned_for": goals.NOT_TUNED, "seed": 0}
    rows = [("goal_free", 1, 4.0), ("goal_free", 2, 6.0), ("fair", 1, 7.0)]
    table = pandas.DataFrame([cell | {"scheduler": name, "training": n, "avg_jct_s": s} for name, n, s in rows])
    assert goals._over_trainings(table)[["scheduler", "avg_jct_s"]].to_numpy().tolist() == [
        ["goal_free", 5.0],
        ["fair", 7.0],
    ]
