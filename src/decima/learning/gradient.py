"""Loss, gradients and Adam: the part of training that TensorFlow does.

A batch is cut into chunks of a fixed number of decisions. Their gradients are computed in several threads, each chunk
by one thread alone, and summed in the order of the chunks: memory is bounded and no result depends on the number of
threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from decima.core.errors import TrainingError
from decima.learning.loss import SUMS, Gradient, Loss
from decima.learning.optimizer import AdamWeights
from decima.learning.traced import trace

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


class Learner(AdamWeights):
    """Weights, their gradients and Adam.

    Args:
        network: The network.
        weights: Float32 [parameters], where to start.
        threads: Chunks computed at once.
        betas: Decay of Adam's first and second moments.
        epsilon: Adam's epsilon.
        chunk: Most decisions per chunk; changes results in the last digits only.
    """

    def __init__(
        self,
        network: PolicyNetwork,
        weights: np.ndarray,
        *,
        threads: int = 1,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        chunk: int = CHUNK,
    ) -> None:
        super().__init__(weights, betas=betas, epsilon=epsilon)
        self.network = network
        self._chunk = chunk
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gradient")
        flag, number, vector = tf.TensorSpec([], tf.bool), tf.TensorSpec([], tf.float32), tf.TensorSpec([None])
        inputs = [network.signature, vector, vector, flag, number, number, flag]
        self._function = tf.function(self._chunk_gradient, input_signature=inputs, autograph=False)
        self._is_traced = False
        self._show_weights()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        super().restore(arrays)
        self._show_weights()

    def _show_weights(self) -> None:
        self.network.set_flat(self._flat.numpy())

    def gradient(
        self,
        batch: Any,
        decisions: np.ndarray,
        advantages: np.ndarray,
        log_prob: np.ndarray,
        loss: Loss,
    ) -> Gradient:
        """Gradient of the summed loss.

        Args:
            batch: Recorded decisions, as the network takes them.
            decisions: Int [D], which of them, those of one episode next to each other.
            advantages: Float [D], A of each.
            log_prob: Float [D], recorded log-probability of each.
            loss: The loss.

        Raises:
            TrainingError: The gradient or the loss is not finite.
        """

        def work(part: slice):
            return self._function(
                self.network.tensors(batch, decisions[part]),
                advantages[part].astype(np.float32),
                log_prob[part].astype(np.float32),
                loss.ratio,
                np.float32(loss.clip),
                np.float32(loss.entropy_weight),
                loss.effect_classes,
            )

        if not self._is_traced:
            trace(self._function)
            self._is_traced = True
        parts = chunks(len(decisions), self._chunk)
        total, sums = np.zeros(self._flat.shape[0], np.float32), np.zeros(len(SUMS))
        for values, chunk_sums in self._pool.map(work, parts):
            total += values.numpy()
            sums += chunk_sums.numpy()
        if not (np.isfinite(total).all() and np.isfinite(sums).all()):
            what = "gradient" if np.isfinite(sums).all() else "loss"
            raise TrainingError(f"the {what} of {len(decisions)} decisions is not finite")
        return Gradient(total, dict(zip(SUMS, sums.tolist(), strict=True)), len(decisions))

    def _show(self) -> None:
        """Show the flat weights to the network."""
        variables = [variable.value for variable in self.network.trainable_variables]
        parts = tf.split(self._flat, [variable.shape.num_elements() for variable in variables])
        for variable, part in zip(variables, parts, strict=True):
            variable.assign(tf.reshape(part, variable.shape))

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


def chunks(count: int, largest: int) -> list[slice]:
    """Cut ``count`` decisions into equal chunks of at most ``largest``, a multiple of four of them if there are many.

    Four, so that the usual numbers of cores finish together; the number of threads must not matter.
    """
    parts = -(-count // largest)
    if count >= largest:
        parts = 4 * -(-parts // 4)
    ends = [count * part // parts for part in range(parts + 1)]
    return [slice(first, end) for first, end in pairwise(ends)]
