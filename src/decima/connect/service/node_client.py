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
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.schedulers.registry import register
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance

OPTIONS = (
    Option("service", "HOST:PORT of the service ('decima serve --unequal')", required=True),
    Option("scheduler", "which of its schedulers, parameters joined by + (default: the first it offers)", default=""),
)


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
    cluster = instance.cluster
    unequal = protocol.UnequalExecutors(latency_s=cluster.latency_s)
    if cluster.speeds is not None:
        unequal.speeds.extend(cluster.speeds)
    if cluster.uniform:
        unequal.rate = cluster.rate
    else:
        unequal.rates.extend(cluster.rate.ravel())
    opening = protocol.OpenRequest(
        version=VERSION, client="simulator", executors=len(cluster), scheduler=scheduler, seed=seed, unequal=unequal
    )
    session = ClientSession(client, opening, patience_s, method="Assign", kind=protocol.Assignments)
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
    _told_jobs: set[int] = field(default_factory=set)
    _told_executed: set[int] = field(default_factory=set)  # places in ``copies``
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
        request = protocol.AssignRequest(full=full, now_s=self.now_s, most=self.most)
        if full:
            self._told_jobs, self._told_executed = set(), set()
        finished = {job for job in self._told_jobs if self._is_finished(job)} if self.forget else set()
        for number, job in enumerate(instance.jobs):
            if number not in self._told_jobs | self._gone and job.arrival_s <= self.now_s:
                self._add_job(request.jobs.add(), number)
                self._told_jobs.add(number)
        if finished:
            request.gone.extend(str(job) for job in sorted(finished))
            self._told_jobs -= finished
            self._gone |= finished
            # What still runs of a job that is gone keeps its executor.
            busy_s = np.zeros(len(instance.cluster))
            for node, executor, _, finish_s in self.copies:
                if int(instance.job_of_node[node]) in self._gone:
                    busy_s[executor] = max(busy_s[executor], finish_s)
            for executor in np.flatnonzero(busy_s > self.now_s).tolist():
                request.executors.add(executor=executor, available_s=busy_s[executor])
        for place, (node, executor, start_s, finish_s) in enumerate(self.copies):
            job = int(instance.job_of_node[node])
            executed = place < self._before and finish_s <= self.now_s
            if job in self._gone or place in self._told_executed or not (full or executed):
                continue
            if executed:
                self._told_executed.add(place)
            request.copies.add(
                job=str(job),
                node=node - int(instance.first_node[job]),
                executor=executor,
                start_s=start_s,
                finish_s=finish_s,
                executed=executed,
            )
        return request

    def execute(self, reply: protocol.Assignments) -> None:
        """Execute the assignments; every node finishes at its expected time."""
        for told in reply.assignments:
            if told.HasField("duplicate"):
                self._execute(told, told.duplicate)
            node = self._execute(told, told)
            self.first_finish[node] = told.finish_s
            heapq.heappush(self._events, told.finish_s)

    def _execute(self, told: protocol.Assignment, copy: protocol.Assignment | protocol.Duplicate) -> int:
        instance = self.instance
        job = int(told.job) if told.job.isdecimal() else -1
        if job not in self._told_jobs or not 0 <= copy.node < len(instance.jobs[job]):
            raise ServiceError(f"the service chose node {copy.node} of job {told.job!r:.60}, which does not exist")
        if not told.executor < len(instance.cluster):
            raise ServiceError(f"the service chose executor {told.executor}, which does not exist")
        node = int(instance.first_node[job]) + copy.node
        self.copies.append((node, told.executor, copy.start_s, copy.finish_s))
        return node

    def _is_finished(self, job: int) -> bool:
        nodes = range(int(self.instance.first_node[job]), int(self.instance.first_node[job + 1]))
        return all(self.first_finish.get(node, np.inf) <= self.now_s for node in nodes)

    def _add_job(self, message: protocol.NodeJob, number: int) -> None:
        instance, job = self.instance, self.instance.jobs[number]
        message.job, message.name, message.arrival_s = str(number), job.name, job.arrival_s
        first, costs = int(instance.first_node[number]), instance.cluster.costs
        nodes = [message.nodes.add(node=node, work=work) for node, work in enumerate(job.work.tolist())]
        for node, each in enumerate(nodes):
            if costs is not None:
                each.times_s.extend(costs[first + node])
        for (parent, child), data in zip(job.edges.tolist(), job.data.tolist(), strict=True):
            nodes[child].inputs.add(parent=parent, data=data)
