"""What the service answers instead of a decision."""

from __future__ import annotations

import grpc

from decima.exceptions import ServiceError


class Refusal(ServiceError):
    """A call is refused with a status code.

    Args:
        code: Status code for the client.
        message: What was got, what was expected and where.
    """

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> Refusal:
    """The message is wrong, whoever sends it."""
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def unknown_session() -> Refusal:
    """The client has to open a new session."""
    return Refusal(grpc.StatusCode.NOT_FOUND, "unknown session: it was never opened here, was closed, or has expired")


def out_of_step(message: str) -> Refusal:
    """The client has to send everything."""
    return Refusal(grpc.StatusCode.FAILED_PRECONDITION, f"{message}; send everything (full)")


def exhausted(message: str) -> Refusal:
    """A limit is reached."""
    return Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
