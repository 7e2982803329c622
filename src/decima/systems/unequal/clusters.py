"""Clusters of nodes that duplication heuristics start from, each for one executor in sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decima.systems.unequal.workload import Instance


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
    mean_s = instance.mean_time_s
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

    A path that was placed shares its nodes with later ones on the same executor, so that these add less there.
    """
    costs = instance.times_s
    load_s = np.zeros(len(instance.cluster))
    nodes: list[set[int]] = [set() for _ in range(len(instance.cluster))]
    held: dict[int, list[int]] = {}
    for path in sorted(paths, key=lambda path: -float(instance.mean_time_s[path].sum())):
        added_s = costs[path].sum(axis=0)
        for node in path:
            for executor in held.get(node, ()):
                added_s[executor] -= costs[node, executor]
        executor = int(np.argmin(load_s + added_s))
        load_s[executor] += added_s[executor]
        for node in path:
            if node not in nodes[executor]:
                nodes[executor].add(node)
                held.setdefault(node, []).append(executor)
    return [sorted(each) for each in nodes]
