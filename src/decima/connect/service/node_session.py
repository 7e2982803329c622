"""Session for executors of unequal speeds: nodes with their executors and duplicated parents.

The service of section V-A of Luo et al., "Learning to Optimize DAG Scheduling in Heterogeneous Environment": the client
tells jobs, times from which executors are available and what was executed, and gets nodes with their executors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import grpc
import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError, exhausted, invalid, out_of_step
from decima.connect.service.limits import Account, Limits
from decima.connect.service.session import CallOrder
from decima.connect.service.steps import PAUSE, Steps
from decima.connect.service.wire import checked_number
from decima.core.errors import DecimaError, PolicyError, WorkloadError
from decima.systems.unequal.cluster import Cluster
from decima.systems.unequal.continuation import Copy, decide
from decima.systems.unequal.engine import ListRule
from decima.systems.unequal.schedulers.registry import PlanScheduler
from decima.systems.unequal.workload import Instance, Job

# Largest time; what is larger is no time in seconds.
_LATEST_S = 1e15
# Numbers of a message that are read at a time.
_PART = 4096
# Estimated microseconds of a decision above which it is made in another thread, which costs some hundred.
_QUICK_US = 1_000.0
# Bytes that one of each takes at most, with the arrays of a policy.
_NODE_BYTES, _EDGE_BYTES, _EXECUTOR_BYTES = 4_000, 500, 500


def read_cluster(request: protocol.OpenRequest, limits: Limits) -> Steps[Cluster]:
    """Cluster that a client describes; without speeds, with times of one node.

    Raises:
        RefusalError: A number is out of range or missing.
    """
    told, count = request.unequal, request.executors
    if not 1 <= count <= limits.executors:
        raise invalid(f"executors is {count}; expected 1 to {limits.executors}")
    if request.shared_cluster or request.delays:
        raise invalid("unequal executors belong to one driver that delays nothing; expected neither of the two")
    if told.speeds and len(told.speeds) != count:
        raise invalid(f"{len(told.speeds)} speeds are given for {count} executors; expected one for each, or none")
    if told.rates and len(told.rates) != count * count:
        raise invalid(f"{len(told.rates)} rates are given for {count} executors; expected {count * count}, or one rate")
    rate = np.inf if count == 1 and told.rate == 0.0 else told.rate
    if told.rates:
        rate = (yield from _array(told.rates)).reshape(count, count)
    speeds = (yield from _array(told.speeds)) if told.speeds else None
    try:
        return Cluster(speeds, rate, told.latency_s, None if told.speeds else np.ones((1, count)))
    except WorkloadError as error:
        raise invalid(str(error)) from error


def _array(values: Sequence[float]) -> Steps[np.ndarray]:
    """Numbers of a message as an array, float64."""
    array = np.empty(len(values))
    for begin in range(0, len(values), _PART):
        array[begin : begin + _PART] = values[begin : begin + _PART]
        yield
    return array


@dataclass(frozen=True)
class NodeRule:
    """Scheduler that takes node after node.

    Raises:
        ConfigError: It needs whole instances.
    """

    scheduler: PlanScheduler

    @cached_property
    def has_pairs(self) -> bool:
        """Whether it keeps a number for each pair of node and executor."""
        instance = Instance([Job("first", [1.0])], Cluster([1.0]))
        return bool(self.scheduler.list_rule(instance).planner.record.has_bias)

    def warm_up(self) -> None:
        """Decide once, so that compilation on first use happens before clients wait."""
        instance = Instance([Job("first", [1.0, 1.0], [(0, 1)], [1.0])], Cluster([1.0, 2.0], 1.0))
        rule = self.scheduler.list_rule(instance)
        copies = decide(rule, [], np.zeros(2), 0.0, 1)
        decide(rule, copies, np.zeros(2), 0.0)


@dataclass
class _NodeJob:
    """Job as its client described it, and the copies of its nodes."""

    job: Job
    ids: tuple[int, ...]  # the client's, by the number of a node in the job
    index: dict[int, int]  # number of a node by the client's id
    times_s: np.ndarray | None  # float64 [nodes, executors], where executors have no speeds
    number: int  # of jobs told before
    placed: set[int] = field(default_factory=set)  # numbers of the nodes that have a copy


@dataclass
class _Told:
    """What is known of a session's jobs."""

    jobs: dict[str, _NodeJob] = field(default_factory=dict)
    copies: dict[tuple[str, int, int], Copy] = field(default_factory=dict)  # by job, node's number in it, executor
    available_s: dict[int, float] = field(default_factory=dict)
    number: int = 0


