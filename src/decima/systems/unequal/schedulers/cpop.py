"""CPOP: the nodes of the critical path go to the one executor that is best for all of them."""

import numpy as np

from decima.systems.unequal.engine import ListRule, list_rule
from decima.systems.unequal.ranks import rank_down, rank_up
from decima.systems.unequal.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance

# Sums of the same numbers in another order differ by so much of them at most.
_ROUNDING = 1e-9


@register(
    "cpop",
    "CPOP",
    "Topcuoglu, Hariri and Wu (2002), Section 4.2",
    Rules(slots="insertion", duplicate=False),
    open=("slots", "transfers", "drop_unread"),
)
def cpop(instance: Instance, rules: Rules, rng: np.random.Generator) -> ListRule:
    """Place the node with the largest upward plus downward rank first; the critical path has an executor of its own.

    The other nodes go where they finish first. Jobs that arrive at the same time count as one DAG with one critical
    path.
    """
    priority = rank_up(instance) + rank_down(instance)
    forced = np.full(len(instance), -1)
    start, child, _ = instance.children
    entries = np.diff(instance.parents[0]) == 0
    for arrival_s in np.unique(instance.arrival_s):
        roots = np.flatnonzero(entries & (instance.arrival_s == arrival_s))
        node = int(roots[np.argmax(priority[roots])])
        length = priority[node]
        path = [node]
        while True:
            below = child[start[node] : start[node + 1]]
            below = below[priority[below] >= length * (1.0 - _ROUNDING)]
            if not len(below):
                break
            node = int(below[0])
            path.append(node)
        forced[path] = _best_executor(instance, path)
    return list_rule(instance, rules, priority, forced=forced)


def _best_executor(instance: Instance, path: list[int]) -> int:
    """Executor with the smallest sum of execution times of the nodes of a path."""
    cluster = instance.cluster
    if cluster.costs is not None:
        return int(np.argmin(cluster.costs[path].sum(axis=0)))
    return int(np.argmax(cluster.speeds))
