"""Recorded decisions as tensors, with the graphs that the network saw reconstructed from the choices."""

from collections.abc import Sequence
from math import log

import numpy as np

from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.planner import NodeRecord
from decima.systems.heterogeneous.schedulers.priorities import SCALE, outgoing, static_features, units
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

    def changing(self, job: np.ndarray, left: np.ndarray, left_s: np.ndarray) -> list[np.ndarray]:
        """Features of :data:`.CHANGING` as the network saw them, float32 [graphs] each.

        Args:
            job: Int [graphs], job of each graph.
            left: Int [graphs], nodes that were not placed.
            left_s: Float64 [graphs], their mean times, seconds.
        """
        values = (left.astype(np.float64), left_s / self.unit[job], np.diff(self.instance.first_node)[job] - left)
        if self.logarithms:  # one by one, as in compiled code: NumPy's differs in the last digits
            return [np.array([log(1.0 + value) for value in each], dtype=np.float32) for each in values]
        return [(each * SCALE).astype(np.float32) for each in values]


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
    """Tensors of some decisions of one episode.

    A job that loses nodes has a new graph.
    """
    instance = seen.instance
    placed = np.full(len(instance), len(record.chosen), dtype=np.int64)
    placed[record.chosen] = np.arange(len(record.chosen))
    unplaced = placed >= steps[:, None]
    left = np.add.reduceat(unplaced, instance.first_node[:-1], axis=1, dtype=np.int64)
    decision, job = np.nonzero((left > 0) & (record.since <= steps[:, None]))
    # Graphs are numbered as they come first; ``pair`` is the pair (decision, job) that does so.
    version = job * (len(instance) + 1) + left[decision, job]
    _, pair, graph = np.unique(version, return_index=True, return_inverse=True)
    order = np.argsort(pair)
    pair, graph = pair[order], np.argsort(order)[graph]
    graph_of = np.full(left.shape, -1)
    graph_of[decision, job] = graph
    inside, node = np.nonzero(unplaced[decision[pair]] & (instance.job_of_node == job[pair, None]))
    row = np.full((len(pair), len(instance)), -1)
    row[inside, node] = np.arange(len(node))
    start, child, _ = instance.children
    parent = np.repeat(np.arange(len(instance)), np.diff(start))
    of_edge, edge = np.nonzero(row[:, parent] >= 0)
    there = graph_of[:, instance.job_of_node]
    free = unplaced & (there >= 0) & (record.offered >= 0) & (record.offered <= steps[:, None])
    candidate_decision, candidate = np.nonzero(free)
    candidate_graph = there[candidate_decision, candidate]
    choice = np.zeros(len(steps), dtype=np.int64)
    taken = np.flatnonzero(candidate == record.wanted[steps][candidate_decision])
    choice[candidate_decision[taken]] = taken
    x = seen.static[node].astype(np.float32)
    left_s = np.bincount(inside, instance.mean_time_s[node], len(pair))
    changing = seen.changing(job[pair], left[decision[pair], job[pair]], left_s)
    for column, values in zip(seen.columns, changing, strict=True):
        if column >= 0:
            x[:, column] = values[inside]
    return {
        "x": x,
        "outgoing": seen.outgoing[node],
        "node_graph": inside,
        "edge_child": row[of_edge, child[edge]],
        "edge_parent": row[of_edge, parent[edge]],
        "graphs": len(pair),
        "pair_graph": graph,
        "pair_decision": decision,
        "candidate_node": row[candidate_graph, candidate],
        "candidate_graph": candidate_graph,
        "candidate_decision": candidate_decision,
        "choice": choice,
    }
