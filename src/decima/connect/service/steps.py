"""Work in steps, so that a large message does not keep all other clients waiting.

A function that may take long is a generator. Wherever it yields, others may go first. It yields nothing, or a function
without arguments that holds no lock of Python for long (compiled code), which may run in another thread; it is then
sent a future with what became of that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
Steps = Generator[Callable[[], Any] | None, Future | None, Result]

#: Stages after which a loop over stages pauses: some tenths of a millisecond.
PAUSE = 256


def finish(steps: Steps[Result]) -> Result:
    """Do all steps at once, here.

    Returns:
        What the generator returns.
    """
    done = None
    while True:
        try:
            work = steps.send(done)
        except StopIteration as end:
            return end.value
        done = None if work is None else outcome(work)


def outcome(work: Callable[[], Any]) -> Future:
    """Do something here; returns a future with its result or its error."""
    future = Future()
    try:
        future.set_result(work())
    except Exception as error:  # raised where the result is asked for
        future.set_exception(error)
    return future
