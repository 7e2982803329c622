"""Schedulers in Python behind the border of a process, with limits on time and memory.

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
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

import numpy as np

from decima.bench.seen import SeenState, Window
from decima.core.errors import DecimaError, SchedulerError
from decima.systems.spark.schedulers.interface import CompiledScheduler, Decision, Observation, decision_parts
from decima.systems.spark.schedulers.registry import make_scheduler

START_S = 600.0  # until the process has loaded the entry; on a new machine it compiles the simulator, too
OPEN_MODULE = "decima.bench.sched_sim"  # of the benchmark, what an entry may import
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


class Apart:
    """A process that answers questions, each within a time.

    Args:
        target: What it runs: a function of its end of a pipe and of the arguments.
        *arguments: Of the function.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._target, self._arguments = target, arguments
        self._process: Any = None

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def start(self, limit_s: float = START_S) -> Any:
        """Start the process; returns its first answer."""
        self._link, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=self._target, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        return self._answer("loading", limit_s, limit_s)

    def ask(self, what: str, content: Any, left_s: float, limit_s: float) -> Any:
        """Answer to a question.

        Args:
            what: Name of the question.
            content: What it is about.
            left_s: How long to wait, s.
            limit_s: The limit that the message names, s.

        Raises:
            SchedulerError: It refused, took too long or ended; says which.
        """
        with contextlib.suppress(OSError):  # a process that has ended does not answer, either
            self._link.send((what, content))
        return self._answer(what, left_s, limit_s)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._link.close()
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _answer(self, what: str, left_s: float, limit_s: float) -> Any:
        try:
            if not self._link.poll(max(0.0, left_s)):
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


class IsolatedScheduler(Apart):
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
        super().__init__(serve, text)
        self.limit_s = self._left_s = limit_s
        self._state: Any = None
        self.name, self.compiled = self.start()

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a run; the process is started again where it has ended."""
        if not self.runs:
            self.start()
        self._state, self._rng, self._left_s = None, rng, self.limit_s

    def decide(self, observation: Observation) -> Decision:
        """Ask the process for a decision.

        Raises:
            SchedulerError: It raised, answered something else, took too long or ended; says which.
        """
        state = observation.state
        if self._state is not state:
            self._state, self._window = state, Window(state)
            self._timed("reset", (state.settings, self._rng))
        stage, *options = self._timed("decide", self._window.content())
        if stage < 0 and options == [None]:
            return Decision.idle()
        limit, delay_ms, executor_class = options
        executor_class = None if executor_class is None or executor_class < 0 else executor_class
        return Decision(None if stage < 0 else stage, limit or 0, delay_ms, executor_class)

    def _timed(self, what: str, content: Any) -> Any:
        begin = time.monotonic()
        answer = self.ask(what, content, self._left_s, self.limit_s)
        self._left_s -= time.monotonic() - begin
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
        if name.startswith("decima.bench") and name != OPEN_MODULE:
            raise SchedulerError("an entry may not read the tasks of the benchmark")


def confine() -> _Watch:
    """Limit what this process may do, for good; returns what remembers what was refused."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    watch = _Watch()
    sys.addaudithook(watch)
    return watch


def serve(link: Connection, text: str) -> None:
    """Answer for a scheduler until the other end is closed."""
    watch = confine()
    sys.meta_path.insert(0, _NoBenchmark())
    scheduler = seen = None

    def answer(what: str, content: Any) -> Any:
        nonlocal scheduler, seen
        if what == "load":
            scheduler = make_scheduler(content)
            return scheduler.name, isinstance(scheduler, CompiledScheduler)
        if what == "reset":
            seen = SeenState(content[0])
            return scheduler.reset(content[1])
        seen.renew(content)
        return decision_parts(scheduler.decide(Observation(seen)))

    answer_all(link, answer, watch, ("load", text))


def answer_all(link: Connection, answer: Callable[[str, Any], Any], watch: _Watch, question: tuple[str, Any]) -> None:
    """Answer questions, the first of which is known, until the other end is closed."""
    while True:
        what, content = question
        try:
            reply = True, answer(what, content)
        except BaseException as error:
            where = "" if isinstance(error, DecimaError) else f"{what} raised "
            reply = False, f"{where}{sentence(error)}"
        if watch.refused:
            reply, watch.refused = (False, watch.refused), ""
        try:
            link.send(reply)
            question = link.recv()
        except (EOFError, OSError):
            return
