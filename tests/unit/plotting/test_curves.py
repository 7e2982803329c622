"""Charts of lines; those that would hide each other, or press the others together, are named instead of drawn."""

import matplotlib.colors
import numpy as np
import pandas
import pytest

from decima.core.display import appearances
from decima.plotting import bars, cloud, curves, heterogeneous, learning, packing, streams, style
from tests.unit.plotting import frames
from tests.unit.plotting.frames import legend, line


def test_parallelism_shows_the_mean_of_each_job_and_a_band():
    axes = curves.parallelism(frames.runtimes())
    assert legend(axes) == ["Q9, 100 GB", "Q2, 2 GB"]
    assert line(axes, "Q9, 100 GB").get_ydata() == pytest.approx([101.1, 12.0, 8.0])
    assert len(axes.collections) == 2
    assert axes.get_ylabel() == "job runtime (s)"
    assert axes.get_xlabel() == "degree of parallelism (executors)"


def test_sweet_spot_is_the_fewest_executors_near_the_best():
    assert curves.sweet_spot(pandas.Series({1: 100.0, 10: 21.0, 20: 20.0, 40: 22.0})) == 10
    assert curves.sweet_spot(pandas.Series({1: 100.0, 10: 21.0, 20: 20.0}), slack=0.01) == 20


def test_cdf_orders_the_legend_by_mean_and_rises_to_one():
    axes = curves.cdf(frames.scores())
    assert legend(axes) == ["capped SRW: 35.3 s", "fair: 52.0 s", "FIFO: 102.0 s"]
    assert all(each.get_ydata()[-1] == 1.0 for each in axes.lines)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("average JCT (s)", "CDF")


def test_cdf_of_jobs_says_so_and_may_be_logarithmic():
    axes = curves.cdf(frames.stream_jobs(), value="jct_s", log=True)
    assert axes.get_xlabel() == "JCT (s)"
    assert axes.get_xscale() == "log"


def test_one_scheduler_has_one_colour_in_every_figure():
    drawn = [
        line(curves.cdf(frames.scores()), "fair: 52.0 s"),
        line(curves.concurrent_jobs(frames.series()), "fair"),
        line(streams.against_work(frames.stream_jobs(), value="jct_s", label="JCT (s)"), "fair"),
    ]
    assert all(matplotlib.colors.same_color(each.get_color(), appearances()["fair"].color) for each in drawn)


@pytest.mark.parametrize(("step_s", "label", "end"), [(60.0, "time (min)", 19.0), (3600.0, "time (h)", 19.0)])
def test_concurrent_jobs_chooses_minutes_or_hours(step_s, label, end):
    axes = curves.concurrent_jobs(frames.series(step_s=step_s))
    assert axes.get_xlabel() == label
    assert line(axes, "fair").get_xdata()[-1] == end
    assert axes.get_ylabel() == "jobs in the system"


def test_a_long_series_is_averaged_over_intervals():
    axes = curves.concurrent_jobs(frames.series(), points=4)
    times, jobs = line(axes, "fair").get_data()
    assert len(times) == 4
    assert jobs == pytest.approx([(0 + 1 + 2 + 0 + 1) / 5, (2 + 0 + 1 + 2 + 0) / 5, (1 + 2 + 0 + 1 + 2) / 5, 0.8])


def test_alpha_curve_marks_the_best_variant_and_alpha_before_the_range_of_the_others():
    axes = curves.alpha_curve(frames.sweep())
    assert legend(axes) == ["other variants", "sticky shares, runnable stages first", "best: α = −1.0, 51.5 s"]
    star = line(axes, legend(axes)[-1])
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (-1.0, 51.5)
    _, band = axes.collections  # one standard error
    heights = band.get_paths()[0].vertices[:, 1]
    sem = np.std(range(4), ddof=1) / 2.0
    assert heights.min() == pytest.approx(51.5 - sem)


def test_variants_are_named_by_what_they_do():
    assert curves.variant_label(0, 2) == "strict shares, critical path first"
    assert curves.variant_label(1, 0, 1) == "sticky shares, runnable stages first, small jobs first"


