"""Weights that learn: Adam, and gradients of recorded decisions, chunk by chunk.

A batch is cut into chunks of a fixed number of decisions. Their gradients are computed in several threads, each chunk
by one thread alone, and summed in the order of the chunks: memory is bounded and no result depends on the number of
threads. No TensorFlow here: :mod:`.automatic` has the learner that differentiates a Keras model.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from decima.core.errors import TrainingError
from decima.learning.loss import SUMS, Gradient, Loss

# What Adam's moments take in of a new gradient, 1 less their decay; and its epsilon.
KEEP, EPSILON = np.float32(1.0) - np.array([0.9, 0.999], dtype=np.float32), np.float32(1e-8)


class AdamWeights:
    """A flat vector of weights and the optimiser that changes it.

    Args:
        weights: Float32 [parameters], where to start.

    Source: Kingma and Ba, Adam (ICLR 2015), the form at the end of section 2; all numbers are float32.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self._flat = np.array(weights, dtype=np.float32)
        self.restart_adam()

    @property
    def weights(self) -> np.ndarray:
        """Float32 [parameters], a copy."""
        return self._flat.copy()

    def restart_adam(self) -> None:
        """Forget Adam's moments."""
        self._steps = 0
        self._mean, self._square = np.zeros_like(self._flat), np.zeros_like(self._flat)

    def state(self) -> dict[str, np.ndarray]:
        """Weights and Adam's state, for a checkpoint."""
        adam = {"adam_steps": np.int64(self._steps), "adam_mean": self._mean, "adam_square": self._square}
        return {"weights": self.weights} | {name: np.array(value) for name, value in adam.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned.

        Raises:
            ValueError: The arrays are of another network.
        """
        steps = int(arrays["adam_steps"])
        vectors = [arrays[name].astype(np.float32) for name in ("weights", "adam_mean", "adam_square")]
        if any(vector.shape != self._flat.shape for vector in vectors):
            raise ValueError(f"expected {len(self._flat)} weights, got {[len(vector) for vector in vectors]}")
        self._steps, (self._flat, self._mean, self._square) = steps, vectors
        self._show()

    def apply(self, gradient: np.ndarray, learning_rate: float, largest_norm: float | None = None) -> float:
        """One step of Adam.

        Args:
            gradient: Float32 [parameters].
            learning_rate: Step size.
            largest_norm: The gradient is scaled down to this norm; None: never.

        Returns:
            Norm of the gradient before that.

        Raises:
            TrainingError: The new weights are not finite.
        """
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        if largest_norm is not None and norm > largest_norm:
            gradient = gradient * (largest_norm / norm)
        gradient = gradient.astype(np.float32, copy=False)
        self._steps += 1
        self._mean += (gradient - self._mean) * KEEP[0]
        self._square += (gradient * gradient - self._square) * KEEP[1]
        left = 1.0 - (1.0 - KEEP.astype(np.float64)) ** self._steps
        rate = np.float32(learning_rate * np.sqrt(left[1]) / left[0])
        self._flat -= self._mean * rate / (np.sqrt(self._square) + EPSILON)
        if not np.isfinite(self._flat).all():
            raise TrainingError("the weights are not finite after a step")
        self._show()
        return norm

    def _show(self) -> None:
        """Show changed weights to a network that keeps a copy of them."""


class Learner(AdamWeights):
    """Weights, their gradients and Adam; a subclass has the gradient of a chunk.

    Args:
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        threads: Chunks computed at once.
    """

    def __init__(self, weights: np.ndarray, chunk: int, *, threads: int = 1) -> None:
        super().__init__(weights)
        self._chunk = chunk
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="gradient")

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def gradient(
        self, batch: Any, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
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

        def work(part: slice) -> tuple[np.ndarray, np.ndarray]:
            numbers = (values[part].astype(np.float32) for values in (advantages, log_prob))
            return self.chunk_gradient(batch, decisions[part], *numbers, loss)

        self.prepare()
        total, sums = np.zeros(len(self._flat), np.float32), np.zeros(len(SUMS))
        for values, chunk_sums in self._pool.map(work, self.parts(len(decisions))):
            total += values
            sums += chunk_sums
        if not (np.isfinite(total).all() and np.isfinite(sums).all()):
            what = "gradient" if np.isfinite(sums).all() else "loss"
            raise TrainingError(f"the {what} of {len(decisions)} decisions is not finite")
        return Gradient(total, dict(zip(SUMS, sums.tolist(), strict=True)), len(decisions))

    def parts(self, count: int) -> list[slice]:
        """Chunks of ``count`` decisions."""
        return chunks(count, self._chunk)

    def prepare(self) -> None:
        """Do what must be done once, before several threads begin."""

    def chunk_gradient(
        self, batch: Any, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the summed loss of a chunk; any thread calls it.

        Returns:
            Float32 [parameters], and sums [len(SUMS)].
        """
        raise NotImplementedError


def chunks(count: int, largest: int) -> list[slice]:
    """Cut ``count`` decisions into equal chunks of at most ``largest``.

    Their number is a multiple of four from ``largest`` decisions on. Four, so that the usual numbers of cores finish
    together; the number of threads must not matter.
    """
    parts = -(-count // largest)
    if count >= largest:
        parts = 4 * -(-parts // 4)
    ends = [count * part // parts for part in range(parts + 1)]
    return [slice(first, end) for first, end in pairwise(ends)]
