import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decima.learning.returns import (
    Episode,
    RegressionMemory,
    RewardRate,
    advantages,
    returns_to_go,
    solve_ridge,
    time_average,
)


@st.composite
def episodes(draw, columns=3):
    gaps = draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.7]), min_size=1, max_size=8))
    time_s = np.cumsum([0.0, *gaps])[:-1]
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    end_s = time_s[-1] + draw(st.sampled_from([0.25, 2.0]))
    rewards = -rng.uniform(0.0, 5.0, len(time_s)) * np.diff(time_s, append=end_s)
    return Episode(time_s, float(end_s), rewards, rng.normal(size=(len(time_s), columns)))


HORIZONS = st.sampled_from([None, 0.7, 5.0, 1e9])
GROUPS = st.lists(st.lists(episodes(), min_size=2, max_size=4), min_size=1, max_size=3)


def discounted_integral(episode, start_s, horizon_s):
    """Integral of the reward rate from `start_s` on, times exp(-(t - start) / horizon), interval by interval."""
    total = 0.0
    ends = [*episode.time_s[1:], episode.end_s]
    for reward, begin, end in zip(episode.rewards, episode.time_s, ends, strict=True):
        if begin < start_s or end == begin:
            continue
        if horizon_s is None:
            total += reward
        else:
            rate = reward / (end - begin)
            weight = math.exp(-(begin - start_s) / horizon_s) - math.exp(-(end - start_s) / horizon_s)
            total += rate * horizon_s * weight
    return total


@given(episodes(), HORIZONS)
def test_returns_are_integrals_of_the_rewards_ahead(episode, horizon_s):
    expected = [discounted_integral(episode, start_s, horizon_s) for start_s in episode.time_s]
    assert returns_to_go(episode, horizon_s) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def value_at(episode, values, when_s):
    """Linear interpolation, step by step."""
    if when_s >= episode.end_s:
        return np.zeros_like(values[0])
    times = [*episode.time_s, episode.end_s]
    known = [*values, np.zeros_like(values[0])]
    for index in range(len(times)):
        if times[index] >= when_s:
            if index == 0:
                return known[0]
            share = (when_s - times[index - 1]) / (times[index] - times[index - 1])
            return known[index - 1] * (1.0 - share) + known[index] * share
    raise AssertionError


@given(st.lists(episodes(), min_size=1, max_size=4))
def test_time_average_is_the_mean_over_the_episodes_at_the_same_time(group):
    found = time_average(group, [episode.summary for episode in group])
    for episode, rows in zip(group, found, strict=True):
        assert rows.shape == episode.summary.shape
        for when_s, row in zip(episode.time_s, rows, strict=True):
            expected = np.mean([value_at(other, other.summary, when_s) for other in group], axis=0)
            np.testing.assert_allclose(row, expected, atol=1e-9)


@given(GROUPS, HORIZONS)
def test_advantage_is_return_minus_the_mean_at_the_same_time(groups, horizon_s):
    found = advantages(groups, horizon_s=horizon_s)
    index = 0
    for group in groups:
        returns = [returns_to_go(episode, horizon_s) for episode in group]
        for episode, own in zip(group, returns, strict=True):
            mean = [
                np.mean([value_at(o, r, when_s) for o, r in zip(group, returns, strict=True)])
                for when_s in episode.time_s
            ]
            np.testing.assert_allclose(found.values[index], own - mean, atol=1e-8)
            np.testing.assert_allclose(found.returns[index], own)
            index += 1


