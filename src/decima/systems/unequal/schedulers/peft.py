"""PEFT: a table of optimistic costs looks ahead from every node and executor to the end."""

import numpy as np
from numba import njit

from decima.core.cache import cached
from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register(
    "peft",
    "PEFT",
    "Arabnejad and Barbosa, List scheduling algorithm for heterogeneous systems by an optimistic cost table (2014)",
    Rules(slots="insertion", duplicate=False),
    open=("decision", "slots", "transfers", "drop_unread"),
)
def peft(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place the node with the largest mean optimistic cost where its finish plus that cost is smallest."""
    table = optimistic_costs(instance)
    return list_rule(instance, rules, table.mean(axis=1), bias=table)


def optimistic_costs(instance: Instance) -> np.ndarray:
    """Shortest way from the finish of each node on each executor to the end of its job, float64 [nodes, executors].

    Every child may choose its executor for itself; transfers take their mean time (Eq. 7 of the paper of PEFT).
    """
    cluster = instance.cluster
    costs = instance.work[:, None] / cluster.speeds if cluster.costs is None else cluster.costs
    start, child, data = instance.children
    return _table(instance.order, start, child, cluster.mean_transfer_s(data), costs)


@cached(njit(cache=True, nogil=True))
def _table(order, child_start, child, transfer, costs):
    nodes, executors = costs.shape
    table = np.zeros((nodes, executors))
    for position in range(nodes - 1, -1, -1):
        node = order[position]
        for edge in range(child_start[node], child_start[node + 1]):
            below = child[edge]
            cheapest = np.inf
            for executor in range(executors):
                cheapest = min(cheapest, table[below, executor] + costs[below, executor])
            for executor in range(executors):
                here = table[below, executor] + costs[below, executor]
                table[node, executor] = max(table[node, executor], min(here, cheapest + transfer[edge]))
    return table
