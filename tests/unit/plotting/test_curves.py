"""Charts of lines; those that would hide each other, or press the others together, are named instead of drawn."""

import numpy as np
import pandas
import pytest

from decima.plotting import cloud, curves, learning, packing
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


def test_jct_over_time_is_the_mean_of_the_jobs_that_arrive_in_a_window():
    jobs = pandas.DataFrame(
        {"scheduler": "fair", "arrival_s": [0.0, 10.0, 100.0, 190.0, 200.0], "jct_s": [1.0, 3.0, 10.0, 20.0, 40.0]}
    )
    axes = curves.jct_over_time(jobs, windows=4)
    times, means = line(axes, "fair").get_data()
    assert times == pytest.approx(np.array([25.0, 75.0, 125.0, 175.0]) / 60.0)
    assert means == pytest.approx([2.0, np.nan, 10.0, 30.0], nan_ok=True)
    assert axes.get_xlabel() == "time of arrival (min)"


def test_schedulers_far_above_the_others_are_named_below_the_axes():
    means = {"fair": (40.0, 80.0), "graphene": (30.0, 60.0), "tetris": (100.0, 900.0)}
    rows = [(load, name, values[place]) for place, load in enumerate((0.5, 0.8)) for name, values in means.items()]
    axes = packing.score_over_load(pandas.DataFrame(rows, columns=["load", "scheduler", "avg_jct_s"]))
    assert len(axes.lines) == 2
    assert axes.get_xlabel() == "nominal load (%)\nfar above:\nTetris: 100 to 900 s"
    assert frames.texts(axes.get_xticklabels()) == ["50", "80"]


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


def test_sequences_shown_are_the_worst_and_the_best():
    tables = frames.variance()
    assert learning.extreme_sequences(tables["variance_returns"], 20.0) == (1, 2)
    figure = learning.sequence_penalties(tables["variance_arrivals"], tables["variance_returns"], 20.0, 60.0)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["job sequence 1", "job sequence 2"]
    assert titles[2] == "return from t on: −160 ± 1 job s"
    assert figure.axes[2].get_ylabel() == "jobs in the system\n(penalty per s)"
    assert figure.axes[2].get_ylim() == figure.axes[3].get_ylim()


@pytest.mark.parametrize("log", [True, False])
def test_against_work_draws_points_and_medians(log):
    axes = curves.against_work(frames.stream_jobs(), value="jct_s", label="JCT (s)", log=log)
    assert [len(points.get_offsets()) for points in axes.collections] == [30, 30]
    assert [len(each.get_xdata()) for each in axes.lines] == [10, 10]
    assert axes.get_xlabel() == "work of the job (executor s)"
    assert axes.get_yscale() == ("log" if log else "linear")
    assert line(axes, "fair").get_ydata()[0] == 4.0  # jobs 0 to 2 of 30


def test_executed_work_pairs_the_schedulers_by_job():
    axes = curves.executed_against(frames.executed(), across="weighted_fair", up="decima")
    offsets = np.asarray(axes.collections[0].get_offsets())
    assert offsets[:, 1] == pytest.approx(1.1 * offsets[:, 0])
    assert axes.get_ylabel() == "Decima (executor s)"
    (diagonal,) = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
