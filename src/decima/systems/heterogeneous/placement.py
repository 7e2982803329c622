"""Compiled placement of a node: EFT, CPEFT and DEFT over all executors (Eqs. 1-3, 9-11).

Executors that hold a copy of a parent, or of a parent of the parent that may be copied, are looked at one by one. All
others see the same data at the same time where one transfer rate holds for all pairs, so that a single pass over their
speeds and available times is enough. The result is exact: the same as looking at every pair of executor and parent.
"""

import numpy as np

from decima.core.jit import njit

NONE = -1


@njit(error_model="numpy")
def begin(state):
    """Empty the schedule."""
    state.copies = 0
    state.gaps = 0
    for node in range(state.nodes):
        state.first_copy[node] = NONE
        state.finish[node] = np.inf
    for executor in range(state.executors):
        state.available[executor] = 0.0
        state.gap_last[executor] = NONE
        state.seen[executor] = NONE


@njit(error_model="numpy")
def time_on(state, node, executor):
    """Execution time of a node on an executor."""
    if state.has_costs:
        return state.costs[node * state.executors + executor]
    return state.work[node] / state.speeds[executor]


@njit(error_model="numpy")
def data_there(state, edge, executor):
    """Time at which an edge's data reaches an executor, from its earliest source (Eq. 9).

    Data is not sent to other executors before ``sent_from``.
    """
    data = state.parent_data[edge]
    first = np.inf
    copy = state.first_copy[state.parent[edge]]
    while copy != NONE:
        there = state.copy_finish[copy]
        sender = state.copy_executor[copy]
        if sender != executor:
            rate = state.rate
            if state.has_rates:
                rate = state.rates[sender * state.executors + executor]
            there = max(there, state.sent_from) + (state.latency + data / rate)
        first = min(first, there)
        copy = state.next_copy[copy]
    return first


@njit(error_model="numpy")
def has_copy(state, node, executor):
    """Whether an executor holds a copy of a node."""
    copy = state.first_copy[node]
    while copy != NONE:
        if state.copy_executor[copy] == executor:
            return True
        copy = state.next_copy[copy]
    return False


@njit(error_model="numpy")
def slot(state, executor, ready, duration):
    """Earliest start, at ``ready`` or later, of something that takes so long on an executor."""
    start = max(state.available[executor], ready)
    if state.insertion:
        gap = state.gap_last[executor]
        while gap != NONE and state.gap_end[gap] >= ready + duration:
            start_there = max(state.gap_start[gap], ready)
            if start_there + duration <= state.gap_end[gap]:
                start = start_there
            gap = state.gap_before[gap]
    return start


@njit(error_model="numpy")
def after_copy(state, executor, ready, duration):
    """Earliest start after a copy that ends by ``ready``; without insertion that is ``ready``."""
    if state.insertion:
        return slot(state, executor, ready, duration)
    return ready


@njit(error_model="numpy")
def evaluate_at(state, node, executor):
    """Finish of a node on one executor, with and without duplication of its latest parent."""
    last = NONE
    latest = -np.inf
    others = state.now
    for edge in range(state.parent_start[node], state.parent_start[node + 1]):
        there = data_there(state, edge, executor)
        if there > latest:
            others = max(others, latest)
            latest = there
            last = edge
        else:
            others = max(others, there)
    duration = time_on(state, node, executor)
    state.eft[executor] = slot(state, executor, max(latest, others), duration) + duration
    state.copied[executor] = np.inf
    state.copied_parent[executor] = NONE
    if not state.duplicate or latest <= others:
        return
    parent = state.parent[last]
    if has_copy(state, parent, executor):
        return
    copy_duration = time_on(state, parent, executor)
    copy_finish = slot(state, executor, inputs_there(state, parent, executor), copy_duration) + copy_duration
    state.copied[executor] = after_copy(state, executor, max(copy_finish, others), duration) + duration
    state.copied_parent[executor] = parent


@njit(error_model="numpy")
def inputs_there(state, node, executor):
    """Earliest time, now or later, at which an executor has the inputs of a node."""
    ready = state.now
    for edge in range(state.parent_start[node], state.parent_start[node + 1]):
        ready = max(ready, data_there(state, edge, executor))
    return ready


@njit(error_model="numpy")
def sent_to_all(state, edge):
    """Time at which an edge's data is on executors without a parent's copy (uniform rate)."""
    transfer = state.latency + state.parent_data[edge] / state.rate
    return max(state.finish[state.parent[edge]], state.sent_from) + transfer


