"""Protocol of the service: its name and version, state in messages, and range of numbers."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import invalid
from decima.core.checks import LARGEST_MS

AnyMessage = TypeVar("AnyMessage", bound=Message)

NAME = protocol.DESCRIPTOR.services_by_name["Scheduler"].full_name
VERSION = 1
# Fields of `StageState` and `JobState` -> arrays of a cluster's state.
STAGE_FIELDS = {
    "launched": "stage_next",
    "finished": "stage_finished_tasks",
    "executors": "stage_executors",
    "moving": "stage_moving",
    "committed": "stage_commit",
}
JOB_FIELDS = {"attached": "job_attached", "moving": "job_moving", "committed": "job_commit", "outgoing": "job_outgoing"}

#: Most stages of a report, those of graphs and of states together; a longer one goes in several messages (``parts``).
REPORT_STAGES = 1_000


def stages_in(request: protocol.DecideRequest) -> int:
    """Number of stages in the graphs and states of a report."""
    return sum(len(each.stages) for jobs in (request.jobs, request.states) for each in jobs)


def parts(request: protocol.DecideRequest) -> list[protocol.DecideRequest]:
    """Split a report into messages; only the last one asks for a decision.

    None has more than ``REPORT_STAGES`` stages, unless they are of one job. Graphs come first, then states. Only the
    first is ``full`` where the report is; numbers of the calls are left to the caller.
    """
    if stages_in(request) <= REPORT_STAGES:
        return [request]
    messages, room = [], 0
    for name in ("jobs", "states"):
        for each in getattr(request, name):
            if not messages or len(each.stages) > room:
                messages.append(protocol.DecideRequest(time_ms=request.time_ms, executors=request.executors))
                room = REPORT_STAGES
            getattr(messages[-1], name).append(each)
            room -= len(each.stages)
    messages[0].full = request.full
    messages[0].gone.extend(request.gone)
    if request.HasField("offer"):
        messages[-1].offer.CopyFrom(request.offer)
    return messages


def parse(message_class: type[AnyMessage], data: bytes) -> AnyMessage:
    """Parse a message.

    Raises:
        RefusalError: It is not such a message.
    """
    try:
        return message_class.FromString(data)
    except DecodeError as error:
        raise invalid(f"the message is not a {message_class.DESCRIPTOR.name}: {error}") from error


def checked_number(where: str, name: str, value: float, low: float = 0.0, high: float = LARGEST_MS) -> float:
    """Return a number of a message after checking its range.

    Raises:
        RefusalError: It is NaN or not from ``low`` to ``high``.
    """
    if not low <= value <= high:
        raise invalid(f"{where}: {name} is {value!r}; expected a number from {low:g} to {high:g}")
    return value
