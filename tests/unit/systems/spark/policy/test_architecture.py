"""Shapes of the policy network: parameter counts of the paper and of the published code, options, initial weights."""

import itertools

import numpy as np
import pytest

from decima.core.errors import ConfigError
from decima.evaluation.run import simulate
from decima.learning.store import StoredPolicy
from decima.systems.spark.policy.architecture import SHAPE_FEATURES, Architecture
from decima.systems.spark.policy.features import SETS
from decima.systems.spark.policy.run import grown_weights
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.workload import synthetic_poisson
from tests.unit.systems.spark.policy.policies import random_weights


def layers(*widths, output_bias=True):
    """Numbers in a fully connected network of these widths."""
    pairs = list(itertools.pairwise(widths))
    return sum(i * o + o for i, o in pairs) - (0 if output_bias else widths[-1])


def test_paper_has_12736_parameters():
    """§6.1: six transformations and two score functions with hidden layers of 32 and 16 units, 12,736 in total.

    Five features go through one linear layer into 16 numbers; the score functions end in one number without bias.
    """
    entry = 5 * 16 + 16
    plain = layers(16, 32, 16, 16)  # f and g of stages, g of jobs, f and g of the cluster
    job_f = layers(5 + 16, 32, 16, 16)
    q = layers(5 + 3 * 16, 32, 16, 1, output_bias=False)
    w = layers(3 * 16 + 1, 32, 16, 1, output_bias=False)
    assert entry + 5 * plain + job_f + q + w == 12_736
    architecture = Architecture.paper()
    assert architecture.num_parameters == 12_736
    names = "input stage_f stage_g job_f job_g cluster_f cluster_g q w"
    assert " ".join(net.name for net in architecture.perceptrons) == names


def test_released_has_4770_parameters():
    """The published code: 16 and 8 hidden units, 8 numbers per embedding, score functions with 32, 16 and 8."""
    entry = layers(5, 16, 8, 8)
    plain = layers(8, 16, 8, 8)  # f and g of stages, f of the cluster
    job_f = layers(5 + 8, 16, 8, 8)
    q = layers(5 + 3 * 8, 32, 16, 8, 1)
    w = layers(3 + 2 * 8 + 1, 32, 16, 8, 1)
    assert entry + 3 * plain + job_f + q + w == 4_770
    assert Architecture.released().num_parameters == 4_770


