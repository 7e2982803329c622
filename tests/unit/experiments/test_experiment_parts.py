"""The arithmetic inside the experiments, on numbers that can be followed by hand."""

from itertools import product

import numpy as np
import pandas
import pytest

import decima
import experiments
from decima.core.errors import ConfigError
from decima.evaluation.statistics import paired_change
from decima.systems.spark.capacity import Recording
from decima.workload.jobs import Job, Workload
from decima.workload.sources import get_source
from experiments.capacity import s60_capacity as capacity
from experiments.capacity import s61_elastic as elastic
from experiments.comparisons import changes_by_load, changes_over_trainings, paired_changes
from experiments.decima import s05_variance as variance
from experiments.decima import s07_goals as goals
from experiments.decima import s13_learning as learning
from experiments.decima.s07_latency import event_intervals
from experiments.decima.s07_load import loads
from experiments.decima.s07_stream import executed_work, in_numbers
from experiments.decima.s17_appendix_g import busy_times, load_series, profile
from experiments.tables import against_paper
from experiments.training_files import check_whole_curve, read_training_file
from tests.toy_jobs import one_stage, workload
from tests.unit.experiments.kept import make_checkout

# Executors move in no time.
FREE = {"warmup_delay_ms": 0.0, "moving_delay_ms": 0.0}

# ---- comparisons ----------------------------------------------------------------------------------------------------


def test_changes_are_paired_by_seed_whatever_the_order_of_the_rows():
    scores = pandas.DataFrame(
        {
            "scheduler": ["fair"] * 3 + ["decima"] * 3,
            "seed": [0, 1, 2, 2, 1, 0],
            "avg_jct_s": [10.0, 20.0, 30.0, 27.0, 18.0, 9.0],
        }
    )
    table = paired_changes(scores, ["decima", "fair"], ["fair"])
    assert table["scheduler"].to_list() == ["decima"]  # nobody is compared with itself
    row = table.iloc[0]
    assert (row["against"], row["seeds"]) == ("fair", 3)
    assert (row["change_percent"], row["low"], row["high"]) == pytest.approx((-10.0, -10.0, -10.0))
    assert paired_change(np.array([9.0, 18.0, 27.0]), np.array([10.0, 20.0, 30.0]))[0] == pytest.approx(-10.0)


def test_changes_by_load_are_means_over_trainings_where_there_are_several():
    scores = [
        (load, scheduler, training, seed, score * (seed + 1.0))
        for load, means in (("batch", (11.0, 12.0)), ("busy", (13.0,)))
        for scheduler, each in (("fair", (10.0,)), ("decima", means))
        for training, score in enumerate(each, 1)
        for seed in (0, 1, 2)
    ]
    table = pandas.DataFrame(scores, columns=["arrivals", "scheduler", "training", "seed", "avg_jct_s"])
    whole, each = changes_by_load(table, ["decima"], ["fair"], by="arrivals")
    assert whole["arrivals"].to_list() == ["batch", "busy"]
    assert whole["trainings"].to_list() == [2, 1]
    assert whole["change_percent"].to_list() == pytest.approx([15.0, 30.0])
    assert each[["arrivals", "training"]].to_numpy().tolist() == [["batch", 1], ["batch", 2]]
    assert each["change_percent"].to_list() == pytest.approx([10.0, 20.0])


def test_executed_work_counts_every_task_and_the_executors_that_ran_it():
    jobs = workload(one_stage(4, 2.0), one_stage(1, 3.0, at_s=1.0))
    result = decima.simulate(jobs, "fifo", 2, log=True, **FREE)
    table = executed_work(result)
    assert table["executed_s"].to_list() == [8.0, 3.0]
    # Four tasks of 2 s on two executors take 4 s; the second job then runs alone.
    assert table["executors"].to_list() == pytest.approx([2.0, 1.0])
    # A stream in numbers has busy times and the smallest jobs.
    (row,) = in_numbers({"weighted_fair": result}, 1.0).to_dict("records")
    # From 1 to 3 s both jobs are there, at 0 and from 4 to 6 s one, at 7 s none. The small one waits for 3 s.
    assert row == {
        "scheduler": "weighted_fair",
        "busy_jobs": 2.0,
        "other_jobs": pytest.approx(0.8),
        "small_jct_s": 6.0,
        "small_executors": 1.0,
        "executed_h": pytest.approx(11.0 / 3600.0),
    }


