"""One seed, several independent sources of chance."""

import numpy as np

from decima.core.checks import check_whole


def spawn_generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators for task durations and for the scheduler's own chance, independent, from one seed.

    Raises:
        ConfigError: The seed is not a whole number of at least 0.
    """
    check_whole("seed", seed, least=0)
    durations, policy = np.random.SeedSequence(int(seed)).spawn(2)
    return np.random.default_rng(durations), np.random.default_rng(policy)
