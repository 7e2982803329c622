"""Source of chance of simulated copies: one word of memory, set anew before every run, so that candidates share it.

It has the form that the simulator expects of a generator: a compiled function of the address of its state that returns
64 random bits. Source: SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numba import cfunc, njit, types

from decima.core.cache import cached

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState

_GAP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS = np.uint64(30), np.uint64(27), np.uint64(31)


@njit
def next_bits(word):
    """64 random bits; ``word`` is the generator, uint64 [1]."""
    state = word[0] + _GAP
    word[0] = state
    state = (state ^ (state >> _BITS[0])) * _FIRST
    state = (state ^ (state >> _BITS[1])) * _SECOND
    return state ^ (state >> _BITS[2])


def _next_bits(word):
    return next_bits(word)


@cache
def _compiled():
    return cached(cfunc(types.uint64(types.CPointer(types.uint64)), cache=True))(_next_bits)


class SharedChance:
    """Source of all chance of a state, for durations and for its scheduler.

    Args:
        state: What draws from it.

    Attributes:
        word: The generator, uint64 [1].
    """

    def __init__(self, state: ClusterState) -> None:
        self.word = np.zeros(1, np.uint64)
        generator, function = self.word.ctypes.data, _compiled().address
        state.put(duration_rng=generator, duration_next=function, policy_rng=generator, policy_next=function)

    def set(self, seed: int) -> None:
        """Put the generator to a place that follows from a seed, a whole number below 2**64."""
        self.word[0] = seed