FOUR_CLASSES = ((0.25, 1), (0.5, 1), (0.75, 1), (1.0, 1))


def packed(*jobs):
    return decima.simulate(workload(*jobs), "fifo", log=True, classes=FOUR_CLASSES, **FREE)


def test_series_divides_the_busy_executors_by_the_jobs_in_the_system():
    # Until 2 s one job runs on four executors; at 5 s two jobs come, each runs on one executor and ends at 8 s.
    result = packed(one_stage(4, 2.0), one_stage(1, 3.0, at_s=5.0), one_stage(1, 3.0, at_s=5.0))
    table = load_series(result, 1.0).set_index("time_s")
    assert table["active_jobs"].to_list() == [1, 1, 0, 0, 0, 2, 2, 2, 0]
    assert table["executors_per_job"].to_list() == [4.0, 4.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]


def test_busy_times_are_those_of_graphene_and_who_has_ended_has_no_jobs():
    def run(scheduler, training, jobs):
        about = {"workload": "TPC-H", "scheduler": scheduler, "training": training}
        executors = [10.0 * count for count in jobs]
        columns = {"time_s": np.arange(len(jobs)), "active_jobs": jobs, "executors_per_job": executors}
        return pandas.DataFrame(columns).assign(**about)

    runs = [run("graphene", 1, [1, 2, 3, 4, 5]), run("decima", 1, [1, 1, 1, 1, 2]), run("decima", 2, [3, 3, 3, 3])]
    table = busy_times(pandas.concat(runs)).set_index(["scheduler", "training"])
    assert table["active_jobs"].to_dict() == {("graphene", 1): 5.0, ("decima", 1): 2.0, ("decima", 2): 0.0}
    assert table["executors_per_job"].to_dict() == {("graphene", 1): 50.0, ("decima", 1): 20.0, ("decima", 2): 0.0}


def test_profile_counts_executors_of_a_class_from_the_first_task_to_the_end():
    result = packed(one_stage(6, 2.0), *(one_stage(1, 1.0, at_s=10.0 * at) for at in range(1, 5)))
    table = profile(result).set_index(["size", "memory"])
    # The smallest four jobs have one task each, run by the smallest executor; the large one runs on four for two
    # seconds, then on two that best fit takes first.
    assert table.loc[0, "executors"].to_list() == [1.0, 0.0, 0.0, 0.0]
    assert table.loc[4, "executor_s"].sum() == pytest.approx(12.0)
    assert table.loc[4, "executors"].sum() == pytest.approx(3.0)
    assert set(table.loc[4, "avg_jct_s"]) == {4.0}
    assert table.loc[0, ["from_work_s", "to_work_s"]].drop_duplicates().to_numpy().tolist() == [[1.0, 1.0]]


def test_decisions_at_one_time_are_one_event():
    assert event_intervals(np.array([0.0, 0.0, 2.0, 2.0, 2.0, 7.0])).tolist() == [2.0, 5.0]


# ---- penalties of arrival sequences ---------------------------------------------------------------------------------

PARAMS = {"interarrival_s": 10, "shared_s": 60, "horizon_s": 200, "step_s": 10, "sequences": 3, "rollouts": 2}


def test_penalty_is_the_number_of_jobs_and_the_return_its_integral():
    arrival_s, completion_s = np.array([0.0, 2.0, 9.0]), np.array([4.0, 12.0, 30.0])
    table = variance.penalties(arrival_s, completion_s, np.array([0.0, 2.0, 4.0, 10.0]))
    assert table["active_jobs"].to_list() == [1, 2, 1, 2]
    # Up to 10 s the jobs are there for 4, 8 and 1 s.
    assert table["return_s"].to_list() == pytest.approx([-13.0, -11.0, -7.0, 0.0])


