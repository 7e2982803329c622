"""Recorded decisions as tensors, with the graphs that the network saw reconstructed from the choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.kernel import changing_feature
from decima.systems.heterogeneous.policy.planner import NodeRecord
from decima.systems.heterogeneous.schedulers.priorities import outgoing, static_features, units
from decima.systems.heterogeneous.workload import Instance

# Name -> (dtype, shape): N nodes of all graphs, M edges, I graphs of jobs, P pairs of a decision and a graph, C nodes
# that could be decided, D decisions, F features.
TENSORS = {
    "x": (np.float32, "NF"),
    "outgoing": (np.float32, "N"),
    "node_graph": (np.int32, "N"),
    "edge_child": (np.int32, "M"),
    "edge_parent": (np.int32, "M"),
    "graphs": (np.int32, ""),
    "pair_graph": (np.int32, "P"),
    "pair_decision": (np.int32, "P"),
    "candidate_node": (np.int32, "C"),
    "candidate_graph": (np.int32, "C"),
    "candidate_decision": (np.int32, "C"),
    "choice": (np.int32, "D"),
}


class SeenInstance:
    """What an architecture sees of an instance, for batches.

    Args:
        instance: Jobs and cluster.
        architecture: Shape of the network.
    """

    def __init__(self, instance: Instance, architecture: NodeArchitecture) -> None:
        self.instance = instance
        self.static = static_features(instance, architecture.node_features, architecture.feature_log)
        self.outgoing = outgoing(instance, architecture.feature_log)
        self.unit = units(instance)
        self.columns = architecture.changing_columns()
        self.logarithms = architecture.feature_log


class NodeBatch:
    """Decisions of several episodes, numbered one after the other.

    Args:
        seen: What was seen of each episode's instance.
        records: The episodes.
    """

    def __init__(self, seen: Sequence[SeenInstance], records: Sequence[NodeRecord]) -> None:
        self._seen, self._records = tuple(seen), tuple(records)
        self._first = np.cumsum([0, *(len(record.chosen) for record in records)])

    def tensors(self, decisions: np.ndarray) -> dict[str, np.ndarray]:
        """Tensors of :data:`TENSORS` for some decisions.

        Args:
            decisions: Int [D], those of one episode next to each other and ascending.
        """
        episode = np.searchsorted(self._first, decisions, side="right") - 1
        cuts = np.flatnonzero(np.diff(episode)) + 1
        parts, offsets = [], np.zeros(4, dtype=np.int64)
        for mine, steps in zip(np.split(episode, cuts), np.split(decisions, cuts), strict=True):
            seen, record = self._seen[mine[0]], self._records[mine[0]]
            part = _graphs(seen, record, np.asarray(steps, dtype=np.int64) - self._first[mine[0]])
            nodes, graphs, candidates = len(part["x"]), int(part["graphs"]), len(part["candidate_node"])
            for names, offset in (
                (("edge_child", "edge_parent", "candidate_node"), offsets[0]),
                (("node_graph", "pair_graph", "candidate_graph"), offsets[1]),
                (("choice",), offsets[2]),
                (("pair_decision", "candidate_decision"), offsets[3]),
            ):
                for name in names:
                    part[name] = part[name] + offset
            offsets += nodes, graphs, candidates, len(steps)
            parts.append(part)
        joined = {name: np.concatenate([part[name] for part in parts]) for name in TENSORS if name != "graphs"}
        joined["graphs"] = offsets[1]
        return {name: np.asarray(joined[name], dtype=dtype) for name, (dtype, _) in TENSORS.items()}


def _graphs(seen: SeenInstance, record: NodeRecord, steps: np.ndarray) -> dict[str, np.ndarray]:
    """Tensors of some decisions of one episode."""
    instance = seen.instance
    placed = np.full(len(instance), len(record.chosen), dtype=np.int64)
    placed[record.chosen] = np.arange(len(record.chosen))
    arguments = (
        steps, placed, record.offered, record.since, record.wanted, instance.first_node, instance.job_of_node,
        instance.children[0], instance.children[1], instance.mean_time_s, seen.static, seen.outgoing, seen.unit,
        seen.columns, seen.logarithms,
    )  # fmt: skip
    sizes = np.zeros(5, dtype=np.int64)
    _fill(*arguments, sizes, False, *_empty(np.zeros(5, dtype=np.int64), seen.static.shape[1], 0))
    arrays = _empty(sizes, seen.static.shape[1], len(steps))
    _fill(*arguments, np.zeros(5, dtype=np.int64), True, *arrays)
    names = [name for name in TENSORS if name != "graphs"]
    return dict(zip(names, arrays, strict=True)) | {"graphs": sizes[2]}


def _empty(sizes: np.ndarray, features: int, decisions: int) -> list[np.ndarray]:
    nodes, edges, _, pairs, candidates = sizes.tolist()
    lengths = (nodes, edges, edges, pairs, pairs, candidates, candidates, candidates, decisions)
    arrays = [np.zeros((nodes, features), np.float32), np.zeros(nodes, np.float32)]
    return arrays + [np.zeros(length, np.int64) for length in lengths]


@cached(njit(cache=True, nogil=True))
def _fill(
    steps, placed, offered, since, wanted, first_node, job_of_node, child_start, child, mean_time, static, edges_out,
    unit, columns, logarithms, sizes, fill, x, outgoing_of, node_graph, edge_child, edge_parent, pair_graph,
    pair_decision, candidate_node, candidate_graph, candidate_decision, choice,
):  # fmt: skip
    """Count or fill; ``sizes`` counts nodes, edges, graphs, pairs and candidates."""
    jobs = len(first_node) - 1
    graph = np.full(jobs, -1, np.int64)
    version = np.full(jobs, -1, np.int64)
    row = np.full(len(placed), -1, np.int64)
    nodes, edges, graphs, pairs, candidates = 0, 0, 0, 0, 0
    for index in range(len(steps)):
        step = steps[index]
        for job in range(jobs):
            if since[job] > step:
                continue
            left = 0
            left_time = 0.0
            for node in range(first_node[job], first_node[job + 1]):
                if placed[node] >= step:
                    left += 1
                    left_time += mean_time[node]
            if left == 0:
                continue
            if version[job] != left:
                version[job] = left
                graph[job] = graphs
                size = first_node[job + 1] - first_node[job]
                for node in range(first_node[job], first_node[job + 1]):
                    if placed[node] < step:
                        continue
                    row[node] = nodes
                    if fill:
                        for k in range(static.shape[1]):
                            x[nodes, k] = static[node, k]
                        for k in range(len(columns)):
                            if columns[k] >= 0:
                                x[nodes, columns[k]] = changing_feature(k, left, left_time, size, unit[job], logarithms)
                        outgoing_of[nodes] = edges_out[node]
                        node_graph[nodes] = graphs
                    nodes += 1
                for node in range(first_node[job], first_node[job + 1]):
                    if placed[node] < step:
                        continue
                    for edge in range(child_start[node], child_start[node + 1]):
                        if fill:
                            edge_child[edges] = row[child[edge]]
                            edge_parent[edges] = row[node]
                        edges += 1
                graphs += 1
            if fill:
                pair_graph[pairs] = graph[job]
                pair_decision[pairs] = index
            pairs += 1
            for node in range(first_node[job], first_node[job + 1]):
                if placed[node] >= step and 0 <= offered[node] <= step:
                    if fill:
                        candidate_node[candidates] = row[node]
                        candidate_graph[candidates] = graph[job]
                        candidate_decision[candidates] = index
                        if node == wanted[step]:
                            choice[index] = candidates
                    candidates += 1
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = nodes, edges, graphs, pairs, candidates
