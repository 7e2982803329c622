"""Larger networks that begin with a stored policy."""

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.learning.store import StoredPolicy
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.run import grown_weights
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.workload import synthetic_poisson
from tests.unit.systems.spark.policy.policies import random_weights

SMALL = {"embedding": 4, "hidden": (6,), "score_hidden": (5,), "max_executors": 8}


def stored(architecture, tmp_path):
    return StoredPolicy("small", architecture, random_weights(architecture, 3), {}, tmp_path)


@pytest.mark.parametrize("make", [Architecture.paper, Architecture.released])
@pytest.mark.parametrize(
    ("known", "new"),
    [
        ({}, {"delays": 4, "more_features": ("remaining", "since_smaller")}),
        ({"delays": 4}, {"delays": 4, "delay_context": "embedding"}),
    ],
)
def test_a_third_head_and_more_inputs_decide_alike_at_first(make, known, new, tmp_path):
    policy = stored(make(**SMALL, **known), tmp_path)
    larger = make(**SMALL, **new)
    assert larger.shape_width > 0
    weights = grown_weights(policy, larger, 0)
    jobs = synthetic_poisson(8, 10.0, seed=0)
    before = simulate(jobs, LearnedScheduler(policy.architecture, policy.weights), 6)
    after = simulate(jobs, LearnedScheduler(larger, weights), 6)
    np.testing.assert_array_equal(before.jct_ms, after.jct_ms)


def test_what_the_new_network_lacks_is_named(tmp_path):
    policy = stored(Architecture.paper(**SMALL, more_features=("runnable",)), tmp_path)
    with pytest.raises(ConfigError, match="input runnable, which the new network lacks"):
        grown_weights(policy, Architecture.paper(**SMALL), 0)
    with pytest.raises(ConfigError, match="has width 4, the new network 3"):
        grown_weights(policy, Architecture.paper(**(SMALL | {"embedding": 3}), more_features=("runnable",)), 0)
    with pytest.raises(ConfigError, match="is not in the new network"):
        grown_weights(policy, Architecture.paper(**SMALL, more_features=("runnable",), limit="none"), 0)
