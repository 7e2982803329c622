"""Flat weights and Adam: what every learner keeps, whatever its network is."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from decima.core.errors import TrainingError
from decima.learning.quiet import use_single_threaded_operations
from decima.learning.traced import Traced


class AdamWeights:
    """A flat vector of weights and the optimiser that changes it.

    Args:
        weights: Float32 [parameters], where to start.
        betas: Decay of Adam's first and second moments.
        epsilon: Adam's epsilon.
    """

    def __init__(
        self, weights: np.ndarray, *, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8
    ) -> None:
        use_single_threaded_operations()
        self._flat = tf.Variable(weights, dtype=tf.float32)
        self._optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=betas[0], beta_2=betas[1], epsilon=epsilon)
        self._optimizer.build([self._flat])
        inputs = [tf.TensorSpec([None]), tf.TensorSpec([], tf.float32)]
        self._step = Traced(self._adam_step, inputs)

    @property
    def weights(self) -> np.ndarray:
        """Float32 [parameters], a copy."""
        return self._flat.numpy()

    def restart_adam(self) -> None:
        """Forget Adam's moments."""
        for variable in self._optimizer.variables:
            variable.assign(tf.zeros_like(variable))

    def state(self) -> dict[str, np.ndarray]:
        """Weights and Adam's state, for a checkpoint."""
        adam = enumerate(self._optimizer.variables)
        return {"weights": self.weights} | {f"adam_{index}": np.asarray(variable.numpy()) for index, variable in adam}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        self._flat.assign(arrays["weights"])
        for index, variable in enumerate(self._optimizer.variables):
            variable.assign(arrays[f"adam_{index}"])

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
            gradient = (gradient * (largest_norm / norm)).astype(np.float32)
        (finite,) = self._step(gradient, np.float32(learning_rate))
        if not finite.numpy():
            raise TrainingError("the weights are not finite after a step")
        return norm

    def _adam_step(self, gradient, learning_rate):
        """Change the flat weights and return whether they are finite; traced once."""
        self._optimizer.learning_rate.assign(learning_rate)
        self._optimizer.apply([gradient], [self._flat])
        self._show()
        return [tf.reduce_all(tf.math.is_finite(self._flat))]

    def _show(self) -> None:
        """Show changed weights to a network that keeps a copy of them; traced as part of the step."""