def test_sequences_agree_before_the_time_and_part_after_it():
    sequences = variance.shared_prefix_sequences(get_source("embedded"), PARAMS)
    assert len(sequences) == 3
    beginnings = {
        tuple((job.name, job.arrival_ms) for job in each.jobs if job.arrival_ms < 60_000.0) for each in sequences
    }
    assert len(beginnings) == 1
    endings = {tuple(job.arrival_ms for job in each.jobs if job.arrival_ms >= 60_000.0) for each in sequences}
    assert len(endings) == 3
    assert all(np.all(np.diff(each.arrival_ms) >= 0.0) and each.arrival_ms[-1] < 200_000.0 for each in sequences)


def test_arrivals_explain_what_differs_between_sequences_only():
    rng = np.random.default_rng(0)
    sequences, rollouts = 400, 8
    means, noise = 3.0 * rng.standard_normal(sequences), rng.standard_normal((sequences, rollouts))
    table = pandas.DataFrame(
        {
            "sequence": np.repeat(np.arange(sequences), rollouts),
            "time_s": 0.0,
            "return_s": (means[:, None] + noise).ravel(),
        }
    )
    row = variance.explained(table).iloc[0]
    assert row["input_baseline_s"] == pytest.approx(1.0, rel=0.05)
    assert row["time_baseline_s"] == pytest.approx(np.sqrt(10.0), rel=0.1)
    assert row["share"] == pytest.approx(0.9, abs=0.02)


# ---- training runs --------------------------------------------------------------------------------------------------


def curve(wall_s, greedy, sampled):
    about = {"run": "a", "setting": "tpch-batch", "recipe": "fast", "variant": "recipe", "seed": 0}
    return pandas.DataFrame({"wall_s": wall_s, "val_greedy": greedy, "val_sampled": sampled}).assign(**about)


REFERENCES = pandas.DataFrame(
    {"setting": ["tpch-batch"] * 2, "scheduler": ["fair", "weighted_fair"], "avg_jct_s": [90.0, 80.0]}
)


def test_the_kept_checkpoint_is_the_best_of_either_kind_so_far():
    table = curve([0.0, 60.0, 120.0], [90.0, 80.0, 85.0], [95.0, 82.0, 79.0])
    assert learning.best_so_far(table).to_list() == [90.0, 80.0, 79.0]


def test_changes_of_parts_add_up_to_the_change_of_all_jobs():
    rows = [("weighted fair", 0, None, 80.0, 20.0), ("capped SRW", 0, None, 50.0, 20.0), ("whole", 9, 1, 60.0, 25.0)]
    scores = pandas.DataFrame(rows, columns=["part", "iterations", "seed", "avg_jct_s", "largest_s"])
    (row,) = learning.changes_of_parts(scores).to_dict("records")
    assert row == {
        "part": "whole", "iterations": 9, "seed": 1, "avg_jct_s": 60.0, "change_percent": -25.0,
        "smaller_percent": pytest.approx(10.0), "largest_percent": 10.0,
    }  # fmt: skip


def test_budgets_take_what_was_reached_in_time_and_skip_runs_that_were_shorter():
    table = curve([0.0, 100.0, 179.0, 200.0], [100.0, 84.0, 72.0, 60.0], [100.0] * 4)
    rows = learning.budgets(table, REFERENCES, [3, 3.4, 15])
    assert rows["budget_min"].to_list() == [3.0, 3.4]
    assert rows["best_s"].to_list() == [72.0, 60.0]
    assert rows["change_percent"].to_list() == pytest.approx([-10.0, -25.0])


def test_training_tables_are_refused_with_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match=r"runs\.csv is missing; it belongs to the repository"):
        learning._read(tmp_path / "runs.csv", learning.RUN_COLUMNS)
    (tmp_path / "runs.csv").write_text("run,setting\na,tpch-batch\n")
    with pytest.raises(ConfigError, match="no column recipe, variant, seed"):
        learning._read(tmp_path / "runs.csv", learning.RUN_COLUMNS)


