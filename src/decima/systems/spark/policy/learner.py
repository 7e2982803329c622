"""The learner of Decima's network: gradients from compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from decima.learning.backward import compiled_code
from decima.learning.gradient import Learner
from decima.learning.loss import Loss
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.kernel.gradient import Chunk, Options, chunk_gradient
from decima.systems.spark.policy.kernel.layout import pack_layout

# What a chunk needs stays in the cache.
CHUNK = 128


class DecimaLearner(Learner):
    """Weights, their gradients in compiled code, and Adam.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters], where to start.
        chunk: Most decisions per chunk; changes results in the last digits only.
        **options: Threads, decay of Adam's moments and its epsilon, see :class:`.Learner`.
    """

    def __init__(self, architecture: Architecture, weights: np.ndarray, *, chunk: int = CHUNK, **options: Any) -> None:
        super().__init__(weights, chunk, **options)
        self._layout, self._temperature = pack_layout(architecture), float(architecture.residual_temperature)
        self._code = compiled_code()

    def chunk_gradient(
        self, batch: GraphBatch, decisions: np.ndarray, advantages: np.ndarray, log_prob: np.ndarray, loss: Loss
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of a chunk; see :meth:`.Learner.chunk_gradient`."""
        options = Options(
            loss.ratio, float(loss.clip), float(loss.entropy_weight), loss.effect_classes, self._temperature
        )
        chunk = Chunk(**batch.tensors(decisions))
        return chunk_gradient(self._code, self._layout, self._flat, chunk, advantages, log_prob, options)
