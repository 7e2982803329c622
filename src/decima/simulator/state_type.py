"""The cluster state as a type of compiled code, without reference counting.

Numba counts references on every array it touches, which took three quarters of the time of an event. Here the state
is a bare pointer to the header of :mod:`decima.simulator.fields`: ``state.now_ms`` loads a scalar, ``state.stage_next``
loads an address that is indexed like an array. Nothing checks bounds: kernels own their indices.
"""

import hashlib
import threading
from functools import cached_property
from pathlib import Path

import numba
import platformdirs
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)
from numba.np.numpy_support import from_dtype

from decima.simulator.fields import ARRAYS, OFFSETS, SCALARS

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)


class StateType(types.Type):
    """Numba type of a pointer to a cluster state."""

    def __init__(self) -> None:
        super().__init__(name="ClusterState")


state_type = StateType()
register_model(StateType)(models.OpaqueModel)


@infer_getattr
class _StateAttribute(AttributeTemplate):
    key = StateType

    def generic_resolve(self, _type, name):
        if name in SCALARS:
            return from_dtype(SCALARS[name].dtype)
        if name in ARRAYS:
            return types.CPointer(from_dtype(ARRAYS[name].dtype))
        return None


def _slot(builder, state, name, llvm_type):
    address = builder.gep(state, [ir.Constant(ir.IntType(32), OFFSETS[name])])
    return builder.bitcast(address, llvm_type.as_pointer())


@lower_getattr_generic(StateType)
def _load_attribute(context, builder, _type, state, name):
    if name in SCALARS:
        return builder.load(
            _slot(builder, state, name, context.get_value_type(from_dtype(SCALARS[name].dtype)))
        )
    pointer = types.CPointer(from_dtype(ARRAYS[name].dtype))
    load = builder.load(_slot(builder, state, name, context.get_value_type(pointer)))
    # Array addresses never change while compiled code runs, so the load may be hoisted out of loops.
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


@lower_setattr_generic(StateType)
def _store_attribute(context, builder, signature, args, name):
    state, value = args
    kind = from_dtype(SCALARS[name].dtype)
    value = context.cast(builder, value, signature.args[1], kind)
    builder.store(value, _slot(builder, state, name, context.get_value_type(kind)))


@intrinsic
def state_at(_typing, address):
    """Return the state whose header lies at ``address`` (int64)."""

    def codegen(context, builder, _signature, args):
        return builder.inttoptr(args[0], _BYTE.as_pointer())

    return state_type(types.int64), codegen


@intrinsic
def call_decide(_typing, function, state):
    """Call the compiled scheduler at address ``function`` with the state."""

    def codegen(context, builder, _signature, args):
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(pointer, [builder.ptrtoint(args[1], _WORD)])
        return context.get_dummy_value()

    return types.none(types.int64, state_type), codegen


@intrinsic
def next_raw(_typing, function, generator):
    """Draw 64 random bits from a NumPy bit generator (``next_uint64`` and its state, as addresses)."""

    def codegen(context, builder, _signature, args):
        kind = ir.FunctionType(_WORD, [_BYTE.as_pointer()])
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(pointer, [builder.inttoptr(args[1], _BYTE.as_pointer())])

    return types.uint64(types.int64, types.int64), codegen


def _fingerprint() -> str:
    """Hash of numba's version, the state's fields and every source file that holds compiled functions."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        source = path.read_bytes()
        if path.name == "fields.py" or b"njit" in source or b"CompiledDecision" in source:
            digest.update(source)
    return digest.hexdigest()[:16]


_FINGERPRINT = _fingerprint()


def cached(decorate):
    """Apply a numba decorator so that its cache is keyed by the sources of all kernels.

    Numba looks only at the file of the function itself, and would run stale code after a change in a file that the
    function calls into. The cache therefore lies in a folder named after a hash of all compiled sources.
    """
    base = numba.config.CACHE_DIR or platformdirs.user_cache_dir("decima-sched")

    def wrap(function):
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(Path(base) / f"kernels-{_FINGERPRINT}")
        try:
            return decorate(function)
        finally:
            numba.config.CACHE_DIR = previous

    return wrap


class CompiledDecision:
    """A decision rule ``function(address)`` compiled on first use to ``void decide(int64 address of the state)``."""

    signature = types.void(types.int64)

    def __init__(self, function) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._lock = threading.Lock()

    @cached_property
    def address(self) -> int:
        """Address of the machine code; valid while this object lives."""
        with self._lock:
            if "_compiled" not in self.__dict__:
                self._compiled = cached(numba.cfunc(self.signature, cache=True))(self.function)
            return self._compiled.address
