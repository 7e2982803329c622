"""Seeds of training: sequences of jobs for training and validation, and chance of rollouts."""

from __future__ import annotations

import numpy as np

# Tests have sequence seeds below 100,000, tuning those from there on, validation and training begin here.
VALIDATION_SEED = 150_000
SEQUENCE_SEED = 200_000


def rollout_seeds(seed: int, iteration: int, count: int) -> list[int]:
    """Seeds of an iteration's episodes, for durations of tasks and draws of the policy.

    Args:
        seed: Seed of the training run.
        iteration: From 0.
        count: Number of episodes.
    """
    rng = np.random.default_rng([seed, iteration, 1])
    return [int(value) for value in rng.integers(2**62, size=count)]


def sequence_seed(rng: np.random.Generator) -> int:
    """Seed of a sequence to train on, which is none of tests, tuning or validation."""
    return SEQUENCE_SEED + int(rng.integers(2**31 - SEQUENCE_SEED))
