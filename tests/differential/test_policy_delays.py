"""The head of idle slots in the compiled policy against the TensorFlow network, on every recorded decision."""

import numpy as np
import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.workload import synthetic_batch, synthetic_poisson
from tests.unit.systems.spark.policy.kernel.test_delays import eager_weights
from tests.unit.systems.spark.policy.policies import make_state

pytest.importorskip("tensorflow")

from decima.systems.spark.policy.network import DecimaNetwork

pytestmark = [pytest.mark.differential, pytest.mark.tensorflow]
COMPARED = ("log_prob_stage", "log_prob_limit", "log_prob_class", "log_prob_delay")


def drawn_architecture(seed):
    """An architecture with the head, its options drawn at random."""
    rng = np.random.default_rng(seed)

    def one_of(*values):
        return values[rng.integers(len(values))]

    changes = {
        "delays": one_of(1, 2, 10, 33),
        "delay_context": one_of("job", "embedding"),
        "job_shape": one_of("auto", "none", "heads", "replaced"),
        "limit": one_of("input", "output", "stage", "none"),
        "graph_embedding": bool(rng.random() < 0.8),
        "embedding": one_of(5, 16),
        "score_hidden": one_of((9,), (32, 16)),
        "more_features": one_of((), ("running_age", "since_smaller")),
    }
    if changes["delays"] == 1:
        changes["idle"] = one_of("timer", "hold")
    name = one_of("paper", "released") if changes["graph_embedding"] else "paper"
    return Architecture.named(name, **changes)


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("seed", range(10))
def test_same_probabilities(seed, mode):
    architecture = drawn_architecture(seed)
    policy = LearnedScheduler(
        architecture, eager_weights(architecture, seed, architecture.delays), greedy=False, record=True
    )
    states = [make_state(synthetic_batch(8, seed), mode, executors=12)]
    states.append(make_state(synthetic_poisson(8, 10, seed), mode, executors=12))
    records = [record_episode(state, policy, seed) for state in states]
    batch = GraphBatch(records, states[0].child_offset, states[0].child)
    tensors = DecimaNetwork(architecture, batch.num_levels, policy.weights)(batch.tensors())
    matters = np.concatenate([record.classes for record in records]) > 1
    for name in COMPARED:
        ours = np.concatenate([getattr(record, name) for record in records])
        gap = np.abs(ours - tensors[name].numpy())
        of = slice(None) if name in ("log_prob_stage", "log_prob_delay") else matters
        assert gap[of].max(initial=0.0) <= 1e-5, name
    assert sum((record.delay > 0).sum() for record in records) > 3
