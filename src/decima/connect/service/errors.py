"""Refusals: what the service answers instead of a decision."""

from __future__ import annotations

import grpc

from decima.core.errors import ServiceError


class RefusalError(ServiceError):
    """Refusal of a call: a status code, and what was got, expected and where."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> RefusalError:
    """Refusal of a message that is wrong, whoever sends it."""
    return RefusalError(grpc.StatusCode.INVALID_ARGUMENT, message)


def unknown_session() -> RefusalError:
    """Refusal after which the client has to open a new session."""
    return RefusalError(grpc.StatusCode.NOT_FOUND, "unknown session: never opened here, closed, or expired")


def out_of_step(message: str) -> RefusalError:
    """Refusal after which the client has to send everything."""
    return RefusalError(grpc.StatusCode.FAILED_PRECONDITION, f"{message}; send everything (full)")


def exhausted(message: str) -> RefusalError:
    """Refusal because a limit is reached."""
    return RefusalError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
