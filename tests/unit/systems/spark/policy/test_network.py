"""The TensorFlow network against a plain NumPy one, and what must hold for any weights."""

import dataclasses

import numpy as np
import pytest

from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from tests.policy_oracle import Oracle, entropy, record_decision
from tests.policy_records import Record, Tables, random_jobs, random_record
from tests.unit.systems.spark.policy.policies import random_weights

pytestmark = pytest.mark.tensorflow

tf = pytest.importorskip("tensorflow")
network = pytest.importorskip("decima.systems.spark.policy.network")
layers = pytest.importorskip("decima.learning.layers")

EXECUTORS = 8
PAPER, RELEASED = Architecture.paper(max_executors=12), Architecture.released(max_executors=12)
# Each option changed alone, on both networks where it means something.
VARIANTS = {
    "paper": PAPER,
    "released": RELEASED,
    "perceptron-input": PAPER.replace(linear_input=False),
    "linear-input-released": RELEASED.replace(linear_input=True),
    "rectified-outputs": PAPER.replace(rectified_outputs=True),
    "no-summary-g": PAPER.replace(summary_g=False),
    "summary-g-released": RELEASED.replace(summary_g=True),
    "score-bias": PAPER.replace(score_output_bias=True),
    "embedding-context-released": RELEASED.replace(limit_context="embedding"),
    "no-graph-embedding": PAPER.replace(graph_embedding=False),
    "no-graph-embedding-released": RELEASED.replace(graph_embedding=False),
    "one-level": PAPER.replace(two_level=False),
    "one-level-released": RELEASED.replace(two_level=False),
    "limit-output": PAPER.replace(limit="output"),
    "limit-output-released": RELEASED.replace(limit="output"),
    "limit-output-no-graph": PAPER.replace(limit="output", graph_embedding=False),
    "limit-stage": PAPER.replace(limit="stage"),
    "limit-none": PAPER.replace(limit="none"),
    "delays": PAPER.replace(delays=10),
    "delays-embedding-context": PAPER.replace(delays=4, delay_context="embedding", limit="output"),
    "delays-released": RELEASED.replace(delays=3, limit="none"),
    "delays-no-graph": PAPER.replace(delays=5, graph_embedding=False, job_shape="heads"),
    "hold": PAPER.replace(delays=1, idle="hold", job_shape="replaced"),
    "job-shape-replaced": PAPER.replace(delays=5, job_shape="replaced", replaced_seed=2),
    "job-shape": PAPER.replace(job_shape="heads"),
    "classes": Architecture.classes(limit_grid=5),
    "classes-no-graph": PAPER.replace(executor_classes=3, graph_embedding=False),
    "cluster-mean": PAPER.replace(cluster_mean=True),
    "limit-grid": PAPER.replace(limit_grid=6, limit="stage"),
    "narrow-and-deep": PAPER.replace(embedding=3, hidden=(5, 4, 6), score_hidden=(7,)),
}
OUTPUTS = {"log_prob_stage", "log_prob_limit", "log_prob_class", "entropy_stage", "entropy_limit", "entropy_class"}


def make_records(architecture, seed=0, count=3, decisions=6):
    rng = np.random.default_rng(seed)
    jobs = random_jobs(rng, 8)
    records = [
        random_record(
            rng,
            jobs,
            decisions,
            features=architecture.num_features,
            executors=EXECUTORS,
            shape=architecture.shape_width,
            delays=architecture.delays,
            classes=architecture.class_width,
            levels=architecture.limit_levels(EXECUTORS),
        )
        for _ in range(count)
    ]
    return Tables.of(jobs), records


def run(architecture, weights, tensors):
    model = network.DecimaNetwork(architecture, len(tensors["level_sizes"]), weights)
    return {name: value.numpy() for name, value in model(tensors).items()}


def outputs_of(architecture):
    return OUTPUTS | ({"log_prob_delay", "entropy_delay"} if architecture.delays else set())


def expected_outputs(architecture, weights, records, tables):
    """The same from the oracle, one decision after the other."""
    oracle = Oracle(architecture, weights)

    def children_of_row(row):
        return tables.child[tables.child_offset[row] : tables.child_offset[row + 1]]

    out = {name: [] for name in outputs_of(architecture)}
    for record in records:
        for decision in range(len(record.choice)):
            graphs, candidates, choice = record_decision(record, decision, children_of_row)
            low, high = int(record.limit_low[decision]), int(record.limit_high[decision])
            levels = record.limit_levels if len(record.limit_levels) else range(1, high + 1)
            allowed = [int(level) for level in levels if low <= level <= high]
            answer = oracle.answer(graphs, candidates, choice, allowed)
            out["log_prob_stage"].append(answer.log_prob_stage[choice])
            out["entropy_stage"].append(entropy(answer.log_prob_stage))
            if architecture.delays:
                free, delay = record.delay_free[decision], int(record.delay[decision])
                out["log_prob_delay"].append(answer.log_prob_delay[delay] if free else 0.0)
                out["entropy_delay"].append(entropy(answer.log_prob_delay) if free else 0.0)
            classes = int(record.classes[decision])
            if classes == 1 or not answer.log_prob_limit:
                for name in ("log_prob_limit", "log_prob_class", "entropy_limit", "entropy_class"):
                    out[name].append(0.0)
                continue
            tail = allowed[classes - 1]
            spans = [(limit, limit) for limit in allowed[: classes - 1]] + [(tail, high)]
            log_classes = [answer.log_prob_class(*span) for span in spans]
            limit = int(record.limit[decision])
            out["log_prob_limit"].append(answer.log_prob_limit[limit])
            out["log_prob_class"].append(log_classes[allowed.index(min(limit, tail))])
            out["entropy_limit"].append(entropy(answer.log_prob_limit.values()))
            out["entropy_class"].append(entropy(log_classes))
    return out