@given(episodes(), st.sampled_from([None, 2.0]), st.sampled_from([0.5, 3.0]))
def test_trace_sums_discounted_surprises(episode, horizon_s, trace_s):
    group = [episode, Episode(np.array([0.0]), 2.5, np.array([-2.0]), np.ones((1, 3)))]
    found = advantages([group], horizon_s=horizon_s, trace_s=trace_s).values[0]
    returns = [returns_to_go(one, horizon_s) for one in group]
    value = [np.mean([value_at(o, r, t) for o, r in zip(group, returns, strict=True)]) for t in episode.time_s]
    value.append(0.0)
    discount = 0.0 if horizon_s is None else 1.0 / horizon_s
    ends = [*episode.time_s[1:], episode.end_s]
    surprises = []
    for k, (begin, end) in enumerate(zip(episode.time_s, ends, strict=True)):
        one = Episode(np.array([begin]), end, episode.rewards[k : k + 1], np.zeros((1, 0)))
        reward = discounted_integral(one, begin, horizon_s)
        surprises.append(reward + math.exp(-discount * (end - begin)) * value[k + 1] - value[k])
    for k, begin in enumerate(episode.time_s):
        rate = discount + 1.0 / trace_s
        expected = sum(
            math.exp(-rate * (later - begin)) * surprise
            for later, surprise in zip(episode.time_s[k:], surprises[k:], strict=True)
        )
        assert found[k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_regression_takes_away_what_the_summary_explains():
    rng = np.random.default_rng(0)
    groups = []
    for _ in range(3):
        group = []
        for _ in range(8):
            time_s = np.arange(30.0)
            load = rng.normal(size=30).cumsum() + 20.0  # the rate of costs is what the summary says
            returns = -load * 7.0
            rewards = returns - np.append(returns[1:], 0.0)
            group.append(Episode(time_s, 30.0, rewards, np.stack([load, rng.normal(size=30)], axis=1)))
        groups.append(group)
    plain = advantages(groups)
    fitted = advantages(groups, memory=RegressionMemory.empty(2), ridge=1e-6)
    assert plain.explained_by_summary == 0.0
    assert 0.0 < plain.explained_by_time < 0.7
    assert fitted.explained_by_time == plain.explained_by_time
    assert fitted.explained_by_summary > 0.99
    assert np.std(np.concatenate(fitted.values)) < 0.05 * np.std(np.concatenate(plain.values))


def test_memory_is_forgotten_at_its_rate():
    rng = np.random.default_rng(2)
    group = [Episode(np.arange(4.0), 4.0, rng.normal(size=4), rng.normal(size=(4, 2))) for _ in range(3)]
    fresh = RegressionMemory.empty(2)
    advantages([group], memory=fresh)
    kept = RegressionMemory(np.eye(2), np.ones(2))
    advantages([group], memory=kept, memory_share=0.25)
    np.testing.assert_allclose(kept.gram - fresh.gram, 0.25 * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(kept.moment - fresh.moment, 0.25, atol=1e-12)


def test_ridge_ignores_constant_columns_and_scale():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 2))
    y = X @ [2.0, -1.0]
    scaled = X * [1e6, 1.0]
    weights = solve_ridge(scaled.T @ scaled, scaled.T @ y, 1e-3)
    np.testing.assert_allclose(weights * [1e6, 1.0], solve_ridge(X.T @ X, X.T @ y, 1e-3), rtol=1e-9)
    with_zero = np.column_stack([X, np.zeros(100)])
    assert solve_ridge(with_zero.T @ with_zero, with_zero.T @ y, 1e-3)[2] == 0.0
    assert solve_ridge(np.zeros((2, 2)), np.zeros(2), 1.0).tolist() == [0.0, 0.0]


@given(GROUPS, st.sampled_from(["all", "sequence", "centred"]))
def test_normalised_advantages_have_unit_spread(groups, how):
    plain, scaled = advantages(groups).values, advantages(groups, normalise=how).values
    if how != "sequence" and np.std(np.concatenate(plain)) > 1e-9:
        assert np.std(np.concatenate(scaled)) == pytest.approx(1.0)
    if how == "centred":
        assert np.mean(np.concatenate(scaled)) == pytest.approx(0.0, abs=1e-6)
    index = 0
    for group in groups:
        own = np.concatenate(plain[index : index + len(group)])
        if how == "sequence" and np.std(own) > 1e-9:
            assert np.std(np.concatenate(scaled[index : index + len(group)])) == pytest.approx(1.0)
        index += len(group)


def test_reward_rate_forgets_what_lies_beyond_its_window():
    rate = RewardRate.empty()
    assert rate.rate == 0.0
    slow = Episode(np.array([0.0, 1.0]), 2.0, np.array([-1.0, -3.0]), np.zeros((2, 0)))
    rate.add([slow], window=3)
    assert rate.rate == -2.0
    assert rate.subtract(slow).rewards.tolist() == [1.0, -1.0]
    rate.add([Episode(np.array([0.0, 2.0]), 4.0, np.array([-20.0, -20.0]), np.zeros((2, 0)))], window=3)
    assert rate.rate == pytest.approx((-3.0 - 40.0) / (1.0 + 4.0))