def test_expressiveness_has_a_band_per_scheme_and_the_line_of_a_guess():
    table = frames.accuracy()
    axes = curves.expressiveness(table, 0.3)
    first = line(axes, "two levels, f and g (Decima)")
    expected = table[table["scheme"] == "two_level"].groupby("iteration")["accuracy"].mean()
    assert first.get_xdata().tolist() == expected.index.tolist()
    assert first.get_ydata() == pytest.approx(expected.to_numpy())
    assert len(axes.collections) == 3
    assert [0.3, 0.3] in [list(each.get_ydata()) for each in axes.get_lines()]


def test_jct_over_time_is_the_mean_of_the_jobs_that_arrive_in_a_window():
    jobs = pandas.DataFrame(
        {"scheduler": "fair", "arrival_s": [0.0, 10.0, 100.0, 190.0, 200.0], "jct_s": [1.0, 3.0, 10.0, 20.0, 40.0]}
    )
    axes = streams.jct_over_time(jobs, windows=4)
    times, means = line(axes, "fair").get_data()
    assert times == pytest.approx(np.array([25.0, 75.0, 125.0, 175.0]) / 60.0)
    assert means == pytest.approx([2.0, np.nan, 10.0, 30.0], nan_ok=True)
    assert axes.get_xlabel() == "time of arrival (min)"


@pytest.mark.parametrize("log", [True, False])
def test_against_work_draws_points_and_medians(log):
    axes = streams.against_work(frames.stream_jobs(), value="jct_s", label="JCT (s)", log=log)
    assert [len(points.get_offsets()) for points in axes.collections] == [30, 30]
    assert [len(each.get_xdata()) for each in axes.lines] == [10, 10]
    assert axes.get_xlabel() == "work of the job (executor s)"
    assert axes.get_yscale() == ("log" if log else "linear")
    assert line(axes, "fair").get_ydata()[0] == 4.0  # jobs 0 to 2 of 30


def test_executed_work_pairs_the_schedulers_by_job():
    axes = streams.executed_against(frames.executed(), across="weighted_fair", up="decima")
    offsets = np.asarray(axes.collections[0].get_offsets())
    assert offsets[:, 1] == pytest.approx(1.1 * offsets[:, 0])
    assert axes.get_ylabel() == "Decima (executor s)"
    (diagonal,) = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())


def test_log_axes_write_numbers_out():
    axes = style.new_figure().subplots()
    axes.set(xscale="log", xlim=(2, 3000))
    style.plain_numbers(axes.xaxis)
    axes.figure.canvas.draw()
    assert {"10", "100", "1000"} <= set(frames.texts(axes.get_xticklabels()))
    assert set(frames.texts(axes.get_xticklabels(minor=True))) == {""}


def test_means_are_compared_with_those_of_a_reference_on_one_scale():
    by_name = {"high_rank_up_deft": 2.0, "heft": 2.2, "tdca": 3.0, "lachesis": 1.9}
    rows = [
        (ccr, jobs, name, level * jobs) for ccr in ("1", "5") for jobs in (10, 20) for name, level in by_name.items()
    ]
    table = pandas.DataFrame(rows, columns=["ccr", "jobs", "scheduler", "makespan_s"])
    figure = style.new_figure(7.2)
    heterogeneous.change_of_means(
        table, "jobs", "makespan_s", "makespan (%)", figure, reference="high_rank_up_deft", names=["lachesis", "heft"]
    )
    first, second = figure.axes
    shown = {line.get_label(): line.get_ydata()[0] for line in first.lines[:2]}
    assert shown == pytest.approx({"HEFT": 10.0, "Lachesis": -5.0})
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_ylabel(), second.get_ylabel()) == ("makespan (%)", "")
    assert frames.texts(second.texts) == ["Lachesis", "HEFT"]


