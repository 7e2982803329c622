"""Graphs of jobs as flat arrays, with properties computed in linear time.

Clients send graphs of thousands of stages; everything here is one compiled pass over stages and edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decima.core.graphs import topological_order
from decima.core.jit import njit
from decima.workload.profile import JobProfile


class Links(NamedTuple):
    """Neighbours of every stage, one list behind the other."""

    offset: np.ndarray  # int32 [stages + 1], where the list of a stage begins
    neighbour: np.ndarray  # int32 [edges], local indices


@dataclass(frozen=True)
class Dag:
    """Stages of a job and the edges between them.

    Attributes:
        tasks: Tasks per stage, int64 [stages].
        parents: Parents of every stage.
        children: Children of every stage, ascending.
        order: Local indices, parents before children, int32; shorter than the stages if some form a cycle.
        levels: Edges from each stage on the longest path down, int32 [stages].
    """

    tasks: np.ndarray
    parents: Links
    children: Links
    order: np.ndarray
    levels: np.ndarray

    @classmethod
    def of_lists(cls, tasks: Sequence[int], num_parents: Sequence[int], parents: Sequence[int]) -> Dag:
        """Make a graph from task counts, parent counts, and the concatenated parents of all stages."""
        offset = np.zeros(len(tasks) + 1, dtype=np.int32)
        np.cumsum(num_parents, out=offset[1:])
        upwards = Links(offset, np.array(parents, dtype=np.int32))
        downwards, order, levels = _arrange(*upwards)
        return cls(np.array(tasks, dtype=np.int64), upwards, Links(*downwards), order, levels)

    @classmethod
    def of_profile(cls, profile: JobProfile) -> Dag:
        """Make one from a profile."""
        stages = profile.stages
        parents = [parent for stage in stages for parent in stage.parents]
        return cls.of_lists([stage.num_tasks for stage in stages], [len(stage.parents) for stage in stages], parents)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.parents.neighbour)

    @property
    def num_levels(self) -> int:
        """Number of stages on the longest path."""
        return int(self.levels.max()) + 1

    def begins_with(self, other: Dag) -> bool:
        """Whether another graph is the first stages of this one."""
        size, edges = len(other), other.num_edges
        return (
            np.array_equal(self.tasks[:size], other.tasks)
            and np.array_equal(self.parents.offset[: size + 1], other.parents.offset)
            and np.array_equal(self.parents.neighbour[:edges], other.parents.neighbour)
        )

    def wrong_parent(self) -> int:
        """First stage that has itself or a repeated stage as parent, else -1."""
        return _wrong_parent(*self.parents)

    def cycle(self) -> list[int]:
        """Stages of a cycle, from parent to child, empty if there is none."""
        left = set(range(len(self))).difference(self.order.tolist())
        if not left:
            return []
        stage, path, position = min(left), [], {}
        while stage not in position:
            position[stage] = len(path)
            path.append(stage)
            # A stage that could not be put in order has such a parent.
            offset, parents = self.parents
            stage = next(parent for parent in parents[offset[stage] : offset[stage + 1]].tolist() if parent in left)
        return path[: position[stage] - 1 if position[stage] else None : -1]

    def longest_path_down(self, weights: np.ndarray) -> np.ndarray:
        """Largest weight of a path from each stage down, itself included, float64 [stages]."""
        return _longest_path_down(self.order, *self.children, weights)

    def children_of(self, stage: int) -> list[int]:
        """Local indices of the children of a stage."""
        offset, children = self.children
        return children[offset[stage] : offset[stage + 1]].tolist()

    def count_parents(self, marked: np.ndarray) -> np.ndarray:
        """Number of parents per stage that are marked, int64 [stages], of bool [stages]."""
        offset, parents = self.parents
        before = np.concatenate(([0], np.cumsum(marked[parents])))
        return before[offset[1:]] - before[offset[:-1]]

    def finished(self, finished: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Finished tasks that count, where a stage counts as finished only after its parents.

        Spark runs a stage again when its output is lost, while stages behind it stay finished; schedulers may rely on
        descendants of an unfinished stage being unfinished.

        Args:
            finished: Finished tasks per stage.

        Returns:
            Finished tasks per stage, of which a stage with an unfinished ancestor lacks one at least; unfinished
            parents per stage; both int32 [stages].
        """
        return _finished(self.order, *self.parents, self.tasks, np.array(finished, dtype=np.int32))

    def ancestry(self, with_tasks: bool) -> list[int]:
        """Number per stage, equal for equal ancestors, with their task counts or without."""
        return _ancestry(self.order, *self.parents, self.tasks if with_tasks else np.zeros_like(self.tasks)).tolist()


@njit(cache=True, nogil=True)
def _arrange(offset, parent):
    size = len(offset) - 1
    first_child = np.zeros(size + 1, dtype=np.int32)
    for edge in range(len(parent)):
        first_child[parent[edge] + 1] += 1
    for stage in range(size):
        first_child[stage + 1] += first_child[stage]
    child = np.empty(len(parent), dtype=np.int32)
    position = first_child.copy()
    for stage in range(size):
        for edge in range(offset[stage], offset[stage + 1]):
            child[position[parent[edge]]] = stage
            position[parent[edge]] += 1
    order = topological_order(first_child, child).astype(np.int32)
    levels = np.zeros(size, dtype=np.int32)
    for index in range(len(order) - 1, -1, -1):
        stage = order[index]
        for edge in range(first_child[stage], first_child[stage + 1]):
            levels[stage] = max(levels[stage], levels[child[edge]] + 1)
    return (first_child, child), order, levels


@njit(cache=True, nogil=True)
def _wrong_parent(offset, parent):
    seen = np.full(len(offset) - 1, -1, dtype=np.int32)
    for stage in range(len(offset) - 1):
        for edge in range(offset[stage], offset[stage + 1]):
            if parent[edge] == stage or seen[parent[edge]] == stage:
                return stage
            seen[parent[edge]] = stage
    return -1


@njit(cache=True, nogil=True)
def _longest_path_down(order, offset, child, weight):
    length = np.zeros(len(weight))
    for index in range(len(order) - 1, -1, -1):
        stage = order[index]
        longest = 0.0
        for edge in range(offset[stage], offset[stage + 1]):
            longest = max(longest, length[child[edge]])
        length[stage] = weight[stage] + longest
    return length


@njit(cache=True, nogil=True)
def _finished(order, offset, parent, tasks, finished):
    unfinished_parents = np.zeros(len(order), dtype=np.int32)
    for stage in order:
        for edge in range(offset[stage], offset[stage + 1]):
            unfinished_parents[stage] += finished[parent[edge]] < tasks[parent[edge]]
        if finished[stage] == tasks[stage] and unfinished_parents[stage] > 0:
            finished[stage] -= 1
    return finished, unfinished_parents


@njit(cache=True, nogil=True)
def _ancestry(order, offset, parent, tasks):
    codes = np.zeros(len(order), dtype=np.uint64)
    for stage in order:
        # The sum does not depend on the order of the parents.
        code = np.uint64(tasks[stage])
        for edge in range(offset[stage], offset[stage + 1]):
            code += codes[parent[edge]]
        # Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014), the final mix of SplitMix64.
        code += np.uint64(0x9E3779B97F4A7C15)
        code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        codes[stage] = code ^ (code >> np.uint64(31))
    return codes
