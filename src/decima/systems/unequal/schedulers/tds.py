"""TDS: a path from every node up its favourite parents stays on one executor, nodes of several paths are copied."""

import numpy as np

from decima.systems.unequal.clusters import clusters, merged, times
from decima.systems.unequal.registry import register
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance


@register(
    "tds",
    "TDS",
    "Darbha and Agrawal, Optimal scheduling algorithm for distributed-memory machines (1998)",
    Rules(),
    open=("drop_unread",),
)
def tds(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Place paths of favourite parents, each on one executor, with copies of what they share.

    Differs: the paper has as many equal machines as paths. Times are means here; where paths are more than executors,
    the heaviest go first to where they end first, and share what is there already.
    """
    found = times(instance)
    nodes_of = merged(instance, clusters(instance, found, duplicate=True))
    # One order for all executors, in which parents go first: nothing waits in a circle.
    place = np.empty(len(instance), dtype=np.int64)
    place[instance.order] = np.arange(len(instance))
    copies = [
        (found.earliest_s[node], place[node], node, executor)
        for executor, nodes in enumerate(nodes_of)
        for node in nodes
    ]
    start, parent, data = instance.parents
    free_s = np.zeros(len(instance.cluster))
    done: dict[int, list[tuple[int, float]]] = {}
    rows = []
    for _, _, node, executor in sorted(copies):
        begin_s = max(float(free_s[executor]), float(instance.arrival_s[node]))
        for edge in range(start[node], start[node + 1]):
            there_s = [
                finish_s + instance.transfer_s(float(data[edge]), sender, executor)
                for sender, finish_s in done[int(parent[edge])]
            ]
            begin_s = max(begin_s, min(there_s))
        free_s[executor] = begin_s + instance.time_s(node, executor)
        done.setdefault(node, []).append((executor, float(free_s[executor])))
        rows.append((node, executor, begin_s, float(free_s[executor])))
    return Schedule(instance, *zip(*rows, strict=True))
