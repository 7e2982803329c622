"""Numba's ``njit`` in less time, for functions that call each other much.

Numba compiles a function once for every combination of argument types. An int32 of an array, an int64, every constant
have types of their own, so half of what the simulator compiled was compiled before with other whole numbers. Here
compiled code passes whole numbers as int64, whatever it has.

Numba optimises a function with all that it calls, and then again as a part of every function on the way up. Here only
what Python calls is optimised and becomes machine code; what it calls is a part of it.

A machine of x86-64 level 3 (AVX2) compiles for that level and not for its very processor, unless ``NUMBA_CPU_NAME``
says so: the code is as fast, and a wheel brings it along for all such machines (:mod:`decima.core.cache`).

With ``NUMBA_DISABLE_JIT=1`` in the environment nothing is compiled: the same functions run in plain Python, with the
same results, for debuggers, profilers and coverage.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numba
from llvmlite import binding
from numba import types
from numba.core import ccallback, compiler, event
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.sigutils import normalize_signature

from decima.core.cache import KernelCache

#: Whether functions stay plain Python (``NUMBA_DISABLE_JIT=1``).
INTERPRETED = bool(numba.config.DISABLE_JIT)
_WIDENED = (types.int8, types.int16, types.int32, types.uint8)
_LEVEL_3 = {"64bit", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "xsave"}


def _choose_processor() -> None:
    """Compile for x86-64 level 3 where the machine has it and the user chose nothing."""
    chosen = numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None
    if chosen or "_toplevel_target_context" in vars(cpu_target):
        return
    with suppress(RuntimeError):  # LLVM does not know the processor
        if {name for name, there in binding.get_host_cpu_features().items() if there} >= _LEVEL_3:
            numba.config.CPU_NAME, numba.config.CPU_FEATURES = "x86-64-v3", ""


_choose_processor()


def _wide(argument: types.Type) -> types.Type:
    plain = types.unliteral(argument) if isinstance(argument, types.IntegerLiteral | types.BooleanLiteral) else argument
    return types.int64 if plain in _WIDENED else plain


class _Part(JITCodeLibrary):
    """Code of a function as a part of others: not optimised, without machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Callee(CPUDispatcher):
    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options)
        self._compiler._compile_core = self._compile_part

    def _compile_part(self, arguments: tuple, return_type: types.Type | None) -> compiler.CompileResult:
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        library = _Part(self.targetctx.codegen(), self.py_func.__qualname__)
        contexts = self.typingctx, self.targetctx
        return compiler.compile_extra(*contexts, self.py_func, arguments, return_type, flags, {}, library=library)

    def add_overload(self, cres: compiler.CompileResult) -> None:
        self.overloads[tuple(cres.signature.args)] = cres
        self.targetctx.insert_user_function(cres.library, cres.fndesc, [cres.library])

    def get_overload(self, sig: tuple) -> JITCodeLibrary:
        return self.overloads[tuple(sig)].library


class _Dispatcher(CPUDispatcher):
    def enable_caching(self) -> None:
        self._cache = KernelCache(self.py_func)

    @cached_property
    def callee(self) -> _Callee:
        """The same function as compiled code calls it."""
        return _Callee(self.py_func, self.targetoptions)

    def get_call_template(self, args, kws):
        _, folded = self._compiler.fold_argument_types(args, kws)
        return self.callee.get_call_template(tuple(map(_wide, folded)), {})

    def get_overload(self, sig):
        return self.callee.get_overload(sig)


def intrinsic(plain: Callable) -> Callable[[Callable], Callable]:
    """Decorator like ``numba.extending.intrinsic``, with the function that does the same in plain Python."""
    return (lambda _: plain) if INTERPRETED else numba.extending.intrinsic


class _Callback(ccallback.CFunc):
    def enable_caching(self) -> None:
        self._cache = KernelCache(self._pyfunc)

    def _compile_uncached(self) -> compiler.CompileResult:
        with event.trigger_event("numba:compile"):
            return super()._compile_uncached()


def callback(function: Callable, signature: types.Type) -> ccallback.CFunc:
    """Compile like ``numba.cfunc``, and keep the code on disk."""
    compiled = _Callback(function, normalize_signature(signature), locals={}, options={})
    compiled.enable_caching()
    compiled.compile()
    return compiled


def njit(
    function: Callable | None = None, *, cache: bool = False, compiled: bool = not INTERPRETED, **options: Any
) -> Callable:
    """Compile like ``numba.njit`` and take whole numbers of compiled callers as int64.

    Constants are also taken so; unsigned numbers of 16 bits and more stay what they are. Compiled code cannot call a
    function that calls itself.

    Args:
        function: Function to compile on its first call; None: return a decorator.
        cache: Keep the compiled function on disk.
        compiled: Whether to compile at all.
        **options: Further options of ``numba.njit``.
    """
    if function is None:
        return lambda each: njit(each, cache=cache, compiled=compiled, **options)
    if not compiled:
        return function
    dispatcher = _Dispatcher(function, targetoptions=options | {"nopython": True, "boundscheck": None})
    if cache:
        dispatcher.enable_caching()
    return dispatcher
