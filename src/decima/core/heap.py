"""Events in a compiled record: earliest time first, ties in order of insertion.

Every subject has at most one event, with a code. A tournament of four at a time finds the earliest: a node holds the
first of the four below it, subject s has the leaf ``heap_leaf + s``, and node 3 is the root. So a new time plays
against nodes known beforehand, which processors load at once, and choices are arithmetic, which they need not guess.

A node holds two numbers: the bits of the time, and the order of insertion with code and subject.
"""

import numpy as np

from decima.core.jit import njit
from decima.core.record import I64, LOCAL, Field, fields

_ROOT = 3
_SUBJECT_BITS, _CODE_BITS = 24, 2
_SUBJECT, _CODE = (1 << _SUBJECT_BITS) - 1, (1 << _CODE_BITS) - 1
_NEVER = 0x7FF << 52  # bits of an infinite time


def heap_length(subjects: int) -> int:
    """Length of ``heap_node`` for a number of subjects below 2^24."""
    return 2 * ((subjects + 1) // 3 + _ROOT + subjects + 4)


def heap_fields(extent: str) -> list[Field]:
    """Fields of events, ``extent`` of :func:`heap_length`; relocation leaves them behind."""
    sequence, leaf = "events pushed so far; breaks ties in time", "event heap: leaf of the first subject"
    node = "event heap: [node, 2] bits of the time; (push counter << 2 | code) << 24 | subject"
    return [
        *fields(I64, None, refers=LOCAL, sequence=sequence, heap_leaf=leaf, heap_size="events waiting"),
        *fields(I64, extent, refers=LOCAL, heap_node=node),
    ]


@njit
def heap_begin(state, subjects):
    """Let a number of subjects have no events; comes before all else."""
    state.heap_leaf = (subjects + 1) // 3 + _ROOT
    for node in range(state.heap_leaf + subjects + 4):
        state.heap_node[2 * node] = _NEVER


@njit
def heap_time(state):
    """Time of the earliest event, infinite without one."""
    return float(np.int64(state.heap_node[2 * _ROOT]).view(np.float64))


@njit
def heap_code(state):
    """Code of the earliest event."""
    return (state.heap_node[2 * _ROOT + 1] >> _SUBJECT_BITS) & _CODE


@njit
def heap_subject(state):
    """Subject of the earliest event."""
    return state.heap_node[2 * _ROOT + 1] & _SUBJECT


@njit(forceinline=True)
def _later(time, key, other, other_key):
    """All bits set if an event comes after another one, else none."""
    ahead = other - time
    return (other_key - key if ahead == 0 else ahead) >> 63


@njit(forceinline=True)
def _play(state, subject, time, key, stop):
    """Give a subject an event and play to the root; ``stop``: until it loses."""
    nodes = state.heap_node
    node = state.heap_leaf + subject
    nodes[2 * node] = time
    nodes[2 * node + 1] = key
    while node > _ROOT:
        first = 2 * (node ^ 1)
        best, best_key = nodes[first], nodes[first + 1]
        for other in (node ^ 2, node ^ 3):
            later = _later(best, best_key, nodes[2 * other], nodes[2 * other + 1])
            best += (nodes[2 * other] - best) & later
            best_key += (nodes[2 * other + 1] - best_key) & later
        later = _later(time, key, best, best_key)
        time += (best - time) & later
        key += (best_key - key) & later
        if stop and later:
            break
        node = (node >> 2) + 2
        nodes[2 * node] = time
        nodes[2 * node + 1] = key


@njit(forceinline=True)
def _enter(state, time, code, subject, stop):
    key = (state.sequence << _CODE_BITS | code) << _SUBJECT_BITS | subject
    state.sequence += 1
    _play(state, subject, int(np.float64(time).view(np.int64)), key, stop)


@njit(forceinline=True)
def heap_repeat_top(state, time):
    """Replace the earliest event by the same event at a later time."""
    _enter(state, time, heap_code(state), heap_subject(state), False)


@njit
def heap_push(state, time, code, subject):
    """Add an event of a subject that has none; codes are below 4."""
    state.heap_size += 1
    _enter(state, time, code, subject, True)


@njit
def heap_remove(state, subject):
    """Remove the event of a subject; returns its time."""
    removed = float(np.int64(state.heap_node[2 * (state.heap_leaf + subject)]).view(np.float64))
    state.heap_size -= 1
    _play(state, subject, _NEVER, 0, False)
    return removed
