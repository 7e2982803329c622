"""The gradient of the compiled policy against that of the TensorFlow network.

Both networks are compared with plain NumPy: the compiled one in ``policy/kernel/test_inference.py``, the other in
``policy/test_network.py``.
"""

import numpy as np
import pytest

from decima.learning.loss import Loss
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.run import DecimaLearner, recorded_log_prob, useful_decisions
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.workload import synthetic_batch, synthetic_poisson
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

CLASSES = ((0.5, 8), (1.0, 8))
LOSSES = (Loss(True, 0.2, 0.05, True), Loss(True, 0.2, 0.05, False), Loss(False, 0.2, 0.0, True))
DAILY = [Architecture.named(name) for name in BASES]
COMPARED = [
    *architectures(),
    *(drawn_architecture(seed) for seed in range(6)),
    Architecture.classes(executor_classes=2),
    Architecture.classes(executor_classes=2, limit_grid=0, cluster_mean=False, max_executors=50),
    Architecture.paper(hidden=(), score_hidden=()),
    Architecture.paper(hidden=(), rectified_outputs=True),
]


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


class Eager(KerasLearner):
    """No graph is traced, which takes longer than one batch."""

    def prepare(self):
        self._function = self._chunk_gradient


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(each, marks=() if each in DAILY else pytest.mark.slow, id=describe(each)) for each in COMPARED],
)
def test_same_gradient(architecture):
    weights, records, batch = recorded(architecture)
    decisions = np.concatenate(useful_decisions(records))
    rng = np.random.default_rng(7)  # with 0, one ratio is the clip's edge to seven digits
    advantages = rng.normal(size=len(decisions))
    learners = (
        Eager(DecimaNetwork(architecture, batch.num_levels), weights),
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
