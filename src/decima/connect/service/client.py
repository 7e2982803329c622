"""Client of the service: calls with deadlines, sessions that survive a restart of the server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from google.protobuf.message import DecodeError, Message

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.wire import NAME, parts
from decima.core.errors import ConfigError, ServiceError

_AWAY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_LOST = {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION}
_ATTEMPTS = 3  # how often a session may be lost during one decision
_PAUSE_S = 0.05


def check_address(service: str) -> None:
    """Check that a text has the form ``host:port``.

    Raises:
        ConfigError: It has not.
    """
    host, _, port = service.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"the service is {service!r}; expected host:port")


class ServiceAwayError(ServiceError):
    """No service answers at the address."""


class ServiceClient:
    """Connection to one service, on which threads may call it at the same time.

    Args:
        address: ``host:port``.
        token: Shown with every call.
        tls_ca: PEM file with the certificate to trust; no TLS when omitted.
        identity: PEM files with the client's own certificate and its key, for a service that asks for one.
        deadline_s: How long a call may take.

    Raises:
        ServiceError: The certificate cannot be read.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        identity: tuple[Path, Path] | None = None,
        deadline_s: float = 5.0,
    ) -> None:
        self.address = address
        self._deadline_s = deadline_s
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 1000)]
        if tls_ca is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            try:
                certificate, key = (None, None) if identity is None else (file.read_bytes() for file in identity)
                credentials = grpc.ssl_channel_credentials(tls_ca.read_bytes(), key, certificate)
            except OSError as error:
                raise ServiceError(f"cannot read the certificate {error.filename}: {error.strerror}") from error
            self._channel = grpc.secure_channel(address, credentials, options)
        # Bytes in and out: a reply that cannot be parsed is told apart from a failure of the server.
        names = ("Open", "Decide", "Close")
        self._calls = {name: self._channel.unary_unary(f"/{NAME}/{name}") for name in names}

    def __enter__(self) -> ServiceClient:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def call(self, name: str, request: Message, reply: type[Message]) -> Message:
        """Call a method and wait for its reply.

        Raises:
            grpc.RpcError: With the status code of the service.
            ServiceError: The reply is not such a message.
        """
        data = self._calls[name](request.SerializeToString(), timeout=self._deadline_s, metadata=self._metadata)
        try:
            return reply.FromString(data)
        except DecodeError as error:
            raise ServiceError(f"the service at {self.address} answered {name} with no {reply.__name__}") from error


class ClientSession:
    """Session of a client, opened on demand, and again after the server has lost it.

    Args:
        client: Whom to ask.
        request: How to open it.
        patience_s: How long to wait for a service that does not answer.
    """

    def __init__(self, client: ServiceClient, request: protocol.OpenRequest, patience_s: float = 10.0) -> None:
        self._client = client
        self._request = request
        self._patience_s = patience_s
        self._session = ""
        self._sequence = 0
        self._full = True
        self.opened: protocol.OpenReply | None = None
        self.times_opened = 0

    def decide(self, make_request: Callable[[bool], protocol.DecideRequest]) -> protocol.Decision:
        """Report what changed and return the service's decision.

        Args:
            make_request: Function that returns the report: everything if its argument is true, else what changed since
                it was called last; session and sequence are filled in here.

        Raises:
            ServiceAwayError: No answer within ``patience_s``.
            ServiceError: The service refuses, or its answer is wrong.
        """
        end = time.monotonic() + self._patience_s
        lost = 0
        while True:
            try:
                return self._try(make_request)
            except grpc.RpcError as error:
                self._full = True
                code = error.code()
                if code is grpc.StatusCode.NOT_FOUND:
                    self._session = ""
                lost += code in _LOST
                if code in _AWAY and time.monotonic() < end:
                    time.sleep(_PAUSE_S)
                elif code in _AWAY:
                    details = error.details() or ""
                    hint = "; a service with TLS needs tls_ca=FILE" if "Socket closed" in details else ""
                    raise ServiceAwayError(
                        f"the service at {self._client.address} does not answer: {details}{hint}"
                    ) from error
                elif code not in _LOST or lost >= _ATTEMPTS:
                    raise ServiceError(
                        f"the service at {self._client.address} refuses: {error.details()} ({code.name})"
                    ) from error

    def _try(self, make_request: Callable[[bool], protocol.DecideRequest]) -> protocol.Decision:
        if not self._session:
            self.opened = self._client.call("Open", self._request, protocol.OpenReply)
            self._session, self._sequence, self._full = self.opened.session, 0, True
            self.times_opened += 1
        messages = parts(make_request(self._full))
        messages[0].full = self._full
        self._full = True  # unless all goes well
        for request in messages:
            self._sequence += 1
            request.session, request.sequence = self._session, self._sequence
            reply = self._client.call("Decide", request, protocol.Decision)
            if reply.sequence != self._sequence:
                raise ServiceError(f"the service answered call {self._sequence} as call {reply.sequence}")
        self._full = False
        return reply

    def close(self) -> None:
        """End the session; ignore a service that does not answer."""
        if self._session:
            with contextlib.suppress(grpc.RpcError):
                self._client.call("Close", protocol.CloseRequest(session=self._session), protocol.CloseReply)
            self._session = ""
