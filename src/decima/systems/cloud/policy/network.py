"""Gradients of placement networks in TensorFlow: of policies, imitation and values."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from decima.core.errors import TrainingError
from decima.learning.algorithms.dqn import Transitions
from decima.learning.automatic import Traced, clipped_gain
from decima.learning.gradient import Learner
from decima.learning.loss import Loss
from decima.learning.perceptron import LEAK
from decima.learning.quiet import use_single_threaded_operations
from decima.systems.cloud.policy.architecture import PlacementArchitecture
from decima.systems.cloud.policy.scheduler import PlacementRecord

CHUNK = 4096
_NEVER = np.float32(-1e9)  # score of what cannot be chosen


def scores(architecture: PlacementArchitecture, flat, x):
    """The network, the same as :mod:`decima.systems.cloud.policy.kernel` computes.

    Args:
        architecture: Its shape.
        flat: float32 [parameters], a tensor.
        x: float32 [rows, inputs].

    Returns:
        float32 [rows, outputs].
    """
    layers = architecture.layer_rows()["score"]
    for index, (kernel, bias, inputs, outputs) in enumerate(layers):
        x = x @ tf.reshape(flat[kernel:bias], (inputs, outputs)) + flat[bias : bias + outputs]
        if index < len(layers) - 1:
            x = tf.nn.leaky_relu(x, LEAK)
    return x


class PlacementBatch:
    """Records of several episodes, decisions numbered through all of them.

    Args:
        records: The episodes.
        vector: Whether there is one row of inputs per decision; else per action.
    """

    def __init__(self, records: Sequence[PlacementRecord], vector: bool) -> None:
        self._vector = vector
        counts = np.concatenate([np.diff(record.first) for record in records])
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._x = np.concatenate([record.x for record in records])
        self._action = np.concatenate([record.action for record in records])
        self._chosen = np.concatenate([record.chosen for record in records])

    def tensors(self, decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, (decision, column) of every action, and the column of the chosen one.

        Columns are the actions of a vector's outputs, or the places of the rows of a decision.

        Args:
            decisions: int [D], numbers of decisions.
        """
        counts = self._first[decisions + 1] - self._first[decisions]
        row = np.repeat(np.arange(len(decisions)), counts)
        position = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        source = np.repeat(self._first[decisions], counts) + position
        column = self._action[source] if self._vector else position
        x = self._x[decisions if self._vector else source]
        picked = self._chosen[decisions]
        if self._vector:
            picked = self._action[self._first[decisions] + picked]
        pairs = np.stack([row, column], axis=1)
        return x, pairs.astype(np.int32), picked.astype(np.int32)


