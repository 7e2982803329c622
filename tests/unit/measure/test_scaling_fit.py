"""The fit finds the exponents that durations were made with, and says how sure it is."""

import numpy as np
import pytest

from decima.workload.profile import JobProfile, Stage
from measure.scaling_fit import cells, fit, population, predict, residuals
from measure.scaling_model import FIXED, GROWING

FIRST, REST, SIZE = 0.3, 0.2, -0.1


def profiles(spread=0.0, noise=0.0, levels=(1, 2, 3, 4), fresh_levels=(4,), queries=12):
    """Queries of two stages at scales 1 and 2; the first grows with the input, the other keeps one task."""
    rng = np.random.default_rng(5)
    made = []
    for query in range(1, queries + 1):
        slope = spread * rng.standard_normal()
        for scale in (1.0, 2.0):
            stages = []
            for number, tasks in enumerate((int(20 * scale), 1)):
                size = scale**SIZE if number == 0 else 1.0
                waves = {"fresh": [], "first": [], "rest": []}
                for level in levels:
                    counts = (1 if level in fresh_levels else 0, min(level, tasks), max(tasks - level, 0))
                    for wave, exponent, count in zip(waves, (FIRST, FIRST, REST), counts, strict=True):
                        mean = 100.0 * (1 + number) * size * level ** (exponent + slope)
                        waves[wave].append(np.full(count, mean * np.exp(noise * rng.standard_normal())))
                stages.append(Stage(str(number), tasks, tuple(range(number)), levels, **waves))
            made.append(JobProfile(f"q{query}-{scale:g}g", tuple(stages), "test"))
    return made


def test_exact_data_give_exact_exponents():
    model = fit(cells(profiles()), bootstrap=50)
    assert model.parallelism["first"].mean == pytest.approx(FIRST, abs=1e-6)
    assert model.parallelism["rest"].mean == pytest.approx(REST, abs=1e-6)
    assert model.size[GROWING].mean == pytest.approx(SIZE, abs=1e-6)
    assert model.size[FIXED].mean == pytest.approx(0.0, abs=1e-6)
    assert model.parallelism["rest"].low == pytest.approx(REST, abs=1e-6)
    largest = residuals(model, cells(profiles()))["residual"].abs().max()
    assert largest == pytest.approx(-SIZE * np.log(2.0) / 2, abs=0.02)  # what the model leaves out


def test_the_interval_holds_the_truth_and_queries_are_drawn_to_the_mean():
    one = fit(cells(profiles(spread=0.1, noise=0.1, queries=40)), bootstrap=200).parallelism["rest"]
    assert one.low < REST < one.high
    assert one.high - one.low < 0.15
    assert 0.04 < one.spread < 0.2
    assert 0.03 < one.noise < 0.15
    assert set(one.of_query) == set(range(1, 41))
    noisy = fit(cells(profiles(noise=0.3, queries=40)), bootstrap=10).parallelism["rest"]
    assert np.ptp(list(noisy.of_query.values())) < 0.3  # without pooling they would be apart by more than 0.6


def test_fresh_tasks_at_one_level_take_the_exponent_of_first_ones():
    assert fit(cells(profiles()), 10).parallelism["fresh"].mean == pytest.approx(FIRST, abs=1e-6)
    model = fit(cells(profiles(fresh_levels=(1, 4))), 10)
    assert model.parallelism["fresh"].mean == pytest.approx(FIRST, abs=1e-6)
    assert model.parallelism["fresh"] is not model.parallelism["first"]


def test_held_out_levels_are_predicted():
    table = cells(profiles())
    known, asked = table[table["level"] < 4], table[table["level"] == 4]
    errors = predict(fit(known, 10), known, asked, "level", {"no effect": 0.0})
    later = errors[errors["wave"] == "rest"]
    np.testing.assert_allclose(later["model"], 0.0, atol=1e-6)
    # The mean of what is known lies at the weighted mean of the logarithms.
    np.testing.assert_allclose(later["no effect"], REST * np.log(4 / 6 ** (1 / 3)), atol=0.02)
    assert not (errors["wave"] == "fresh").any()  # none is known below 4


def test_population_by_restricted_maximum_likelihood():
    rng = np.random.default_rng(0)
    variances = np.full(2000, 0.04)
    estimates = 0.5 + rng.normal(0.0, np.sqrt(0.09 + variances))
    mean, spread = population(estimates, variances)
    assert mean == pytest.approx(0.5, abs=0.03)
    assert spread == pytest.approx(0.3, abs=0.03)
    assert population(np.array([1.0, 1.0, 1.0]), np.full(3, 0.1))[1] == pytest.approx(0.0, abs=1e-3)
