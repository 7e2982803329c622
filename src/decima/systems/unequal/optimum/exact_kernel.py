"""Compiled branch and bound over all schedules of a small instance, ordered by start.

In some shortest schedule every copy starts as early as the order on its executor and its data allow. Such schedules are
built copy by copy, starts never falling: the next copy is any node whose parents have copies, on any executor that has
none of it, at its earliest start there. A schedule is left as soon as a bound says that it cannot become shorter than
the best one known. The bound is the earliest finish of every node on every executor, going down the graph: of the
parents whose data would come last, some are executed there one after the other, the data of the others is sent.
"""

import numpy as np
from numba import njit

from decima.core.cache import cached

DONE, PAUSED = 0, 1
# What a search keeps between calls.
DEPTH, EXPLORED, NUM_COUNTS = 0, 1, 2


@njit(error_model="numpy")
def _ready(node, executor, times, sent, parent_start, parent, finish, earliest, free, scratch):
    """Earliest time at which all data of a node can be on an executor."""
    first = parent_start[node]
    count = parent_start[node + 1] - first
    if count == 0:
        return 0.0
    there = scratch[0]
    place = scratch[1]
    for index in range(count):
        above = parent[first + index]
        value = finish[above, executor]
        for sender in range(times.shape[1]):
            if sender != executor:
                value = min(value, earliest[above, sender] + sent[first + index, sender, executor])
        hole = index
        while hole > 0 and there[hole - 1] < value:
            there[hole] = there[hole - 1]
            place[hole] = place[hole - 1]
            hole -= 1
        there[hole] = value
        place[hole] = above
    best = there[0]
    # The first ones are executed here instead, as far as they are not here already.
    begin = scratch[2]
    length = scratch[3]
    for index in range(count):
        above = int(place[index])
        if finish[above, executor] < np.inf or earliest[above, executor] == np.inf:
            break  # its data cannot come earlier
        value = max(earliest[above, executor] - times[above, executor], free)
        hole = index  # all before were executed here
        while hole > 0 and begin[hole - 1] > value:
            begin[hole] = begin[hole - 1]
            length[hole] = length[hole - 1]
            hole -= 1
        begin[hole] = value
        length[hole] = times[above, executor]
        end = 0.0
        for each in range(index + 1):
            end = max(end, begin[each]) + length[each]
        if index + 1 < count:
            end = max(end, there[index + 1])
        best = min(best, end)
    return best


@njit(error_model="numpy")
def _bound(order, times, least, sent, parent_start, parent, arrival, finish, copies, free, now, duplicate, work):
    """No schedule that continues this one is shorter."""
    executors = times.shape[1]
    earliest, scratch = work
    longest = 0.0
    left = 0.0
    for executor in range(executors):
        left += max(free[executor], now)
    for node in order:
        first = np.inf
        for executor in range(executors):
            value = finish[node, executor]
            if value == np.inf and (copies[node] == 0 or duplicate):
                start = max(max(free[executor], now), arrival[node])
                start = max(
                    start,
                    _ready(
                        node, executor, times, sent, parent_start, parent, finish, earliest, free[executor], scratch
                    ),
                )
                value = start + times[node, executor]
            earliest[node, executor] = value
            if copies[node] == 0 or finish[node, executor] < np.inf:
                first = min(first, value)
        longest = max(longest, first)
        if copies[node] == 0:
            left += least[node]
    return max(longest, left / executors)