class PlacementLearner(Learner):
    """Weights of a placement network, their gradients and Adam.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters], where to start.
    """

    def __init__(self, architecture: PlacementArchitecture, weights: np.ndarray) -> None:
        use_single_threaded_operations()
        super().__init__(weights, CHUNK)
        self.architecture = architecture
        number, vector, whole = tf.TensorSpec([], tf.float32), tf.TensorSpec([None]), tf.TensorSpec([None], tf.int32)
        rows, pairs = tf.TensorSpec([None, architecture.inputs]), tf.TensorSpec([None, 2], tf.int32)
        flag, size = tf.TensorSpec([], tf.bool), tf.TensorSpec([], tf.int32)
        self._policy = Traced(
            self._policy_gradient, [vector, rows, pairs, whole, size, vector, vector, flag, number, number]
        )
        mask = tf.TensorSpec([None, None], tf.bool)
        self._values = Traced(
            self._value_gradient, [vector, rows, whole, vector, rows, mask, vector, vector, number, flag]
        )

    # ---- policies -----------------------------------------------------------------------------------------------

    def parts(self, count: int) -> list[slice]:
        """Chunks of ``count`` decisions, all but the last full."""
        return [slice(first, first + CHUNK) for first in range(0, count, CHUNK)]

    def chunk_gradient(
        self, batch: PlacementBatch, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of a chunk; see :meth:`.Learner.chunk_gradient`.

        The entropy counts as that of the stage; there are no limits and no idle slots.
        """
        x, pairs, picked = batch.tensors(decisions)
        options = (loss.ratio, np.float32(loss.clip), np.float32(loss.entropy_weight))
        sizes = np.int32(len(picked))
        values, sums = self._policy(self._flat, x, pairs, picked, sizes, advantages, log_prob, *options)
        return values.numpy(), sums.numpy()

    def _policy_gradient(self, flat, x, pairs, picked, size, advantages, recorded, ratio, clip, entropy_weight):
        """Flat gradient [parameters] and sums [len(SUMS)]; traced once."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(flat)
            outputs = scores(self.architecture, flat, x)
            columns = tf.reduce_max(pairs[:, 1]) + 1
            if self.architecture.form == "vector":
                columns = tf.constant(self.architecture.outputs)
                logits = tf.gather_nd(outputs, pairs)
            else:
                logits = outputs[:, 0]
            table = tf.tensor_scatter_nd_update(tf.fill([size, columns], _NEVER), pairs, logits)
            logs = tf.nn.log_softmax(table)
            log_prob = tf.gather(logs, picked, batch_dims=1)
            entropy = -tf.reduce_sum(tf.where(table > 0.5 * _NEVER, tf.exp(logs) * logs, 0.0), axis=1)
            gain, *about = clipped_gain(log_prob, recorded, advantages, ratio, clip)
            loss = -tf.reduce_sum(gain + entropy_weight * entropy)
        nothing = tf.constant(0.0)
        sums = [loss, tf.reduce_sum(log_prob), tf.reduce_sum(entropy), nothing, nothing, *about]
        return tape.gradient(loss, flat), tf.stack(sums)

    # ---- values -------------------------------------------------------------------------------------------------

    def value_gradient(
        self, transitions: Transitions, target: np.ndarray, discount: float, *, double: bool
    ) -> tuple[np.ndarray, dict[str, float]]:
        """Gradient of the mean loss of temporal differences (Eqs. 15 and 16).

        Args:
            transitions: T transitions with ``x`` [T, rows x inputs], ``action``, ``reward``, ``next_x``, ``next_mask``
                [T, actions], ``steps`` and ``done``.
            target: Float32 [parameters], weights of the target network.
            discount: Of one step.
            double: The network chooses the next action, the target network values it.

        Returns:
            Float32 [parameters]; ``loss`` and ``value``, the means of loss and predicted value.

        Raises:
            TrainingError: The gradient or the loss is not finite.
        """
        at, inputs = transitions.arrays, self.architecture.inputs
        factor = (discount ** at["steps"]) * ~at["done"]
        values, sums = self._values(
            self._flat, at["x"].reshape(-1, inputs), at["action"], at["reward"].astype(np.float32),
            at["next_x"].reshape(-1, inputs), at["next_mask"], factor.astype(np.float32),
            target, np.float32(len(transitions)), double,
        )  # fmt: skip
        gradient, sums = values.numpy(), sums.numpy()
        if not (np.isfinite(gradient).all() and np.isfinite(sums).all()):
            raise TrainingError(f"the gradient of {len(transitions)} transitions is not finite")
        return gradient, {"loss": float(sums[0]), "value": float(sums[1])}

    def _table(self, flat, x, count):
        """Values of all actions, float32 [transitions, actions]."""
        return tf.reshape(scores(self.architecture, flat, x), [tf.cast(count, tf.int32), -1])

    def _value_gradient(self, flat, x, action, reward, next_x, next_mask, factor, target, count, double):
        """Flat gradient of the mean loss, and loss and value; traced once."""
        there = self._table(target, next_x, count)
        chooser = tf.where(double, self._table(flat, next_x, count), there)
        best = tf.argmax(tf.where(next_mask, chooser, _NEVER), axis=1, output_type=tf.int32)
        # Where no action is left the factor is 0.
        aim = tf.stop_gradient(reward + factor * tf.gather(there, best, batch_dims=1))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(flat)
            value = tf.gather(self._table(flat, x, count), action, batch_dims=1)
            gap = value - aim
            loss = tf.reduce_mean(gap * gap)
        return tape.gradient(loss, flat), tf.stack([loss, tf.reduce_mean(value)])
