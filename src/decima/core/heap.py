"""Event heap in a compiled record: earliest time first, ties in order of insertion.

An event is (time, order, code, subject). The record that holds the heap has the fields of :func:`heap_fields`;
``heap_event`` packs code and subject into one number.
"""

from decima.core.jit import njit
from decima.core.record import F64, I64, LOCAL, Field, fields

_SUBJECT_BITS = 32
_SUBJECT = (1 << _SUBJECT_BITS) - 1


def heap_fields(extent: str) -> list[Field]:
    """Fields of a heap of at most ``extent`` events; relocation leaves them behind."""
    order, event = "event heap: push counter", "event heap: code << 32 | subject"
    return [
        *fields(
            I64, None, refers=LOCAL, sequence="events pushed so far; breaks ties in time", heap_size="events waiting"
        ),
        *fields(F64, extent, refers=LOCAL, heap_ms="event heap: time"),
        *fields(I64, extent, refers=LOCAL, heap_order=order, heap_event=event),
    ]


@njit
def event_code(event):
    """Code of the event in an entry of ``heap_event``."""
    return event >> _SUBJECT_BITS


@njit
def event_subject(event):
    """Subject in an entry of ``heap_event``."""
    return event & _SUBJECT


@njit
def heap_code(state):
    """Code of the earliest event."""
    return event_code(state.heap_event[0])


@njit
def heap_subject(state):
    """Subject of the earliest event."""
    return event_subject(state.heap_event[0])


@njit(forceinline=True)
def _sift_down(state, hole, time, sequence, event):
    times = state.heap_ms
    order = state.heap_order
    events = state.heap_event
    size = state.heap_size
    child = 2 * hole + 1
    while child < size:
        right = child + 1
        if right < size and (
            times[right] < times[child] or (times[right] == times[child] and order[right] < order[child])
        ):
            child = right
        if times[child] > time or (times[child] == time and order[child] > sequence):
            break
        times[hole] = times[child]
        order[hole] = order[child]
        events[hole] = events[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    order[hole] = sequence
    events[hole] = event


@njit(forceinline=True)
def heap_repeat_top(state, time):
    """Replace the earliest event by the same event at a later time."""
    sequence = state.sequence
    state.sequence = sequence + 1
    _sift_down(state, 0, time, sequence, state.heap_event[0])


@njit
def heap_pop(state):
    """Remove the earliest event."""
    size = state.heap_size - 1
    state.heap_size = size
    if size > 0:
        _sift_down(state, 0, state.heap_ms[size], state.heap_order[size], state.heap_event[size])


@njit
def heap_push(state, time, code, subject):
    """Add an event; later pushes lose ties."""
    times = state.heap_ms
    order = state.heap_order
    events = state.heap_event
    sequence = state.sequence
    state.sequence = sequence + 1
    hole = state.heap_size
    state.heap_size = hole + 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] <= time:
            break
        times[hole] = times[parent]
        order[hole] = order[parent]
        events[hole] = events[parent]
        hole = parent
    times[hole] = time
    order[hole] = sequence
    events[hole] = code << _SUBJECT_BITS | subject


@njit
def heap_remove(state, code, subject):
    """Remove the event of a subject, of which there is one; returns its time."""
    times = state.heap_ms
    order = state.heap_order
    events = state.heap_event
    hole = 0
    while events[hole] != (code << _SUBJECT_BITS | subject):
        hole += 1
    removed = times[hole]
    size = state.heap_size - 1
    state.heap_size = size
    time = times[size]
    sequence = order[size]
    while hole > 0:  # the last event goes to the hole: up, or down
        parent = (hole - 1) >> 1
        if times[parent] < time or (times[parent] == time and order[parent] < sequence):
            break
        times[hole] = times[parent]
        order[hole] = order[parent]
        events[hole] = events[parent]
        hole = parent
    _sift_down(state, hole, time, sequence, events[size])
    return removed