def test_the_weight_of_cost_that_changes_nothing_is_a_point():
    rows = [
        (name, beta, 1.0 + weight * beta) for name, weight in (("aep", 0.0), ("ilp_beta", -0.5)) for beta in (0.0, 1.0)
    ]
    axes = cloud.over_beta(pandas.DataFrame(rows, columns=["scheduler", "beta", "cost"]), "cost")
    points = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert points == {"AEP": [1.0], "ILP with β (ours)": [1.0, 0.5]}
    assert frames.texts(axes.texts) == ["ILP with β (ours)", "AEP"]


def test_training_ends_in_a_row_per_learner():
    rows = [
        ("paper_dqn", seed, iteration, 100 * iteration, reached * iteration / 2)
        for seed, reached in ((0, 10.0), (1, 30.0))
        for iteration in (1, 2)
    ]
    axes = cloud.last_reached(
        pandas.DataFrame(rows, columns=["learner", "seed", "iteration", "decisions_seen", "reached"])
    )
    assert frames.texts(axes.texts) == ["20 % after 200"]
    assert frames.texts(axes.get_yticklabels()) == ["DQN (paper)"]


def test_a_change_beyond_the_axis_is_a_number():
    rows = [("decima_full", 5.0, 4.0, 6.0), ("decima_unfixed", 1580.0, -1.0, 9000.0)]
    table = pandas.DataFrame(rows, columns=["scheduler", "change_percent", "low", "high"])
    axes = bars.change_rows(table, largest=100.0)
    assert frames.texts(axes.texts) == ["1,580 % ▶"]
    assert frames.texts(axes.get_yticklabels()) == ["complete Decima", "no fixed sequences"]
    assert axes.get_xlim()[1] == 100.0


def test_schedulers_far_above_the_others_are_named_below_the_axes():
    means = {"fair": (40.0, 80.0), "graphene": (30.0, 60.0), "tetris": (100.0, 900.0)}
    rows = [(load, name, values[place]) for place, load in enumerate((0.5, 0.8)) for name, values in means.items()]
    axes = packing.score_over_load(pandas.DataFrame(rows, columns=["load", "scheduler", "avg_jct_s"]))
    assert len(axes.lines) == 2
    assert axes.get_xlabel() == "nominal load (%)\nfar above:\nTetris: 100 to 900 s"
    assert frames.texts(axes.get_xticklabels()) == ["50", "80"]


def test_bands_of_training_join_runs_of_different_lengths():
    rows = [
        ("paper_dqn", 0.0, seed, iteration, 10.0 * seed + iteration, float(iteration))
        for seed, length in ((0, 3), (1, 2))
        for iteration in range(1, length + 1)
    ]
    curves = pandas.DataFrame(rows, columns=["learner", "beta", "seed", "iteration", "reached", "steps"])
    axes = cloud.training_band(curves, "reached")
    assert list(axes.lines[0].get_xdata()) == [1, 2, 3]
    assert axes.lines[0].get_ydata() == pytest.approx([6.0, 7.0, 3.0])
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1.0, 12.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", cloud.TRAINED["reached"])
    assert legend(axes) == ["DQN (paper)"]


def test_a_line_per_weight_of_cost_is_the_mean_of_its_seeds():
    rows = [(beta, seed, iteration, beta + seed) for beta in (0.0, 1.0) for seed in (0, 2) for iteration in (1, 2)]
    axes = cloud.training_by_beta(pandas.DataFrame(rows, columns=["beta", "seed", "iteration", "complete"]), "complete")
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.0, 1.0], [2.0, 2.0]]
    assert frames.texts(axes.texts) == ["β = 0", "β = 1"]
    assert axes.get_ylabel() == cloud.TRAINED["complete"]


