"""A heap of events inside a compiled record: the earliest time first, ties in the order of the pushes."""

from numba import njit


@njit
def _sift_down(state, time, sequence, executor):
    """Put an entry at the root and let it sink."""
    times = state.heap_ms
    order = state.heap_sequence
    owner = state.heap_executor
    size = state.heap_size
    hole = 0
    child = 1
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
        owner[hole] = owner[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    order[hole] = sequence
    owner[hole] = executor


@njit
def heap_replace_top(state, time, executor):
    """Pop the earliest event and push one in its place."""
    sequence = state.sequence
    state.sequence = sequence + 1
    _sift_down(state, time, sequence, executor)


@njit
def heap_pop(state):
    """Remove the earliest event."""
    size = state.heap_size - 1
    state.heap_size = size
    if size > 0:
        _sift_down(state, state.heap_ms[size], state.heap_sequence[size], state.heap_executor[size])


@njit
def heap_push(state, time, executor):
    """Add an event; later pushes lose ties."""
    times = state.heap_ms
    order = state.heap_sequence
    owner = state.heap_executor
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
        owner[hole] = owner[parent]
        hole = parent
    times[hole] = time
    order[hole] = sequence
    owner[hole] = executor
