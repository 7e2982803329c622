"""One seed, several independent sources of chance."""

import numbers

import numpy as np

from decima.exceptions import ConfigError


def spawn_generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators for task durations and for the scheduler's own chance, independent, from one seed.

    Raises:
        ConfigError: The seed is not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise ConfigError(f"seed must be a whole number of at least 0, got {seed!r}")
    durations, policy = np.random.SeedSequence(int(seed)).spawn(2)
    return np.random.default_rng(durations), np.random.default_rng(policy)
