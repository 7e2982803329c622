"""Decision rules as compiled functions that other compiled code calls by their address."""

import threading
from functools import cached_property

from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic

from decima.compiled.cache import cached

_WORD = ir.IntType(64)


@intrinsic
def call_decide(_typing, function, record):
    """Call the compiled decision rule at address ``function`` with a record."""

    def codegen(context, builder, _signature, args):
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(pointer, [builder.ptrtoint(args[1], _WORD)])
        return context.get_dummy_value()

    return types.none(types.int64, record), codegen


class CompiledDecision:
    """A decision rule ``function(address)`` compiled on first use to ``void decide(int64 address of the record)``."""

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
                self._compiled = cached(cfunc(self.signature, cache=True))(self.function)
            return self._compiled.address
