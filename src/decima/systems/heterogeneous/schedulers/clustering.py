"""Schedulers that cluster paths of nodes and duplicate shared nodes: TDS, TDCA."""

from dataclasses import dataclass

import numpy as np

from decima.systems.heterogeneous.engine import list_rule
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.priorities import rank_up
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance


@dataclass(frozen=True)
class Times:
    """Times in s, float64 [nodes], on unlimited mean-speed executors, each node after its favourite parent."""

    earliest_s: np.ndarray  # start
    completion_s: np.ndarray
    latest_s: np.ndarray  # latest start that delays nothing
    latest_completion_s: np.ndarray
    favourite: np.ndarray  # parent whose data would come last, int64 [nodes]; -1 without parents


def times(instance: Instance) -> Times:
    """Earliest and latest times, and favourite parents.

    Source: Darbha and Agrawal, "Optimal scheduling algorithm for distributed-memory machines" (1998), Eqs. 1 to 9, with
    mean times.
    """
    nodes = len(instance)
    mean_s = instance.mean_cost_s
    start, parent, data = instance.parents
    child_start, child, child_data = instance.children
    sent_s = instance.cluster.mean_transfer_s(data)
    child_sent_s = instance.cluster.mean_transfer_s(child_data)
    earliest_s = instance.arrival_s.copy()
    completion_s = np.zeros(nodes)
    favourite = np.full(nodes, -1)
    for node in instance.order.tolist():
        edges = np.arange(start[node], start[node + 1])
        if len(edges):
            above = parent[edges]
            there_s = completion_s[above] + sent_s[edges]
            last = int(np.argmax(there_s))
            favourite[node] = above[last]
            others = np.delete(there_s, last)
            earliest_s[node] = max(completion_s[above[last]], others.max(initial=0.0), earliest_s[node])
        completion_s[node] = earliest_s[node] + mean_s[node]
    latest_completion_s = np.empty(nodes)
    latest_s = np.empty(nodes)
    for node in instance.order[::-1].tolist():
        job = instance.job_of_node[node]
        end = completion_s[instance.first_node[job] : instance.first_node[job + 1]].max()
        for edge in range(child_start[node], child_start[node + 1]):
            below = child[edge]
            near = favourite[below] == node
            end = min(end, latest_s[below] - (0.0 if near else child_sent_s[edge]))
        latest_completion_s[node] = end
        latest_s[node] = end - mean_s[node]
    return Times(earliest_s, completion_s, latest_s, latest_completion_s, favourite)


def clusters(instance: Instance, node_times: Times, *, duplicate: bool) -> list[list[int]]:
    """Paths of nodes, each starting at a node without parents, that together cover all.

    From the nodes with the shortest way to the end on, a path goes up to the favourite parent. If that is on a path
    already and the node can wait for its data (latest times), or if nothing may be on two paths, it goes to the parent
    without a path whose data comes last, if there is one.

    Args:
        instance: Jobs and cluster.
        node_times: Their times.
        duplicate: Whether a node may be on several paths.
    """
    start, parent, data = instance.parents
    sent_s = instance.cluster.mean_transfer_s(data)
    level = node_times.latest_s  # the later, the closer to the end
    assigned = np.zeros(len(instance), dtype=bool)
    paths = []
    for seed in np.lexsort((np.arange(len(instance)), -level)).tolist():
        if assigned[seed]:
            continue
        path, node = [seed], seed
        assigned[seed] = True
        while start[node] < start[node + 1]:
            edges = np.arange(start[node], start[node + 1])
            above = parent[edges]
            last = int(np.argmax(above == node_times.favourite[node]))
            if assigned[above[last]]:
                free = np.flatnonzero(~assigned[above])
                urgent = node_times.latest_s[node] - node_times.latest_completion_s[above[last]] < sent_s[edges[last]]
                if len(free) and not (duplicate and urgent):
                    last = int(free[np.argmax((node_times.completion_s[above] + sent_s[edges])[free])])
                elif not duplicate:
                    break
            node = int(above[last])
            path.append(node)
            assigned[node] = True
        paths.append(path[::-1])
    return paths


def merged(instance: Instance, paths: list[list[int]]) -> list[list[int]]:
    """Nodes per executor, once each; paths with most work go first, where they end first.

    A path that was placed shares its nodes with later ones on the same executor, so that these add less there. Where no
    executor can execute all nodes of a path, each node goes alone.
    """
    costs = instance.times_s
    load_s = np.zeros(len(instance.cluster))
    placed = np.zeros(costs.shape, dtype=bool)
    together = [np.isfinite(costs[path].sum(axis=0)).any() for path in paths]
    paths = [part for path, one in zip(paths, together, strict=True) for part in ([path] if one else zip(path))]
    for path in sorted(map(list, paths), key=lambda path: -float(instance.mean_cost_s[path].sum())):
        added_s = costs[path].sum(axis=0)
        for node in path:
            added_s -= np.where(placed[node], costs[node], 0.0)
        executor = int(np.argmin(load_s + added_s))
        load_s[executor] += added_s[executor]
        placed[path, executor] = True
    return [np.flatnonzero(each).tolist() for each in placed.T]


@register(
    "tds",
    "TDS",
    "Darbha and Agrawal, Optimal scheduling algorithm for distributed-memory machines (1998)",
    Rules(),
    open=("drop_unread",),
)
def tds(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Assign paths of favourite parents, each on one executor, with copies of what they share.

    Differs: the paper has as many equal machines as paths. Times are means here; where paths are more than executors,
    the heaviest go first to where they end first, and share what is there already.
    """
    node_times = times(instance)
    nodes_of = merged(instance, clusters(instance, node_times, duplicate=True))
    copies = [(node, executor) for executor, nodes in enumerate(nodes_of) for node in nodes]
    # One order for all executors, in which parents go first: nothing waits in a circle.
    position = np.argsort(instance.order)
    copies.sort(key=lambda copy: (node_times.earliest_s[copy[0]], position[copy[0]], copy))
    return Schedule.in_order(instance, copies)


@register(
    "tdca",
    "TDCA",
    "He, Meng, Pan, Yuan and Zhou, A novel task-duplication based clustering algorithm for heterogeneous computing "
    "environments (2019)",
    Rules(slots="insertion"),
    open=("drop_unread",),
)
def tdca(instance: Instance, rules: Rules, rng: np.random.Generator) -> Schedule:
    """Assign clusters of nodes to one executor each, with copies of a late parent.

    Differs: a reconstruction from the four steps by which others describe it. Clusters are the paths of TDS without
    shared nodes. They are merged to the number of executors, the heaviest first, each to where it ends first.
    Then nodes are placed by upward rank, each on the executor of its cluster, behind a copy of one parent if that is
    earlier, in the first gap that fits.
    """
    paths = clusters(instance, times(instance), duplicate=False)
    forced = np.empty(len(instance), dtype=np.int64)
    for executor, nodes in enumerate(merged(instance, paths)):
        forced[nodes] = executor
    return list_rule(instance, rules, rank_up(instance, node_s=instance.mean_cost_s), forced=forced).schedule()
