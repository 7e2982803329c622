"""Schedules: when which executor executes which copy of which node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy as shallow
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.display import ShownRun
from decima.core.errors import ConfigError
from decima.core.objectives import Objective, Outcome, objective_at_end
from decima.core.system import TASK_COLUMNS
from decima.systems.heterogeneous.checking import InvalidScheduleError, frozen
from decima.systems.heterogeneous.workload import Instance

if TYPE_CHECKING:
    import pandas

    from decima.systems.heterogeneous.settings import Settings


@dataclass(frozen=True, eq=False)
class Schedule:
    """Nodes and their duplicates on executors, in the order in which they were decided.

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

    def signed(self, scheduler: str, settings: dict[str, Any]) -> Schedule:
        """The same schedule with a scheduler's name and settings."""
        named = shallow(self)
        vars(named).update(scheduler=scheduler, settings=settings)
        return named

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


# ---- rules that a schedule has to keep, written apart from all schedulers --------------------------------------------

#: Differences of times up to this part of the schedule's length are rounding.
TOLERANCE = 1e-9


def validate(instance: Instance, schedule: Schedule) -> None:
    """Check a schedule against the rules of the model.

    Every node has a copy; a copy takes as long as its executor needs; none begins before its job has arrived or before
    the data of all parents is there, each from the copy whose data arrives first (Eq. 2); an executor executes one node
    at a time and finishes what it has begun.

    Args:
        instance: The jobs and the cluster.
        schedule: The schedule, which may come from anywhere.

    Raises:
        InvalidScheduleError: A rule is broken; the message names the first breach and counts the others.
    """
    faults = list(violations(instance, schedule))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InvalidScheduleError(f"{faults[0]}{more}")


def violations(instance: Instance, schedule: Schedule) -> Iterator[str]:
    """Sentences about everything that breaks a rule of :func:`validate`; none for a valid schedule."""
    nodes, executors = len(instance), len(instance.cluster)
    for name, values, count in (("node", schedule.node, nodes), ("executor", schedule.executor, executors)):
        wrong = values[(values < 0) | (values >= count)]
        if len(wrong):
            yield f"{name} {wrong[0]} is unknown; the instance has {count}"
            return
    for name, values in (("start_s", schedule.start_s), ("finish_s", schedule.finish_s)):
        if not np.isfinite(values).all():
            yield f"{name} of copy {int(np.argmin(np.isfinite(values)))} is not a finite number"
            return
    copies: list[list[int]] = [[] for _ in range(nodes)]
    for copy, node in enumerate(schedule.node.tolist()):
        copies[node].append(copy)
    for node in range(nodes):
        if not copies[node]:
            yield f"node {instance.node_name(node)} has no copy"
    slack = TOLERANCE * max(1.0, float(np.abs(schedule.finish_s).max(initial=0.0)))
    yield from _times(instance, schedule, slack)
    yield from _overlaps(instance, schedule, slack)
    yield from _inputs(instance, schedule, copies, slack)


def _times(instance: Instance, schedule: Schedule, slack: float) -> Iterator[str]:
    for copy in range(len(schedule)):
        node, executor = int(schedule.node[copy]), int(schedule.executor[copy])
        start_s, finish_s = float(schedule.start_s[copy]), float(schedule.finish_s[copy])
        needed_s = instance.time_s(node, executor)
        if np.isinf(needed_s):
            yield f"{_copy(schedule, copy)} cannot be: this executor cannot execute the node"
        elif abs(finish_s - start_s - needed_s) > slack:
            yield (
                f"{_copy(schedule, copy)} takes {finish_s - start_s:g} s; expected {needed_s:g} s, without interruption"
            )
        if start_s < instance.arrival_s[node] - slack:
            yield f"{_copy(schedule, copy)} begins at {start_s:g} s; its job arrives at {instance.arrival_s[node]:g} s"


def _overlaps(instance: Instance, schedule: Schedule, slack: float) -> Iterator[str]:
    order = np.lexsort((schedule.finish_s, schedule.start_s, schedule.executor))
    last, until_s = -1, -np.inf
    for copy in order.tolist():
        if last >= 0 and schedule.executor[copy] != schedule.executor[last]:
            last, until_s = -1, -np.inf
        if schedule.start_s[copy] < until_s - slack:
            yield (
                f"{_copy(schedule, copy)} begins at {schedule.start_s[copy]:g} s, while the executor is busy with "
                f"{instance.node_name(int(schedule.node[last]))} until {until_s:g} s"
            )
        if schedule.finish_s[copy] >= until_s:
            last, until_s = copy, float(schedule.finish_s[copy])


