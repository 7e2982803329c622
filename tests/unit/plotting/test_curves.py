import matplotlib.colors
import numpy as np
import pandas
import pytest

from decima.core.appearance import appearances
from decima.plotting import curves, streams
from tests.unit.plotting import frames


def line(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


def test_parallelism_shows_the_mean_of_each_job_and_a_band():
    axes = curves.parallelism(frames.runtimes())
    assert frames.legend(axes) == ["Q9, 100 GB", "Q2, 2 GB"]
    assert line(axes, "Q9, 100 GB").get_ydata() == pytest.approx([101.1, 12.0, 8.0])
    assert len(axes.collections) == 2
    assert axes.get_ylabel() == "job runtime (s)"
    assert axes.get_xlabel() == "degree of parallelism (executors)"


def test_sweet_spot_is_the_fewest_executors_near_the_best():
    assert curves.sweet_spot(pandas.Series({1: 100.0, 10: 21.0, 20: 20.0, 40: 22.0})) == 10
    assert curves.sweet_spot(pandas.Series({1: 100.0, 10: 21.0, 20: 20.0}), slack=0.01) == 20


def test_cdf_orders_the_legend_by_mean_and_rises_to_one():
    axes = curves.cdf(frames.scores())
    assert frames.legend(axes) == ["capped SRW: 35.3 s", "fair: 52.0 s", "FIFO: 102.0 s"]
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


def test_alpha_curve_marks_the_best_variant_and_alpha():
    axes = curves.alpha_curve(frames.sweep())
    assert len(frames.legend(axes)) == 5
    assert "sticky shares, runnable stages first" in frames.legend(axes)
    assert frames.legend(axes)[-1] == "best: α = −1.0, 51.5 s"
    star = line(axes, frames.legend(axes)[-1])
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (-1.0, 51.5)
    assert len(axes.collections) == 1
    widths = {each.get_label(): each.get_linewidth() for each in axes.lines}
    assert max(widths, key=widths.get) == "sticky shares, runnable stages first"


def test_band_of_the_alpha_curve_is_one_standard_error():
    axes = curves.alpha_curve(frames.sweep())
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    sem = np.std(range(4), ddof=1) / 2.0
    assert heights.min() == pytest.approx(51.5 - sem)


def test_best_alpha_counts_workloads():
    axes = curves.best_alpha(frames.sweep())
    heights = [patch.get_height() for patch in axes.patches]
    (place,) = np.flatnonzero(heights)
    assert heights[place] == 4
    assert axes.patches[place].get_x() <= -1.0 <= axes.patches[place].get_x() + axes.patches[place].get_width()
    assert frames.legend(axes) == ["median −1.0"]


def test_variants_are_named_by_what_they_do():
    assert curves.variant_label(0, 2) == "strict shares, critical path first"
    assert curves.variant_label(1, 0, 1) == "sticky shares, runnable stages first, small jobs first"


def test_expressiveness_has_a_band_per_scheme_and_the_line_of_a_guess():
    table = frames.accuracy()
    axes = curves.expressiveness(table, 0.3)
    lines = {line.get_label(): line for line in axes.get_lines()}
    first = lines["two levels, f and g (Decima)"]
    expected = table[table["scheme"] == "two_level"].groupby("iteration")["accuracy"].mean()
    assert first.get_xdata().tolist() == expected.index.tolist()
    assert first.get_ydata() == pytest.approx(expected.to_numpy())
    assert len(axes.collections) == 3
    assert [0.3, 0.3] in [list(line.get_ydata()) for line in axes.get_lines()]
