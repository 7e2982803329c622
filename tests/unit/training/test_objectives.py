from types import SimpleNamespace

import numpy as np
import pytest

from decima.exceptions import ConfigError
from decima.training.objectives import (
    check_objective,
    list_objectives,
    objective_metric,
    objective_rewards,
    register_objective,
)


def episode(arrival_s, completion_s, decisions_s, end_s):
    """Times of a record; the integral of active jobs follows from arrivals and completions."""
    arrival, completion = np.array(arrival_s, float), np.array(completion_s, float)
    leave = np.where(np.isnan(completion), end_s, completion)

    def area(when):
        return np.clip(when - arrival, 0.0, leave - arrival).sum()

    return SimpleNamespace(
        time_ms=1000.0 * np.array(decisions_s, float),
        area_ms=1000.0 * np.array([area(when) for when in decisions_s]),
        end_ms=1000.0 * end_s,
        end_area_ms=1000.0 * area(end_s),
        arrival_ms=1000.0 * arrival,
        completion_ms=1000.0 * completion,
    )


def test_rewards_sum_to_minus_the_completion_times():
    record = episode([0, 0, 3], [5, 9, 10], [0, 0, 2, 3, 6], 10)
    rewards = objective_rewards("avg_jct", [record])[0]
    assert rewards.sum() == pytest.approx(-(5 + 9 + 7))
    assert rewards.tolist() == [0.0, -4.0, -2.0, -8.0, -7.0]


def test_makespan_costs_time():
    record = episode([0, 0], [5, 9], [0, 2, 6], 9)
    assert objective_rewards("makespan", [record])[0].tolist() == [-2.0, -4.0, -3.0]


def test_tail_adds_what_lies_beyond_the_percentile_of_all_rollouts():
    ages = np.arange(1.0, 12.0)
    one = episode(np.zeros(11), ages, [0, 4], 11.0)
    other = episode(np.zeros(11), ages, [0], 11.0)
    limit = np.quantile(np.concatenate([ages, ages]), 0.9)
    for record, rewards in zip([one, other], objective_rewards("p90_jct", [one, other]), strict=True):
        beyond = np.maximum(ages - limit, 0.0).sum() / 0.1
        assert rewards.shape == record.time_ms.shape
        assert rewards.sum() == pytest.approx(-ages.sum() - beyond)


def test_unfinished_jobs_count_up_to_the_end():
    record = episode([0, 1], [np.nan, 2], [0, 1.5], 4.0)
    assert objective_rewards("avg_jct", [record])[0].sum() == pytest.approx(-(4.0 + 1.0))
    assert np.isfinite(objective_rewards("p90_jct", [record])[0]).all()


def test_own_objectives_are_checked():
    @register_objective("half decisions", metric="makespan_s")
    def wrong(records):
        return [np.zeros(1) for _ in records]

    assert "half decisions" in list_objectives()
    assert objective_metric("half decisions") == "makespan_s"
    with pytest.raises(ConfigError, match="returned rewards of shapes"):
        objective_rewards("half decisions", [episode([0], [1], [0, 0], 1)])
    with pytest.raises(ConfigError, match="unknown objective 'avgjct'; did you mean 'avg_jct'"):
        check_objective("avgjct")
