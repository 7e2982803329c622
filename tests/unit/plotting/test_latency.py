import numpy as np
import pytest

from decima.plotting import learning
from tests.unit.plotting import frames


def test_delay_and_interval_share_an_axis_in_milliseconds():
    axes = learning.delay_cdf(np.array([0.1, 0.3]), np.array([1.0, 3.0]))
    assert frames.legend(axes) == ["decision: mean 0.2 ms", "interval: mean 2 s"]
    delay, interval = axes.lines
    assert max(delay.get_xdata()) == pytest.approx(0.3)
    assert max(interval.get_xdata()) == pytest.approx(3000.0)
    assert axes.get_xlabel() == "time (ms)"


def test_latency_over_jobs_shows_median_tail_and_the_papers_number():
    axes = learning.latency_over_jobs(frames.latency()["latency_jobs"])
    median, tail, paper = axes.lines
    assert list(median.get_xdata()) == [1, 10, 100]
    assert median.get_ydata() == pytest.approx([0.03, 0.3, 3.0])
    assert (tail.get_ydata() > median.get_ydata()).all()
    assert set(paper.get_ydata()) == {15.0}
