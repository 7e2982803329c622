import math

import numpy as np
import pytest
from scipy import stats

from decima.evaluation.statistics import mean_interval, paired_change


def test_mean_interval_is_students():
    values = np.array([3.0, 5.0, 4.0, 8.0])
    mean, sem, low, high = mean_interval(values)
    reference = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (mean, sem) == (5.0, pytest.approx(stats.sem(values)))
    assert (low, high) == (pytest.approx(reference.low), pytest.approx(reference.high))


def test_one_value_has_no_interval():
    assert mean_interval(np.array([2.0]))[0] == 2.0
    assert all(map(math.isnan, mean_interval(np.array([2.0]))[1:]))
    change, low, high = paired_change(np.array([2.0]), np.array([4.0]))
    assert change == -50.0
    assert math.isnan(low)
    assert math.isnan(high)


def test_paired_change_ignores_what_is_hard_for_both():
    baseline = np.array([10.0, 50.0, 200.0, 1000.0])
    assert paired_change(0.9 * baseline, baseline) == pytest.approx((-10.0, -10.0, -10.0))


def test_paired_change_covers_the_truth():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        baseline = rng.lognormal(4.0, 0.5, 30)
        low, high = paired_change(0.8 * baseline * rng.normal(1.0, 0.2, 30), baseline)[1:]
        covered += low <= -20.0 <= high
    assert 0.90 <= covered / 400 <= 0.99


def test_no_change_against_a_mean_of_zero():
    assert all(map(math.isnan, paired_change(np.ones(3), np.zeros(3))))
