import gc
import os
import signal

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from decima.core.errors import TrainingError
from decima.learning.automatic import KerasLearner, Traced
from decima.learning.loss import Loss, shuffled_parts
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.network import DecimaNetwork
from decima.systems.spark.policy.run import DecimaLearner, recorded_log_prob, useful_decisions
from decima.systems.spark.policy.task import children_of
from tests.unit.learning.small import NETWORK, TASK, recorded, same_arrays

pytestmark = pytest.mark.tensorflow

WEIGHTS = NETWORK.initial_weights(1)


@pytest.fixture(scope="module")
def records():
    return recorded(TASK, NETWORK, 1, 4)


@pytest.fixture(scope="module")
def batch(records):
    return GraphBatch(records, *children_of(TASK)[:2])


def flat(network):
    return np.concatenate([variable.numpy().reshape(-1) for variable in network.trainable_variables])


def make_learner(threads=1, chunk=40):
    return DecimaLearner(NETWORK, WEIGHTS, threads=threads, chunk=chunk)


def make_keras_learner():
    return KerasLearner(DecimaNetwork(NETWORK, children_of(TASK)[2]), WEIGHTS)


@pytest.fixture(scope="module")
def learner():
    made = make_learner()
    yield made
    made.close()


@pytest.fixture(scope="module")
def inputs(records):
    decisions = np.concatenate(useful_decisions(records))
    rng = np.random.default_rng(0)
    everything = np.concatenate([recorded_log_prob(record, True) for record in records])
    return decisions, rng.normal(size=len(decisions)), everything[decisions]


def test_recorded_probabilities_are_those_of_the_network(learner, batch, inputs):
    decisions, advantages, log_prob = inputs
    found = learner.gradient(batch, decisions, advantages, log_prob, Loss(ratio=True))
    assert found.sums["log_prob"] == pytest.approx(float(log_prob.sum()), rel=1e-5)
    assert abs(found.mean("kl")) < 1e-6
    assert found.sums["clipped"] == 0.0


def test_gradient_does_not_depend_on_threads_and_hardly_on_chunks(learner, batch, inputs):
    loss = Loss(entropy_weight=0.1)
    one = learner.gradient(batch, *inputs, loss)
    several = make_learner(threads=3)
    assert np.array_equal(one.values, several.gradient(batch, *inputs, loss).values)
    several.close()
    whole = make_learner(chunk=10_000)
    other = whole.gradient(batch, *inputs, loss)
    whole.close()
    np.testing.assert_allclose(one.values, other.values, rtol=1e-3, atol=1e-4 * np.abs(one.values).max())
    assert one.sums == pytest.approx(other.sums, rel=1e-4, abs=1e-4)


def test_clipped_ratios_have_no_gradient(learner, batch, inputs):
    decisions, _, log_prob = inputs
    ones = np.ones(len(decisions))
    far = learner.gradient(batch, decisions, ones, log_prob - 1.0, Loss(ratio=True, clip=0.2))
    assert far.sums["clipped"] == len(decisions)
    assert not far.values.any()
    assert far.sums["loss"] == pytest.approx(-1.2 * len(decisions), rel=1e-5)
    back = learner.gradient(batch, decisions, -ones, log_prob - 1.0, Loss(ratio=True, clip=0.2))
    assert np.abs(back.values).max() > 0.0


def test_not_finite_gradients_are_refused(learner, batch, inputs):
    decisions, advantages, log_prob = inputs
    spoilt = advantages.copy()
    spoilt[3] = np.nan
    with pytest.raises(TrainingError, match="is not finite"):
        learner.gradient(batch, decisions, spoilt, log_prob, Loss())


