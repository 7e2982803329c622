"""Schedules: when which executor executes which copy of which node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.display import ShownRun
from decima.core.errors import ConfigError
from decima.core.objectives import Objective
from decima.core.system import TASK_COLUMNS
from decima.systems.heterogeneous.checking import InvalidScheduleError, frozen
from decima.systems.heterogeneous.workload import Instance

if TYPE_CHECKING:
    import pandas

    from decima.systems.heterogeneous.objectives import HeterogeneousOutcome
    from decima.systems.heterogeneous.settings import Settings


@dataclass(frozen=True, eq=False)
class Schedule:
    """Copies of nodes on executors, in the order in which they were decided.

    Nothing is checked here but the types and lengths of the arrays; :func:`decima.systems.heterogeneous.validate`
    checks the rest.

    Raises:
        InvalidScheduleError: An array is not one of numbers, nodes or executors are not whole, or lengths differ.
    """

    instance: Instance
    node: Sequence[int]  # int64 [copies]
    executor: Sequence[int]  # int64 [copies]
    start_s: Sequence[float]  # float64 [copies], seconds
    finish_s: Sequence[float]  # float64 [copies], seconds
    duplicate: Sequence[bool] | None = None  # bool [copies]: a further copy of a node; worked out when omitted
    scheduler: str = ""  # who made it
    settings: dict[str, Any] = field(default_factory=dict)  # what it was made with, for result files

    def __post_init__(self) -> None:
        kinds = {"node": np.int64, "executor": np.int64, "start_s": np.float64, "finish_s": np.float64}
        for name, role in kinds.items():
            object.__setattr__(self, name, frozen(_column(name, getattr(self, name), role)))
        if self.duplicate is None:
            duplicate = np.ones(len(self.node), dtype=bool)
            duplicate[np.unique(self.node, return_index=True)[1]] = False
        else:
            duplicate = np.array(self.duplicate, dtype=bool)
        object.__setattr__(self, "duplicate", frozen(duplicate))
        lengths = {len(getattr(self, name)) for name in (*kinds, "duplicate")}
        if len(lengths) > 1:
            raise InvalidScheduleError(f"the arrays of a schedule have {sorted(lengths)} entries; expected one length")

    def __len__(self) -> int:
        return len(self.node)

    @classmethod
    def in_order(cls, instance: Instance, copies: Iterable[tuple[int, int]]) -> Schedule:
        """Copies in an order, each as early as those before it allow.

        A copy begins when its job has arrived, its inputs are there, and its executor has done what is before it.

        Args:
            instance: Jobs and cluster.
            copies: Node and executor of each; there is a copy of each parent before.
        """
        start, parent, data = instance.parents
        free_s = [0.0] * len(instance.cluster)
        done: list[list[tuple[int, float]]] = [[] for _ in range(len(instance))]
        rows = []
        for node, executor in copies:
            start_s = max(free_s[executor], float(instance.arrival_s[node]))
            for edge in range(start[node], start[node + 1]):
                start_s = max(start_s, instance.there_s(float(data[edge]), done[parent[edge]], executor))
            finish_s = free_s[executor] = start_s + instance.time_s(node, executor)
            done[node].append((executor, finish_s))
            rows.append((node, executor, start_s, finish_s))
        return cls(instance, *zip(*rows, strict=True))

    @cached_property
    def first_finish_s(self) -> np.ndarray:
        """Finish of each node's first copy, float64 [nodes]; infinite for a node without a copy."""
        first = np.full(len(self.instance), np.inf)
        np.minimum.at(first, self.node, self.finish_s)
        return frozen(first)

    @cached_property
    def completion_s(self) -> np.ndarray:
        """Completion of each job, float64 [jobs]: its last node's first copy finishes."""
        return frozen(np.maximum.reduceat(self.first_finish_s, self.instance.first_node[:-1]))

    @property
    def makespan_s(self) -> float:
        """Time in seconds from 0 until the last job completes."""
        return float(self.completion_s.max())

    def frame(self) -> pandas.DataFrame:
        """One row per copy: job, node (name), executor (name), start_s, finish_s, duplicate."""
        import pandas

        instance = self.instance
        job = instance.job_of_node[self.node]
        names = [instance.jobs[j].nodes[i - instance.first_node[j]] for i, j in zip(self.node, job, strict=True)]
        return pandas.DataFrame(
            {
                "job": [instance.jobs[each].name for each in job],
                "node": names,
                "executor": [instance.cluster.names[each] for each in self.executor],
                "start_s": self.start_s,
                "finish_s": self.finish_s,
                "duplicate": self.duplicate,
            }
        )

    def sources(self) -> np.ndarray:
        """Reads between copies, int64 [reads, 2]: copy that is read, copy that reads.

        It is the one whose data arrives first, the one decided first among equals (Eq. 2, nearest copy).

        Raises:
            ConfigError: A parent has no copy.
        """
        start, parent, data = self.instance.parents
        copies: list[list[int]] = [[] for _ in range(len(self.instance))]
        for copy, node in enumerate(self.node.tolist()):
            copies[node].append(copy)
        finish, executor = self.finish_s.tolist(), self.executor.tolist()
        reads = []
        for copy, node in enumerate(self.node.tolist()):
            for edge in range(start[node], start[node + 1]):
                if not copies[parent[edge]]:
                    raise ConfigError(f"node {self.instance.node_name(int(parent[edge]))} is not in the schedule")
                read = min(
                    copies[parent[edge]],
                    key=lambda each: (
                        finish[each] + self.instance.transfer_s(data[edge], executor[each], executor[copy])
                    ),
                )
                reads.append((read, copy))
        return np.array(reads, dtype=np.int64).reshape(-1, 2)


