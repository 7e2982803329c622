"""Adjacency lists of DAGs as flat arrays, and orders over them."""

import numpy as np

from decima.core.jit import njit


def lists(
    key: np.ndarray, other: np.ndarray, data: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges grouped by one end, one group behind the other.

    Args:
        key: The end to group by, int64 [edges].
        other: The other end, int64 [edges]; ascending inside a group.
        data: Value of each edge, float64 [edges].
        nodes: Number of nodes.

    Returns:
        Where each group begins, int64 [nodes + 1]; the other ends and the values in the order of the groups.
    """
    order = np.lexsort((other, key))
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(key, minlength=nodes), out=start[1:])
    return start, other[order], data[order]


@njit(cache=True, nogil=True)
def longest_down(order, child_start, child, node_value, edge_value):
    """Largest path weight, nodes and edges, from each node down, itself included, float64 [nodes]."""
    length = np.zeros(len(order))
    for position in range(len(order) - 1, -1, -1):
        node = order[position]
        longest = 0.0
        for edge in range(child_start[node], child_start[node + 1]):
            longest = max(longest, edge_value[edge] + length[child[edge]])
        length[node] = node_value[node] + longest
    return length


@njit(cache=True, nogil=True)
def longest_up(order, parent_start, parent, node_value, edge_value, first):
    """Largest path weight, nodes and edges, above each node, float64 [nodes]; paths begin with ``first``."""
    length = np.zeros(len(order))
    for node in order:
        longest = first[node]
        for edge in range(parent_start[node], parent_start[node + 1]):
            above = parent[edge]
            longest = max(longest, length[above] + node_value[above] + edge_value[edge])
        length[node] = longest
    return length


@njit
def push(heap, size, value):
    """Add a number to a heap of ``size`` int64 numbers; return the new size."""
    hole = size
    while hole > 0 and heap[(hole - 1) >> 1] > value:
        heap[hole] = heap[(hole - 1) >> 1]
        hole = (hole - 1) >> 1
    heap[hole] = value
    return size + 1


@njit
def pop(heap, size):
    """Remove the smallest number of a heap of ``size`` int64 numbers; return the new size."""
    size -= 1
    value = heap[size]
    hole = 0
    child = 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole + 1
    heap[hole] = value
    return size
