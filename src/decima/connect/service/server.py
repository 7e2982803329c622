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
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.coordinator import Driver
from decima.connect.service.errors import RefusalError, exhausted, invalid, unknown_session
from decima.connect.service.metrics import ServiceMetrics
from decima.connect.service.node_session import NodeSession
from decima.connect.service.security import Security
from decima.connect.service.sessions import Entry, Sessions
from decima.connect.service.steps import Pace, Steps
from decima.connect.service.wire import NAME, Kind, parse
from decima.core.errors import ServiceError

DEFAULT_PORT = 50051
_EXPIRY_S = 1.0
_SHUTTING_DOWN = grpc.StatusCode.UNAVAILABLE, "the service is shutting down"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Address:
    """Address at which the service listens."""

    host: str = "127.0.0.1"  # address of an interface
    port: int = DEFAULT_PORT  # port; 0: any free one
    metrics_port: int | None = None  # port of the HTTP server for Prometheus; None: no such server, 0: any free one
    security: Security = field(default_factory=Security)  # token and certificate
    grace_s: float = 3.0  # how long calls may go on after a stop
    handshake_s: float = 10.0  # how long a client may take to begin a connection


class Service:
    """Scheduling service; ``start`` and ``stop`` belong to one event loop.

    Args:
        sessions: Schedulers and open sessions.
        address: Where to listen.
    """

    def __init__(self, sessions: Sessions, address: Address) -> None:
        self.sessions = sessions
        self.address = address
        self.metrics = ServiceMetrics(sessions)
        self.port: int | None = None
        self.metrics_port: int | None = None
        self.decisions = 0
        self._http = None
        self._stopping = False
        self._pending_bytes = 0
        self._silent: set[grpc.aio.ServicerContext] = set()  # streams whose clients have not asked again yet
        self._pace = Pace()

    async def start(self) -> None:
        """Begin to answer calls.

        Raises:
            ServiceError: The address cannot be used, or would be open to strangers.
        """
        address = self.address
        address.security.check(address.host)
        credentials = address.security.credentials()
        _require_free(address.host, address.port)
        most = self.sessions.limits.message_bytes
        self._server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", most),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.max_concurrent_streams", 100),
                # Dead and silent peers are found out.
                ("grpc.keepalive_time_ms", 20_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.server_handshake_timeout_ms", int(1000 * address.handshake_s)),
            ]
        )
        self._server.add_generic_rpc_handlers((self._handlers(),))
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        await self._health.set(NAME, health_pb2.HealthCheckResponse.SERVING)
        if address.metrics_port is not None:
            self._http, self.metrics_port = self.metrics.serve(address.host, address.metrics_port)
        target = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(target)
            else:
                self.port = self._server.add_secure_port(target, credentials)
        except RuntimeError as error:
            raise ServiceError(f"cannot listen at {target}: {error}") from error
        await self._server.start()
        self._expiry = asyncio.create_task(self._expire())

    async def stop(self) -> None:
        """End: tell health checks, finish running calls, close the ports."""
        self._stopping = True
        await self._health.enter_graceful_shutdown()
        self._expiry.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._expiry
        for context in list(self._silent):
            with contextlib.suppress(grpc.aio.AbortError):
                await context.abort(*_SHUTTING_DOWN)
        await self._server.stop(self.address.grace_s)
        self._pace.close()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRY_S)
            for key in self.sessions.expired():
                await self._end(key)
                self.metrics.expired.inc()

    # ---- calls ------------------------------------------------------------------------------------------------------

    def _handlers(self) -> grpc.GenericRpcHandler:
        """Make handlers that get bytes: what cannot be parsed is the caller's mistake, not a failure of the server."""
        calls = {
            "Open": self._open,
            "Decide": self._decide,
            "Assign": self._assign,
            "Close": self._close,
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._call(name, answer)) for name, answer in calls.items()
        }
        handlers["Decisions"] = grpc.stream_stream_rpc_method_handler(self._decisions)
        handlers["Watch"] = grpc.unary_stream_rpc_method_handler(self._watch)
        return grpc.method_handlers_generic_handler(NAME, handlers)

    def _call(
        self, name: str, answer: Callable[[bytes], Awaitable[Message]]
    ) -> Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]:
        """Make a handler of a method."""

        async def handle(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
            return await self._answer(name, answer, data, context)

        return handle

    async def _answer(
        self,
        name: str,
        answer: Callable[[bytes], Awaitable[Message]],
        data: bytes,
        context: grpc.aio.ServicerContext,
    ) -> bytes:
        """Answer a message; what ``answer`` raises ends the call with a status code."""
        begin = time.perf_counter()
        self._pending_bytes += len(data)
        try:
            self._admit(context)
            most = self.sessions.limits.pending_bytes
            if self._pending_bytes > most:
                pending = self._pending_bytes
                raise exhausted(f"calls under way have {pending} bytes; the service takes {most} (pending_bytes)")
            reply = (await answer(data)).SerializeToString()
        except RefusalError as error:
            self.metrics.calls.labels(name, error.code.name).inc()
            await context.abort(error.code, str(error))
        except Exception:
            _log.exception("call of %s failed", name)
            self.metrics.calls.labels(name, "INTERNAL").inc()
            await context.abort(grpc.StatusCode.INTERNAL, "the service failed; its log says why")
        finally:
            self._pending_bytes -= len(data)
        self.metrics.calls.labels(name, "OK").inc()
        self.metrics.call_seconds.labels(name).observe(time.perf_counter() - begin)
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
            key = (await self._parsed(protocol.WatchRequest, data)).session
            driver = self.sessions.find(key).session
            if not isinstance(driver, Driver):
                raise invalid("there are commands for drivers of a shared cluster only")
            if driver.watched:
                raise invalid("the commands of this session are being watched already")
        except RefusalError as error:
            self.metrics.calls.labels("Watch", error.code.name).inc()
            await context.abort(error.code, str(error))
        driver.watched = True
        try:
            async for command in driver.watch():
                yield command.SerializeToString()
        finally:
            driver.watched = False
            if not self._stopping:
                await self._end(key)
            self.metrics.calls.labels("Watch", "OK").inc()

    def _admit(self, context: grpc.aio.ServicerContext) -> None:
        if not self.address.security.admits(context.invocation_metadata()):
            raise RefusalError(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")

    async def _parsed(self, kind: type[Kind], data: bytes, most_fields: int | None = None) -> Kind:
        # Jobs, states, jobs that are gone, and single fields.
        most = 3 * self.sessions.limits.jobs + 20 if most_fields is None else most_fields
        return await self._pace.run(parse(kind, data, most))

    async def _open(self, data: bytes) -> protocol.OpenReply:
        return await self._pace.run(self.sessions.opening(await self._parsed(protocol.OpenRequest, data)))

    async def _decide(self, data: bytes) -> protocol.Decision:
        entry, request, reply = await self._asked(protocol.DecideRequest, data)
        self.decisions += 1
        outcome = "stage" if not reply.idle else "idle" if request.offer.executors else "report"
        self.metrics.decisions.labels(entry.scheduler, outcome).inc()
        if reply.decide_us:
            self.metrics.decision_seconds.labels(entry.scheduler).observe(1e-6 * reply.decide_us)
        return reply

    async def _assign(self, data: bytes) -> protocol.Assignments:
        limits = self.sessions.limits
        # Jobs, jobs that are gone, copies, executors, and single fields.
        most = 2 * (limits.jobs + limits.stages) + limits.executors + 20
        entry, _, reply = await self._asked(protocol.AssignRequest, data, most)
        self.decisions += len(reply.assignments)
        outcome, number = ("node", len(reply.assignments)) if reply.assignments else ("idle", 1)
        self.metrics.decisions.labels(entry.scheduler, outcome).inc(number)
        self.metrics.decision_seconds.labels(entry.scheduler).observe(1e-6 * reply.decide_us)
        return reply

    async def _asked(
        self, kind: type[Kind], data: bytes, most_fields: int | None = None
    ) -> tuple[Entry, Kind, protocol.Decision | protocol.Assignments]:
        """Ask the session that a request names; returns the session's entry, the request and the reply."""
        request = await self._parsed(kind, data, most_fields)
        entry = self.sessions.find(request.session)
        entry.calls += 1
        try:
            return entry, request, await self._pace.run(self._reply(entry, request), entry.session.turn)
        finally:
            entry.calls -= 1
            entry.used = time.monotonic()

    def _reply(
        self, entry: Entry, request: protocol.DecideRequest | protocol.AssignRequest
    ) -> Steps[protocol.Decision | protocol.Assignments]:
        # While it waited for its turn the session may have ended.
        if self.sessions.find(request.session) is not entry:
            raise unknown_session()
        unequal = isinstance(entry.session, NodeSession)
        if unequal and isinstance(request, protocol.DecideRequest):
            raise invalid("the executors of this session differ in speed; expected Assign, not Decide")
        if not unequal and isinstance(request, protocol.AssignRequest):
            raise invalid("the executors of this session are alike; expected Decide, or Open with unequal")
        reply = yield from entry.session.assign(request) if unequal else entry.session.decide(request)
        if reply.assignments if unequal else not reply.idle:
            self.sessions.decided(entry)
        return reply

    async def _close(self, data: bytes) -> protocol.CloseReply:
        await self._end((await self._parsed(protocol.CloseRequest, data)).session)
        return protocol.CloseReply()

    async def _end(self, key: str) -> None:
        session = self.sessions.remove(key)
        if session is not None:
            await self._pace.run(session.leave(), session.turn)


def _require_free(host: str, port: int) -> None:
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
    """Serve until SIGTERM, SIGINT or SIGHUP; for the main thread.

    Args:
        service: The service, not started yet.
        on_ready: Called when calls are answered.

    Raises:
        ServiceError: The address cannot be used, or would be open to strangers.
    """
    # Threads that decide leave the loop after this long, a fifth of what is usual.
    sys.setswitchinterval(0.001)

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        await service.start()
        # What is there now stays: to look through it for garbage would stop all calls for a tenth of a second.
        gc.collect()
        gc.freeze()
        on_ready()
        await stop.wait()
        await service.stop()

    asyncio.run(serve())
