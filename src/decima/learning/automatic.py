"""The learner that differentiates a Keras model."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from decima.learning.gradient import Learner
from decima.learning.loss import Loss
from decima.learning.quiet import use_single_threaded_operations
from decima.learning.traced import Traced, trace

CHUNK = 512


class PolicyNetwork(Protocol):
    """Network whose decisions are learned, a Keras model.

    Called with its tensors it gives ``log_prob_stage``, ``log_prob_limit``, ``log_prob_class`` and the entropies of the
    same names, float32 [D] each, as :class:`.DecimaNetwork` does; those of idle slots may be
    absent.

    Attributes:
        signature: Specification of the tensors, by name.
        trainable_variables: Its weights, in the order of the flat vector.
    """

    signature: dict[str, tf.TensorSpec]
    trainable_variables: list

    def tensors(self, batch: Any, decisions: np.ndarray) -> dict[str, np.ndarray]:
        """Tensors of some decisions of an agent's batch, int [D]."""

    def set_flat(self, weights: np.ndarray) -> None:
        """Take over all weights, float32 [parameters]."""

    def __call__(self, tensors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Log-probabilities and entropies of the decisions."""


class KerasLearner(Learner):
    """Weights, their gradients by automatic differentiation, and Adam.

    Args:
        network: The network.
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        **options: Threads, decay of Adam's moments and its epsilon, see :class:`.Learner`.
    """

    def __init__(self, network: PolicyNetwork, weights: np.ndarray, *, chunk: int = CHUNK, **options: Any) -> None:
        use_single_threaded_operations()
        super().__init__(weights, chunk, **options)
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
            change = log_prob - tf.where(ratio, recorded, tf.stop_gradient(log_prob))
            quotient = tf.exp(change)
            limited = tf.clip_by_value(quotient, 1.0 - clip, 1.0 + clip)
            gain = tf.minimum(quotient * advantages, limited * advantages)
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
            tf.reduce_sum(quotient - 1.0 - change),
            tf.reduce_sum(tf.cast(tf.abs(quotient - 1.0) > clip, tf.float32)),
        ]
        return flat, tf.stack(sums)


def setter(network: PolicyNetwork) -> Traced:
    """Function that gives a network its weights, float32 [parameters], at once."""
    variables = [variable.value for variable in network.trainable_variables]

    def assign(flat):
        parts = tf.split(flat, [variable.shape.num_elements() for variable in variables])
        for variable, part in zip(variables, parts, strict=True):
            variable.assign(tf.reshape(part, variable.shape))
        return [tf.size(flat)]

    return Traced(assign, [tf.TensorSpec([None])])
