"""Upward and downward ranks of nodes."""

from __future__ import annotations

import numpy as np

from decima.systems.heterogeneous import graph
from decima.systems.heterogeneous.workload import Instance


def rank_up(instance: Instance, *, transfers: float = 1.0, node_s: np.ndarray | None = None) -> np.ndarray:
    """Upward rank: longest path down with mean times, float64 [nodes], seconds.

    Args:
        instance: Jobs and cluster.
        transfers: Factor on the transfer times; 0 gives the static level.
        node_s: Mean time of each node, float64 [nodes], seconds; the time at the mean speed when omitted.

    Source: Eq. 5; the mean rate is the mean over all pairs of executors. HEFT's rank takes
    :attr:`.Instance.mean_cost_s`, the mean of a node's times, which is larger than the time at the mean speed.
    """
    mean_s = transfers * instance.cluster.mean_transfer_s(instance.children[2])
    return instance.longest_down(instance.mean_time_s if node_s is None else node_s, mean_s)


def rank_down(instance: Instance, *, node_s: np.ndarray | None = None) -> np.ndarray:
    """Longest way from the beginning to each node, itself not included, float64 [nodes], seconds.

    Args:
        instance: Jobs and cluster.
        node_s: As in :func:`rank_up`.

    Source: Eq. 6, with mean speed and mean rate as in Eq. 5.
    """
    start, parent, data = instance.parents
    mean_s = instance.cluster.mean_transfer_s(data)
    node_s = instance.mean_time_s if node_s is None else node_s
    return graph.longest_up(instance.order, start, parent, node_s, mean_s, np.zeros(len(instance)))