def test_the_interval_over_trainings_is_that_of_their_changes():
    seeds = [0, 1, 2, 0, 1, 2]
    ours = {"training": ["one"] * 3 + ["two"] * 3, "seed": seeds, "avg_jct_s": [8.0, 9.0, 10.0, 10.0, 11.0, 12.0]}
    rules = {"scheduler": ["fair"] * 3 + ["fifo"] * 3, "seed": seeds[::-1], "avg_jct_s": [10.0] * 3 + [20.0] * 3}
    changes = changes_over_trainings(pandas.DataFrame(ours), pandas.DataFrame(rules))
    fair = changes[changes["against"] == "fair"].set_index("training")
    assert fair["change_percent"].to_dict() == pytest.approx({"one": -10.0, "two": 10.0, "mean": 0.0})
    # Student's t of one degree of freedom: 12.7 standard errors, here of 10.
    assert fair.loc["mean", ["low", "high"]].tolist() == pytest.approx([-127.06, 127.06], abs=0.01)
    assert fair.loc["one", "low"] < -10.0 < fair.loc["one", "high"]
    assert len(changes) == 6


def test_trainings_are_compared_with_those_of_the_same_place():
    scores = {"training": [1, 1, 2, 2, 3, 3], "seed": [0, 1] * 3, "avg_jct_s": [8.0, 16.0, 9.0, 18.0, 12.0, 24.0]}
    ours, others = pandas.DataFrame(scores), [10.0, 20.0, 6.0, 12.0]
    theirs = {"scheduler": "decima_other", "training": [1, 1, 2, 2], "seed": [0, 1] * 2, "avg_jct_s": others}
    changes = changes_over_trainings(ours, pandas.DataFrame(theirs)).set_index("training")["change_percent"]
    assert changes.to_dict() == pytest.approx({1: -20.0, 2: 50.0, 3: 20.0, "mean": 50.0 / 3.0})


# ---- against the papers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "paper", "ours", "difference", "verdict"),
    [
        ("JCT against WF (%)", -29, 20.86, "+49.9 points", "opposite"),
        ("JCT against WF (%)", -21.0, -6.3, "+14.7 points", "same direction"),
        ("JCT against WF (%)", 14.9, 36.4, "+21.5 points", "larger"),
        ("gain (%)", 13.5, np.float64(0.0004), "-13.5 points", "smaller"),
        ("mean error (%)", 5, 5.8, "+0.8 points", "reproduced"),
        ("no change (%)", 0, 0.4, "+0.4 points", "reproduced"),
        ("Decima / WF", 0.71, 1.02, "+44 %", "opposite"),
        ("Decima / WF", 0.79, 0.94, "+19 %", "same direction"),
        ("FIFO / fair", 2.5, 2.35, "-6 %", "reproduced"),
        ("share of work in the largest 23 % of jobs", 0.82, 0.63, "-23 %", "smaller"),
        ("parameters", 12736, 12736, "+0 %", "reproduced"),
        ("change", 0, 1.0, "–", "larger"),
        ("delay", "2–3 s", "2 s", "–", "–"),
    ],
)
def test_percentages_differ_in_points_and_have_a_verdict(name, paper, ours, difference, verdict):
    table = against_paper({name: (paper, ours)}).compared
    assert table.loc[name, ["difference", "verdict"]].to_list() == [difference, verdict]


def test_rows_without_a_value_in_the_paper_stand_apart():
    shown = against_paper({"capped SRW": (None, 0.85), "parameters": (12736, 12736)})
    assert shown.new["ours"].to_dict() == {"capped SRW": "0.85"}
    assert shown.compared["paper"].to_dict() == {"parameters": "12,736"}
    assert "Without a value in the paper" in repr(shown)
    assert shown._repr_html_().count("<table") == 2


def test_no_module_hides_it():
    for _ in range(2):  # the first use imports the module
        assert callable(experiments.against_paper)