def test_adam_follows_its_formula_and_its_state_comes_back():
    learner = make_keras_learner()
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=NETWORK.num_parameters).astype(np.float32) for _ in range(3)]
    weights, m, v = WEIGHTS.astype(np.float64), 0.0, 0.0
    for step, gradient in enumerate(gradients, start=1):
        if step == 3:
            middle = learner.state()
        norm = learner.apply(gradient, 0.01, largest_norm=5.0)
        assert norm == pytest.approx(np.linalg.norm(gradient))
        scaled = gradient * 5.0 / norm
        m, v = 0.9 * m + 0.1 * scaled, 0.999 * v + 0.001 * scaled**2
        weights = weights - 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(learner.weights, weights, atol=1e-5)
    np.testing.assert_array_equal(flat(learner.network), learner.weights)
    end = learner.state()
    learner.restore(middle)
    np.testing.assert_array_equal(flat(learner.network), middle["weights"])
    learner.apply(gradients[2], 0.01, largest_norm=5.0)
    assert same_arrays(learner.state(), end)
    learner.restart_adam()
    assert not any(value.any() for name, value in learner.state().items() if name != "weights")
    learner.close()


def test_parts_are_random_but_keep_neighbours_together():
    groups = [np.arange(0, 200), np.arange(1000, 1130)]
    parts = shuffled_parts(groups, 3, np.random.default_rng(0), segment=50)
    assert sorted(np.concatenate(parts).tolist()) == [*range(200), *range(1000, 1130)]
    assert len(parts) == 3
    for part in parts:
        assert np.mean(np.diff(part) == 1) > 0.9
    again = shuffled_parts(groups, 3, np.random.default_rng(0), segment=50)
    assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))
    assert len(shuffled_parts([np.arange(10)], 4, np.random.default_rng(0))) == 1


def test_decisions_without_a_choice_are_left_out(records):
    groups = useful_decisions(records)
    first = 0
    for record, group in zip(records, groups, strict=True):
        for decision in range(len(record)):
            candidates = record.decision_candidates[decision + 1] - record.decision_candidates[decision]
            assert (first + decision in group) == (candidates > 1 or record.classes[decision] > 1)
        first += len(record)


def test_the_graphs_of_a_learner_go_with_it(batch, inputs):
    """TensorFlow registers what `tf.custom_gradient` makes in a trace for ever, and keeps the graph with it."""

    def graphs():
        gc.collect()
        return {id(each) for each in gc.get_objects() if type(each) is FuncGraph}

    before = graphs()
    made = make_keras_learner()
    made.gradient(batch, *inputs, Loss())
    made.close()
    assert graphs() > before
    del made
    assert graphs() <= before


# ---- graphs that are called without the checks of tf.function --------------------------------------------------------


NUMBERS = tf.TensorSpec([None], tf.float32)


def test_a_graph_gives_what_its_function_gives_and_is_traced_once():
    traced = []

    def work(x, factor):
        traced.append(1)
        return [factor * tf.sin(x), tf.reduce_sum(x)]

    graph = Traced(work, [NUMBERS, tf.TensorSpec([], tf.float32)])
    for size in (3, 5):
        x = np.linspace(0.0, 1.0, size, dtype=np.float32)
        sines, total = graph(x, np.float32(2.0))
        assert np.array_equal(sines.numpy(), 2.0 * tf.sin(x).numpy())
        assert total.numpy() == tf.reduce_sum(x).numpy()
    assert len(traced) == 1


def test_it_reads_and_changes_variables():
    variable = tf.Variable([1.0, 2.0])

    def add(x):
        variable.assign_add(x)
        return [variable.read_value()]

    graph = Traced(add, [NUMBERS])
    for times in (1, 2):
        (seen,) = graph(np.ones(2, np.float32))
        assert seen.numpy().tolist() == variable.numpy().tolist() == [1.0 + times, 2.0 + times]


def test_what_it_returned_stays_when_variables_change():
    variable = tf.Variable([1.0])
    (before,) = Traced(lambda: [variable.read_value()], [])()
    variable.assign([2.0])
    assert before.numpy().tolist() == [1.0]


def test_arguments_of_another_type_are_refused():
    with pytest.raises(Exception, match="float"):
        Traced(lambda x: [x], [NUMBERS])(np.zeros(2, np.float64))[0].numpy()


def test_an_interruption_waits_for_the_end_of_a_trace():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    traced = []

    def work(x):
        os.kill(os.getpid(), signal.SIGINT)
        traced.append(tf.reduce_sum(x))
        return [traced[0]]

    try:
        with pytest.raises(KeyboardInterrupt):
            Traced(work, [NUMBERS])(np.ones(2, np.float32))
        assert len(traced) == 1
        with pytest.raises(KeyboardInterrupt):  # the next one is not held back
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
