"""Session for executors of unequal speeds: nodes with their executors and duplicated parents.

The service of section V-A of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment". A report
holds all that the client knows; the session remembers the graphs of jobs and what it made of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import grpc
import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError, invalid, out_of_step
from decima.connect.service.limits import Account, Limits
from decima.connect.service.session import PrivateSession
from decima.connect.service.steps import Steps, elsewhere
from decima.connect.service.wire import checked_number
from decima.core.errors import DecimaError, PolicyError, WorkloadError
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.continuation import decide
from decima.systems.heterogeneous.engine import ListRule
from decima.systems.heterogeneous.schedulers.registry import PlanScheduler
from decima.systems.heterogeneous.workload import Instance, Job

# Largest time; what is larger is no time in seconds.
_LATEST_S = 1e15
# Numbers of a message that are read at a time: between two parts, other threads may go first.
_PART = 4096
# Bytes of a report, and estimated microseconds of a decision, above which another thread takes it, which costs some
# hundred microseconds.
_QUICK_BYTES, _QUICK_US = 16_384, 1_000.0
# Bytes that one of each takes at most, with the arrays of a policy.
_NODE_BYTES, _EDGE_BYTES, _EXECUTOR_BYTES = 4_000, 500, 500


def read_cluster(request: protocol.OpenRequest) -> Steps[Cluster]:
    """Cluster that a client describes; without speeds, with times of one node.

    Raises:
        RefusalError: A number is out of range or missing.
    """
    unequal, count = request.unequal, request.executors
    if request.shared_cluster or request.delays:
        raise invalid("unequal executors belong to one driver that delays nothing; expected neither of the two")
    if unequal.speeds and len(unequal.speeds) != count:
        raise invalid(f"{len(unequal.speeds)} speeds are given for {count} executors; expected one for each, or none")
    if unequal.rates and len(unequal.rates) != count * count:
        expected = f"expected {count * count}, or one rate"
        raise invalid(f"{len(unequal.rates)} rates are given for {count} executors; {expected}")

    def cluster() -> Cluster:
        rate = np.inf if count == 1 and unequal.rate == 0.0 else unequal.rate
        if unequal.rates:
            rate = _array(unequal.rates).reshape(count, count)
        speeds = _array(unequal.speeds) if unequal.speeds else None
        return Cluster(speeds, rate, unequal.latency_s, None if unequal.speeds else np.ones((1, count)))

    try:
        return (yield from elsewhere(cluster, request.ByteSize() > _QUICK_BYTES))
    except WorkloadError as error:
        raise invalid(str(error)) from error


def _array(values: Sequence[float]) -> np.ndarray:
    """Numbers of a message as an array, float64."""
    array = np.empty(len(values))
    for begin in range(0, len(values), _PART):
        array[begin : begin + _PART] = values[begin : begin + _PART]
    return array


class NodeRule:
    """Scheduler that takes node after node; it has decided once, so it is compiled.

    Attributes:
        scheduler: The scheduler.
        has_pairs: Whether it keeps a number for each pair of node and executor.

    Raises:
        ConfigError: It needs whole instances.
    """

    def __init__(self, scheduler: PlanScheduler) -> None:
        self.scheduler = scheduler
        instance = Instance([Job("first", [1.0, 1.0], [(0, 1)], [1.0])], Cluster([1.0, 2.0], 1.0))
        rule = scheduler.list_rule(instance)
        self.has_pairs = bool(rule.planner.record.has_bias)
        copies = decide(rule, [], np.zeros(2), 0.0, 1)
        decide(rule, copies, np.zeros(2), 0.0)


@dataclass(frozen=True, eq=False)
class _NodeJob:
    """Job as its client described it."""

    job: Job
    index: dict[int, int]  # number of a node in the job by the client's id
    times_s: np.ndarray | None  # float64 [nodes, executors], where executors have no speeds


class NodeSession(PrivateSession):
    """Session of a client whose executors differ in speed.

    Raises:
        RefusalError: There is no room for it.
    """

    def __init__(
        self, request: protocol.OpenRequest, cluster: Cluster, offered: NodeRule, limits: Limits, account: Account
    ) -> None:
        super().__init__(request.client, limits, account)
        self.num_executors = request.executors
        self._offered, self._seed = offered, request.seed
        self._cluster, self._has_speeds = cluster, bool(request.unequal.speeds)
        self._jobs: dict[str, _NodeJob] = {}
        self._placed: Counter[str] = Counter()  # number of nodes with a copy by job, in the last call
        self._rule: ListRule | None = None
        self._order: list[_NodeJob] = []  # jobs of the rule's instance
        self._hold({})

    @property
    def num_jobs(self) -> int:
        """Number of jobs in the system."""
        return len(self._jobs)

    def overview(self, most: int) -> list[dict]:
        """So many of the jobs, for people."""
        sizes = [(key, len(each.index)) for key, each in list(self._jobs.items())[:most]]
        return [{"job": key, "stages": size, "waiting": size - self._placed[key]} for key, size in sizes]

    def assign(self, request: protocol.AssignRequest) -> Steps[protocol.Assignments]:
        """Take a report and decide about nodes.

        Raises:
            RefusalError: The message is wrong, or is not what comes next; or the scheduler failed.
        """
        checked_number("report", "now_s", request.now_s, high=_LATEST_S)
        self._calls.begin(request)
        long = request.ByteSize() > _QUICK_BYTES
        jobs = yield from elsewhere(lambda: self._read_jobs(request), long)
        effort_us = self._hold(jobs)
        self._jobs = jobs
        reply = protocol.Assignments(sequence=request.sequence)
        yield from elsewhere(lambda: self._answer(request, reply), long or effort_us >= _QUICK_US)
        self._calls.done()
        return reply

    # ---- what clients tell ------------------------------------------------------------------------------------------

    def _read_jobs(self, request: protocol.AssignRequest) -> dict[str, _NodeJob]:
        """The jobs in the system, by the client's ids."""
        known, jobs = {} if request.full else self._jobs, {}
        for message in request.jobs:
            where = f"job {message.job!r:.60}"
            if message.job in jobs:
                raise invalid(f"{where} is told a second time")
            if not message.nodes and message.job not in known:
                raise out_of_step(f"{where} has no nodes and is not known")
            jobs[message.job] = self._read_job(message, request.now_s) if message.nodes else known[message.job]
        for part, total in (("jobs", len(jobs)), *zip(("stages", "edges"), _sizes(jobs), strict=True)):
            self._limits.check(part, total, f"the report makes it {total} {part}")
        return jobs

    def _read_job(self, message: protocol.NodeJob, now_s: float) -> _NodeJob:
        limits, nodes = self._limits, message.nodes
        where = f"job {message.job!r:.60}"
        if not message.job or len(message.job) > limits.text or len(message.name) > limits.text:
            raise invalid(f"a job is {message.job!r:.60}; expected 1 to {limits.text} characters for it and its name")
        ends = [(node.node, each.parent, each.data) for node in nodes for each in node.inputs]
        for part, total in (("job_stages", len(nodes)), ("job_edges", len(ends))):
            limits.check(part, total, f"{where} has {total} of them")
        if not message.arrival_s <= now_s:
            raise invalid(f"{where} arrives at {message.arrival_s!r}; expected at most the time now, {now_s!r}")
        index = {node.node: number for number, node in enumerate(nodes)}
        if len(index) < len(nodes):
            raise invalid(f"{where}: a node is given twice")
        for child, parent, _ in ends:
            if parent not in index:
                raise invalid(f"{where}: node {child} has the parent {parent}, which the job has not")
        expected = 0 if self._has_speeds else self.num_executors
        for node in nodes:
            if len(node.times_s) != expected:
                raise invalid(f"{where}: node {node.node} has {len(node.times_s)} times; expected {expected}")
        edges = [(index[parent], index[child]) for child, parent, _ in ends]
        try:
            job = Job(message.job, [node.work for node in nodes], edges, [data for *_, data in ends], message.arrival_s)
            if self._has_speeds:
                return _NodeJob(job, index, None)
            times_s = np.array([_array(node.times_s) for node in nodes])
            return _NodeJob(job, index, Cluster(costs=times_s, rate=1.0).costs)
        except WorkloadError as error:
            raise invalid(str(error)) from error

    def _read_copies(self, request: protocol.AssignRequest, first: dict[str, int]) -> list[tuple]:
        """Copies with their nodes numbered as in the instance, by each job's first number."""
        copies, placed = [], set()
        for message in request.copies:
            where = f"job {message.job!r:.60}"
            if message.job not in first:
                raise out_of_step(f"{where} has a copy, but is not known")
            node = self._jobs[message.job].index.get(message.node)
            if node is None:
                raise invalid(f"{where} has no node {message.node}")
            self._check_executor(where, message.executor)
            where = f"{where}, node {message.node}"
            start_s = checked_number(where, "start_s", message.start_s, high=_LATEST_S)
            finish_s = checked_number(where, "finish_s", message.finish_s, low=start_s, high=_LATEST_S)
            node += first[message.job]
            if (node, message.executor) in placed:
                raise invalid(f"{where} is told twice on executor {message.executor}")
            placed.add((node, message.executor))
            copies.append((node, message.executor, start_s, finish_s, message.executed))
        return copies

    def _check_executor(self, where: str, executor: int) -> None:
        if executor >= self.num_executors:
            raise invalid(f"{where}: executor {executor} is not there; expected 0 to {self.num_executors - 1}")

    def _hold(self, jobs: dict[str, _NodeJob]) -> float:
        """Reserve memory before the arrays exist, and estimate the time of a decision in µs.

        Every node looks at every executor, and where their rates differ at the copies of every parent for each.
        """
        (nodes, edges), executors, uniform = _sizes(jobs), self.num_executors, self._cluster.uniform
        has_pairs = not self._has_speeds or self._offered.has_pairs
        numbers = 32 * (nodes * executors if has_pairs else 0) + 24 * (0 if uniform else executors * executors)
        self._account.hold("total_executors", executors)
        self._account.hold("total_stages", nodes)
        taken = nodes * _NODE_BYTES + edges * _EDGE_BYTES + executors * _EXECUTOR_BYTES
        self._account.hold("total_bytes", taken + numbers)
        evaluations = nodes + 2 * edges if has_pairs or not uniform else nodes
        return 20 * len(jobs) + 5 * nodes + edges + 0.005 * evaluations * executors + 0.01 * nodes * nodes

    # ---- decisions --------------------------------------------------------------------------------------------------

    def _answer(self, request: protocol.AssignRequest, reply: protocol.Assignments) -> None:
        """Decide, and write copies into the reply in the client's names."""
        order = sorted(self._jobs.values(), key=lambda each: each.job.arrival_s)
        available_s = np.zeros(self.num_executors)
        for message in request.executors:
            where = f"executor {message.executor}"
            self._check_executor("report", message.executor)
            available_s[message.executor] = checked_number(where, "available_s", message.available_s, high=_LATEST_S)
        sizes = accumulate((len(each.job) for each in order), initial=0)
        first = dict(zip([each.job.name for each in order], sizes, strict=False))
        copies = self._read_copies(request, first)
        if not order:
            return
        begin = time.perf_counter()
        try:
            if order != self._order:
                self._rule = self._offered.scheduler.list_rule(self._instance(order), self._seed)
                self._order = order
            answer = decide(self._rule, copies, available_s, request.now_s, request.most or None)
        except PolicyError as error:
            raise RefusalError(grpc.StatusCode.INTERNAL, f"the scheduler failed: {error}") from error
        except DecimaError as error:
            raise invalid(str(error)) from error
        reply.decide_us = 1e6 * (time.perf_counter() - begin)
        names = [(each.job.name, node) for each in order for node in each.index]
        for copy in answer:
            job, node = names[copy.node]
            times = {"start_s": copy.start_s, "finish_s": copy.finish_s}
            reply.assignments.add(job=job, node=node, executor=copy.executor, **times)
        self._placed = Counter(names[node][0] for node in {copy[0] for copy in (*copies, *answer)})

    def _instance(self, order: list[_NodeJob]) -> Instance:
        cluster = self._cluster
        if not self._has_speeds:
            costs = np.concatenate([each.times_s for each in order])
            cluster = Cluster(rate=cluster.rate, latency_s=cluster.latency_s, costs=costs)
        return Instance([each.job for each in order], cluster)


def _sizes(jobs: dict[str, _NodeJob]) -> tuple[int, int]:
    """Number of nodes and of edges of jobs."""
    return sum(len(each.index) for each in jobs.values()), sum(len(each.job.edges) for each in jobs.values())
