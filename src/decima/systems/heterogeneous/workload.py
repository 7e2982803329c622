"""Jobs whose nodes are units of work, and instances: jobs on a cluster."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decima.core.checks import is_name
from decima.core.errors import WorkloadError
from decima.core.graphs import topological_order
from decima.systems.heterogeneous import graph
from decima.systems.heterogeneous.checking import frozen, number, numbers
from decima.systems.heterogeneous.cluster import Cluster


@dataclass(frozen=True, eq=False)
class Job:
    """DAG of nodes with an arrival time; one executor executes a whole node.

    Raises:
        WorkloadError: There is no node, a number is negative or NaN, an edge names a node that does not exist, is given
            twice or closes a cycle, or sizes of edges are missing.
    """

    name: str  # shown in tables and errors
    work: Sequence[float]  # float64 [nodes]; w / v seconds on an executor of speed v
    edges: Sequence[tuple[int, int]] = ()  # int64 [edges, 2]: parent, child
    data: Sequence[float] | None = None  # float64 [edges], sent from parent to child; units as the rates' per second
    arrival_s: float = 0.0
    nodes: Sequence[str] = ()  # names, different from each other; "0", "1", ... when omitted

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {len(self.nodes)} nodes)"

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise WorkloadError(f"a job's name is {self.name!r:.60}; expected a non-empty Unicode text")
        where = f"job {self.name!r}"
        work = numbers(f"{where}, work", self.work)
        if not len(work):
            raise WorkloadError(f"{where} has no nodes; expected at least one")
        object.__setattr__(self, "work", work)
        edges = np.asarray(self.edges)
        if edges.size == 0:
            edges = np.zeros((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise WorkloadError(f"{where}: edges are pairs of whole numbers (parent, child), got {self.edges!r:.60}")
        object.__setattr__(self, "edges", frozen(edges.astype(np.int64)))
        if self.data is None and len(edges):
            raise WorkloadError(f"{where}: the sizes of its {len(edges)} edges are missing; expected data for each")
        data = numbers(f"{where}, data", () if self.data is None else self.data)
        if len(data) != len(edges):
            raise WorkloadError(f"{where}: {len(data)} sizes for {len(edges)} edges; expected one for each")
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "arrival_s", number(f"{where}: arrival_s", self.arrival_s))
        names = tuple(self.nodes) or tuple(str(index) for index in range(len(work)))
        if not all(is_name(each) for each in names):
            wrong = next(each for each in names if not is_name(each))
            raise WorkloadError(f"{where}: a node's name is {wrong!r:.60}; expected a non-empty Unicode text")
        if len(names) != len(work) or len(set(names)) < len(names):
            raise WorkloadError(f"{where}: {len(names)} names for {len(work)} nodes; expected a different one for each")
        object.__setattr__(self, "nodes", names)
        self._check_edges(where)

    def _check_edges(self, where: str) -> None:
        count = len(self.work)
        unknown = ((self.edges < 0) | (self.edges >= count)).any(axis=1)
        if unknown.any():
            parent, child = self.edges[unknown][0]
            raise WorkloadError(f"{where}: edge {parent} -> {child} names an unknown node; expected 0 to {count - 1}")
        keys = np.sort(self.edges[:, 0] * count + self.edges[:, 1])
        twice = keys[1:][keys[1:] == keys[:-1]]
        if len(twice):
            parent, child = (self.nodes[each] for each in divmod(int(twice[0]), count))
            raise WorkloadError(f"{where}: the edge {parent} -> {child} is given twice")
        start, child, _ = graph.lists(self.edges[:, 0], self.edges[:, 1], self.data, count)
        order = topological_order(start, child)
        if len(order) < count:
            left = np.setdiff1d(np.arange(count), order)
            raise WorkloadError(f"{where}: the edges form a cycle, among {', '.join(self.nodes[i] for i in left[:5])}")

    def __len__(self) -> int:
        return len(self.work)


@dataclass(frozen=True, eq=False)
class Instance:
    """Jobs on a cluster; nodes are numbered job after job.

    Raises:
        WorkloadError: There is no job, or the cluster's matrix of costs has not one row for each node.
    """

    jobs: Sequence[Job]  # at least one
    cluster: Cluster
    label: str = "jobs"  # shown in titles

    def __repr__(self) -> str:
        from decima.plotting.words import count

        return (
            f"{self.label} ({count(len(self.jobs), 'job')}, {count(len(self), 'node')}, "
            f"{count(len(self.cluster), 'executor')}, CCR {self.ccr:.2g})"
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", tuple(self.jobs))
        if not self.jobs:
            raise WorkloadError("the instance has no jobs; expected at least one")
        for job in self.jobs:
            if not isinstance(job, Job):
                raise WorkloadError(
                    f"a job of the instance is {type(job).__name__}; expected a Job of heterogeneous executors"
                )
        if not isinstance(self.cluster, Cluster):
            raise WorkloadError(
                f"the cluster is {type(self.cluster).__name__}; expected a Cluster of heterogeneous executors"
            )
        if not is_name(self.label):
            raise WorkloadError(f"the label is {self.label!r:.60}; expected a non-empty Unicode text")
        costs = self.cluster.costs
        if costs is not None and len(costs) != len(self):
            raise WorkloadError(
                f"the matrix of costs is {len(costs)} x {len(self.cluster)}; expected {len(self)} x "
                f"{len(self.cluster)}, a row for each node"
            )

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "planner"}

    def __len__(self) -> int:
        return int(self.first_node[-1])

    @cached_property
    def first_node(self) -> np.ndarray:
        """First node of each job, and the number of nodes, int64 [jobs + 1]."""
        return frozen(np.concatenate([[0], np.cumsum([len(job) for job in self.jobs])]).astype(np.int64))

    @cached_property
    def job_of_node(self) -> np.ndarray:
        """int64 [nodes]."""
        return frozen(np.repeat(np.arange(len(self.jobs)), np.diff(self.first_node)))

    @cached_property
    def arrival_s(self) -> np.ndarray:
        """Arrival of each node's job in seconds, float64 [nodes]."""
        return frozen(np.array([job.arrival_s for job in self.jobs])[self.job_of_node])

    @cached_property
    def arrival_ms(self) -> np.ndarray:
        """Arrival of each job in milliseconds, float64 [jobs]."""
        return frozen(1000.0 * np.array([job.arrival_s for job in self.jobs]))

    def signature(self) -> str:
        """SHA-256 of jobs and executors, in hexadecimal."""
        cluster = self.cluster
        values = (cluster.speeds, cluster.rate, cluster.latency_s, cluster.costs)
        content = hashlib.sha256()
        for job in self.jobs:
            content.update(repr((job.name, job.nodes, job.arrival_s)).encode())
            content.update(job.work.tobytes() + job.edges.tobytes() + job.data.tobytes())
        for value in values:
            content.update(b"none" if value is None else np.asarray(value, dtype=np.float64).tobytes())
        return content.hexdigest()

    @cached_property
    def work(self) -> np.ndarray:
        """Work of each node, float64 [nodes]."""
        return frozen(np.concatenate([job.work for job in self.jobs]))

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        edges = np.concatenate([job.edges + first for job, first in zip(self.jobs, self.first_node, strict=False)])
        return edges[:, 0], edges[:, 1], np.concatenate([job.data for job in self.jobs])

    @cached_property
    def parents(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parents as concatenated lists: start int64 [nodes + 1], parent int64 [edges], data float64 [edges]."""
        parent, child, data = self._edges
        return tuple(frozen(each) for each in graph.lists(child, parent, data, len(self)))

    @cached_property
    def children(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Children as concatenated lists: start int64 [nodes + 1], child int64 [edges], data float64 [edges]."""
        parent, child, data = self._edges
        return tuple(frozen(each) for each in graph.lists(parent, child, data, len(self)))

    @cached_property
    def order(self) -> np.ndarray:
        """All nodes, parents before children, int64 [nodes]."""
        return frozen(topological_order(*self.children[:2]))

    @cached_property
    def mean_time_s(self) -> np.ndarray:
        """Execution time at the mean speed, as in Eq. 5, or :attr:`mean_cost_s`, float64 [nodes], seconds."""
        return self.mean_cost_s if self.cluster.speeds is None else frozen(self.work / self.cluster.mean_speed)

    @cached_property
    def mean_cost_s(self) -> np.ndarray:
        """Mean of a node's finite times over executors, float64 [nodes], seconds.

        Source: Topcuoglu, Hariri and Wu (2002), Eq. 1.
        """
        costs = self.cluster.costs
        if costs is None:
            return frozen(self.work * float(np.mean(1.0 / self.cluster.speeds)))
        possible = np.isfinite(costs)
        return frozen(costs.mean(axis=1) if possible.all() else costs.mean(axis=1, where=possible))

    @cached_property
    def least_time_s(self) -> np.ndarray:
        """Execution time on the executor that is fastest for the node, float64 [nodes], seconds."""
        costs = self.cluster.costs
        return frozen(self.work / self.cluster.speeds.max() if costs is None else costs.min(axis=1))

    @cached_property
    def times_s(self) -> np.ndarray:
        """Execution times, float64 [nodes, executors], seconds."""
        costs = self.cluster.costs
        return frozen(self.work[:, None] / self.cluster.speeds) if costs is None else costs

    def time_s(self, node: int, executor: int) -> float:
        """Execution time of a node on an executor in seconds."""
        costs = self.cluster.costs
        return float(self.work[node] / self.cluster.speeds[executor] if costs is None else costs[node, executor])

    def transfer_s(self, data: float, sender: int, receiver: int) -> float:
        """Transfer time in seconds between two executors; 0 on the same one."""
        if sender == receiver:
            return 0.0
        rate = self.cluster.rate if self.cluster.uniform else self.cluster.rate[sender, receiver]
        return float(self.cluster.latency_s + data / rate)

    def there_s(self, data: float, copies: Iterable[tuple[int, float]], executor: int) -> float:
        """Earliest time in seconds at which data of a node is on an executor.

        Args:
            data: Its size.
            copies: Executor and finish of each copy of the node.
            executor: Where it is needed.
        """
        return min(finish_s + self.transfer_s(data, sender, executor) for sender, finish_s in copies)

    def longest_down(self, node_values: np.ndarray, edge_values: np.ndarray | None = None) -> np.ndarray:
        """Largest sum of values on a path from each node down, itself included, float64 [nodes].

        Args:
            node_values: Float64 [nodes].
            edge_values: Float64 [edges], in the order of :attr:`children`; zeros when omitted.
        """
        start, child, data = self.children
        values = np.zeros(len(data)) if edge_values is None else edge_values
        return graph.longest_down(self.order, start, child, node_values, values)

    @property
    def ccr(self) -> float:
        """Communication-to-computation ratio: mean transfer over mean execution time; 0 without edges."""
        data = self.parents[2]
        mean = float(self.mean_time_s.mean())
        if not len(data) or mean == 0.0:
            return 0.0
        return float(self.cluster.mean_transfer_s(data).mean()) / mean

    def node_name(self, node: int) -> str:
        """Name of a node together with its job's."""
        job = int(self.job_of_node[node])
        return f"{self.jobs[job].name}/{self.jobs[job].nodes[node - int(self.first_node[job])]}"
