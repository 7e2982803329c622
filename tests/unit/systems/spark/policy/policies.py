"""Policies and states for tests of the learned scheduler."""

import numpy as np
import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.scheduler import LearnedScheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.systems.spark.system import run_state
from tests.drivers import Watching
from tests.policy_oracle import Oracle, record_decision
from tests.random_clusters import random_settings, random_workload

BASES = ("paper", "released")
GAP_S = 12.0  # that policies are told
# Options of architectures that change what is computed, one at a time; inputs of stages are tested in test_features.py.
VARIANTS = (
    {},
    {"graph_embedding": False},
    {"two_level": False},
    {"limit": "output"},
    {"limit": "stage"},
    {"limit": "none"},
    {"more_features": ("runnable", "log_tasks")},
    {"hidden": (24,), "score_hidden": (9,), "embedding": 5},
)
PAPER_VARIANTS = (*VARIANTS, {"feature_log": True}, {"linear_input": False}, {"rectified_outputs": True})


def architectures():
    """Both architectures with every option that both allow, and further ones of the paper's."""
    yield from (Architecture.paper(**changes) for changes in PAPER_VARIANTS)
    for changes in VARIANTS:
        if changes != {"graph_embedding": False}:
            yield Architecture.released(**changes)
    yield Architecture.released(graph_embedding=False, limit_context="embedding")


def describe(architecture):
    """Name for a test's label: what differs from the base."""
    base = Architecture.named(architecture.name).as_dict()
    changed = [f"{name}={value}" for name, value in architecture.as_dict().items() if value != base[name]]
    return "-".join([architecture.name, *changed])


def random_weights(architecture, seed=0, scale=1.0):
    """Weights with biases that are not zero."""
    rng = np.random.default_rng(seed)
    weights = architecture.initial_weights(seed) * scale
    return (weights + rng.normal(scale=0.05, size=len(weights))).astype(np.float32)


def make_policy(architecture="paper", seed=0, scale=1.0, interarrival_s=GAP_S, **options):
    """A policy with random weights; those that want the gap are told one, since some jobs here have none."""
    if isinstance(architecture, str):
        architecture = Architecture.named(architecture)
    weights = random_weights(architecture, seed, scale)
    return LearnedScheduler(architecture, weights, interarrival_s=interarrival_s, **options)


def make_state(workload, mode="paper", log=False, **settings):
    """A state of the workload on a cluster of the mode."""
    return state_of(workload, Settings.of_mode(mode, **settings), log=log)


def state_of(workload, settings, log=False):
    """A state of the workload on a cluster."""
    return new_state(workload, settings, log_decisions=log)


def random_state(seed, log=False, **fixed):
    """A random workload on a random cluster that policies cannot bring to a halt."""
    rng = np.random.default_rng(seed)
    return state_of(random_workload(rng), random_settings(rng, **fixed), log=log)


def finish_times(state, scheduler, seed=0):
    """When the jobs finish, in ms."""
    run_state(state, scheduler, seed)
    return state.job_finish_ms.copy()


def missing_children(record, state):
    """How many children of recorded stages are not recorded: of a stage that runs again they may have finished."""
    batch = GraphBatch([record], state.child_offset, state.child)
    rows = record.node_row
    return int((state.child_offset[rows + 1] - state.child_offset[rows]).sum()) - len(batch.tensors()["edge_source"])


def watch(state, policy, look, seed=0):
    """Run a policy through ``decide``; ``look(observation)`` is called before each of its decisions."""
    run_state(state, Watching(policy, look), seed)


def answer_of(policy, record, d, state, **changes):
    """What the plain network says about a recorded decision, which candidate was chosen, and the limits allowed."""
    offset, child = state.child_offset, state.child
    graphs, candidates, choice = record_decision(record, d, lambda row: child[offset[row] : offset[row + 1]])
    levels = record.limit_levels if len(record.limit_levels) else np.arange(1, record.limit_high[d] + 1)
    allowed = levels[(levels >= record.limit_low[d]) & (levels <= record.limit_high[d])].tolist()
    allowed = allowed or [int(record.limit_low[d])]
    architecture = policy.architecture.replace(**changes) if changes else policy.architecture
    return Oracle(architecture, policy.weights).answer(graphs, candidates, choice, allowed), choice, allowed


def checked_answer(policy, record, d, state):
    """What the plain network says about a recorded decision, whose probabilities must be those; the limits allowed."""
    answer, choice, allowed = answer_of(policy, record, d, state)
    assert record.log_prob_stage[d] == pytest.approx(answer.log_prob_stage[choice], abs=1e-5)
    assert not policy.greedy or answer.log_prob_stage[choice] >= answer.log_prob_stage.max() - 1e-5
    chosen = int(record.delay[d])
    if not record.delay_free[d]:
        assert chosen == record.log_prob_delay[d] == 0
    else:
        assert record.log_prob_delay[d] == pytest.approx(answer.log_prob_delay[chosen], abs=1e-5)
        assert not policy.greedy or answer.log_prob_delay[chosen] >= answer.log_prob_delay.max() - 1e-5
    if policy.architecture.limit == "none" or chosen > 0:
        assert record.log_prob_limit[d] == record.log_prob_class[d] == 0.0
    else:
        log_class = answer.log_prob_class(record.class_low[d], record.class_high[d])
        assert record.log_prob_limit[d] == pytest.approx(answer.log_prob_limit[record.limit[d]], abs=1e-5)
        assert record.log_prob_class[d] == pytest.approx(log_class, abs=1e-5)
    return answer, allowed


def drawn_architecture(seed):
    """An architecture with the head of idle slots, its options drawn at random."""
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