def test_a_line_joins_the_weights_of_cost_that_no_other_beats():
    rows = [
        ("aep", beta, cost, time) for beta, (cost, time) in enumerate([(5.0, 1.0), (3.0, 2.0), (4.0, 3.0), (1.0, 4.0)])
    ]
    axes = cloud.cost_and_time(pandas.DataFrame(rows, columns=["scheduler", "beta", "cost", "duration_s"]))
    front, beaten = axes.lines
    assert list(zip(front.get_xdata(), front.get_ydata(), strict=True)) == [(1.0, 5.0), (2.0, 3.0), (4.0, 1.0)]
    assert (list(beaten.get_xdata()), list(beaten.get_ydata())) == ([3.0], [4.0])
    assert (beaten.get_fillstyle(), beaten.get_linestyle()) == ("none", "None")
    assert len(legend(axes)) == 1


def test_curves_have_a_line_per_run_and_score_and_one_legend_entry_per_variant():
    curves, references = frames.learning()
    axes = learning.learning_curves(curves, references)
    assert len(axes.lines) == 3 * 2 + 3
    assert frames.legend(axes) == [
        "Decima",
        "Decima, sampled",
        "stage-level limits",
        "stage-level limits, sampled",
        "fair",
        "tuned weighted fair",
        "capped SRW",
    ]
    first = axes.lines[0]
    assert matplotlib.colors.same_color(first.get_color(), appearances()["decima"].color)
    assert first.get_ydata() == pytest.approx([80.0, 70.0, 60.0, 50.0, 40.0])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "average JCT (s)")


def test_time_is_in_minutes_and_a_bad_start_is_cut_off():
    curves, references = frames.learning()
    curves = curves.assign(val_greedy=curves["val_greedy"] + 500.0 * (curves["iteration"] == 0))
    axes = learning.learning_curves(curves, references, over="wall_s", values=["val_greedy"])
    assert list(axes.lines[0].get_xdata()) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert axes.get_ylim()[1] == pytest.approx(90.0)
    assert len(axes.lines) == 3 + 3


def test_a_variant_that_trains_a_known_scheduler_looks_like_it():
    assert learning.variant_style("recipe") == appearances()["decima"]
    assert learning.variant_style("recipe", "decima_warm") == appearances()["decima_warm"]
    assert learning.variant_style("entry costs seen") == appearances()["decima_entry"]
    heuristics = {appearances()[name].color for name in ("fifo", "fair", "weighted_fair", "capped_srw")}
    assert learning.variant_style("something else").color not in heuristics


def test_sequences_shown_are_the_worst_and_the_best():
    tables = frames.variance()
    assert learning.extreme_sequences(tables["variance_returns"], 20.0) == (1, 2)
    figure = learning.sequence_penalties(tables["variance_arrivals"], tables["variance_returns"], 20.0, 60.0)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["job sequence 1", "job sequence 2"]
    assert titles[2] == "return from t on: −160 ± 1 job s"
    assert figure.axes[2].get_ylabel() == "jobs in the system\n(penalty per s)"
    assert figure.axes[2].get_ylim() == figure.axes[3].get_ylim()


def test_spread_has_a_line_per_baseline():
    axes = learning.baseline_spread(frames.variance()["variance_explained"], 20.0)
    assert [len(each.get_xdata()) for each in axes.lines] == [7, 7, 2]
    assert "input-dependent" in frames.legend(axes)[1]


def test_delay_and_interval_share_an_axis_in_milliseconds():
    axes = learning.delay_cdf(np.array([0.1, 0.3]), np.array([1.0, 3.0]))
    assert frames.legend(axes) == ["decision: mean 0.2 ms", "interval: mean 2 s"]
    delay, interval = axes.lines
    assert max(delay.get_xdata()) == pytest.approx(0.3)
    assert max(interval.get_xdata()) == pytest.approx(3000.0)
    assert axes.get_xlabel() == "time (ms)"


def test_latency_over_jobs_shows_median_tail_and_the_papers_number():
    axes = learning.latency_over_jobs(frames.latency())
    median, tail, paper = axes.lines
    assert list(median.get_xdata()) == [1, 10, 100]
    assert median.get_ydata() == pytest.approx([0.03, 0.3, 3.0])
    assert (tail.get_ydata() > median.get_ydata()).all()
    assert set(paper.get_ydata()) == {15.0}