@cached(njit(cache=True, nogil=True, error_model="numpy"))
def explore(
    budget, counts, best, order, times, sent, parent_start, parent, child_start, child, arrival, twin, ordered,
    duplicate, finish, copies, free, now, placed, found, options, option_values, option_counts,
):  # fmt: skip
    """Go on with a search for so many partial schedules; DONE when nothing is left.

    Args:
        budget: Partial schedules to extend.
        counts: DEPTH and EXPLORED, int64 [2].
        best: Length of the best schedule known, and the least bound that is still open, float64 [2].
        order: Nodes, parents first.
        times: Execution times, float64 [nodes, executors].
        sent: Transfer times, float64 [edges, senders, receivers], edges by child.
        parent_start: First edge of a node.
        parent: Parent of an edge.
        child_start: First edge of a node by parent.
        child: Child of such an edge.
        arrival: Arrivals, float64 [nodes].
        twin: A lower executor that is the same in everything, or -1, int64 [executors].
        ordered: Whether equal starts are ordered by executors, for which no time may be 0.
        duplicate: Whether further copies are allowed.
        finish: Finish of copies, float64 [nodes, executors]; infinite without one.
        copies: Copies of each node, int64 [nodes].
        free: End of the last copy, float64 [depths, executors].
        now: Latest start and its executor, float64 [depths, 2].
        placed: Node and executor of each copy, int64 [depths, 2].
        found: Best schedule: number of copies in row 0, then node and executor, int64 [1 + depths, 2].
        options: Copies that may come next, int64 [depths, options, 2].
        option_values: Their bounds and starts, float64 [depths, options, 2].
        option_counts: How many there are and which comes next, int64 [depths, 2].
    """
    nodes, executors = times.shape
    least = np.empty(nodes)
    for node in range(nodes):
        least[node] = times[node].min()
    most = 1
    for node in range(nodes):
        most = max(most, parent_start[node + 1] - parent_start[node])
    work = (np.empty((nodes, executors)), np.empty((4, most)))
    depth = counts[DEPTH]
    for _ in range(budget):
        if option_counts[depth, 0] < 0:
            counts[EXPLORED] += 1
            missing = 0
            longest = 0.0
            for node in range(nodes):
                missing += copies[node] == 0
                longest = max(longest, finish[node].min())
            if missing == 0:
                option_counts[depth, 0] = 0
                if longest < best[0]:
                    best[0] = longest
                    found[0, 0] = depth
                    for level in range(depth):
                        found[1 + level, 0] = placed[level, 0]
                        found[1 + level, 1] = placed[level, 1]
            else:
                _options(
                    depth, best, order, times, least, sent, parent_start, parent, child_start, child, arrival, twin,
                    ordered, duplicate, finish, copies, free, now, options, option_values, option_counts, work,
                )  # fmt: skip
            option_counts[depth, 1] = 0
        choice = option_counts[depth, 1]
        limit = best[0] * (1.0 - 1e-12)
        if choice < option_counts[depth, 0] and option_values[depth, choice, 0] < limit:
            option_counts[depth, 1] = choice + 1
            node = options[depth, choice, 0]
            executor = options[depth, choice, 1]
            start = option_values[depth, choice, 1]
            placed[depth, 0] = node
            placed[depth, 1] = executor
            finish[node, executor] = start + times[node, executor]
            copies[node] += 1
            depth += 1
            free[depth] = free[depth - 1]
            free[depth, executor] = start + times[node, executor]
            now[depth, 0] = start
            now[depth, 1] = executor
            option_counts[depth, 0] = -1
        elif depth == 0:
            counts[DEPTH] = 0
            return DONE
        else:
            depth -= 1
            finish[placed[depth, 0], placed[depth, 1]] = np.inf
            copies[placed[depth, 0]] -= 1
    counts[DEPTH] = depth
    return PAUSED


@njit(error_model="numpy")
def _options(
    depth, best, order, times, least, sent, parent_start, parent, child_start, child, arrival, twin, ordered,
    duplicate, finish, copies, free, now, options, option_values, option_counts, work,
):  # fmt: skip
    """Find the copies that may come next, the one with the smallest bound first."""
    executors = times.shape[1]
    count = 0
    next_free = np.empty(executors)
    used = np.zeros(executors, dtype=np.bool_)  # a copy that takes no time leaves its executor free at 0
    for node in order:
        for executor in range(executors):
            used[executor] |= finish[node, executor] < np.inf
    for node in order:
        if copies[node] > 0 and (not duplicate or child_start[node] == child_start[node + 1]):
            continue
        known = True
        for edge in range(parent_start[node], parent_start[node + 1]):
            known &= copies[parent[edge]] > 0
        if not known:
            continue
        for executor in range(executors):
            if finish[node, executor] < np.inf:
                continue
            other = twin[executor]
            if other >= 0 and not used[other] and not used[executor]:
                continue
            start = max(free[depth, executor], arrival[node])
            for edge in range(parent_start[node], parent_start[node + 1]):
                there = finish[parent[edge], executor]
                for sender in range(executors):
                    if sender != executor:
                        there = min(there, finish[parent[edge], sender] + sent[edge, sender, executor])
                start = max(start, there)
            if start < now[depth, 0] or (ordered and start == now[depth, 0] and executor < now[depth, 1]):
                continue
            end = start + times[node, executor]
            if copies[node] > 0 and not _of_use(
                node, executor, end, times, sent, parent_start, parent, child_start, child, finish, copies
            ):
                continue
            finish[node, executor] = end
            copies[node] += 1
            next_free[:] = free[depth]
            next_free[executor] = end
            bound = _bound(
                order, times, least, sent, parent_start, parent, arrival, finish, copies, next_free, start, duplicate,
                work,
            )  # fmt: skip
            finish[node, executor] = np.inf
            copies[node] -= 1
            if bound >= best[0] * (1.0 - 1e-12):
                continue
            hole = count
            while hole > 0 and option_values[depth, hole - 1, 0] > bound:
                option_values[depth, hole] = option_values[depth, hole - 1]
                options[depth, hole] = options[depth, hole - 1]
                hole -= 1
            option_values[depth, hole, 0] = bound
            option_values[depth, hole, 1] = start
            options[depth, hole, 0] = node
            options[depth, hole, 1] = executor
            count += 1
    option_counts[depth, 0] = count


@njit(error_model="numpy")
def _of_use(node, executor, end, times, sent, parent_start, parent, child_start, child, finish, copies):
    """Whether another copy would bring data to some undecided child earlier than the present copies."""
    executors = times.shape[1]
    for place in range(child_start[node], child_start[node + 1]):
        below = child[place]
        edge = parent_start[below]
        while parent[edge] != node:
            edge += 1
        for receiver in range(executors):
            if finish[below, receiver] < np.inf:
                continue
            mine = end if receiver == executor else end + sent[edge, executor, receiver]
            known = finish[node, receiver]
            for sender in range(executors):
                if sender != receiver:
                    known = min(known, finish[node, sender] + sent[edge, sender, receiver])
            if mine < known:
                return True
    return False
