"""Orders of graphs whose edges are flat arrays."""

import numpy as np

from decima.core.jit import njit


@njit(cache=True, nogil=True)
def topological_order(child_start, child):
    """Nodes in topological order, int64; too few if there is a cycle.

    Args:
        child_start: Where the children of a node begin, int [nodes + 1].
        child: Children of all nodes, int [edges].
    """
    nodes = len(child_start) - 1
    waiting = np.zeros(nodes, np.int64)
    for edge in range(len(child)):
        waiting[child[edge]] += 1
    order = np.empty(nodes, np.int64)
    filled = 0
    for node in range(nodes):
        if waiting[node] == 0:
            order[filled] = node
            filled += 1
    head = 0
    while head < filled:
        node = order[head]
        head += 1
        for edge in range(child_start[node], child_start[node + 1]):
            waiting[child[edge]] -= 1
            if waiting[child[edge]] == 0:
                order[filled] = child[edge]
                filled += 1
    return order[:filled]
