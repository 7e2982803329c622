"""Interruption of long compiled calls by Ctrl-C or by the caller of a worker.

Compiled code sees no signals. A call that may take long looks at the clock from time to time and returns when its
patience is over; Python, which handles signals meanwhile, calls it again.
"""

import threading
import time

from llvmlite import ir
from numba import types

from decima.core.errors import WorkerError
from decima.core.jit import intrinsic

#: Nanoseconds after which a long compiled call returns to Python.
PATIENCE_NS = 100_000_000


@intrinsic(time.monotonic_ns)
def clock_ns(_typing):
    """Nanoseconds of a clock that never goes back, int64."""

    def codegen(context, builder, _signature, _args):
        number, word = ir.IntType(32), ir.IntType(64)
        moment = ir.ArrayType(word, 2)  # seconds, nanoseconds
        signature = ir.FunctionType(number, [number, moment.as_pointer()])
        read = builder.module.globals.get("clock_gettime") or ir.Function(builder.module, signature, "clock_gettime")
        with builder.goto_entry_block():
            pointer = builder.alloca(moment)
        builder.call(read, [number(time.CLOCK_MONOTONIC), pointer])
        now = builder.load(pointer)
        seconds = builder.mul(builder.extract_value(now, 0), word(1_000_000_000))
        return builder.add(seconds, builder.extract_value(now, 1))

    return types.int64(), codegen


_here = threading.local()


def obey(stop: threading.Event) -> None:
    """Let long calls of this thread end, with an error, once an event is set."""
    _here.stop = stop


def check_stop() -> None:
    """End a long call of a stopped worker, between its compiled parts.

    Raises:
        WorkerError: The event that this thread obeys is set.
    """
    stop = getattr(_here, "stop", None)
    if stop is not None and stop.is_set():
        raise WorkerError("stopped in the middle of a run, because the caller was interrupted or other work failed")