@pytest.mark.parametrize("name", VARIANTS)
def test_every_option_computes_what_plain_numpy_does(name):
    architecture = VARIANTS[name]
    weights = random_weights(architecture)
    tables, records = make_records(architecture)
    tensors = GraphBatch(records, tables.child_offset, tables.child).tensors()
    found = run(architecture, weights, tensors)
    expected = expected_outputs(architecture, weights, records, tables)
    assert set(found) == outputs_of(architecture)
    for output in found:
        assert found[output].dtype == np.float32
        np.testing.assert_allclose(found[output], expected[output], rtol=1e-5, atol=1e-5, err_msg=output)
    assert np.ptp(found["log_prob_stage"]) > 0.1
    if architecture.limit != "none":
        assert np.ptp(found["log_prob_class"]) > 0.1


def one_decision(x, children, choice=0, **limits):
    """A record of one decision about one job, every stage a candidate; and the profile tables of the job."""
    count = len(x)
    values = {"limit": [1], "limit_low": [1], "limit_high": [3], "classes": [1]} | limits
    record = Record(
        instance_first=[0, count],
        node_row=np.arange(count),
        node_local=np.arange(count),
        x=x,
        decision_pairs=[0, 1],
        pair_instance=[0],
        decision_candidates=[0, count],
        candidate_node=np.arange(count),
        candidate_instance=np.zeros(count),
        choice=[choice],
        **values,
    )
    return GraphBatch([record], *dataclasses.astuple(Tables.of([children]))[:2]).tensors()


def tiny_network(**values):
    """One feature wide embeddings and no hidden layers, so that every layer is one number: all 1 unless given."""
    architecture = Architecture.paper(embedding=1, hidden=(), score_hidden=())
    weights = []
    for name, shape in architecture.shapes:
        default = np.zeros(shape) if name.endswith("bias") else np.ones(shape)
        weights.append(np.broadcast_to(values.get(name.replace("/", "_"), default), shape).reshape(-1))
    return architecture, np.concatenate(weights).astype(np.float32)


def test_a_diamond_by_hand():
    """Stage 0 -> 1, 2 -> 3 with a short cut 0 -> 3; embeddings are single numbers."""
    e1 = np.array([1.0, 0, 0, 0, 0])[:, None]
    architecture, weights = tiny_network(
        input_0_kernel=e1,  # h = x_0
        stage_f_0_kernel=[[2.0]],
        stage_f_0_bias=[1.0],  # f(e) = 2 e + 1
        stage_g_0_kernel=[[0.5]],
        stage_g_0_bias=[-1.0],  # g(s) = s / 2 - 1
    )
    x = np.zeros((4, 5))
    x[:, 0] = [10, 20, 30, 4]
    tensors = one_decision(x, [[1, 2, 3], [3], [3], []])
    model = network.DecimaNetwork(architecture, 3, weights)
    e, y, z = (value.numpy() for value in model.embed(tensors))
    # e_3 = 4; e_1 = (2*4+1)/2 - 1 + 20 = 23.5; e_2 = 33.5; e_0 = (48 + 68 + 9)/2 - 1 + 10 = 71.5
    np.testing.assert_allclose(e[:, 0], [4, 23.5, 33.5, 71.5])
    # All other weights are 1: y is the sum of x_0 + e over the stages, z = y.
    np.testing.assert_allclose(y, [[64 + 132.5]])
    np.testing.assert_allclose(z, y)
    # q is the sum of x_0, e, y and z: what differs between stages is x_0 + e, here 81.5, 43.5, 63.5 and 8.
    found = run(architecture, weights, tensors)
    np.testing.assert_allclose(found["log_prob_stage"], [0.0], atol=1e-6)
    found = run(architecture, weights, one_decision(x, [[1, 2, 3], [3], [3], []], choice=2))
    np.testing.assert_allclose(found["log_prob_stage"], [63.5 - 81.5], atol=1e-5)


def test_one_trace_serves_all_batches():
    weights = random_weights(PAPER)
    model = network.DecimaNetwork(PAPER, 12, weights)
    traces = []

    @tf.function(input_signature=[model.signature])
    def outputs(batch):
        traces.append(1)
        return model(batch)

    for seed in range(3):
        tables, records = make_records(PAPER, seed=seed, count=seed + 1)
        batch = GraphBatch(records, tables.child_offset, tables.child)
        found = outputs(batch.tensors(num_levels=12))
        eager = run(PAPER, weights, batch.tensors())
        for name in OUTPUTS:
            np.testing.assert_allclose(found[name].numpy(), eager[name], rtol=1e-5, atol=1e-5)
    assert len(traces) == 1


@pytest.mark.parametrize("name", ["paper", "released", "one-level", "no-graph-embedding", "limit-none"])
def test_flat_weights_keep_their_order(name):
    architecture = VARIANTS[name]
    weights = random_weights(architecture)
    model = network.DecimaNetwork(architecture, 3)
    assert not any(variable.numpy().any() for variable in model.trainable_variables)
    model.set_flat(weights)
    flat = np.concatenate([variable.numpy().reshape(-1) for variable in model.trainable_variables])
    np.testing.assert_array_equal(flat, weights)
    assert [tuple(variable.shape) for variable in model.trainable_variables] == [s for _, s in architecture.shapes]
    parts = architecture.split(weights)
    for variable, value in zip(model.trainable_variables, parts.values(), strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    layer = model.get_layer("q")
    np.testing.assert_array_equal(layer.kernels[0].numpy(), parts["q/0/kernel"])
    assert model.count_params() == architecture.num_parameters
