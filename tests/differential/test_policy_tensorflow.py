"""The compiled policy against the TensorFlow network: every decision of recorded episodes, and their gradient."""

import numpy as np
import pytest

from decima.learning.loss import Loss
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.run import DecimaLearner, recorded_log_prob, useful_decisions
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import make_scheduler
from decima.workload import synthetic_batch, synthetic_poisson, tpch_batch, tpch_poisson
from tests.unit.systems.spark.policy.kernel.test_delays import eager_weights
from tests.unit.systems.spark.policy.policies import (
    BASES,
    GAP_S,
    architectures,
    describe,
    drawn_architecture,
    make_state,
    random_weights,
)

pytest.importorskip("tensorflow")

from decima.learning.automatic import KerasLearner
from decima.systems.spark.policy.network import DecimaNetwork

pytestmark = [pytest.mark.differential, pytest.mark.tensorflow]
COMPARED = ("log_prob_stage", "log_prob_delay", "log_prob_limit", "log_prob_class")


def differences(policy, records, state):
    """Largest difference by output, and the decisions; limits count where they matter."""
    batch = GraphBatch(records, state.child_offset, state.child)
    network = DecimaNetwork(policy.architecture, batch.num_levels, policy.weights)
    tensors = network(batch.tensors())
    matters = np.concatenate([record.classes for record in records]) > 1
    largest = {}
    for name in COMPARED if policy.architecture.delays else set(COMPARED) - {"log_prob_delay"}:
        ours = np.concatenate([getattr(record, name) for record in records])
        gap = np.abs(ours - tensors[name].numpy())
        largest[name] = float((gap if name in COMPARED[:2] else gap[matters]).max(initial=0.0))
    return largest


def compare(architecture, weights, states, tolerance, teacher=None):
    policy = LearnedScheduler(architecture, weights, False, record=True, teacher=teacher, interarrival_s=GAP_S)
    records = [record_episode(state, policy, seed) for seed, state in enumerate(states)]
    largest = differences(policy, records, states[0])
    assert max(largest.values()) <= tolerance, largest
    return np.concatenate([record.delay for record in records])


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("architecture", list(architectures()), ids=describe)
def test_same_probabilities(architecture, mode):
    states = [make_state(synthetic_batch(10, seed), mode, executors=20) for seed in range(3)]
    states.append(make_state(synthetic_poisson(10, 20, 0), mode, executors=20))
    assert len(compare(architecture, random_weights(architecture), states, 1e-5)) > 300


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("seed", range(10))
def test_same_probabilities_of_idle_slots(seed, mode):
    architecture = drawn_architecture(seed)
    states = [make_state(synthetic_batch(8, seed), mode, executors=12)]
    states.append(make_state(synthetic_poisson(8, 10, seed), mode, executors=12))
    delays = compare(architecture, eager_weights(architecture, seed, architecture.delays), states, 1e-5)
    assert (delays > 0).sum() > 3


@pytest.mark.parametrize("name", BASES)
def test_same_probabilities_of_a_teachers_choices(name):
    architecture = Architecture.named(name)
    states = [make_state(synthetic_batch(15, seed), executors=20) for seed in range(2)]
    teacher = make_scheduler("capped_srw")
    assert len(compare(architecture, random_weights(architecture), states, 1e-5, teacher)) > 100


@pytest.mark.parametrize("name", BASES)
def test_same_probabilities_where_stages_run_again(name):
    cluster = {"executors": 12, "executor_cores": 2, "dynamic": True, "idle_timeout_ms": 2000.0, "loss_rate": 20.0}
    architecture = Architecture.named(name)
    states = [make_state(synthetic_batch(10, seed), **cluster, straggler_share=0.2) for seed in (1, 2)]
    assert len(compare(architecture, random_weights(architecture), states, 1e-5)) > 300
    assert all(state.lost_outputs > 20 for state in states)


@pytest.mark.slow
@pytest.mark.usefixtures("tpch_data")
@pytest.mark.parametrize("name", BASES)
def test_same_probabilities_on_tpch(name):
    architecture = Architecture.named(name)
    states = [make_state(tpch_batch(20, seed)) for seed in range(5)]
    states += [make_state(tpch_poisson(60, 25, seed)) for seed in range(2)]
    assert len(compare(architecture, random_weights(architecture), states, 1e-5)) > 3000


# ---- gradients ------------------------------------------------------------------------------------------------------

CLASSES = ((0.5, 8), (1.0, 8))
LOSSES = (Loss(True, 0.2, 0.05, True), Loss(True, 0.2, 0.05, False), Loss(False, 0.2, 0.0, True))
FURTHER = (
    *(drawn_architecture(seed) for seed in range(6)),
    Architecture.classes(executor_classes=2),
    Architecture.classes(executor_classes=2, limit_grid=0, cluster_mean=False, max_executors=50),
    Architecture.paper(hidden=(), score_hidden=()),
    Architecture.paper(hidden=(), rectified_outputs=True),
)


def recorded(architecture):
    """Decisions of two episodes, and random weights."""
    weights = random_weights(architecture)
    if architecture.delays:
        weights = eager_weights(architecture, 0, architecture.delays)
    cluster = {"classes": CLASSES} if architecture.executor_classes else {"executors": 16}
    states = [make_state(workload, **cluster) for workload in (synthetic_batch(8, 0), synthetic_poisson(8, 10, 0))]
    policy = LearnedScheduler(architecture, weights, False, record=True, interarrival_s=GAP_S)
    records = [record_episode(state, policy, seed) for seed, state in enumerate(states)]
    return weights, records, GraphBatch(records, states[0].child_offset, states[0].child)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [*architectures(), *FURTHER], ids=describe)
def test_same_gradient(architecture):
    weights, records, batch = recorded(architecture)
    decisions = np.concatenate(useful_decisions(records))
    rng = np.random.default_rng(7)  # with 0, one ratio is the clip's edge to seven digits
    advantages = rng.normal(size=len(decisions))
    learners = (
        KerasLearner(DecimaNetwork(architecture, batch.num_levels), weights),
        DecimaLearner(architecture, weights),
    )
    for loss in LOSSES:
        before = np.concatenate([recorded_log_prob(record, loss.effect_classes) for record in records])[decisions]
        before = before + rng.normal(0.0, 0.3, size=len(decisions))  # so that ratios differ, and some are clipped
        theirs, ours = (each.gradient(batch, decisions, advantages, before, loss) for each in learners)
        largest = np.abs(theirs.values).max()
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-3, atol=1e-4 * largest + 1e-5)
        assert np.linalg.norm(ours.values - theirs.values) < 1e-3 * np.linalg.norm(theirs.values) + 1e-5
        assert ours.sums == pytest.approx(theirs.sums, rel=1e-4, abs=1e-3)
    for learner in learners:
        learner.close()
