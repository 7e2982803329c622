"""Upward and downward ranks of nodes."""

from __future__ import annotations

import numpy as np

from decima.systems.heterogeneous import graph
from decima.systems.heterogeneous.workload import Instance


def rank_up(instance: Instance, *, transfers: float = 1.0) -> np.ndarray:
    """Upward rank: longest path down with mean times, float64 [nodes], seconds.

    Args:
        instance: Jobs and cluster.
        transfers: Factor on the transfer times; 0 gives the static level.

    Source: Eq. 5; the mean rate is the mean over all pairs of executors.
    """
    mean_s = transfers * instance.cluster.mean_transfer_s(instance.children[2])
    return instance.longest_down(instance.mean_time_s, mean_s)


def rank_down(instance: Instance) -> np.ndarray:
    """Longest way from the beginning to each node, itself not included, float64 [nodes], seconds.

    Source: Eq. 6, with mean speed and mean rate as in Eq. 5.
    """
    start, parent, data = instance.parents
    mean_s = instance.cluster.mean_transfer_s(data)
    return graph.longest_up(instance.order, start, parent, instance.mean_time_s, mean_s, np.zeros(len(instance)))