@njit(error_model="numpy")
def evaluate_at_all(state, node):
    """Find the executors with the earliest finish without duplication and with it."""
    state.chosen = NONE
    state.least = np.inf
    state.behind = NONE
    state.least_copied = np.inf
    state.common_parent = NONE
    if state.has_rates or state.has_bias or state.only_free:
        for executor in range(state.executors):
            if not state.only_free or state.available[executor] <= state.now:
                _evaluate_and_compare(state, node, executor)
        if state.least == np.inf:  # no free executor can execute it: one that can does so when it is free
            for executor in range(state.executors):
                _evaluate_and_compare(state, node, executor)
        return
    last = NONE
    latest = -np.inf
    others = state.now
    for edge in range(state.parent_start[node], state.parent_start[node + 1]):
        there = sent_to_all(state, edge)
        if there > latest:
            others = max(others, latest)
            latest = there
            last = edge
        else:
            others = max(others, there)
    ready = max(latest, others)
    for edge in range(state.parent_start[node], state.parent_start[node + 1]):
        _evaluate_at_holders(state, node, state.parent[edge])
    # Nowhere else can the node finish before this.
    least_time = state.least_time[node]
    if ready + least_time <= state.least:
        _evaluate_at_others(state, node, ready)
    if not state.duplicate or latest <= others:
        return
    parent = state.parent[last]
    state.common_parent = parent
    for edge in range(state.parent_start[parent], state.parent_start[parent + 1]):
        _evaluate_behind_copies(state, node, parent, others, state.parent[edge])
    copy_ready = state.now
    for edge in range(state.parent_start[parent], state.parent_start[parent + 1]):
        copy_ready = max(copy_ready, sent_to_all(state, edge))
    if max(copy_ready + state.least_time[parent], others) + least_time < state.least:
        _evaluate_behind_others(state, node, parent, copy_ready, others)


@njit(error_model="numpy")
def _evaluate_at_others(state, node, ready):
    """Compare finishes on executors without copies of parents; on others they are upper bounds."""
    if state.insertion:
        for executor in range(state.executors):
            duration = time_on(state, node, executor)
            if ready + duration <= state.least:
                value = slot(state, executor, ready, duration) + duration
                if value < state.least or (value == state.least and executor < state.chosen):
                    state.least = value
                    state.chosen = executor
        return
    if state.has_costs:
        for executor in range(state.executors):
            state.eft[executor] = max(state.available[executor], ready) + time_on(state, node, executor)
    else:
        _appended(state.eft, state.available, state.speeds, state.executors, ready, state.work[node])
    value = _smallest(state.eft, state.executors)
    if value <= state.least:
        executor = _first_index(state.eft, state.executors, value)
        if value < state.least or executor < state.chosen:
            state.least = value
            state.chosen = executor


@njit(error_model="numpy")
def _appended(eft, available, speeds, executors, ready, work):
    """Finishes of appended work; a loop that becomes vector code."""
    for executor in range(executors):
        free = available[executor]
        eft[executor] = (free if free > ready else ready) + work / speeds[executor]


@njit(error_model="numpy")
def _behind_appended(finishes, speeds, executors, others, work):
    """Finishes of work after ``finishes`` and other inputs; the loop compiles to vector code."""
    for executor in range(executors):
        done = finishes[executor]
        finishes[executor] = (done if done > others else others) + work / speeds[executor]


@njit(error_model="numpy")
def _evaluate_behind_others(state, node, parent, copy_ready, others):
    """Compare finishes after duplication on executors without a copy; with grandparents they are upper bounds."""
    if not state.insertion and not state.has_costs:
        copied = state.copied
        _appended(copied, state.available, state.speeds, state.executors, copy_ready, state.work[parent])
        _behind_appended(copied, state.speeds, state.executors, others, state.work[node])
        copy = state.first_copy[parent]
        while copy != NONE:
            copied[state.copy_executor[copy]] = np.inf
            copy = state.next_copy[copy]
        value = _smallest(copied, state.executors)
        if value <= state.least_copied:
            executor = _first_index(copied, state.executors, value)
            if value < state.least_copied or executor < state.behind:
                state.least_copied = value
                state.behind = executor
        return
    for executor in range(state.executors):
        duration = time_on(state, node, executor)
        limit = min(state.least, state.least_copied)
        if others + duration > limit:
            continue
        copy_duration = time_on(state, parent, executor)
        behind = max(slot(state, executor, copy_ready, copy_duration) + copy_duration, others)
        if behind + duration > limit or has_copy(state, parent, executor):
            continue
        value = after_copy(state, executor, behind, duration) + duration
        if value < state.least_copied or (value == state.least_copied and executor < state.behind):
            state.least_copied = value
            state.behind = executor


@njit(error_model="numpy")
def _evaluate_behind_copies(state, node, parent, others, held):
    """Evaluate the executors with a copy above the parent where duplicating the parent may pay."""
    copy = state.first_copy[held]
    while copy != NONE:
        executor = state.copy_executor[copy]
        if state.seen[executor] != node:
            soonest = state.now if state.insertion else max(state.available[executor], state.now)
            behind = max(soonest + time_on(state, parent, executor), others)
            if behind + time_on(state, node, executor) < state.least:
                _evaluate_and_compare(state, node, executor)
        copy = state.next_copy[copy]


