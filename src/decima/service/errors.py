"""What the service answers instead of a decision."""

from __future__ import annotations

import grpc

from decima.exceptions import ServiceError


class RefusalError(ServiceError):
    """A call is refused with a status code.

    Args:
        code: Status code for the client.
        message: What was got, what was expected and where.
    """

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> RefusalError:
    """The message is wrong, whoever sends it."""
    return RefusalError(grpc.StatusCode.INVALID_ARGUMENT, message)


def unknown_session() -> RefusalError:
    """The client has to open a new session."""
    return RefusalError(grpc.StatusCode.NOT_FOUND, "unknown session: never opened here, closed, or expired")


def out_of_step(message: str) -> RefusalError:
    """The client has to send everything."""
    return RefusalError(grpc.StatusCode.FAILED_PRECONDITION, f"{message}; send everything (full)")


def exhausted(message: str) -> RefusalError:
    """A limit is reached."""
    return RefusalError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
