"""The learner that differentiates a Keras model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from decima.learning.gradient import Learner
from decima.learning.loss import Loss
from decima.learning.quiet import uninterrupted, use_single_threaded_operations

CHUNK = 512


def trace(function):
    """Trace a ``tf.function`` with a signature, at most once; returns its graph.

    TensorFlow registers gradients of ``tf.custom_gradient`` under a new name in every trace and never lets them go, nor
    with them the graph. Nobody asks for them after the trace.
    """
    before = set(gradient_registry._registry)
    with uninterrupted():
        graph = function.get_concrete_function()
    for name in set(gradient_registry._registry) - before:
        del gradient_registry._registry[name]
    return graph


class Traced:
    """Function that is traced at its first call, and afterwards called as a graph.

    On small networks ``tf.function`` takes longer to check and convert arguments than TensorFlow to compute.

    Args:
        function: Function of tensors that returns a sequence of tensors.
        signature: Types and shapes of its arguments, arrays or numbers of exactly these types: nothing converts them.
    """

    def __init__(self, function: Callable, signature: Sequence[tf.TensorSpec]) -> None:
        self._function = tf.function(function, input_signature=list(signature), autograph=False)
        self._graph = None

    def __call__(self, *arguments) -> list:
        """What the function returns, tensors in order."""
        if self._graph is None:
            self._graph = trace(self._function)
            self._types = [output.dtype for output in self._graph.outputs]
        # Variables that the function reads or assigns to are arguments of the graph.
        inputs = [*arguments, *self._graph.captured_inputs]
        return tf.raw_ops.StatefulPartitionedCall(args=inputs, Tout=self._types, f=self._graph)


class KerasLearner(Learner):
    """Weights, their gradients by automatic differentiation, and Adam.

    Args:
        network: A Keras model of :mod:`.layers` with ``signature``, which specifies its tensors by name, and
            ``tensors(batch, decisions)``. Called with these it gives log-probabilities and entropies, float32 [D] each,
            by name as :class:`decima.systems.spark.policy.network.DecimaNetwork`; those of idle slots may be absent.
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        threads: Chunks computed at once.
    """

    def __init__(self, network: Any, weights: np.ndarray, *, chunk: int = CHUNK, threads: int = 1) -> None:
        use_single_threaded_operations()
        super().__init__(weights, chunk, threads=threads)
        self.network = network
        flag, number, vector = tf.TensorSpec([], tf.bool), tf.TensorSpec([], tf.float32), tf.TensorSpec([None])
        inputs = [network.signature, vector, vector, flag, number, number, flag]
        self._function = tf.function(self._chunk_gradient, input_signature=inputs, autograph=False)
        self._is_traced = False
        self._set = setter(network)
        network.set_flat(self._flat)

    def prepare(self) -> None:
        """Trace the gradient."""
        if not self._is_traced:
            trace(self._function)
            self._is_traced = True

    def chunk_gradient(
        self, batch: Any, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of a chunk; see :meth:`.Learner.chunk_gradient`."""
        options = (loss.ratio, np.float32(loss.clip), np.float32(loss.entropy_weight), loss.effect_classes)
        tensors = self.network.tensors(batch, decisions)
        values, sums = self._function(tensors, advantages, log_prob, *options)
        return values.numpy(), sums.numpy()

    def _show(self) -> None:
        self._set(self._flat)

    def _chunk_gradient(self, tensors, advantages, recorded, ratio, clip, entropy_weight, effect_classes):
        """Flat gradient [parameters] and sums [len(SUMS)] of one chunk; traced once."""
        variables = [variable.value for variable in self.network.trainable_variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            out = self.network(tensors)
            log_prob_limit = tf.where(effect_classes, out["log_prob_class"], out["log_prob_limit"])
            entropy_limit = tf.where(effect_classes, out["entropy_class"], out["entropy_limit"])
            log_prob = out["log_prob_stage"] + log_prob_limit
            entropy_delay = out.get("entropy_delay", tf.zeros_like(log_prob))
            if "log_prob_delay" in out:
                log_prob += out["log_prob_delay"]
            gain, *about = clipped_gain(log_prob, recorded, advantages, ratio, clip)
            entropy = out["entropy_stage"] + entropy_limit
            if "log_prob_delay" in out:
                entropy += entropy_delay
            loss = -tf.reduce_sum(gain + entropy_weight * entropy)
        gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        flat = tf.concat([tf.reshape(part, [-1]) for part in gradients], axis=0)
        sums = [
            loss,
            tf.reduce_sum(log_prob),
            tf.reduce_sum(out["entropy_stage"]),
            tf.reduce_sum(entropy_limit),
            tf.reduce_sum(entropy_delay),
            *about,
        ]
        return flat, tf.stack(sums)


def clipped_gain(log_prob, recorded, advantages, ratio, clip) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Gain of each decision, see :class:`decima.learning.loss.Loss`; the sums ``kl`` and ``clipped``."""
    change = log_prob - tf.where(ratio, recorded, tf.stop_gradient(log_prob))
    quotient = tf.exp(change)
    limited = tf.clip_by_value(quotient, 1.0 - clip, 1.0 + clip)
    gain = tf.minimum(quotient * advantages, limited * advantages)
    outside = tf.cast(tf.abs(quotient - 1.0) > clip, tf.float32)
    return gain, tf.reduce_sum(quotient - 1.0 - change), tf.reduce_sum(outside)


def setter(network: Any) -> Traced:
    """Function that gives a network its weights, float32 [parameters], at once."""
    variables = [variable.value for variable in network.trainable_variables]

    def assign(flat):
        parts = tf.split(flat, [variable.shape.num_elements() for variable in variables])
        for variable, part in zip(variables, parts, strict=True):
            variable.assign(tf.reshape(part, variable.shape))
        return [tf.size(flat)]

    return Traced(assign, [tf.TensorSpec([None])])
