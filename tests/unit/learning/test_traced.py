"""Graphs that are called without the checks of ``tf.function``."""

import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from decima.learning.automatic import Traced

pytestmark = pytest.mark.tensorflow

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
