import numpy as np
import pandas
import pytest

from decima.plotting import streams, style
from tests.unit.plotting import frames


def line(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


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
    assert {"10", "100", "1000"} <= {label.get_text() for label in axes.get_xticklabels()}
    assert {label.get_text() for label in axes.get_xticklabels(minor=True)} == {""}
