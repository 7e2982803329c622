"""A scheduling service of a few lines, for what the real one would never do: wrong replies, delays, known limits."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from multiprocessing.managers import BaseManager, NamespaceProxy

import grpc

from decima.connect.service import scheduler_pb2 as protocol

NAME = "decima.service.Scheduler"


@dataclass
class Job:
    """What was reported of one job."""

    attached: int = 0
    schedulable: tuple[int, ...] = ()


@dataclass
class ToyService:
    """FIFO by arrival, lowest stage id first, each job at most `cap` executors.

    Attributes:
        port: where it listens; 0: any free port, known after `start`.
        cap: executors a job may hold.
        delay_s: sleep before every decision.
        delay_ms: each stage of the query `delayed_query` is delayed once for so long.
        spoil: changes a reply before it goes out, or gives the bytes to send instead; a function that can be pickled.
        opened, requests, closed: messages of clients, serialized.
    """

    port: int = 0
    cap: int = 1
    delay_s: float = 0.0
    delay_ms: float = 0.0
    delayed_query: str = ""
    delayed: set[int] = field(default_factory=set)
    spoil: Callable[[protocol.Decision], protocol.Decision | bytes] | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    decisions: list[tuple[str, int, int]] = field(default_factory=list)
    opened: list[bytes] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    closed: list[bytes] = field(default_factory=list)
    server: grpc.Server | None = field(default=None, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def start(self) -> None:
        """Listen on the port of before, if there was one, knowing nothing."""
        self.jobs.clear()
        self.server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        unary = grpc.unary_unary_rpc_method_handler
        handlers = {
            "Open": unary(self._open, protocol.OpenRequest.FromString, protocol.OpenReply.SerializeToString),
            "Decisions": grpc.stream_stream_rpc_method_handler(
                self._decisions, protocol.DecideRequest.FromString, lambda reply: reply
            ),
            "Close": unary(self._close, protocol.CloseRequest.FromString, protocol.CloseReply.SerializeToString),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        self.server.start()

    def stop(self) -> None:
        """Be gone at once, as if killed."""
        if self.server is not None:
            self.server.stop(None).wait()
            self.server = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def forget_session(self) -> None:
        """Know the session of the client no more."""
        self.opened.append(b"")

    def _open(self, request: protocol.OpenRequest, context: grpc.ServicerContext) -> protocol.OpenReply:
        self.opened.append(request.SerializeToString())
        return protocol.OpenReply(session=f"toy-{len(self.opened)}", version=1, scheduler="toy", lease_ms=60_000)

    def _close(self, request: protocol.CloseRequest, context: grpc.ServicerContext) -> protocol.CloseReply:
        self.closed.append(request.SerializeToString())
        return protocol.CloseReply()

    def _decisions(self, requests: Iterator[protocol.DecideRequest], context: grpc.ServicerContext) -> Iterator[bytes]:
        for request in requests:
            yield self._decide(request, context)

    def _decide(self, request: protocol.DecideRequest, context: grpc.ServicerContext) -> bytes:
        time.sleep(self.delay_s)
        with self.lock:
            if request.session != f"toy-{len(self.opened)}":
                context.abort(grpc.StatusCode.NOT_FOUND, "unknown session")
            self.requests.append(request.SerializeToString())
            self._take(request)
            reply = self._choose(request)
        if self.spoil is not None:
            reply = self.spoil(reply)
        return reply if isinstance(reply, bytes) else reply.SerializeToString()

    def _take(self, request: protocol.DecideRequest) -> None:
        if request.full:
            self.jobs.clear()
        for job in request.gone:
            del self.jobs[job]
        for job in request.jobs:
            self.jobs[job.job] = Job()
        for state in request.states:
            self.jobs[state.job].attached = state.attached
            self.jobs[state.job].schedulable = tuple(state.schedulable)

    def _choose(self, request: protocol.DecideRequest) -> protocol.Decision:
        reply = protocol.Decision(sequence=request.sequence, idle=True)
        offered = request.offer.executors
        for name, job in self.jobs.items():
            # Executors that served the job last and are offered now are not held by it any more.
            held = job.attached - (offered if request.offer.job == name else 0)
            if offered and job.schedulable and held < self.cap:
                stage = min(job.schedulable)
                reply = protocol.Decision(
                    sequence=request.sequence,
                    job=name,
                    stage=stage,
                    limit=self.cap,
                    executors=min(self.cap - held, offered),
                )
                if name == self.delayed_query and stage not in self.delayed:
                    self.delayed.add(stage)
                    reply.delay_ms, reply.executors = self.delay_ms, 0
                self.decisions.append((name, stage, self.cap))
                break
        return reply


class _Proxy(NamespaceProxy):
    _exposed_ = ("__getattribute__", "__setattr__", "start", "stop", "forget_session")

    def start(self) -> None:
        self._callmethod("start")

    def stop(self) -> None:
        self._callmethod("stop")

    def forget_session(self) -> None:
        self._callmethod("forget_session")


class _Manager(BaseManager):
    pass


_Manager.register("ToyService", ToyService, _Proxy)


@contextlib.contextmanager
def toy_service(**attributes: object) -> Iterator[ToyService]:
    """A service that listens, in a process of its own; attributes are read as copies.

    pyspark forks this process to start Java, and a child of a process with a gRPC server now and then dies of it.
    """
    with _Manager(ctx=multiprocessing.get_context("spawn")) as manager:
        service = manager.ToyService(**attributes)
        service.start()
        yield service
        service.stop()


# ---- what a service must not say: functions, for its process, that change a decision on its way out ------------------


def _change(values, reply):
    for name, value in values.items():
        if not reply.idle:
            setattr(reply, name, value)
    return reply


def changed(**values):
    """A function, for another process, that gives a decision other values, where it runs something."""
    return functools.partial(_change, values)


def _instead(data, _reply):
    return data


def another_call(reply):
    reply.sequence += 1
    return reply


WRONG = {
    "negative limit": changed(limit=-3),
    "zero limit": changed(limit=0),
    "unknown stage": changed(stage=999_999),
    "unknown job": changed(job="nobody's"),
    "too many executors": changed(executors=77),
    "another call": another_call,
    "not a message": functools.partial(_instead, b"\xff\xff\xff\xff\xff"),
    "text that is not UTF-8": functools.partial(_instead, b"\x1a\x02\xff\xfe"),
    "negative delay": changed(delay_ms=-1.0, executors=0),
    "endless delay": changed(delay_ms=float("inf"), executors=0),
    "delay with executors": changed(delay_ms=10.0),
}
# Every stage again and again, also those that have begun.
delay_again = changed(delay_ms=10.0, executors=0)