@pytest.mark.parametrize(
    ("changes", "change"),
    [
        ({"interarrival_hint": True}, 16 + 32 + 32),  # input, f of jobs, q
        ({"more_features": ("runnable",)}, 16 + 32 + 32),
        ({"two_level": False}, -3 * layers(16, 32, 16, 16)),
        ({"summary_g": False}, -2 * layers(16, 32, 16, 16)),
        ({"score_output_bias": True}, 2),
        ({"linear_input": False}, layers(5, 32, 16, 16) - 96),
        ({"limit": "none"}, -layers(49, 32, 16, 1, output_bias=False)),
        ({"limit": "output", "max_executors": 100}, 99 * 16 - 32),
        ({"limit": "stage"}, 0),
        ({"durations": False}, 0),
        ({"feature_log": True}, 0),
        ({"rectified_outputs": True}, 0),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_options_add_or_drop_their_parameters(changes, change):
    assert Architecture.paper(**changes).num_parameters - 12_736 == change


def test_split_gives_views_that_cover_the_vector():
    architecture = Architecture.released()
    weights = np.arange(architecture.num_parameters, dtype=np.float32)
    parts = architecture.split(weights)
    np.testing.assert_array_equal(np.concatenate([part.reshape(-1) for part in parts.values()]), weights)
    for name, shape in architecture.shapes:
        assert parts[name].shape == shape
        assert np.shares_memory(parts[name], weights)
    with pytest.raises(ConfigError, match=r"released has 4770 weights, got an array of shape \(4769,\)"):
        architecture.split(weights[1:])


def test_initial_weights_are_glorot_uniform_and_follow_the_seed():
    architecture = Architecture.paper()
    weights = architecture.initial_weights(3)
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, architecture.initial_weights(3))
    assert (weights != architecture.initial_weights(4)).any()
    for name, part in architecture.split(weights).items():
        if name.endswith("bias"):
            assert not part.any()
        else:
            bound = np.sqrt(6 / sum(part.shape))
            assert np.abs(part).max() <= bound
            assert np.abs(part).max() > 0.75 * bound


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit": "job"}, "limit must be one of input, output, stage, none, got 'job'"),
        ({"features": "all"}, "features must be one of paper, released, classes, got 'all'"),
        ({"limit_context": "stage"}, "limit_context must be"),
        ({"limit_context": "job"}, "needs the features of the published code"),
        ({"embedding": 0}, "embedding must be in whole numbers from 1 to 65536, got 0"),
        ({"embedding": 2.5}, r"embedding must be in whole numbers from 1 to 65536, got 2\.5"),
        ({"hidden": [0]}, "hidden must be in whole numbers from 1 to 65536, got 0"),
        ({"score_hidden": (8, 2.7)}, r"score_hidden must be in whole numbers from 1 to 65536, got 2\.7"),
        ({"max_executors": 0}, "max_executors must be in whole numbers from 1 to 1000000, got 0"),
        ({"max_executors": 10**12}, "max_executors must be in whole numbers from 1 to 1000000, got 1000000000000"),
        ({"width": 3}, "unknown option of an architecture: width"),
        ({"feature_log": True, "features": "released"}, "feature_log needs the features of the paper"),
        # Idle slots.
        ({"replaced_seed": -1}, "replaced_seed must be a whole number from 0 on, got -1"),
        ({"delays": -1}, "delays must be a whole number from 0 to 1000, got -1"),
        ({"delays": 1001}, "delays must be a whole number"),
        ({"delays": 2.5}, "delays must be a whole number"),
        ({"delays": True}, "delays must be a whole number"),
        ({"idle": "sleep"}, "idle must be one of timer, hold, got 'sleep'"),
        ({"idle": "hold"}, "idle 'hold' .* needs delays=1, got delays=0"),
        ({"idle": "hold", "delays": 10}, "idle 'hold' .* needs delays=1, got delays=10"),
        ({"delay_context": "all"}, "delay_context must be one of"),
        ({"job_shape": "yes"}, "job_shape must be one of"),
        ({"job_shape": "heads", "durations": False}, "hides"),
        # Classes of executors, and limits on a grid.
        ({"executor_classes": 1}, "executor_classes must be 0 or a whole number from 2 to 8, got 1"),
        ({"executor_classes": 9}, "from 2 to 8, got 9"),
        ({"executor_classes": 2.5}, "got 2.5"),
        ({"limit_grid": -1}, "limit_grid must be 0 or a whole number from 2 to 1000, got -1"),
        ({"limit_grid": 10, "limit": "output"}, "needs the limit as an input of w, got limit='output'"),
        ({"executor_classes": 4, "delays": 2}, "idle slots"),
    ],
)
def test_impossible_options_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Architecture.named("paper", **changes)


def test_third_head_comes_last_and_begins_with_one_chance():
    plain, idle = Architecture.paper(), Architecture.paper(delays=10, job_shape="none", idle="timer")
    names = [net.name for net in idle.perceptrons]
    assert names == [*(net.name for net in plain.perceptrons), "d"]
    head = idle.perceptrons[-1]
    assert head.widths == (2 * 16, 32, 16, 11)
    assert len(idle.replace(delay_context="embedding").inputs["d"]) == 3 * 16
    parts = idle.split(idle.initial_weights(3))
    assert not parts["d/2/kernel"].any()
    chances = np.exp(parts["d/2/bias"].astype(np.float64))
    np.testing.assert_allclose(chances / chances.sum(), [0.98, *[0.002] * 10], rtol=1e-5)


def test_the_shape_of_jobs_in_the_places_of_two_features_drawn_by_seed():
    drawn = set()
    for seed in range(20):
        names = [each.name for each in Architecture.paper(job_shape="replaced", replaced_seed=seed).stage_features]
        places = [place for place, name in enumerate(names) if name in SHAPE_FEATURES]
        assert [names[place] for place in places] == list(SHAPE_FEATURES)
        assert [name for place, name in enumerate(names) if place not in places] == [
            name for place, name in enumerate(SETS["paper"]) if place not in places
        ]
        drawn.add(tuple(places))
    assert len(drawn) > 5  # of ten pairs
    hidden = Architecture.paper(job_shape="replaced", durations=False).stage_features
    assert not {each.name for each in hidden} & set(SHAPE_FEATURES)


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