@njit(error_model="numpy")
def _evaluate_and_compare(state, node, executor):
    """Evaluate one executor; keep it if earlier than others, or equal with a lower number."""
    state.seen[executor] = node
    evaluate_at(state, node, executor)
    value = state.eft[executor]
    if state.has_bias:
        value += state.bias[node * state.executors + executor]
    if value < state.least or state.chosen == NONE or (value == state.least and executor < state.chosen):
        state.least = value
        state.chosen = executor
    value = state.copied[executor]
    if value < state.least_copied or (value == state.least_copied and executor < state.behind):
        state.least_copied = value
        state.behind = executor


@njit(error_model="numpy")
def _evaluate_at_holders(state, node, held):
    """Evaluate once each executor with a copy of a node that may match the best."""
    copy = state.first_copy[held]
    while copy != NONE:
        executor = state.copy_executor[copy]
        if state.seen[executor] != node:
            soonest = state.now if state.insertion else max(state.available[executor], state.now)
            if soonest + time_on(state, node, executor) <= state.least:
                _evaluate_and_compare(state, node, executor)
        copy = state.next_copy[copy]


@njit(error_model="numpy")
def _smallest(values, count):
    """Smallest of the first values, by four parallel chains of comparisons for the processor."""
    least_a = np.inf
    least_b = np.inf
    least_c = np.inf
    least_d = np.inf
    fours = count - count % 4
    for index in range(0, fours, 4):
        least_a = min(least_a, values[index])
        least_b = min(least_b, values[index + 1])
        least_c = min(least_c, values[index + 2])
        least_d = min(least_d, values[index + 3])
    for index in range(fours, count):
        least_a = min(least_a, values[index])
    return min(min(least_a, least_b), min(least_c, least_d))


@njit
def _first_index(values, count, value):
    """First index of a value among the first ``count`` ones; 0 if it is absent."""
    for index in range(count):
        if values[index] == value:
            return index
    return 0


@njit(error_model="numpy")
def put(state, node, executor, start, finish):
    """Give an executor a copy of a node."""
    note(state, node, executor, start, finish)
    free = state.available[executor]
    if start >= free:
        state.available[executor] = finish
        if state.insertion and start > free:
            _new_gap(state, free, start, state.gap_last[executor])
            state.gap_last[executor] = state.gaps - 1
    else:
        _fill_gap(state, executor, start, finish)


@njit(error_model="numpy")
def note(state, node, executor, start, finish):
    """Note a copy of a node, which leaves the executor's time as it is."""
    copy = state.copies
    state.copies = copy + 1
    state.copy_node[copy] = node
    state.copy_executor[copy] = executor
    state.copy_start[copy] = start
    state.copy_finish[copy] = finish
    state.next_copy[copy] = state.first_copy[node]
    state.first_copy[node] = copy
    state.finish[node] = min(state.finish[node], finish)


@njit(error_model="numpy")
def _new_gap(state, start, end, before):
    gap = state.gaps
    state.gaps = gap + 1
    state.gap_start[gap] = start
    state.gap_end[gap] = end
    state.gap_before[gap] = before


@njit(error_model="numpy")
def _fill_gap(state, executor, start, finish):
    """Remove a span from the gap that holds it; a span without length splits it."""
    later = NONE
    gap = state.gap_last[executor]
    while state.gap_start[gap] > start:
        later = gap
        gap = state.gap_before[gap]
    before = state.gap_before[gap]
    if start > state.gap_start[gap]:
        _new_gap(state, state.gap_start[gap], start, before)
        before = state.gaps - 1
    if finish < state.gap_end[gap]:
        state.gap_start[gap] = finish
        state.gap_before[gap] = before
    elif later == NONE:
        state.gap_last[executor] = before
    else:
        state.gap_before[later] = before


@njit(error_model="numpy")
def assign_node(state, node, now):
    """Assign a node where it finishes first, after duplication if strictly earlier (Eq. 11).

    Ties go to the lower executor. A bias is added to finishes without a copy before they are compared; with
    ``only_free``, one executor at least has to be free. Returns the executor.
    """
    state.now = now
    state.sent_from = now if state.on_decision else -np.inf
    if state.has_forced and state.forced[node] != NONE:
        state.chosen = state.forced[node]
        state.behind = state.chosen
        state.seen[state.chosen] = node
        evaluate_at(state, node, state.chosen)
        state.least = state.eft[state.chosen]
        state.least_copied = state.copied[state.chosen]
    else:
        evaluate_at_all(state, node)
    chosen = state.chosen
    if state.least_copied < state.least:
        parent = state.copied_parent[state.behind] if state.seen[state.behind] == node else state.common_parent
        if parent != NONE:
            chosen = state.behind
            duration = time_on(state, parent, chosen)
            start = slot(state, chosen, inputs_there(state, parent, chosen), duration)
            put(state, parent, chosen, start, start + duration)
    duration = time_on(state, node, chosen)
    start = slot(state, chosen, inputs_there(state, node, chosen), duration)
    put(state, node, chosen, start, start + duration)
    return chosen
