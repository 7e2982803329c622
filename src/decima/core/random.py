"""Chance inside compiled code, from the bit generators of NumPy.

The same arithmetic on the same 64-bit outputs in plain Python gives the same numbers.
"""

import ctypes
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir
from numba import types

from decima.core.jit import intrinsic, njit

_NEXT = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)


def generator_addresses(rng: np.random.Generator) -> tuple[int, int]:
    """Addresses of a generator's state and its next_uint64, while the generator lives."""
    interface = rng.bit_generator.ctypes
    return interface.state_address, ctypes.cast(interface.next_uint64, ctypes.c_void_p).value


@intrinsic(lambda function, generator: _NEXT(function)(generator))
def next_raw(_typing, function, generator):
    """Draw 64 random bits from a NumPy bit generator (``next_uint64`` and its state, as addresses)."""

    def codegen(context, builder, _signature, args):
        byte = ir.IntType(8).as_pointer()
        function_type = ir.FunctionType(ir.IntType(64), [byte])
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), [builder.inttoptr(args[1], byte)])

    return types.uint64(types.int64, types.int64), codegen


@njit
def draw_below(raw, bound):
    """Integer in [0, bound) from 64 random bits (upper half times bound)."""
    return ((raw >> 32) * bound) >> 32


@njit
def draw_uniform(raw):
    """Uniform double in [0, 1) from 64 random bits."""
    return (raw >> 11) * (1.0 / 9007199254740992.0)


@contextmanager
def without_global_chance(error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise an error if something draws from the global generators, and put them back.

    Args:
        error: Makes the exception from its message.
    """
    of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002
    touched = []
    try:
        yield
        if pickle.dumps(np.random.get_state()) != pickle.dumps(of_numpy):  # noqa: NPY002
            touched.append("numpy.random")
        if random.getstate() != of_python:
            touched.append("random")
    finally:
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)
    if touched:
        raise error(
            f"the global generator of {' and of '.join(touched)} was used or seeded; expected it untouched; "
            "draw chance from a generator of the seed"
        )
