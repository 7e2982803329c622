"""Work in steps, so that a large message does not keep all other clients waiting.

A function that may take long is a generator. Wherever it yields, others may go first. It yields nothing, or a function
without arguments that holds no lock of Python for long (compiled code), which may run in another thread; it is then
sent a future with what became of that. :class:`Pace` runs steps on the service's event loop.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")
Steps = Generator[Callable[[], Any] | None, Future | None, Result]

#: Stages after which a loop over stages pauses: some tenths of a millisecond.
PAUSE = 256
#: How long one client may keep the loop at a time, steps permitting; after that, it belongs to others for as long.
SLICE_S = 0.001


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


def elsewhere(work: Callable[[], Result], long: bool) -> Steps[Result]:
    """Do something, in another thread if it takes long; returns its result."""
    if not long:
        return work()
    done = yield work
    return done.result()


class Pace:
    """Runner of steps on one event loop: quick ones at once, others in slices."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="decima-decision")
        self._slices = asyncio.Lock()  # all who take long share one half of the loop's time
        self._tasks: set[asyncio.Task] = set()

    async def run(self, steps: Steps[Result], turn: asyncio.Lock | None = None) -> Result:
        """Do steps, and return what they return.

        What was begun is finished, even if the caller is cancelled.

        Args:
            steps: The steps.
            turn: Held from the first to the last of them.
        """
        if turn is not None:
            await turn.acquire()
        later = False
        try:
            finished, result = _advance(steps, None)
            if finished:
                return result
            task = asyncio.create_task(self._finish(steps, result, turn))
            later = True
        finally:
            if turn is not None and not later:
                turn.release()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _finish(self, steps: Steps[Result], work: Callable[[], Any] | None, turn: asyncio.Lock | None) -> Result:
        loop = asyncio.get_running_loop()
        finished, pause_s = False, SLICE_S
        try:
            while not finished:
                if work is not None:
                    done = await loop.run_in_executor(self._threads, outcome, work)
                    finished, work = _advance(steps, done)
                else:
                    async with self._slices:
                        await asyncio.sleep(pause_s)
                        begin = time.perf_counter()
                        finished, work = _advance(steps, None)
                        pause_s = time.perf_counter() - begin
            return work
        finally:
            if turn is not None:
                turn.release()

    def close(self) -> None:
        """Take no more work."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _advance(steps: Steps[Any], done: Future | None) -> tuple[bool, Any]:
    """Do steps for one slice of time, with what became of the last work.

    Returns:
        True and the result of the steps; or False and work for another thread, None if there is none.
    """
    end = time.perf_counter() + SLICE_S
    while True:
        try:
            work = steps.send(done)
        except StopIteration as stop:
            return True, stop.value
        if work is not None or time.perf_counter() >= end:
            return False, work
        done = None
