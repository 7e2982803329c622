import re
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching, ccallback, compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

import decima
from decima.core.jit import njit


@njit
def halved(number, shift=0):
    return (number + shift) // 2


@njit
def of_all(small, byte, number):
    return halved(small[0]) + halved(byte[0]) + halved(number) + halved(7) + halved(number, shift=small[1])


def test_whole_numbers_of_all_sizes_and_constants_share_one_function():
    small, byte = np.array([-5, 3], dtype=np.int32), np.array([200], dtype=np.uint8)
    assert of_all(small, byte, 2**40) == -3 + 100 + 2**39 + 3 + (2**40 + 3) // 2
    taken = {arguments[0] for arguments in halved.callee.overloads}
    assert taken == {numba.int64}
    assert len(halved.callee.overloads) == 2  # with a second argument and without


@njit
def identity(value):
    return value


@njit
def passed(value):
    return identity(value)


@pytest.mark.parametrize("value", [np.uint64(2**63), np.uint32(7), np.float32(0.1), 0.1, True])
def test_other_types_stay(value):
    assert passed(value) == value
    assert numba.typeof(value) in {arguments[0] for arguments in identity.callee.overloads}


def test_only_what_python_calls_becomes_machine_code():
    assert of_all(np.array([1, 2], dtype=np.int32), np.array([3], dtype=np.uint8), 4) == 0 + 1 + 2 + 3 + 3
    assert not halved.overloads  # of Python
    (part, *_) = halved.callee.overloads.values()
    assert part.entry_point is None
    assert halved(8) == 4  # also where compiled code called it before
    assert len(halved.overloads) == 1


def test_options_are_those_of_numba():
    @njit(error_model="numpy")
    def reciprocal(number):
        return 1.0 / number

    assert reciprocal(0.0) == np.inf
    with pytest.raises(KeyError, match="no_such_option"):
        njit(identity.py_func, no_such_option=True)(1)


def test_the_package_compiles_with_it_alone():
    folder = Path(decima.__file__).parent
    direct = re.compile(r"from numba import [^\n]*\bn?jit\b|numba\.n?jit\b(?!`)")
    assert [path for path in folder.rglob("*.py") if direct.search(path.read_text(encoding="utf-8"))] == []


# What another release of Numba may change without a word: where, what is used of it, and what for.
PRIVATE = {
    "calls between functions get their numbers as int64": (halved, ["get_call_template", "get_overload", "overloads"]),
    "a called function is compiled as a part": (halved._compiler, ["_compile_core", "fold_argument_types"]),
    "a part is neither optimised nor machine code": (
        JITCodeLibrary,
        ["_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"],
    ),
    "nor has a part wrappers": (compiler.Flags(), ["no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"]),
    "the processor is chosen before anything is compiled": (cpu_target, ["_toplevel_target_context"]),
    "code is kept by the content of sources": (caching.CompileResultCacheImpl, ["_locator_classes", "rebuild"]),
    "shipped code is read first": (caching.FunctionCache, ["_load_overload", "_index_key", "_impl_class"]),
    "and from files of Numba's own format": (caching.IndexDataCacheFile, ["load"]),
    "compiling a rule is announced": (ccallback.CFunc, ["_compile_uncached", "enable_caching"]),
}


@pytest.mark.parametrize("purpose", PRIVATE)
def test_numba_still_has_the_private_parts_in_use(purpose):
    owner, names = PRIVATE[purpose]
    missing = [name for name in names if not hasattr(owner, name)]
    assert not missing, f"Numba {numba.__version__} has no {missing}: {purpose}"
