"""Schedulers in Python in separate processes, with limits on time and memory.

The process gets what :mod:`.seen` shows and a generator that is not the instance's, and answers with numbers. That
keeps out mistakes and plain reading of the future. Nothing here stops code that attacks the benchmark or the
machine: run what you have read.
"""

from __future__ import annotations

import contextlib
import json
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
from decima.core.checks import is_number
from decima.core.errors import DecimaError, SchedulerError
from decima.systems.spark.schedulers.interface import CompiledScheduler, Decision, Observation, decision_parts
from decima.systems.spark.schedulers.registry import make_scheduler

START_S = 600.0  # until the process has loaded the entry; on a new machine it compiles the simulator, too
MEMORY = 4 * 1024**3  # bytes that the process may write to
ANSWER = 1 << 20  # bytes of an answer
LONGEST = 300  # characters of an error that are kept
_SPAWN = multiprocessing.get_context("spawn")


def sentence(error: BaseException) -> str:
    """First line of an error, with its type unless it is one of the package."""
    text = " ".join(str(error).split())[:LONGEST]
    return text if isinstance(error, DecimaError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _readable(text: Any) -> str:
    """A text of an entry that can be written to any file."""
    return str(text)[:LONGEST].encode(errors="replace").decode()


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
            SchedulerError: It refused, took too long or ended; the message names it.
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
            answered, answer = json.loads(self._link.recv_bytes(ANSWER))
        except (EOFError, OSError):
            self._process.join(5.0)
            code = self._process.exitcode
            self.close()
            how = "answered more than it may" if code is None else f"ended with code {code}"
            raise SchedulerError(f"the process of the entry {how} ({what})") from None
        except (ValueError, TypeError, RecursionError):
            self.close()
            raise SchedulerError(f"the process of the entry answered what is not an answer ({what})") from None
        if answered is not True:
            raise SchedulerError(_readable(answer))
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
        name, compiled = self.start()
        self.name, self.compiled = _readable(name), compiled is True

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a run; the process is started again where it has ended."""
        if not self.runs:
            self.start()
        # Drawn from the instance's generator, whose seed it does not show.
        self._chance = [int(number) for number in rng.integers(2**32, size=4)]
        self._state, self._left_s = None, self.limit_s

    def decide(self, observation: Observation) -> Decision:
        """Ask the process for a decision.

        Raises:
            SchedulerError: It raised, answered something else, took too long or ended; the message names it.
        """
        state = observation.state
        if self._state is not state:
            self._state, self._window = state, Window(state)
            self._timed("reset", (state.settings, self._chance))
        parts = self._timed("decide", self._window.content())
        if parts == [-1, None]:
            return Decision.idle()
        numbers = isinstance(parts, list) and all(each is None or is_number(each) for each in parts)
        if not numbers or len(parts) != 4 or parts[0] is None:
            self.close()
            raise SchedulerError(f"the process of the entry answered {parts!r:.60}; expected the parts of a decision")
        stage, limit, delay_ms, executor_class = parts
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


def confine() -> None:
    """Limit the memory of this process for good; its parent alone ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def serve(link: Connection, text: str) -> None:
    """Answer for a scheduler until the other end is closed."""
    confine()
    scheduler = seen = None

    def answer(what: str, content: Any) -> Any:
        nonlocal scheduler, seen
        if what == "load":
            scheduler = make_scheduler(content)
            return str(scheduler.name), isinstance(scheduler, CompiledScheduler)
        if what == "reset":
            seen = SeenState(content[0])
            scheduler.reset(np.random.default_rng(content[1]))
            return None
        seen.renew(content)
        return decision_parts(scheduler.decide(Observation(seen)))

    answer_all(link, answer, ("load", text))


def answer_all(link: Connection, answer: Callable[[str, Any], Any], question: tuple[str, Any]) -> None:
    """Answer questions, the first of which is known, until the other end is closed.

    Answers are JSON, so that the asking process runs nothing of what it gets.
    """
    while True:
        what, content = question
        try:
            reply = json.dumps((True, answer(what, content)))
        except BaseException as error:
            where = "" if isinstance(error, DecimaError) else f"{what} raised "
            reply = json.dumps((False, f"{where}{sentence(error)}"))
        try:
            link.send_bytes(reply.encode())
            question = link.recv()
        except (EOFError, OSError):
            return
