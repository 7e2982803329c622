"""Protocol of the service: its name and version, state in messages, and range of numbers."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import exhausted, invalid
from decima.connect.service.steps import PAUSE, Steps
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

#: Bytes of a message that are parsed at a time.
PART_BYTES = 32 * 1024
# Lists of whole numbers; those of real ones are parsed a hundred times as fast.
_PACKED = ("parents", "runnable", "schedulable")
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def parse(message_class: type[AnyMessage], data: bytes, most_fields: int) -> Steps[AnyMessage]:
    """Parse a message.

    Args:
        message_class: Its type.
        data: Its bytes.
        most_fields: Most fields that a large message may have, those inside of other fields not counted.

    Raises:
        RefusalError: It is no such message, or has too many fields.
    """
    message = message_class()
    try:
        if len(data) <= PART_BYTES:
            message.MergeFromString(data)
        else:
            yield from _merge(message, data, most_fields)
    except DecodeError as error:
        raise invalid(f"the message is not a {message_class.DESCRIPTOR.name}: {error}") from error
    return message


def _merge(message: Message, data: bytes, most_fields: int) -> Steps[None]:
    """Parse a large message, and large ones inside it, part by part.

    By definition, parts parsed one after the other are the message.
    """
    begin = position = fields = 0
    while position < len(data):
        first = position
        tag, position = _varint(data, position)
        if tag & 7 == _VARINT:
            _, position = _varint(data, position)
        elif tag & 7 == _LENGTH:
            length, position = _varint(data, position)
            position += length
        elif tag & 7 in (_FIXED32, _FIXED64):
            position += 4 if tag & 7 == _FIXED32 else 8
        else:
            raise DecodeError(f"a field of wire type {tag & 7}")
        if position > len(data):
            raise DecodeError("its last field is cut")
        fields += 1
        if fields > most_fields:
            raise exhausted(f"the message has more than {most_fields} jobs, states and other fields")
        inner = message.DESCRIPTOR.fields_by_number.get(tag >> 3) if position - first > PART_BYTES else None
        if inner is not None and tag & 7 == _LENGTH and (inner.message_type is not None or inner.name in _PACKED):
            message.MergeFromString(data[begin:first])
            yield from _merge_large(message, inner, data[position - length : position])
            begin = position
        elif position - begin >= PART_BYTES:
            message.MergeFromString(data[begin:position])
            begin = position
            yield
        elif fields % PAUSE == 0:
            yield
    message.MergeFromString(data[begin:])


def _merge_large(message: Message, field: FieldDescriptor, data: bytes) -> Steps[None]:
    """Parse one large field of a message: a submessage or packed numbers of different lengths."""
    if field.message_type is not None:
        part = getattr(message, field.name)
        part = part.add() if field.is_repeated else part
        part.SetInParent()
        yield from _merge(part, data, len(data))
        return
    begin = 0
    while begin < len(data):
        end = min(begin + PART_BYTES, len(data))
        while end > begin and data[end - 1] >= 0x80:  # a number goes on
            end -= 1
        if end == begin:
            raise DecodeError("a number has no end")
        size = end - begin
        head = (field.number << 3 | _LENGTH, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14)
        message.MergeFromString(bytes(head) + data[begin:end])
        begin = end
        yield


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number; return it and the position behind it."""
    number = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    raise DecodeError("a number has no end")


def checked_number(where: str, name: str, value: float, low: float = 0.0, high: float = LARGEST_MS) -> float:
    """Return a number of a message after checking its range.

    Raises:
        RefusalError: It is NaN or not from ``low`` to ``high``.
    """
    if not low <= value <= high:
        raise invalid(f"{where}: {name} is {value!r}; expected a number from {low:g} to {high:g}")
    return value
