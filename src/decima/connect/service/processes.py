"""Plan of a service, and several processes that serve at one port.

The kernel gives every new connection to one of them.
Python decides in one thread at a time, so that one process answers as many calls as one core can. A session belongs to
the process that its connection belongs to. A client whose process ends opens a new session with the next one.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path

from decima.connect.service.durations import ProfileBook
from decima.connect.service.limits import Limits
from decima.connect.service.logs import event, set_up
from decima.connect.service.metrics import add_up
from decima.connect.service.security import Security, read_token
from decima.connect.service.server import Address, Service, on_terminal, require_free, run_service
from decima.connect.service.sessions import Offering, Sessions
from decima.connect.service.web import Views, serve_views
from decima.core.errors import DecimaError, ServiceError
from decima.systems.heterogeneous import make_scheduler as make_node_scheduler
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import parse_jobs

_SPAWN = multiprocessing.get_context("spawn")  # threads of gRPC do not survive a fork
_ANSWER_S = 2.0  # how long a process may take to say what it sees
_TICK_S = 0.2
_PAUSE_S = 1.0  # before a process that ended is started again
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """Service as its operator describes it, from which every process makes one and renews it."""

    schedulers: tuple[str, ...]  # texts; the first is for clients that ask for none
    unequal: tuple[str, ...] = ()  # schedulers for executors that differ in speed
    profiles: str | None = None  # jobs with measured durations, as a text
    limits: Limits = field(default_factory=Limits)
    address: Address = field(default_factory=Address)
    token_file: Path | None = None  # file of the token, None: from the environment
    log: tuple[str, str] = ("warning", "text")  # level and form

    def offering(self) -> Offering:
        """Make the schedulers.

        Raises:
            DecimaError: One cannot be made.
        """
        node_schedulers = {name: make_node_scheduler(name) for name in self.unequal}
        return Offering({name: partial(make_scheduler, name) for name in self.schedulers}, node_schedulers)

    def security(self) -> Security:
        """Token as its file has it now; certificates are read when they are used.

        Raises:
            ServiceError: The token cannot be read.
        """
        return replace(self.address.security, token=read_token(self.token_file))

    def service(self) -> Service:
        """Make the service, which is not started yet.

        Raises:
            DecimaError: A scheduler cannot be made, or the profiles cannot be read.
        """
        jobs = self.profiles
        book = ProfileBook() if jobs is None else ProfileBook(parse_jobs(jobs).workload(0).universe)
        return Service(Sessions(self.offering(), book, self.limits), self.address, self)


class _Member:
    """One process that serves, seen from the first one."""

    def __init__(self, plan: Plan) -> None:
        self._link, theirs = _SPAWN.Pipe()
        self._lock = threading.Lock()
        self.process = _SPAWN.Process(target=_serve, args=(plan, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.serves = False
        self.decisions = 0

    def await_start(self) -> None:
        """Wait until it serves.

        Raises:
            ServiceError: It does not, and why.
        """
        try:
            tag, what = self._link.recv()
        except EOFError:
            tag, what = "failed", "a process of the service ended before it served"
        if tag == "failed":
            raise ServiceError(what)
        self.serves = True

    def ask(self, what: str) -> object:
        """Answer of the process to a question; None if it does not answer."""
        with self._lock, contextlib.suppress(EOFError, OSError):
            self._link.send(what)
            while self._link.poll(_ANSWER_S):
                tag, answer = self._link.recv()
                if tag == what:
                    return answer
        return None

    def end(self, until: float) -> None:
        """Wait for its end, at most until a time; note how many decisions it took."""
        with self._lock, contextlib.suppress(EOFError, OSError):
            while self._link.poll(max(0.0, until - time.monotonic())):
                tag, answer = self._link.recv()
                if tag == "ended":
                    self.decisions = answer
        self.process.join(max(0.1, until - time.monotonic()))
        self.process.kill()


def _serve(plan: Plan, link: Connection) -> None:
    """Serve in this process until SIGTERM; ``link`` asks and hears."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the first process says when to end
    set_up(*plan.log)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        service = plan.service()
        views = {"metrics": service.metrics.text, "live": service.live}

        def answer() -> None:
            with contextlib.suppress(EOFError, OSError):
                while True:
                    what = link.recv()
                    link.send((what, views[what]()))
            os.kill(os.getpid(), signal.SIGTERM)  # the first process is gone

        def ready() -> None:
            link.send(("serves", service.port))
            threading.Thread(target=answer, daemon=True).start()

        run_service(service, ready)
        with contextlib.suppress(OSError):
            link.send(("ended", service.decisions))
    except DecimaError as error:
        link.send(("failed", str(error)))


