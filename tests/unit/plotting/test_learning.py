import matplotlib.colors
import numpy as np
import pytest

from decima.core.appearance import appearances
from decima.plotting import learning
from tests.unit.plotting import frames


def test_curves_have_a_line_per_run_and_score_and_one_legend_entry_per_variant():
    curves, references = frames.learning()
    axes = learning.learning_curves(curves, references)
    assert len(axes.lines) == 3 * 2 + 3
    assert frames.legend(axes) == [
        "Decima",
        "Decima, sampled",
        "limit per stage",
        "limit per stage, sampled",
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
