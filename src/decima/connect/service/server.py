"""Server of the service: gRPC on one event loop, decisions one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.coordinator import Driver
from decima.connect.service.durations import ProfileBook
from decima.connect.service.errors import RefusalError, invalid
from decima.connect.service.limits import Limits
from decima.connect.service.logs import event
from decima.connect.service.metrics import ServiceMetrics
from decima.connect.service.security import Security, read_token
from decima.connect.service.sessions import Offering, Sessions
from decima.connect.service.web import Views, serve_views
from decima.connect.service.wire import NAME, REPORT_STAGES, parse, stages_in
from decima.core.errors import DecimaError, ServiceError
from decima.systems.spark.schedulers import make_scheduler
from decima.workload.sources import parse_jobs

DEFAULT_PORT = 50051
_EXPIRY_S = 1.0
_SHOWN = 50  # sessions, and decisions, on the live page
_SHUTTING_DOWN = grpc.StatusCode.UNAVAILABLE, "the service is shutting down"
_NO_TOKEN = "the token is missing or wrong"
_log = logging.getLogger(__name__)
Metadata = Sequence[tuple[str, str | bytes]]


@dataclass(frozen=True)
class Address:
    """Address at which the service listens."""

    host: str = "127.0.0.1"  # address of an interface
    port: int = DEFAULT_PORT  # port; 0: any free one
    metrics_port: int | None = None  # port of the HTTP server for Prometheus; None: no such server, 0: any free one
    security: Security = field(default_factory=Security)  # token and certificate
    grace_s: float = 3.0  # how long calls may go on after a stop
    handshake_s: float = 10.0  # how long a client may take to begin a connection
    live: bool = False  # whether the metrics port has a page with sessions and decisions


@dataclass(frozen=True)
class Plan:
    """Service as its operator describes it."""

    schedulers: tuple[str, ...]  # texts; the first is for clients that ask for none
    profiles: str | None = None  # jobs with measured durations, as a text
    limits: Limits = field(default_factory=Limits)
    address: Address = field(default_factory=Address)
    token_file: Path | None = None  # file of the token, None: from the environment

    def offering(self) -> Offering:
        """Make the schedulers.

        Raises:
            DecimaError: One cannot be made.
        """
        return Offering({name: partial(make_scheduler, name) for name in self.schedulers})

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


class Service:
    """Scheduling service; ``start`` and ``stop`` belong to one event loop.

    Args:
        sessions: Schedulers and open sessions.
        address: Where to listen.
        plan: What it was made from and is renewed from; None: it cannot be renewed.
    """

    def __init__(self, sessions: Sessions, address: Address, plan: Plan | None = None) -> None:
        self.sessions = sessions
        self.address = address
        self.metrics = ServiceMetrics(sessions)
        self.port: int | None = None
        self.metrics_port: int | None = None
        self.decisions = 0
        self._plan = plan
        self._http = None
        self._ready = self._stopping = False
        self._last: deque[dict] = deque(maxlen=_SHOWN)  # decisions, for the live page
        self._pending_bytes = 0
        self._silent: set[grpc.aio.ServicerContext] = set()  # streams whose clients have not asked again yet

    async def start(self) -> None:
        """Begin to answer calls.

        Raises:
            ServiceError: The address cannot be used, or would be open to strangers.
        """
        address = self.address
        address.security.check(address.host)
        self._certificates = address.security.certificates()
        require_free(address.host, address.port)
        most = self.sessions.limits.message_bytes
        self._server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", most),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.max_concurrent_streams", 32),
                # Dead and silent peers are found out.
                ("grpc.keepalive_time_ms", 20_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.server_handshake_timeout_ms", int(1000 * address.handshake_s)),
            ],
            interceptors=[_Doorkeeper(self._stranger)],
        )
        self._server.add_generic_rpc_handlers((self._handlers(),))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        await self._health.set(NAME, health_pb2.HealthCheckResponse.SERVING)
        reflection.enable_server_reflection((NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)
        if address.metrics_port is not None:
            live = self.live if address.live else None
            views = Views(self.metrics.text, lambda: self._ready, live, lambda: self.address.security)
            self._http = serve_views(address.host, address.metrics_port, views)
            self.metrics_port = self._http.server_port
        target = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        try:
            if self._certificates is None:
                self.port = self._server.add_insecure_port(target)
            else:
                # Asked for at every handshake, so that a renewed certificate is shown to the next client.
                credentials = grpc.dynamic_ssl_server_credentials(
                    self._certificates, lambda: self._certificates, address.security.client_ca is not None
                )
                self.port = self._server.add_secure_port(target, credentials)
        except RuntimeError as error:
            raise ServiceError(f"cannot listen at {target}: {error}") from error
        await self._server.start()
        self._expiry = asyncio.create_task(self._expire())
        self._ready = True

    async def stop(self) -> None:
        """End: tell health checks, finish running calls, close the ports."""
        self._stopping, self._ready = True, False
        await self._health.enter_graceful_shutdown()
        self._expiry.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._expiry
        for context in list(self._silent):
            with contextlib.suppress(grpc.aio.AbortError, grpc.aio.InternalError):  # its client is gone
                await context.abort(*_SHUTTING_DOWN)
        await self._server.stop(self.address.grace_s)
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRY_S)
            for key in self.sessions.expired():
                entry = self.sessions.find(key)
                why = f"no call for {entry.lease_s:g} s" + ("" if entry.decided else ", nothing was decided in it")
                event(
                    _log, logging.WARNING, "session lost", **self._named(key), reason=why, jobs=entry.session.num_jobs
                )
                self._end(key)
                self.metrics.expired.inc()

    async def renew(self) -> None:
        """Read policies, token and certificates again; where one is wrong, all stay as they are.

        Open sessions keep their schedulers.
        """
        try:
            if self._plan is None:
                raise ServiceError("the service was not made from a plan")
            offering, security = await asyncio.to_thread(lambda: (self._plan.offering(), self._plan.security()))
            certificates = security.certificates()
        except DecimaError as error:
            self.metrics.reloads.labels("refused").inc()
            event(_log, logging.ERROR, "reload refused, everything stays as it was", reason=error)
            return
        self.sessions.offering, self._certificates = offering, certificates
        self.address = replace(self.address, security=security)
        self.metrics.reloads.labels("done").inc()
        event(_log, logging.INFO, "policies, token and certificates were read again")

    def live(self) -> dict:
        """The present state: numbers, sessions and their jobs, the last decisions; other threads may ask."""
        return {
            "decisions": self.decisions,
            "sessions": len(self.sessions),
            "open": [
                self._named(key) | {"executors": executors, "unused_s": unused_s, "jobs": jobs}
                for key, executors, unused_s, jobs in self.sessions.overview(_SHOWN)
            ],
            "last": list(self._last),
        }

    def _named(self, key: str) -> dict:
        """Fields that name a session for people, without the id that opens it."""
        entry = self.sessions.peek(key)
        named = {"session": key[:6]}
        return named if entry is None else named | {"client": entry.session.client, "scheduler": entry.scheduler}

    # ---- calls ------------------------------------------------------------------------------------------------------

    def _handlers(self) -> grpc.GenericRpcHandler:
        """Make handlers of bytes; unparsable input is the caller's error, not a server failure."""
        calls = {"Open": self._open, "Decide": self._decide, "Close": self._close}
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(partial(self._answer, name, answer))
            for name, answer in calls.items()
        }
        handlers["Decisions"] = grpc.stream_stream_rpc_method_handler(self._decisions)
        handlers["Watch"] = grpc.unary_stream_rpc_method_handler(self._watch)
        return grpc.method_handlers_generic_handler(NAME, handlers)

    async def _answer(
        self, name: str, answer: Callable[[bytes], Message], data: bytes, context: grpc.aio.ServicerContext
    ) -> bytes:
        """Answer a message; what ``answer`` raises ends the call with a status code."""
        begin = time.perf_counter()
        self._pending_bytes += len(data)
        try:
            self._admit(context)
            pending = self._pending_bytes
            self.sessions.limits.check("pending_bytes", pending, f"calls under way have {pending} bytes")
            reply = answer(data).SerializeToString()
        except RefusalError as error:
            self._refused(name, error, context)
            await context.abort(error.code, str(error))
        except Exception:
            _log.exception("call of %s failed", name)
            self.metrics.calls.labels(name, "INTERNAL").inc()
            await context.abort(grpc.StatusCode.INTERNAL, "the service failed; its log has the reason")
        finally:
            self._pending_bytes -= len(data)
        metrics = self.metrics
        metrics.of(metrics.calls, name, "OK").inc()
        metrics.of(metrics.call_seconds, name).observe(time.perf_counter() - begin)
        return reply

    async def _decisions(self, _messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> None:
        """Answer the messages of a stream one after the other, until its client ends it."""
        while not self._stopping:
            self._silent.add(context)
            try:
                data = await context.read()
            finally:
                self._silent.discard(context)
            if data is grpc.aio.EOF:
                return
            await context.write(await self._answer("Decisions", self._decide, data, context))
        await context.abort(*_SHUTTING_DOWN)

    async def _watch(self, data: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        """Yield commands for a driver until its stream ends, which ends its session."""
        try:
            self._admit(context)
            key = parse(protocol.WatchRequest, data).session
            driver = self.sessions.find(key).session
            if not isinstance(driver, Driver):
                raise invalid("there are commands for drivers of a shared cluster only")
            if driver.watched:
                raise invalid("the commands of this session are being watched already")
        except RefusalError as error:
            self._refused("Watch", error, context)
            await context.abort(error.code, str(error))
        driver.watched = True
        try:
            async for command in driver.watch():
                yield command.SerializeToString()
        finally:
            driver.watched = False
            if not self._stopping:
                event(_log, logging.WARNING, "session lost", **self._named(key), reason="its Watch stream ended")
                self._end(key)
            self.metrics.calls.labels("Watch", "OK").inc()

    def _refused(self, name: str, error: RefusalError, context: grpc.aio.ServicerContext) -> None:
        self.metrics.calls.labels(name, error.code.name).inc()
        level = logging.WARNING if error.code is grpc.StatusCode.UNAUTHENTICATED else logging.INFO
        if _log.isEnabledFor(level):
            event(_log, level, "refused", method=name, code=error.code.name, reason=error, peer=context.peer())

    def _stranger(self, method: str, metadata: Metadata) -> grpc.RpcMethodHandler | None:
        """Handler that refuses a call without the token before its message is read."""
        room, _, name = method.strip("/").partition("/")
        if room != NAME or self.address.security.admits(metadata):
            return None

        async def refuse(_messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> None:
            error = RefusalError(grpc.StatusCode.UNAUTHENTICATED, _NO_TOKEN)
            self._refused(name, error, context)
            await context.abort(error.code, str(error))

        return grpc.stream_stream_rpc_method_handler(refuse)  # the one kind that reads nothing by itself

    def _admit(self, context: grpc.aio.ServicerContext) -> None:
        if not self.address.security.admits(context.invocation_metadata()):
            raise RefusalError(grpc.StatusCode.UNAUTHENTICATED, _NO_TOKEN)

    def _open(self, data: bytes) -> protocol.OpenReply:
        request = parse(protocol.OpenRequest, data)
        reply = self.sessions.open(request)
        event(_log, logging.INFO, "session opened", **self._named(reply.session), executors=request.executors)
        return reply

    def _note(self, key: str, outcome: str, **numbers: object) -> None:
        """Keep a decision for the live page."""
        self._last.append({"at": time.time(), **self._named(key), "outcome": outcome, **numbers})

    def _decide(self, data: bytes) -> protocol.Decision:
        request = parse(protocol.DecideRequest, data)
        entry = self.sessions.find(request.session)
        if (stages := stages_in(request)) > REPORT_STAGES and len(request.jobs) + len(request.states) > 1:
            # Of an older client; version 0.4 refuses it.
            event(_log, logging.WARNING, "long report", **self._named(request.session), stages=stages)
        reply = entry.session.decide(request)
        if not reply.idle:
            self.sessions.decided(entry)
        self.decisions += 1
        outcome = "stage" if not reply.idle else "idle" if request.offer.executors else "report"
        metrics = self.metrics
        metrics.of(metrics.decisions, entry.scheduler, outcome).inc()
        if reply.decide_us:
            metrics.of(metrics.decision_seconds, entry.scheduler).observe(1e-6 * reply.decide_us)
        if self.address.live:
            self._note(request.session, outcome, job=reply.job, place=reply.stage, executors=reply.executors,
                       limit=reply.limit, decide_us=reply.decide_us)  # fmt: skip
        return reply

    def _close(self, data: bytes) -> protocol.CloseReply:
        key = parse(protocol.CloseRequest, data).session
        event(_log, logging.INFO, "session closed", **self._named(key))
        self._end(key)
        return protocol.CloseReply()

    def _end(self, key: str) -> None:
        session = self.sessions.remove(key)
        if session is not None:
            session.leave()


class _Doorkeeper(grpc.aio.ServerInterceptor):
    """What sees the metadata of a call before its message."""

    def __init__(self, stranger: Callable[[str, Metadata], grpc.RpcMethodHandler | None]) -> None:
        self._stranger = stranger

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        details = handler_call_details
        return self._stranger(details.method, details.invocation_metadata) or await continuation(details)


def require_free(host: str, port: int) -> None:
    """Check that a port is free before gRPC does, which would also write to stderr.

    Raises:
        ServiceError: The address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise ServiceError(f"cannot listen at {host}:{port}: {why}") from error


def run_service(service: Service, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; for the main thread.

    SIGHUP makes it read policies, token and certificates again; where standard input is a terminal it ends the service,
    since a closed terminal sends it.

    Args:
        service: The service, not started yet.
        on_ready: Called when calls are answered.

    Raises:
        ServiceError: The address cannot be used, or would be open to strangers.
    """

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        await service.start()
        renewals = set()

        def renew() -> None:
            renewals.add(task := asyncio.create_task(service.renew()))
            task.add_done_callback(renewals.discard)

        if not on_terminal():
            loop.add_signal_handler(signal.SIGHUP, renew)
        # What is there now stays: to look through it for garbage would stop all calls for a tenth of a second.
        gc.collect()
        gc.freeze()
        on_ready()
        await stop.wait()
        await service.stop()

    asyncio.run(serve())


def on_terminal() -> bool:
    """Whether somebody started this process at a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