def run_processes(plan: Plan, on_ready: Callable[[int, int | None], None]) -> int:
    """Serve in several processes until SIGTERM or SIGINT; for the main thread.

    SIGHUP goes to all of them. A process that ends by itself is started again.

    Args:
        plan: The service; its address says how many processes there are.
        on_ready: Called with the port, and that of the metrics, when calls are answered.

    Returns:
        Decisions taken by the processes that ended when they were told to.

    Raises:
        ServiceError: The address cannot be used, or a process does not start.
    """
    address = plan.address
    require_free(address.host, address.port)
    with (
        socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as holder,
        contextlib.ExitStack() as stack,
    ):
        # Bound and not listening: it keeps the port while processes come and go, and gets no connections.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((address.host, address.port))
        port = holder.getsockname()[1]
        plan = replace(plan, address=replace(address, port=port, metrics_port=None))
        signals: list[int] = []
        stop_signals = (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if on_terminal() else ()))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            before = signal.signal(number, lambda number, _frame: signals.append(number))
            stack.callback(signal.signal, number, before)
        members = [_Member(plan) for _ in range(address.processes)]
        try:
            for member in members:
                member.await_start()
            metrics_port = _show(members, plan, address.metrics_port, stack)
            on_ready(port, metrics_port)
            _watch(members, plan, signals, stop_signals)
        finally:
            for member in members:
                member.process.terminate()
            until = time.monotonic() + address.grace_s + 5.0
            for member in members:
                member.end(until)
        return sum(member.decisions for member in members)


def _watch(members: list[_Member], plan: Plan, signals: list[int], stop_signals: tuple[int, ...]) -> None:
    """Start again what ends, and pass SIGHUP on, until a signal says to stop."""
    while not any(number in stop_signals for number in signals):
        if signals:
            signals.pop(0)
            for member in members:
                os.kill(member.process.pid, signal.SIGHUP)
        ended = wait([member.process.sentinel for member in members], _TICK_S)
        for number, member in enumerate(members):
            if member.process.sentinel in ended and not signals:
                member.process.join()
                event(_log, logging.ERROR, "a process ended and is started again", code=member.process.exitcode)
                time.sleep(_PAUSE_S)
                members[number] = again = _Member(plan)
                threading.Thread(target=_started, args=(again,), daemon=True).start()


def _started(member: _Member) -> None:
    with contextlib.suppress(ServiceError):  # its end is seen by its sentinel
        member.await_start()


def _show(members: list[_Member], plan: Plan, port: int | None, stack: contextlib.ExitStack) -> int | None:
    """Serve what all processes together have to show; returns the port."""
    if port is None:
        return None

    def answers(what: str) -> list:
        answered = [member.ask(what) for member in list(members) if member.serves]
        return [answer for answer in answered if answer is not None]

    def live() -> dict:
        views = answers("live")
        return {
            "decisions": sum(view["decisions"] for view in views),
            "sessions": sum(view["sessions"] for view in views),
            "open": [session for view in views for session in view["open"]],
            "last": sorted((each for view in views for each in view["last"]), key=lambda each: each["at"])[-50:],
        }

    views = Views(
        metrics=lambda: add_up([text.decode() for text in answers("metrics")]),
        ready=lambda: all(member.serves and member.process.is_alive() for member in list(members)),
        live=live if plan.address.live else None,
        security=plan.security,
    )
    http = serve_views(plan.address.host, port, views)
    stack.callback(http.server_close)
    stack.callback(http.shutdown)
    return http.server_port
