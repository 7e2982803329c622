"""The critic: a network of the policy's form whose scores are values of nodes that could be chosen (Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from decima.core.errors import TrainingError
from decima.learning.automatic import setter, trace
from decima.learning.loss import Gradient
from decima.learning.optimizer import AdamWeights
from decima.systems.unequal.policy.batch import NodeBatch
from decima.systems.unequal.policy.network import NodeNetwork

_CHUNK = 256


class NodeCritic(AdamWeights):
    """Values of nodes, a slower copy, and Adam.

    Args:
        actor: The network that chooses; its probabilities weigh mean values.
        seed: Source of the first weights.
        **adam: Adam's numbers, see :class:`.AdamWeights`.
    """

    def __init__(self, actor: NodeNetwork, seed: int, **adam: Any) -> None:
        weights = actor.architecture.initial_weights(seed)
        super().__init__(weights, **adam)
        self._actor = actor
        self._network, self._slow = (NodeNetwork(actor.architecture, actor.depth, weights) for _ in range(2))
        self._slow_flat = weights
        self._set = setter(self._network)
        self._values = tf.function(self._values_of, input_signature=[actor.signature], autograph=False)
        inputs = [actor.signature, tf.TensorSpec([None])]
        self._slope = tf.function(self._gradient_of, input_signature=inputs, autograph=False)

    def _show(self) -> None:
        self._set(self._flat)

    def values(self, batch: NodeBatch, decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of recorded choices, mean values, and the slower copy's; see the protocol ``Critic``."""
        trace(self._values)
        parts = [self._values(batch.tensors(part)).numpy() for part in _chunks(decisions)]
        found = np.concatenate(parts, axis=1).astype(np.float64)
        if not np.isfinite(found).all():
            raise TrainingError(f"the values of {len(decisions)} decisions are not finite")
        return found[0], found[1], found[2]

    def gradient(self, batch: NodeBatch, decisions: np.ndarray, targets: np.ndarray) -> Gradient:
        """Gradient of the summed squared distance from targets."""
        trace(self._slope)
        total, loss = np.zeros(len(self._flat), np.float32), 0.0
        for part, own in zip(_chunks(decisions), _chunks(targets), strict=True):
            values, sum_of_squares = self._slope(batch.tensors(part), own.astype(np.float32))
            total += values.numpy()
            loss += float(sum_of_squares)
        if not (np.isfinite(total).all() and np.isfinite(loss)):
            raise TrainingError(f"the critic's gradient of {len(decisions)} decisions is not finite")
        return Gradient(total, {"loss": loss}, len(decisions))

    def follow(self, share: float) -> None:
        """Move the slower copy by a share of its distance."""
        self._slow_flat = (self._slow_flat + np.float32(share) * (self.weights - self._slow_flat)).astype(np.float32)
        self._slow.set_flat(self._slow_flat)

    def state(self) -> dict[str, np.ndarray]:
        """Weights, the slower copy's and Adam's state."""
        return super().state() | {"slow": self._slow_flat}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        super().restore(arrays)
        self._slow_flat = arrays["slow"]
        self._slow.set_flat(self._slow_flat)

    def _values_of(self, tensors):
        """Float32 [3, D]; traced once."""
        values, segment = self._network.scores(tensors), tensors["candidate_decision"]
        scores = self._actor.scores(tensors)
        shifted = tf.exp(scores - tf.gather(tf.math.segment_max(scores, segment), segment))
        average = tf.math.segment_sum(shifted * values, segment) / tf.math.segment_sum(shifted, segment)
        slow = tf.gather(self._slow.scores(tensors), tensors["choice"])
        return tf.stack([tf.gather(values, tensors["choice"]), average, slow])

    def _gradient_of(self, tensors, targets):
        """Flat gradient [parameters] and the sum of squares; traced once."""
        variables = [variable.value for variable in self._network.trainable_variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            values = tf.gather(self._network.scores(tensors), tensors["choice"])
            loss = tf.reduce_sum(tf.square(targets - values))
        gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(part, [-1]) for part in gradients], axis=0), loss


def _chunks(values: np.ndarray) -> list[np.ndarray]:
    return np.array_split(values, max(1, -(-len(values) // _CHUNK)))
