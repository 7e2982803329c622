"""Schedulers in Python in a process of their own, with a limit on time and memory.

The process gets what :mod:`.seen` shows and answers with decisions. It may not start processes, open connections or
read the memory of others. That keeps out mistakes and what is written to look good here; it is no wall against code
that attacks the machine: run what you have read.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import multiprocessing
import os
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from decima.bench.seen import SeenState, Window
from decima.core.errors import DecimaError, SchedulerError
from decima.systems.spark.schedulers.interface import (
    CompiledScheduler,
    Decision,
    Observation,
    decision_parts,
)
from decima.systems.spark.schedulers.registry import make_scheduler

START_S = 120.0  # until the process has loaded the entry
MEMORY = 4 * 1024**3  # bytes that the process may write to
_REFUSED = {
    "os.fork": "start a process",
    "os.forkpty": "start a process",
    "os.posix_spawn": "start a process",
    "os.spawn": "start a process",
    "os.exec": "start a process",
    "os.system": "start a process",
    "subprocess.Popen": "start a process",
    "socket.connect": "open a connection",
    "socket.bind": "open a connection",
}
_SPAWN = multiprocessing.get_context("spawn")


def sentence(error: BaseException) -> str:
    """First line of an error, with its type unless it is one of the package."""
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, DecimaError) else f"{type(error).__name__}: {text}".rstrip(": ")


class IsolatedScheduler:
    """A scheduler of another process.

    Args:
        text: Which, as ``decima.systems.spark.schedulers.make_scheduler`` takes it.
        limit_s: Time in seconds that its decisions may take in one run.

    Attributes:
        compiled: Whether it is a compiled rule, which runs in the core instead.

    Raises:
        SchedulerError: It cannot be made there.
    """

    concurrent = False

    def __init__(self, text: str, limit_s: float = 60.0) -> None:
        self.name, self.text, self.limit_s = text, text, limit_s
        self._process: Any = None
        self._state: Any = None
        self._left_s = START_S
        self.compiled = self._start()

    def _start(self) -> bool:
        self._link, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs, self.text), daemon=True)
        self._process.start()
        theirs.close()
        self._left_s = START_S
        self.name, compiled = self._answer("loading")
        return compiled

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a run; the process is started again where it has ended."""
        if self._process is None:
            self._start()
        self._state, self._rng, self._left_s = None, rng, self.limit_s

    def decide(self, observation: Observation) -> Decision:
        """Ask the process for a decision.

        Raises:
            SchedulerError: It raised, answered something else, took too long or ended; says which.
        """
        state = observation.state
        if self._state is not state:
            self._state, self._window = state, Window(state)
            self._ask("reset", (state.settings, self._rng))
        stage, *options = self._ask("decide", self._window.content())
        if stage < 0 and options == [None]:
            return Decision.idle()
        limit, delay_ms, executor_class = options
        executor_class = None if executor_class is None or executor_class < 0 else executor_class
        return Decision(None if stage < 0 else stage, limit or 0, delay_ms, executor_class)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._link.close()
        self._process = None

    def __enter__(self) -> IsolatedScheduler:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _ask(self, what: str, content: Any) -> Any:
        begin = time.monotonic()
        with contextlib.suppress(OSError):  # a process that has ended does not answer, either
            self._link.send((what, content))
        answer = self._answer(what)
        self._left_s -= time.monotonic() - begin
        return answer

    def _answer(self, what: str) -> Any:
        try:
            if not self._link.poll(max(0.0, self._left_s)):
                limit_s = START_S if what == "loading" else self.limit_s
                self.close()
                raise EntryTimeoutError(f"the entry took more than {limit_s:g} s ({what})")
            answered, answer = self._link.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            code = self._process.exitcode
            self.close()
            raise SchedulerError(f"the process of the entry ended with code {code} ({what})") from None
        if not answered:
            raise SchedulerError(answer)
        return answer


class EntryTimeoutError(SchedulerError):
    """Limit of time that an entry has passed."""


# ---- in the process of the entry ----------------------------------------------------------------------------------


class _Watch:
    """Audit hook that refuses what an entry may not do, and remembers it."""

    def __init__(self) -> None:
        self.refused = ""

    def __call__(self, event: str, arguments: tuple) -> None:
        what = _REFUSED.get(event)
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith("/proc/"):
            what = None if arguments[0].startswith("/proc/self/") else "read the memory of other processes"
        if what is not None:
            self.refused = f"an entry may not {what}"
            raise SchedulerError(self.refused)


class _NoBenchmark(importlib.abc.MetaPathFinder):
    """Refuses to import the tasks."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise for modules of the benchmark."""
        if name.startswith("decima.bench"):
            raise SchedulerError("an entry may not read the tasks of the benchmark")


def serve(link: Connection, text: str) -> None:
    """Answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    watch = _Watch()
    sys.addaudithook(watch)
    sys.meta_path.insert(0, _NoBenchmark())
    scheduler = seen = None
    what, content = "load", text
    while True:
        try:
            if what == "load":
                scheduler = make_scheduler(content)
                answer = scheduler.name, isinstance(scheduler, CompiledScheduler)
            elif what == "reset":
                seen, rng = SeenState(content[0]), content[1]
                answer = scheduler.reset(rng)
            else:
                seen.renew(content)
                answer = decision_parts(scheduler.decide(Observation(seen)))
            reply = True, answer
        except BaseException as error:
            where = "" if isinstance(error, DecimaError) else f"{what} raised "
            reply = False, f"{where}{sentence(error)}"
        if watch.refused:
            reply, watch.refused = (False, watch.refused), ""
        try:
            link.send(reply)
            what, content = link.recv()
        except (EOFError, OSError):
            return
