"""Flat weights and Adam: what every learner keeps, whatever its network is."""

from __future__ import annotations

import numpy as np

from decima.core.errors import TrainingError


class AdamWeights:
    """A flat vector of weights and the optimiser that changes it.

    Args:
        weights: Float32 [parameters], where to start.
        betas: Decay of Adam's first and second moments.
        epsilon: Adam's epsilon.

    Source: Kingma and Ba, Adam (ICLR 2015), the form at the end of section 2; all numbers are float32.
    """

    def __init__(
        self, weights: np.ndarray, *, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8
    ) -> None:
        self._flat = np.array(weights, dtype=np.float32)
        self._keep = np.float32(1.0) - np.asarray(betas, dtype=np.float32)
        self._epsilon = np.float32(epsilon)
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
        self._mean += (gradient - self._mean) * self._keep[0]
        self._square += (gradient * gradient - self._square) * self._keep[1]
        left = 1.0 - (1.0 - self._keep.astype(np.float64)) ** self._steps
        rate = np.float32(learning_rate * np.sqrt(left[1]) / left[0])
        self._flat -= self._mean * rate / (np.sqrt(self._square) + self._epsilon)
        if not np.isfinite(self._flat).all():
            raise TrainingError("the weights are not finite after a step")
        self._show()
        return norm

    def _show(self) -> None:
        """Show changed weights to a network that keeps a copy of them."""
