"""Deliberate idle slots: a stage is withheld until a timer ends.

A withheld stage is neither in the frontier nor in its job's list of runnable stages, so that no other rule meets it. It
uses no executor. When its slot ends, it comes back at the end of that list, as if it had just become runnable.

Source: Duan and Wu, deliberate idle slots. Differs: executors are not held for the stage, only the stage is withheld.
"""

from decima.core.checks import LARGEST_MS
from decima.core.heap import heap_time
from decima.core.jit import njit
from decima.systems.spark.fields import OVER, WITHHELD
from decima.systems.spark.rules.frontier import add_runnable, leave_frontier, remove_runnable, update_frontier


@njit
def valid_delay(delay_ms):
    """Whether a delay is a number above 0 that is not too large."""
    return 0.0 < delay_ms <= LARGEST_MS


# ---- timers: a heap of stages, the earliest end first, ties in the order in which the slots began --------------------


@njit
def _earlier(state, one, other):
    end = state.slot_end_ms
    return end[one] < end[other] or (end[one] == end[other] and state.slot_order[one] < state.slot_order[other])


@njit
def _push_timer(state, stage):
    heap = state.timer_heap
    hole = state.num_timers
    state.num_timers = hole + 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if _earlier(state, heap[parent], stage):
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = stage


@njit
def _pop_timer(state):
    heap = state.timer_heap
    first = heap[0]
    size = state.num_timers - 1
    state.num_timers = size
    last = heap[size]
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and _earlier(state, heap[child + 1], heap[child]):
            child += 1
        if _earlier(state, last, heap[child]):
            break
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole + 1
    heap[hole] = last
    return first


@njit
def timer_is_next(state):
    """Whether the earliest slot ends before every other event."""
    end_ms = state.slot_end_ms[state.timer_heap[0]]
    if heap_time(state) <= end_ms:
        return False
    if state.next_arrival < state.num_arrivals:
        return end_ms < state.job_arrival_ms[state.arrival_order[state.next_arrival]]
    return True


# ---- slots ----------------------------------------------------------------------------------------------------------


@njit
def start_slot(state, stage, delay_ms):
    """Withhold a stage of the frontier that may be delayed."""
    state.stage_slot[stage] = WITHHELD
    state.slot_end_ms[stage] = state.now_ms + delay_ms
    state.slot_order[stage] = state.sequence
    state.sequence += 1
    remove_runnable(state, stage)
    leave_frontier(state, stage)
    _push_timer(state, stage)


@njit
def end_first_slot(state):
    """End the earliest slot; returns its stage, which may be chosen again."""
    stage = _pop_timer(state)
    state.stage_slot[stage] = OVER
    if state.stage_unfinished_parents[stage] == 0:  # else they have lost outputs
        add_runnable(state, stage)
    update_frontier(state, stage)
    return stage