def _column(name: str, values: Any, role: type) -> np.ndarray:
    """Copy of a column of a schedule as an array of a type."""
    try:
        column = np.array(values)
    except ValueError:  # rows of different lengths
        column = np.array("nested")
    whole = column.size == 0 or column.dtype.kind in ("iu" if role is np.int64 else "iuf")
    if column.ndim != 1 or not whole:
        expected = "whole numbers" if role is np.int64 else "numbers of seconds"
        raise InvalidScheduleError(f"{name} of a schedule is {values!r:.60}; expected a list of {expected}")
    return column.astype(role)


@dataclass(frozen=True, eq=False)
class HeterogeneousResult(ShownRun):
    """A schedule as the result of a run."""

    schedule: Schedule
    settings: Settings
    scheduler: str
    seed: int
    outcome: HeterogeneousOutcome

    def __str__(self) -> str:
        scores, floor_s = self.outcome.metrics, self.outcome.bound_s
        above = f" ({scores.makespan_s / floor_s:.3f} of the lower bound)" if floor_s > 0.0 else ""
        return (
            f"{self.workload}: {self.scheduler} takes {scores.makespan_s:g} s{above}, speedup {scores.speedup:.2f}, "
            f"average JCT {scores.avg_jct_s:.2f} s, utilisation {100.0 * scores.utilisation:.1f} %, "
            f"{scores.duplicates} further copies"
        )

    __repr__ = ShownRun.__repr__

    @property
    def workload(self) -> Instance:
        """Jobs on their executors."""
        return self.schedule.instance

    @property
    def num_executors(self) -> int:
        """Number of executors."""
        return len(self.workload.cluster)

    @property
    def makespan_s(self) -> float:
        """Time in seconds from 0 until the last job completes."""
        return self.schedule.makespan_s

    @property
    def avg_jct_s(self) -> float:
        """Mean time in seconds from arrival to completion of a job."""
        return self.outcome.metrics.avg_jct_s

    def score(self, objective: Objective) -> float:
        """Score by an objective."""
        return objective.measure(self.outcome)

    def task_frame(self) -> pandas.DataFrame:
        """One row per copy, columns :data:`decima.core.system.TASK_COLUMNS`; a stage is a node of its job."""
        import pandas

        schedule, instance = self.schedule, self.workload
        job = instance.job_of_node[schedule.node]
        role = np.where(schedule.duplicate, "copy", "run")
        node = schedule.node - instance.first_node[job]
        columns = (job, node, schedule.executor, schedule.start_s, schedule.finish_s, role)
        return pandas.DataFrame(dict(zip(TASK_COLUMNS, columns, strict=True)))
