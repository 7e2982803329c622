"""Numbers that change while training goes on."""

import pytest

from decima.exceptions import ConfigError
from decima.training import schedules
from decima.training.recipe import Recipe


def test_trace_grows_geometrically():
    recipe = Recipe.named("paper", trace_s=10.0, trace_end_s=1000.0)
    assert schedules.trace_s(recipe, 0.0) == pytest.approx(10.0)
    assert schedules.trace_s(recipe, 0.5) == pytest.approx(100.0)
    assert schedules.trace_s(recipe, 1.0) == pytest.approx(1000.0)


def test_trace_without_an_end_stays():
    assert schedules.trace_s(Recipe.named("paper", trace_s=10.0), 0.7) == 10.0
    assert schedules.trace_s(Recipe.named("paper"), 0.7) is None


def test_an_end_needs_a_start():
    with pytest.raises(ConfigError, match="trace_s"):
        Recipe.named("paper", trace_end_s=100.0)


def test_learning_rate_shapes():
    linear = Recipe.named("paper", lr_start=1e-2, lr_end=1e-4, lr_shape="linear")
    geometric = linear.replace(lr_shape="geometric")
    cosine = linear.replace(lr_shape="cosine")
    for recipe in (linear, geometric, cosine):
        assert schedules.learning_rate(recipe, 0, 0.0) == pytest.approx(1e-2)
        assert schedules.learning_rate(recipe, 9, 1.0) == pytest.approx(1e-4)
    assert schedules.learning_rate(geometric, 5, 0.5) == pytest.approx(1e-3)
    assert schedules.learning_rate(cosine, 5, 0.5) == pytest.approx(schedules.learning_rate(linear, 5, 0.5))


def test_probability_of_termination_falls_linearly():
    recipe = Recipe.named("paper", episode_start_s=1000.0, episode_end_s=4000.0)
    assert 1.0 / schedules.mean_episode_s(recipe, 0, 0.5) == pytest.approx((1 / 1000 + 1 / 4000) / 2)
    growing = recipe.replace(episode_growth_s=100.0)
    assert schedules.mean_episode_s(growing, 7, 0.0) == pytest.approx(1700.0)
    assert schedules.mean_episode_s(growing, 700, 0.0) == pytest.approx(4000.0)
