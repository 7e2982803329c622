"""Numba's ``njit`` for functions that take whole numbers as int64, whatever the caller has.

Numba compiles a function once for every combination of argument types. An int32 of an array, an int64, every constant
have types of their own, so half of what the simulator compiled was compiled before with other whole numbers.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.registry import CPUDispatcher

_WIDENED = (types.int8, types.int16, types.int32, types.uint8)


def _wide(argument: types.Type) -> types.Type:
    """Type as which a function takes an argument."""
    plain = types.unliteral(argument) if isinstance(argument, types.IntegerLiteral | types.BooleanLiteral) else argument
    return types.int64 if plain in _WIDENED else plain


class _Dispatcher(CPUDispatcher):
    def get_call_template(self, args, kws):
        _, folded = self._compiler.fold_argument_types(args, kws)
        return super().get_call_template(tuple(map(_wide, folded)), {})


def njit(function: Callable | None = None, *, cache: bool = False, **options: Any) -> Callable:
    """Compile like ``numba.njit`` and take whole numbers of compiled callers as int64.

    Constants are taken so, too; unsigned numbers of 16 bits and more stay what they are.

    Args:
        function: Function to compile on its first call; None: return a decorator.
        cache: Keep the compiled function on disk.
        **options: Further options of ``numba.njit``.
    """
    if function is None:
        return lambda each: njit(each, cache=cache, **options)
    compiled = _Dispatcher(function, targetoptions=options | {"nopython": True, "boundscheck": None})
    if cache:
        compiled.enable_caching()
    return compiled