def _inputs(instance: Instance, schedule: Schedule, copies: list[list[int]], slack: float) -> Iterator[str]:
    start, parents, data = instance.parents
    for copy in range(len(schedule)):
        node, executor = int(schedule.node[copy]), int(schedule.executor[copy])
        for edge in range(start[node], start[node + 1]):
            parent = int(parents[edge])
            there_s = min(
                (
                    schedule.finish_s[each]
                    + instance.transfer_s(float(data[edge]), int(schedule.executor[each]), executor)
                    for each in copies[parent]
                ),
                default=np.inf,
            )
            if copies[parent] and schedule.start_s[copy] < there_s - slack:
                yield (
                    f"{_copy(schedule, copy)} begins at {schedule.start_s[copy]:g} s; the data of "
                    f"{instance.node_name(parent)} is there at {there_s:g} s"
                )


def _copy(schedule: Schedule, copy: int) -> str:
    instance = schedule.instance
    return (
        f"the copy of {instance.node_name(int(schedule.node[copy]))} on executor "
        f"{instance.cluster.names[int(schedule.executor[copy])]}"
    )


# ---- metrics and objectives ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metrics:
    """Numbers about one schedule."""

    makespan_s: float  # from time 0 until the last job completes
    speedup: float  # Eq. 13: all nodes one after the other on the best executor, over the makespan
    slr: float  # Eq. 14: makespan over the longest path with the smallest times; NaN where jobs arrive later than 0
    avg_jct_s: float  # mean time from arrival to completion of a job
    utilisation: float  # part of executors x finish of the last copy that nodes are executed in, 0 to 1
    duplicates: int  # copies beyond one per node
    duplicated: float  # part of the executed time that further copies take, 0 to 1
    transferred: float  # data sent between executors, each copy reading the copy whose data arrives first


@dataclass(frozen=True, eq=False)
class HeterogeneousOutcome(Outcome):
    """Outcome of a schedule with its metrics and a lower bound."""

    metrics: Metrics
    bound_s: float  # no schedule of the instance is shorter


OBJECTIVES = (
    objective_at_end(
        "above_bound",
        "makespan over the lower bound",
        "",
        lambda run: _over(run.metrics.makespan_s, run.bound_s),
        digits=3,
    ),
    objective_at_end("speedup", "speedup", "", lambda run: run.metrics.speedup, "max"),
    objective_at_end("slr", "schedule length ratio", "", lambda run: run.metrics.slr),
    objective_at_end("utilisation", "utilisation", "", lambda run: run.metrics.utilisation, "max"),
    objective_at_end("duplicates", "further copies", "", lambda run: float(run.metrics.duplicates)),
    objective_at_end("transferred", "data sent", "", lambda run: run.metrics.transferred),
)


def metrics(schedule: Schedule) -> Metrics:
    """Compute the metrics of a valid schedule; all copies count as work."""
    instance = schedule.instance
    makespan_s = schedule.makespan_s
    busy = schedule.finish_s - schedule.start_s
    reads = schedule.sources()
    return Metrics(
        makespan_s=makespan_s,
        speedup=_over(sequential_s(instance), makespan_s),
        slr=_over(makespan_s, critical_path_s(instance)) if instance.arrival_s.max() == 0.0 else float("nan"),
        avg_jct_s=float(np.mean(schedule.completion_s - [job.arrival_s for job in instance.jobs])),
        utilisation=_over(float(busy.sum()), len(instance.cluster) * float(schedule.finish_s.max())),
        duplicates=int(schedule.duplicate.sum()),
        duplicated=_over(float(busy[schedule.duplicate].sum()), float(busy.sum())),
        transferred=_transferred(schedule, reads),
    )


def sequential_s(instance: Instance) -> float:
    """Time in s of all nodes on the best executor (Eq. 13), NaN without one."""
    cluster = instance.cluster
    if cluster.costs is not None:
        alone_s = float(cluster.costs.sum(axis=0).min())
        return alone_s if np.isfinite(alone_s) else float("nan")
    return float(instance.work.sum() / cluster.speeds.max())


def critical_path_s(instance: Instance) -> float:
    """Longest path in seconds with smallest times and no transfers (Eq. 14)."""
    return float(instance.longest_down(instance.least_time_s).max())


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else float("nan")


def _transferred(schedule: Schedule, reads: np.ndarray) -> float:
    start, _, data = schedule.instance.parents
    # Reads come copy by copy, in the order of each node's parents.
    edges = [np.arange(start[node], start[node + 1]) for node in schedule.node]
    sent = data[np.concatenate(edges)] if edges else np.zeros(0)
    apart = schedule.executor[reads[:, 0]] != schedule.executor[reads[:, 1]]
    return float(sent[apart].sum())
