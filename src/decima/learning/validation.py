"""Scores on sequences that are neither trained nor tested on; they select the weights to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Score:
    """Outcome of a validation."""

    score: float  # the number that selects weights
    mode: str  # how the policy acted when it had this score, as ``"greedy"`` or ``"sampled"``
    row: dict[str, float]  # values by column


class Validation(Protocol):
    """Measurement of weights, as the trainer sees it.

    Attributes:
        columns: Columns of the curve.
        lower_is_better: Direction of the score.
    """

    columns: tuple[str, ...]
    lower_is_better: bool

    @property
    def references(self) -> dict[str, float]:
        """Scores of the heuristics or the like that the policy is compared with, by name."""

    def measure(self, weights: np.ndarray) -> Score:
        """Score of weights, float32 [parameters]."""
