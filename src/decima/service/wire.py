"""Protocol of the service: its name and version, which state its messages carry, and the range of its numbers."""

from __future__ import annotations

from decima.checks import LARGEST_MS
from decima.service import scheduler_pb2 as protocol
from decima.service.errors import invalid

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
JOB_FIELDS = {
    "attached": "job_attached",
    "moving": "job_moving",
    "committed": "job_commit",
    "outgoing": "job_outgoing",
}


def checked_number(where: str, name: str, value: float, low: float = 0.0, high: float = LARGEST_MS) -> float:
    """Return a number of a message after checking its range.

    Raises:
        RefusalError: It is NaN or not from ``low`` to ``high``.
    """
    if not low <= value <= high:
        raise invalid(f"{where}: {name} is {value!r}; expected a number from {low:g} to {high:g}")
    return value