JOBS = (one_stage(4, 2.0), one_stage(1, 3.0, at_s=1.0), one_stage(1, 5.0, at_s=10.0))


@pytest.mark.parametrize(("delay_s", "held_s"), [(0.0, 11.0), (1.0, 14.0)])
def test_only_what_happens_before_the_last_arrival_counts(delay_s, held_s):
    """Two executors run the first job until 4 s and one of them the second for 3 s; each move takes the delay."""
    delay = FREE | {"moving_delay_ms": 1000.0 * delay_s}
    measured = loads(decima.simulate(workload(*JOBS), "fifo", 2, log=True, **delay))
    assert measured == pytest.approx({"nominal": 16.0 / 20.0, "busy": 11.0 / 20.0, "held": held_s / 20.0})


def test_an_executor_is_held_until_its_job_ends_or_it_leaves():
    """Of the two executors of the first job one has no task in its last 4 s, and nowhere to go."""
    jobs = workload(one_stage(3, 4.0), one_stage(1, 1.0, at_s=20.0))
    measured = loads(decima.simulate(jobs, "fifo", 2, log=True, **FREE))
    assert measured["busy"] == pytest.approx(12.0 / 40.0)
    assert measured["held"] == pytest.approx(16.0 / 40.0)


# ---- schedules of other goals ---------------------------------------------------------------------------------------


def test_moves_ends_and_busy_time_of_a_schedule_made_by_hand():
    """Two executors run four tasks of the first job until 4 s, one goes on with the second until 7 s."""
    jobs = workload(one_stage(4, 2.0), one_stage(1, 3.0))
    result = decima.simulate(jobs, "fifo", 2, log=True, **FREE)
    assert result.makespan_s == pytest.approx(7.0)
    measured = goals.measured(result)
    assert measured == pytest.approx(
        {"moves_per_100_tasks": 100.0 / 5.0, "last_fifth_percent": 50.0, "busy_percent": 100.0 * 11.0 / 14.0}
    )


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


# ---- capacity -------------------------------------------------------------------------------------------------------


def test_changes_are_against_the_same_scheduler_on_the_fixed_cluster_and_on_that_of_equal_hours():
    growing = "dynamic, 5 s"
    scale = {(cluster, scheduler): 10.0 for cluster in elastic.CLUSTERS for scheduler in ("fifo", "fair")}
    scale |= {("fixed", "fifo"): 1.0, (growing, "fifo"): 1.5, (f"fixed, hours of {growing}", "fifo"): 3.0}
    scale |= {(growing, "fair"): 5.0, ("losses", "fair"): 20.0}
    rows = [
        {"cluster": cluster, "scheduler": scheduler, "seed": seed}
        | {"avg_jct_s": factor * (1.0 + seed), "p95_jct_s": factor, "executor_hours": 2.0}
        for (cluster, scheduler), factor in scale.items()
        for seed in (0, 1)
    ]
    changes = elastic._changes(pandas.DataFrame(rows))
    jct = changes[changes["measure"] == "avg_jct_s"].set_index(["against", "cluster", "scheduler"])["change_percent"]
    changed = {key: change for key, change in jct.items() if change not in (0.0, 900.0)}
    assert changed == {
        ("all executors", growing, "fifo"): pytest.approx(50.0),
        ("equal hours", growing, "fifo"): pytest.approx(-50.0),
        ("all executors", growing, "fair"): pytest.approx(-50.0),
        ("all executors", "losses", "fair"): pytest.approx(100.0),
    }


def test_the_first_batch_of_a_recording():
    jobs = tuple(Job(one_stage(tasks, 1.0).profile, 100.0 * index) for index, tasks in enumerate((1, 2, 3)))
    times = np.array([1.0, 2.0, 3.0])
    whole = Recording("log", Workload(jobs, "log"), times, 10.0 * times, 4, times / 10.0)
    first = capacity._first(whole, 2)
    assert len(first.workload) == 2
    assert first.driver_ms.tolist() == [1.0, 2.0]
    assert first.recorded_ms.tolist() == [10.0, 20.0]
    assert first.contention.tolist() == [0.1, 0.2]