class NodeSession:
    """Session of a client whose executors differ in speed.

    Args:
        request: How it was opened.
        cluster: What it describes, of :func:`read_cluster`.
        offered: Who decides.
        limits: Largest sizes.
        account: What the session takes.

    Attributes:
        turn: Held by whoever changes the session, in steps.

    Raises:
        RefusalError: There is no room for it.
    """

    watched = False

    def __init__(
        self, request: protocol.OpenRequest, cluster: Cluster, offered: NodeRule, limits: Limits, account: Account
    ) -> None:
        self.client = request.client
        self.turn = asyncio.Lock()
        self._offered, self._seed = offered, request.seed
        self._limits, self._account = limits, account
        self._cluster = cluster
        self._has_speeds = bool(request.unequal.speeds)
        self._executors = request.executors
        self._told = _Told()
        self._calls = CallOrder()
        self._rule: ListRule | None = None  # None: jobs have changed since it was made
        self._order: list[str] = []  # jobs in the order of the rule's instance
        self._hold()

    @property
    def num_jobs(self) -> int:
        """Number of jobs in the system."""
        return len(self._told.jobs)

    @property
    def num_executors(self) -> int:
        """Number of executors of the cluster."""
        return self._executors

    def overview(self, most: int) -> list[dict]:
        """So many of the jobs, for people."""
        jobs = list(self._told.jobs.items())[:most]
        return [
            {"job": key, "stages": len(each.ids), "waiting": len(each.ids) - len(each.placed)} for key, each in jobs
        ]

    def assign(self, request: protocol.AssignRequest) -> Steps[protocol.Assignments]:
        """Take a report and decide about nodes.

        Raises:
            RefusalError: The message is wrong, or is not what comes next; or the scheduler failed.
        """
        checked_number("report", "now_s", request.now_s, high=_LATEST_S)
        self._calls.begin(request)
        if request.full:
            yield from self._forget(set(self._told.jobs))
            self._told.available_s = {}
        yield from self._put_jobs(request)
        for count, message in enumerate(request.copies):
            self._put_copy(message, request.full)
            if count % PAUSE == 0:
                yield
        for count, message in enumerate(request.executors):
            if count % PAUSE == 0:
                yield
            if message.executor >= self._executors:
                raise invalid(f"executor {message.executor} is not there; expected 0 to {self._executors - 1}")
            where = f"executor {message.executor}"
            self._told.available_s[message.executor] = checked_number(
                where, "available_s", message.available_s, high=_LATEST_S
            )
        self._hold()
        reply = protocol.Assignments(sequence=request.sequence)
        if self._told.jobs:
            work = self._deciding(request)
            if self._effort_us() < _QUICK_US:
                made = work()
            else:
                done = yield work
                made = done.result()
            reply.decide_us = made[1]
            yield from self._put_assignments(reply, made[0])
        self._calls.done()
        return reply

    def leave(self) -> Steps[None]:
        """End the session."""
        self._account.close()
        yield from ()

    # ---- what clients tell ------------------------------------------------------------------------------------------

    def _forget(self, gone: set[str]) -> Steps[None]:
        """Forget jobs and the copies of their nodes; the others keep their order."""
        told, kept = self._told, {}
        self._rule = None
        for count in range(len(told.copies)):
            key, copy = told.copies.popitem()
            if key[0] not in gone:
                kept[key] = copy
            if count % PAUSE == 0:
                yield
        while kept:
            key, copy = kept.popitem()
            told.copies[key] = copy
            if len(kept) % PAUSE == 0:
                yield
        for name in gone:
            told.jobs.pop(name)
            yield

    def _put_jobs(self, request: protocol.AssignRequest) -> Steps[None]:
        told, gone = self._told, set()
        for count, name in enumerate(request.gone):
            if name in told.jobs:
                gone.add(name)
            if count % PAUSE == 0:
                yield
        if gone:
            yield from self._forget(gone)
        for message in request.jobs:
            if message.job in told.jobs:
                raise invalid(f"job {message.job!r:.60} is told a second time")
            told.jobs[message.job] = yield from self._read_job(message, request.now_s)
            self._rule = None
            yield
        sizes = (
            ("jobs", len(told.jobs)),
            ("stages", sum(len(each.ids) for each in told.jobs.values())),
            ("edges", sum(len(each.job.edges) for each in told.jobs.values())),
        )
        for kind, total in sizes:
            if total > getattr(self._limits, kind):
                raise exhausted(
                    f"the report makes it {total} {kind}; the service takes {getattr(self._limits, kind)} ({kind})"
                )

    def _read_job(self, message: protocol.NodeJob, now_s: float) -> Steps[_NodeJob]:
        limits, nodes = self._limits, message.nodes
        where = f"job {message.job!r:.60}"
        if not message.job or len(message.job) > limits.text or len(message.name) > limits.text:
            raise invalid(f"a job is {message.job!r:.60}; expected 1 to {limits.text} characters for it and its name")
        edges = 0
        for kind in ("job_stages", "job_edges"):
            total = len(nodes) if kind == "job_stages" else (edges := sum(len(node.inputs) for node in nodes))
            if total > getattr(limits, kind):
                raise exhausted(f"{where} has {total} of them; the service takes {getattr(limits, kind)} ({kind})")
        if not message.arrival_s <= now_s:
            raise invalid(f"{where} arrives at {message.arrival_s!r}; expected at most the time now, {now_s!r}")
        index = {node.node: number for number, node in enumerate(nodes)}
        if len(index) < len(nodes):
            raise invalid(f"{where}: a node is given twice")
        yield
        work, ends, data = np.empty(len(nodes)), np.empty((edges, 2), dtype=np.int64), np.empty(edges)
        expected, edge = 0 if self._has_speeds else self._executors, 0
        times_s = np.empty((len(nodes), expected))
        for number, node in enumerate(nodes):
            work[number] = node.work
            for each in node.inputs:
                if each.parent not in index:
                    raise invalid(f"{where}: node {node.node} has the parent {each.parent}, which the job has not")
                ends[edge] = index[each.parent], number
                data[edge] = each.data
                edge += 1
                if edge % PAUSE == 0:
                    yield
            if len(node.times_s) != expected:
                raise invalid(f"{where}: node {node.node} has {len(node.times_s)} times; expected {expected}")
            if expected:
                times_s[number] = yield from _array(node.times_s)
            if number % PAUSE == 0:
                yield
        try:
            job = Job(message.job, work, ends, data, message.arrival_s)
            if not self._has_speeds:
                times_s = Cluster(costs=times_s, rate=1.0).costs
        except WorkloadError as error:
            raise invalid(str(error)) from error
        self._told.number += 1
        return _NodeJob(job, tuple(index), index, None if self._has_speeds else times_s, self._told.number)

    def _put_copy(self, message: protocol.Copy, may_be_new: bool) -> None:
        told, where = self._told, f"job {message.job!r:.60}"
        if message.job not in told.jobs:
            raise out_of_step(f"{where} has a copy, but is not known")
        node = told.jobs[message.job].index.get(message.node)
        if node is None:
            raise invalid(f"{where} has no node {message.node}")
        if message.executor >= self._executors:
            raise invalid(f"{where}: executor {message.executor} is not there; expected 0 to {self._executors - 1}")
        where = f"{where}, node {message.node}"
        start_s = checked_number(where, "start_s", message.start_s, high=_LATEST_S)
        finish_s = checked_number(where, "finish_s", message.finish_s, low=start_s, high=_LATEST_S)
        key = message.job, node, message.executor
        if (key in told.copies) == may_be_new:
            if may_be_new:
                raise invalid(f"{where} is told twice on executor {message.executor}")
            raise out_of_step(f"{where} has a copy on executor {message.executor} that was not answered")
        told.copies[key] = Copy(node, message.executor, start_s, finish_s, message.executed)
        told.jobs[message.job].placed.add(node)

    def _hold(self) -> None:
        """Reserve what the session takes, before the arrays are allocated."""
        jobs = self._told.jobs.values()
        nodes, edges = sum(len(each.ids) for each in jobs), sum(len(each.job.edges) for each in jobs)
        executors = self._executors
        pairs = nodes * executors if self._has_pairs else 0
        rates = 0 if self._cluster.uniform else executors * executors
        self._account.hold("total_executors", executors)
        self._account.hold("total_stages", nodes)
        taken = nodes * _NODE_BYTES + edges * _EDGE_BYTES + executors * _EXECUTOR_BYTES + 32 * pairs + 24 * rates
        self._account.hold("total_bytes", taken)

    @property
    def _has_pairs(self) -> bool:
        """Whether there is a number for each pair of node and executor."""
        return not self._has_speeds or self._offered.has_pairs

    # ---- decisions --------------------------------------------------------------------------------------------------

    def _effort_us(self) -> float:
        """Estimate of how long a decision takes, in microseconds; rather too long.

        Every node looks at every executor, and where their rates differ at the copies of every parent for each.
        """
        told = self._told
        jobs = told.jobs.values()
        nodes, edges = sum(len(each.ids) for each in jobs), sum(len(each.job.edges) for each in jobs)
        looks = nodes + 2 * edges if self._has_pairs or not self._cluster.uniform else nodes
        objects = 20 * len(jobs) + 3 * nodes + edges + 2 * len(told.copies)
        return objects + 0.005 * looks * self._executors + 0.01 * nodes * nodes

    def _deciding(self, request: protocol.AssignRequest) -> Callable[[], tuple[list[Copy], float]]:
        def work() -> tuple[list[Copy], float]:
            begin = time.perf_counter()
            try:
                made = self._decide(request.now_s, request.most)
            except PolicyError as error:
                raise RefusalError(grpc.StatusCode.INTERNAL, f"the scheduler failed: {error}") from error
            except DecimaError as error:
                raise invalid(str(error)) from error
            return made, 1e6 * (time.perf_counter() - begin)

        return work

    def _decide(self, now_s: float, most: int) -> list[Copy]:
        told = self._told
        if self._rule is None:
            jobs = told.jobs
            self._order = sorted(jobs, key=lambda each: (jobs[each].job.arrival_s, jobs[each].number))
            instance = Instance(
                [jobs[each].job for each in self._order],
                self._cluster if self._has_speeds else self._cluster_of_times(),
            )
            self._rule = self._offered.scheduler.list_rule(instance, self._seed)
        first = dict(zip(self._order, self._rule.planner.instance.first_node.tolist(), strict=False))
        copies = [(first[job] + node, *copy[1:]) for (job, node, _), copy in told.copies.items()]
        available_s = np.zeros(self._executors)
        for executor, time_s in told.available_s.items():
            available_s[executor] = time_s
        return decide(self._rule, copies, available_s, now_s, most or None)

    def _cluster_of_times(self) -> Cluster:
        costs = np.concatenate([self._told.jobs[each].times_s for each in self._order])
        return Cluster(rate=self._cluster.rate, latency_s=self._cluster.latency_s, costs=costs)

    def _put_assignments(self, reply: protocol.Assignments, made: Sequence[Copy]) -> Steps[None]:
        """Write copies into the reply, in the client's names, and remember them."""
        instance = self._rule.planner.instance
        behind = None
        for count, copy in enumerate(made):
            if count % PAUSE == 0:
                yield
            place = int(instance.job_of_node[copy.node])
            name = self._order[place]
            node = copy.node - int(instance.first_node[place])
            job = self._told.jobs[name]
            self._told.copies[name, node, copy.executor] = copy._replace(node=node)
            if node in job.placed:
                behind = protocol.Duplicate(node=job.ids[node], start_s=copy.start_s, finish_s=copy.finish_s)
                continue
            job.placed.add(node)
            reply.assignments.add(
                job=name,
                node=job.ids[node],
                executor=copy.executor,
                start_s=copy.start_s,
                finish_s=copy.finish_s,
                duplicate=behind,
            )
            behind = None
