"""The arithmetic inside the experiments, on numbers that can be followed by hand."""

import numpy as np
import pandas
import pytest

import decima
from decima.core.errors import ConfigError
from decima.evaluation.statistics import paired_change
from decima.workload.sources import get_source
from experiments.comparisons import changes_by_load, changes_over_trainings, paired_changes
from experiments.decima import s05_variance as variance
from experiments.decima import s13_learning as learning
from experiments.decima.s07_latency import event_intervals
from experiments.decima.s07_stream import executed_work, in_numbers
from experiments.decima.s17_appendix_g import busy_times, load_series, profile
from tests.toy_jobs import one_stage, workload

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
    result = decima.simulate(jobs, "fifo", 2, log=True, warmup_delay_ms=0.0, moving_delay_ms=0.0)
    table = executed_work(result)
    assert table["executed_s"].to_list() == [8.0, 3.0]
    # Four tasks of 2 s on two executors take 4 s; the second job then runs alone.
    assert table["executors"].to_list() == pytest.approx([2.0, 1.0])


def test_a_stream_in_numbers_has_busy_times_and_the_smallest_jobs():
    jobs = workload(one_stage(4, 2.0), one_stage(1, 3.0, at_s=1.0))
    result = decima.simulate(jobs, "fifo", 2, log=True, warmup_delay_ms=0.0, moving_delay_ms=0.0)
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
    rules = {"classes": FOUR_CLASSES, "warmup_delay_ms": 0.0, "moving_delay_ms": 0.0}
    return decima.simulate(workload(*jobs), "fifo", log=True, **rules)


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


# ---- latency --------------------------------------------------------------------------------------------------------


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


def test_nothing_is_explained_where_all_returns_are_equal():
    table = pandas.DataFrame({"sequence": [0, 0, 1, 1], "time_s": 5.0, "return_s": 0.0})
    assert variance.explained(table).iloc[0].to_list() == [5.0, 0.0, 0.0, 0.0]


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
