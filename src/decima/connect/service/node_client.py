"""Simulated cluster of unequal executors as a client that executes the service's assignments."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.client import ClientSession, ServiceClient, check_address
from decima.connect.service.security import read_token
from decima.connect.service.wire import VERSION
from decima.core.errors import ServiceError
from decima.core.grammar import Option
from decima.systems.heterogeneous.cluster import Cluster
from decima.systems.heterogeneous.result import Schedule
from decima.systems.heterogeneous.schedulers.registry import register
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

OPTIONS = (
    Option("service", "HOST:PORT of the service ('decima serve --unequal')", required=True),
    Option("scheduler", "which of its schedulers, parameters joined by + (default: the first it offers)", default=""),
)


def open_request(cluster: Cluster, **fields) -> protocol.OpenRequest:
    """Request that opens a session for a cluster, with further fields as they are."""
    unequal = protocol.UnequalExecutors(latency_s=cluster.latency_s, speeds=cluster.speeds)
    if cluster.uniform:
        unequal.rate = cluster.rate
    else:
        unequal.rates.extend(cluster.rate.ravel())
    return protocol.OpenRequest(version=VERSION, executors=len(cluster), unequal=unequal, **fields)


def schedule_by_service(
    instance: Instance,
    client: ServiceClient,
    scheduler: str = "",
    *,
    seed: int = 0,
    most: int = 0,
    forget: bool = False,
    patience_s: float = 10.0,
) -> Schedule:
    """Schedule an instance through the service, reporting arrivals and executed nodes as a platform would.

    The schedule is that of the service's scheduler in this process, to the last bit, where jobs are listed by arrival.

    Args:
        instance: Jobs and cluster.
        client: The service.
        scheduler: Name of one of its schedulers for unequal executors; its first one when empty.
        seed: Source of the scheduler's chance, 0 or more.
        most: Most nodes that one call decides; 0: all that can be.
        forget: Whether finished jobs are said to be gone. Policies then count times in units of what is left.
        patience_s: How long to wait for a service that does not answer.

    Raises:
        ServiceError: The service is away or refuses, or its answer is wrong.
    """
    opening = open_request(instance.cluster, client="simulator", scheduler=scheduler, seed=seed)
    session = ClientSession(client, opening, patience_s, method="Assign", reply=protocol.Assignments)
    platform = _Platform(instance, most, forget)
    try:
        while platform.goes_on():
            while True:
                reply = session.decide(platform.report)
                platform.execute(reply)
                if not most or not reply.assignments:
                    break
    finally:
        session.close()
    if len(platform.first_finish) < len(instance):
        raise ServiceError(
            f"the service decided {len(platform.first_finish)} of {len(instance)} nodes; expected all of them"
        )
    columns = zip(*platform.copies, strict=True)
    return Schedule(instance, *columns, scheduler=session.opened.scheduler)


@register("remote", "service", "this project", Rules(), open=(), options=OPTIONS)
def remote(instance: Instance, rules: Rules, rng: np.random.Generator, service: str, scheduler: str) -> Schedule:
    """Ask a service for every decision, while a simulated cluster executes what it answers.

    Raises:
        ServiceError: The service is away or refuses, or its answer is wrong.
    """
    check_address(service)
    with ServiceClient(service, token=read_token(None)) as client:
        return schedule_by_service(instance, client, scheduler.replace("+", ","), seed=int(rng.integers(2**31)))


@dataclass
class _Platform:
    """What a platform knows of the jobs that it executes."""

    instance: Instance
    most: int
    forget: bool
    now_s: float = 0.0
    copies: list[tuple[int, int, float, float]] = field(default_factory=list)  # node, executor, start, finish
    first_finish: dict[int, float] = field(default_factory=dict)  # by node
    _events: list[float] = field(default_factory=list)
    _reported: set[int] = field(default_factory=set)  # jobs whose nodes the service knows
    _gone: set[int] = field(default_factory=set)
    _before: int = 0  # copies that were there when this time began; what takes no time is seen to be executed after it

    def __post_init__(self) -> None:
        self._events = sorted({job.arrival_s for job in self.instance.jobs})

    def goes_on(self) -> bool:
        """Go to the next arrival or finish; False if there is none."""
        if not self._events:
            return False
        self._before = len(self.copies)
        self.now_s = heapq.heappop(self._events)
        while self._events and self._events[0] == self.now_s:
            heapq.heappop(self._events)
        return True

    def report(self, full: bool) -> protocol.AssignRequest:
        """The next report, without session and number."""
        instance = self.instance
        request = protocol.AssignRequest(now_s=self.now_s, most=self.most)
        if full:
            self._reported = set()
        elif self.forget:
            self._gone |= {job for job in self._reported if self._is_finished(job)}
        for number, job in enumerate(instance.jobs):
            if job.arrival_s <= self.now_s and number not in self._gone:
                message = request.jobs.add(job=str(number))
                if number not in self._reported:
                    self._describe(message, number)
                    self._reported.add(number)
        busy_s: dict[int, float] = {}
        for position, (node, executor, start_s, finish_s) in enumerate(self.copies):
            job = int(instance.job_of_node[node])
            if job in self._gone:  # what still runs of it keeps its executor
                busy_s[executor] = max(busy_s.get(executor, self.now_s), finish_s)
                continue
            executed = position < self._before and finish_s <= self.now_s
            times = {"start_s": start_s, "finish_s": finish_s, "executed": executed}
            request.copies.add(job=str(job), node=node - int(instance.first_node[job]), executor=executor, **times)
        for executor, available_s in busy_s.items():
            request.executors.add(executor=executor, available_s=available_s)
        return request

    def execute(self, reply: protocol.Assignments) -> None:
        """Follow every assignment; nodes finish when they were expected to."""
        instance = self.instance
        for copy in reply.assignments:
            job = int(copy.job) if copy.job.isdecimal() else -1
            if job not in self._reported - self._gone or not 0 <= copy.node < len(instance.jobs[job]):
                raise ServiceError(f"the service chose node {copy.node} of job {copy.job!r:.60}, which does not exist")
            if not copy.executor < len(instance.cluster):
                raise ServiceError(f"the service chose executor {copy.executor}, which does not exist")
            node = int(instance.first_node[job]) + copy.node
            self.copies.append((node, copy.executor, copy.start_s, copy.finish_s))
            if node not in self.first_finish:
                self.first_finish[node] = copy.finish_s
                heapq.heappush(self._events, copy.finish_s)

    def _is_finished(self, job: int) -> bool:
        nodes = range(int(self.instance.first_node[job]), int(self.instance.first_node[job + 1]))
        return all(self.first_finish.get(node, np.inf) <= self.now_s for node in nodes)

    def _describe(self, message: protocol.NodeJob, number: int) -> None:
        instance, job = self.instance, self.instance.jobs[number]
        message.name, message.arrival_s = job.name, job.arrival_s
        first, costs = int(instance.first_node[number]), instance.cluster.costs
        nodes = [message.nodes.add(node=node, work=work) for node, work in enumerate(job.work.tolist())]
        for node, each in enumerate(nodes):
            if costs is not None:
                each.times_s.extend(costs[first + node])
        for (parent, child), data in zip(job.edges.tolist(), job.data.tolist(), strict=True):
            nodes[child].inputs.add(parent=parent, data=data)