def test_a_target_that_no_size_meets_is_left_out():
    columns = {"p95_s": [9.0, 5.0], "executor_hours": 1.0, "cost": 1.0, "utilization": 1.0}
    points = pandas.DataFrame({"scheduler": "fifo", "executors": [1, 2], "mean_s": [8.0, 4.0]} | columns)
    job = Workload((Job(one_stage(1, 1.0).profile),), "log")
    recording = Recording("log", job, np.zeros(1), np.ones(1), 1, np.zeros(1))
    rows = {row["choice"]: row["executors"] for row in capacity._choices(points, [recording], "p95<6s", "one")}
    assert rows == {"knee": 2, "p95<6s": 2}
    assert [row["choice"] for row in capacity._choices(points, [recording], "p95<1s", "one")] == ["knee"]


# ---- files of trainings ---------------------------------------------------------------------------------------------

WHOLE = "iteration,val_greedy\n9,3.0\n19,2.5\n29,2.0\n"


@pytest.fixture
def training(tmp_path, monkeypatch):
    """``models/training`` of a folder that passes for a checkout."""
    make_checkout(tmp_path)
    folder = tmp_path / "models" / "training"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHOLE[:-1], "was cut short: line 4 is not whole"),
        (WHOLE[:-5], "was cut short: line 4 is not whole"),
        (WHOLE.replace("19,2.5", "19"), "was cut short: line 3 is not whole"),
        ("", "was cut short: line 0 is not whole"),
        (WHOLE.replace("val_greedy", "score"), "has no column val_greedy; expected: iteration, val_greedy"),
    ],
)
def test_files_that_are_not_whole_are_refused(training, text, message):
    (training / "some.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_training_file("some.csv", ("iteration", "val_greedy"))


def test_curves_that_end_before_their_run_are_refused(training):
    curve = pandas.DataFrame({"iteration": [9, 19, 29]})
    check_whole_curve(curve, "some.csv", 30)
    check_whole_curve(curve, "some.csv", 39)  # the next validation would have been at 40
    with pytest.raises(ConfigError, match=r"some\.csv was cut short: it ends after 30 of the 40 iterations"):
        check_whole_curve(curve, "some.csv", 40)
    with pytest.raises(ConfigError, match="after 10 of the 20"):
        check_whole_curve(curve.head(1), "some.csv", 20)


def test_a_shown_table_has_names_of_legends_units_and_digits_that_mean_something():
    table = pandas.DataFrame(
        {
            "scheduler": ["decima_entry", "fair", "mine"],
            "avg_jct_s": [81.2345, 1234.567, 9.9],
            "change_percent": [-3.14159, 2.0, 0.0],
            "low": [-4.21, 1.0, -1.0],
            "high": [-2.13, 3.0, 1.0],
        }
    )
    shown = experiments.show(table, rows=2)
    assert list(shown.table.columns) == ["scheduler", "average JCT (s)", "change (%)", "low", "high"]
    assert list(shown.table["scheduler"]) == ["Decima + executor-entry cost", "fair"]
    assert list(shown.table["average JCT (s)"]) == [81, 1235]
    assert list(shown.table["change (%)"]) == [-3.1, 2.0]  # standard errors are about one half
    assert "1 more rows are left out." in repr(shown)
    assert "1 more rows are left out." in shown._repr_html_()
    assert next(iter(table["scheduler"])) == "decima_entry"
    by_name = experiments.show(table.set_index("scheduler")["avg_jct_s"] / 1000)
    assert list(by_name.table.index) == ["Decima + executor-entry cost", "fair", "mine"]
    assert list(by_name.table.iloc[:, 0]) == [0.08, 1.23, 0.01]
    assert repr(by_name).count("left out") == 0


@pytest.mark.parametrize("empty", [pandas.DataFrame(), pandas.DataFrame({"a_s": [float("inf"), float("nan")]})])
def test_any_table_can_be_shown(empty):
    assert experiments.show(empty)._repr_html_()
