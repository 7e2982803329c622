"""Recorded decisions of many episodes as one graph, for TensorFlow.

The graph is the disjoint union of the recorded job graphs (*instances*). Its nodes are sorted by *level*, the length of
the longest path to a stage without children, so that messages can be passed one level at a time, each level touching
only its own nodes. No TensorFlow here, and no Python loop over nodes, edges or decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from decima.core.errors import ConfigError

if TYPE_CHECKING:
    from decima.systems.spark.policy.record import EpisodeRecord

FLOAT, INT = np.dtype(np.float32), np.dtype(np.int32)

# Tensors of a batch: name -> (dtype, shape). Sizes: N nodes, F features, L levels, M edges, P pairs of a decision and
# an active job, C candidates in R runs, D decisions, K decisions whose limit matters, l limits, I instances.
TENSORS: dict[str, tuple[np.dtype, tuple[str, ...]]] = {
    "x": (FLOAT, ("N", "F")),  # features, nodes by level
    "level_sizes": (INT, ("L",)),  # nodes of each level, level 0 first
    "edge_source": (INT, ("M",)),  # child, index into the nodes; edges by level of their parent
    "edge_target": (INT, ("M",)),  # parent, index inside its level, ascending there
    "edge_level_sizes": (INT, ("L",)),  # edges into each level
    "node_instance": (INT, ("N",)),
    "num_instances": (INT, ()),
    "shape": (FLOAT, ("I", "S")),  # shapes of the jobs of the instances, S = 0 where no head sees them
    "pair_instance": (INT, ("P",)),
    "pair_decision": (INT, ("P",)),  # ascending
    "candidate_node": (INT, ("C",)),
    "candidate_class": (FLOAT, ("C", "E")),  # what q sees of the class of a pair, E = 0 where classes are not chosen
    "candidate_decision": (INT, ("C",)),  # ascending
    "candidate_run": (INT, ("C",)),  # ascending; a run is neighbouring candidates of one decision and one job
    "run_instance": (INT, ("R",)),
    "run_decision": (INT, ("R",)),  # ascending
    "choice": (INT, ("D",)),  # index into the candidates
    "limits": (INT, ("l",)),  # every limit that some decision allows, ascending
    "limit_decision": (INT, ("K",)),  # decisions with more than one effect class
    "limit_low": (INT, ("K",)),  # first and last allowed limit
    "limit_high": (INT, ("K",)),
    "limit_tail": (INT, ("K",)),  # limits from here on have the same effect, smaller ones each their own
    "limit_chosen": (INT, ("K",)),
    "delay_decision": (INT, ("B",)),  # decisions that were free to choose an idle slot
    "delay_chosen": (INT, ("B",)),  # r, 0 for no slot
}


def ranges(first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Integers first[i], ..., first[i] + length[i] - 1 for every i, int64."""
    length = np.asarray(length, dtype=np.int64)
    shift = np.asarray(first, dtype=np.int64) - _starts(length)
    return np.arange(length.sum()) + np.repeat(shift, length)


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Offsets at which consecutive blocks begin; int64."""
    return np.cumsum(sizes, dtype=np.int64) - sizes


def _row_levels(row: np.ndarray, local: np.ndarray, child_offset: np.ndarray, child: np.ndarray) -> np.ndarray:
    """Level of every profile row (-1 for rows that are absent), int64 [rows].

    It does not depend on which stages of a job are finished.
    """
    first_row = np.full(len(child_offset) - 1, -1, dtype=np.int64)
    first_row[row] = row - local
    rows = np.flatnonzero(first_row >= 0)
    count = child_offset[rows + 1] - child_offset[rows]
    parents = np.repeat(rows, count)
    children = first_row[parents] + child[ranges(child_offset[rows], count)]
    level = np.where(first_row >= 0, 0, -1)
    while True:
        deeper = level.copy()
        np.maximum.at(deeper, parents, level[children] + 1)
        if np.array_equal(deeper, level):
            return level
        level = deeper


class GraphBatch:
    """Batch of all decisions of some episodes, numbered through in the order of the records.

    Args:
        records: Episodes, all on workloads with the same profile tables.
        child_offset: Int32 [rows + 1], ``child_offset`` of the profile tables.
        child: Int32, children of every row as stage indices inside the job, ``child`` of the profile tables.

    Attributes:
        num_decisions: Decisions in all records.
        decision_offset: Int64 [records + 1], decisions of record k are ``offset[k]:offset[k + 1]``.
        num_levels: Levels of the deepest recorded job graph.

    Raises:
        ConfigError: There is no decision, records have features of different widths, or a recorded graph does not fit
            the profile tables.
    """

    def __init__(self, records: Sequence[EpisodeRecord], child_offset: np.ndarray, child: np.ndarray) -> None:
        sizes = [len(record.choice) for record in records]
        self.decision_offset = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.num_decisions = int(self.decision_offset[-1])
        if self.num_decisions == 0:
            raise ConfigError(f"a batch needs at least one decision, got {len(records)} records without any")
        widths = {record.x.shape[1] for record in records}
        if len(widths) > 1:
            raise ConfigError(f"records have stages with different numbers of features: {sorted(widths)}")
        self._levels = records[0].limit_levels
        if any(not np.array_equal(record.limit_levels, self._levels) for record in records):
            raise ConfigError("records have limits on different grids; expected episodes on clusters of one size")

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(record, name) for record in records])

        def counts(name: str) -> np.ndarray:
            return np.concatenate([np.diff(getattr(record, name)) for record in records]).astype(np.int64)

        def shifted(name: str, target_sizes: list[int]) -> np.ndarray:
            # Indices of a record count from zero, those of the batch go through all records.
            base = np.cumsum(target_sizes) - target_sizes
            return np.concatenate(
                [getattr(record, name) + shift for record, shift in zip(records, base, strict=True)]
            ).astype(np.int64)

        num_nodes = [len(record.x) for record in records]
        num_instances = [len(record.instance_first) - 1 for record in records]
        self._x = joined("x").astype(np.float32, copy=False)
        self._node_count = counts("instance_first")
        self._node_first = _starts(self._node_count)
        self._node_instance = np.repeat(np.arange(len(self._node_count)), self._node_count)
        self._pair_count = counts("decision_pairs")
        self._pair_first = _starts(self._pair_count)
        self._pair_instance = shifted("pair_instance", num_instances)
        self._candidate_count = counts("decision_candidates")
        self._candidate_first = _starts(self._candidate_count)
        self._candidate_node = shifted("candidate_node", num_nodes)
        self._candidate_instance = shifted("candidate_instance", num_instances)
        self._candidate_class = joined("class_inputs").astype(np.float32, copy=False)
        self._choice = shifted("choice", [len(record.candidate_node) for record in records]) - self._candidate_first
        self._low, self._high = joined("limit_low"), joined("limit_high")
        self._classes, self._limit = joined("classes"), joined("limit")
        self._delay, self._delay_free = joined("delay"), joined("delay_free")
        self._shape = joined("instance_shape").astype(np.float32, copy=False)
        self._link(joined("node_row"), joined("node_local"), child_offset, child)

    def _link(self, row: np.ndarray, local: np.ndarray, child_offset: np.ndarray, child: np.ndarray) -> None:
        if len(row) and int(row.max()) >= len(child_offset) - 1:
            raise ConfigError(
                f"a record has profile row {int(row.max())}, the profile tables have {len(child_offset) - 1} rows"
            )
        # Nodes by (instance, stage), up to the last stage of each graph. A stage whose outputs were lost runs again,
        # and some of its children may have finished, but not all.
        stages = np.zeros(len(self._node_count), dtype=np.int64)
        filled = self._node_count > 0
        stages[filled] = local[(self._node_first + self._node_count - 1)[filled]] + 1
        slot_first = _starts(stages)
        node_of_slot = np.full(int(stages.sum()), -1, dtype=np.int64)
        node_of_slot[slot_first[self._node_instance] + local] = np.arange(len(row))

        count = (child_offset[row + 1] - child_offset[row]).astype(np.int64)
        stage = child[ranges(child_offset[row], count)].astype(np.int64)
        parent = np.repeat(np.arange(len(row)), count)
        instance = self._node_instance[parent]
        inside = stage < stages[instance]
        node = np.full(len(stage), -1, dtype=np.int64)
        node[inside] = node_of_slot[(slot_first[instance] + stage)[inside]]
        self._child_node = node[node >= 0]
        self._child_count = np.bincount(parent[node >= 0], minlength=len(row))
        self._child_first = _starts(self._child_count)
        if (alone := self._child_count[parent] == 0).any():
            edge = int(np.argmax(alone))
            raise ConfigError(
                f"recorded job graph {instance[edge]} lacks stage {stage[edge]} and every other child of one of its "
                "stages; expected the profile tables of the recorded episodes"
            )
        level = _row_levels(row, local, child_offset, child)[row]
        self.num_levels = int(level.max(initial=0)) + 1
        # Small integers are sorted in linear time.
        self._level = level.astype(np.uint8 if self.num_levels <= 256 else np.uint16)

    def tensors(self, decisions: np.ndarray | None = None, num_levels: int | None = None) -> dict[str, np.ndarray]:
        """Arrays of some decisions and their job graphs, as :data:`TENSORS` lists them.

        Args:
            decisions: Int [D], decisions to take, in this order; all when omitted.
            num_levels: Length of the arrays per level, for a network traced with a fixed number of them.

        Raises:
            ConfigError: No decision is chosen, or the graphs are deeper than ``num_levels``.
        """
        decisions = np.arange(self.num_decisions) if decisions is None else np.asarray(decisions)
        num_levels = self.num_levels if num_levels is None else num_levels
        if len(decisions) == 0:
            raise ConfigError("a batch needs at least one decision, got an empty selection")
        if self.num_levels > num_levels:
            raise ConfigError(
                f"a recorded job graph has {self.num_levels} levels, the network is built for {num_levels}"
            )
        pair_count, candidate_count = self._pair_count[decisions], self._candidate_count[decisions]
        pair_instance = self._pair_instance[ranges(self._pair_first[decisions], pair_count)]
        used = np.zeros(len(self._node_count), dtype=bool)
        used[pair_instance] = True
        instance_of = np.cumsum(used) - 1  # index among the used instances

        instances = np.flatnonzero(used)
        nodes = ranges(self._node_first[instances], self._node_count[instances])
        nodes = nodes[np.argsort(self._level[nodes], kind="stable")]
        position = np.zeros(len(self._x), dtype=np.int32)
        position[nodes] = np.arange(len(nodes), dtype=np.int32)
        level = self._level[nodes]
        level_sizes = np.bincount(level, minlength=num_levels)
        inside = np.arange(len(nodes)) - _starts(level_sizes)[level]
        # Edges in the order of their parents: by level, and ascending inside it.
        child_count = self._child_count[nodes]
        children = self._child_node[ranges(self._child_first[nodes], child_count)]

        candidates = ranges(self._candidate_first[decisions], candidate_count)
        candidate_decision = np.repeat(np.arange(len(decisions)), candidate_count)
        candidate_instance = instance_of[self._candidate_instance[candidates]]
        begins = np.ones(len(candidates), dtype=bool)
        begins[1:] = (np.diff(candidate_instance) != 0) | (np.diff(candidate_decision) != 0)
        limited = np.flatnonzero(self._classes[decisions] > 1)
        chosen = decisions[limited]
        low, high = self._low[chosen], self._high[chosen]
        free = np.flatnonzero(self._delay_free[decisions])
        result = {
            "x": self._x[nodes],
            "level_sizes": level_sizes,
            "edge_source": position[children],
            "edge_target": np.repeat(inside, child_count),
            "edge_level_sizes": np.bincount(level, weights=child_count, minlength=num_levels),
            "node_instance": instance_of[self._node_instance[nodes]],
            "num_instances": len(instances),
            "shape": self._shape[instances],
            "pair_instance": instance_of[pair_instance],
            "pair_decision": np.repeat(np.arange(len(decisions)), pair_count),
            "candidate_node": position[self._candidate_node[candidates]],
            "candidate_class": self._candidate_class[candidates],
            "candidate_decision": candidate_decision,
            "candidate_run": np.cumsum(begins) - 1,
            "run_instance": candidate_instance[begins],
            "run_decision": candidate_decision[begins],
            "choice": _starts(candidate_count) + self._choice[decisions],
            "limits": self._limits(low.min(), high.max()) if len(chosen) else np.zeros(0),
            "limit_decision": limited,
            "limit_low": low,
            "limit_high": high,
            "limit_tail": self._tails(low, self._classes[chosen]),
            "limit_chosen": self._limit[chosen],
            "delay_decision": free,
            "delay_chosen": self._delay[decisions[free]],
        }
        return {name: np.asarray(result[name], dtype=dtype) for name, (dtype, _) in TENSORS.items()}

    def _limits(self, low: int, high: int) -> np.ndarray:
        """Limits to choose from between two of them, ascending."""
        if len(self._levels) == 0:
            return np.arange(low, high + 1)
        return self._levels[(self._levels >= low) & (self._levels <= high)]

    def _tails(self, low: np.ndarray, effects: np.ndarray) -> np.ndarray:
        """First limit with the last effect, by first limit and number of effects."""
        if len(self._levels) == 0:
            return low + effects - 1
        return self._levels[np.searchsorted(self._levels, low) + effects - 1]
