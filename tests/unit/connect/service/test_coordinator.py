"""Several drivers share one cluster: executors move between them by targets, and none is lost or given twice.

A cluster manager and applications on it, in whole ticks, are the clients.
"""

import numpy as np
import pytest

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError
from tests.services import expire, leave, sessions_of


class Manager:
    """Gives executors to drivers as they ask for them, in order; the cores of this many."""

    def __init__(self, executors):
        self.executors = executors
        self.drivers = []
        self.most = 0

    def ticks(self, count):
        for _ in range(count):
            self.tick()

    def tick(self):
        """One tick for everybody."""
        for driver in self.drivers:
            free = self.executors - sum(other.registered for other in self.drivers)
            driver.idle += [""] * min(free, max(0, driver.target - driver.registered))
        self.most = max(self.most, sum(driver.registered for driver in self.drivers))
        for driver in list(self.drivers):
            driver.tick()
        assert sum(driver.target for driver in self.drivers) <= self.executors


class SimulatedJob:
    """A chain of stages, each with this many tasks of this many ticks."""

    def __init__(self, tasks, ticks, arrival_ms=0.0):
        self.tasks, self.ticks, self.arrival_ms = tasks, ticks, arrival_ms
        self.launched, self.finished = [0] * len(tasks), [0] * len(tasks)

    @property
    def stage(self):
        """The stage that runs, None when all have finished."""
        return next((i for i, n in enumerate(self.finished) if n < self.tasks[i]), None)

    def graph(self, name):
        message = protocol.Job(job=name, arrival_ms=self.arrival_ms)
        for index, tasks in enumerate(self.tasks):
            parents = [index - 1] if index else []
            message.stages.add(stage=index, num_tasks=tasks, parents=parents, duration_ms=1000.0 * self.ticks)
        return message


class SimulatedDriver:
    """An application: reports, offers, obeys."""

    def __init__(self, sessions, manager, name, jobs, **request):
        self.sessions = sessions
        self.jobs = dict(jobs)
        self.idle = []  # job that each idle executor served last
        self.busy = []  # [job, stage, ticks left] of the others
        self.held = {}
        self.finish = {}
        self.news = list(self.jobs)
        self.gone = []
        self.time = 0
        self.sequence = 0
        opening = {"version": 1, "client": name, "executors": manager.executors, "shared_cluster": "c"} | request
        reply = sessions.open(protocol.OpenRequest(**opening))
        self.session = reply.session
        self.target = reply.command.target
        self.number = reply.command.number
        manager.drivers.append(self)
        self.manager = manager

    @property
    def registered(self):
        return len(self.idle) + len(self.busy)

    def add(self, name, job):
        self.jobs[name] = job
        self.news.append(name)

    def die(self):
        """Without a word."""
        self.manager.drivers.remove(self)
        leave(self.sessions, self.session)

    def tick(self):
        self.time += 1
        for task in self.busy:
            task[2] -= 1
        for job, stage, left in list(self.busy):
            if left == 0:
                self.busy.remove([job, stage, left])
                self.idle.append(job)
                self.jobs[job].finished[stage] += 1
        for name in [name for name, job in self.jobs.items() if job.stage is None]:
            del self.jobs[name]
            self.gone.append(name)
            self.finish[name] = self.time
            self.idle = ["" if job == name else job for job in self.idle]
        if not self.idle:
            self.call("", 0)
        for source in dict.fromkeys(self.idle):
            while offered := self.idle.count(source):
                reply = self.call(source, offered)
                if reply.idle:
                    break
                assert 1 <= reply.executors <= offered
                self.bind(source, reply)

    def bind(self, source, reply):
        job = self.jobs[reply.job]
        assert reply.stage == job.stage
        assert reply.limit >= self.holds(reply.job) - (source == reply.job) * self.idle.count(source) + 1
        for _ in range(reply.executors):
            self.idle.remove(source)
            job.launched[reply.stage] += 1
            assert job.launched[reply.stage] <= job.tasks[reply.stage]
            self.busy.append([reply.job, reply.stage, job.ticks])

    def holds(self, name):
        return sum(task[0] == name for task in self.busy) + self.idle.count(name)

    def call(self, source, offered):
        self.sequence += 1
        request = protocol.DecideRequest(
            session=self.session, sequence=self.sequence, full=self.sequence == 1, time_ms=1000.0 * self.time,
            executors=self.registered, gone=self.gone,
        )  # fmt: skip
        if offered:
            request.offer.job, request.offer.executors = source, offered
        request.jobs.extend(self.jobs[name].graph(name) for name in self.news if name in self.jobs)
        self.news, self.gone = [], []
        for name, job in self.jobs.items():
            now = job.stage
            state = request.states.add(job=name, attached=self.holds(name))
            if job.launched[now] < job.tasks[now]:
                state.runnable.append(now)
                state.schedulable.append(now)
            for index in range(len(job.tasks)):
                executors = sum(task[:2] == [name, index] for task in self.busy)
                state.stages.add(
                    stage=index, launched=job.launched[index], finished=job.finished[index], executors=executors
                )
        reply = self.sessions.find(self.session).session.decide(request)
        self.obey(reply.command)
        return reply

    def obey(self, command):
        assert command.number >= self.number
        self.number, self.target = command.number, command.target
        while self.registered > self.target and self.idle:
            self.idle.pop()


def run(manager, most=2000):
    for _ in range(most):
        manager.tick()
        if not any(driver.jobs for driver in manager.drivers):
            return
    raise AssertionError("jobs are left")


def test_fair_share_moves_executors_to_a_new_application():
    sessions, manager = sessions_of("fair:sticky=0"), Manager(6)
    first = SimulatedDriver(sessions, manager, "a", {"j": SimulatedJob([200], 2)})
    manager.ticks(10)
    assert (first.target, first.registered) == (6, 6)
    second = SimulatedDriver(sessions, manager, "b", {"j": SimulatedJob([200], 2, 10_000.0)})
    manager.ticks(10)
    assert [(driver.target, driver.registered) for driver in (first, second)] == [(3, 3), (3, 3)]
    run(manager)
    assert manager.most == 6


@pytest.mark.parametrize("how", ["closes", "expires"])
def test_executors_of_a_dead_driver_go_to_the_others(how):
    sessions, manager = sessions_of("fair:sticky=0"), Manager(4)
    first = SimulatedDriver(sessions, manager, "a", {"j": SimulatedJob([1000], 2)})
    second = SimulatedDriver(sessions, manager, "b", {"j": SimulatedJob([1000], 2)})
    manager.ticks(10)
    assert (first.target, second.target) == (2, 2)
    if how == "closes":
        first.die()
    else:
        manager.drivers.remove(first)
        sessions._open[first.session].used -= 1e6
        assert expire(sessions) == 1
    manager.ticks(10)
    assert (second.target, second.registered) == (4, 4)
    second.die()
    assert len(sessions) == 0
    assert sessions._clusters == {}


def test_idle_executors_are_called_up_for_a_new_job():
    """Nobody gives back executors for which nobody has a use, until there is one."""
    sessions, manager = sessions_of("fair"), Manager(4)
    first = SimulatedDriver(sessions, manager, "a", {"j": SimulatedJob([4, 1], 20)})
    manager.ticks(25)
    assert (first.target, first.registered, len(first.busy)) == (4, 4, 1)
    second = SimulatedDriver(sessions, manager, "b", {"j": SimulatedJob([3], 1)})
    manager.ticks(3)
    assert (first.target, second.target) == (1, 3)
    run(manager)


@pytest.mark.parametrize("scheduler", ["fair", "fifo", "sjf_cp", "weighted_fair", "capped_srw", "random", "decima"])
def test_random_applications_all_finish(scheduler):
    sessions = sessions_of(scheduler)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        manager = Manager(int(rng.integers(2, 9)))

        def job(rng=rng):
            tasks = rng.integers(1, 9, rng.integers(1, 4)).tolist()
            return SimulatedJob(tasks, int(rng.integers(1, 6)), float(rng.integers(100)))

        drivers = [SimulatedDriver(sessions, manager, f"d{n}", {"j0": job()}) for n in range(3)]
        for tick in range(60):
            manager.tick()
            if tick % 10 == 3:
                drivers[int(rng.integers(3))].add(f"j{tick}", job())
        run(manager)
        assert manager.most <= manager.executors
        for driver in drivers:
            driver.die()
    assert len(sessions) == 0


def test_a_broken_report_leaves_nothing_to_choose():
    sessions, manager = sessions_of("fair"), Manager(4)
    driver = SimulatedDriver(sessions, manager, "a", {"j": SimulatedJob([9], 2)})
    other = SimulatedDriver(sessions, manager, "b", {"j": SimulatedJob([9], 2)})
    manager.tick()
    driver.sequence += 1
    bad = protocol.DecideRequest(session=driver.session, sequence=driver.sequence, executors=2)
    bad.states.add(job="j").stages.add(stage=0, launched=3, finished=4)
    session = sessions.find(driver.session).session
    with pytest.raises(RefusalError, match="finished <= launched"):
        session.decide(bad)
    assert session._cluster.mirror.num_frontier == len(other.jobs)
    for _ in range(5):
        other.tick()
    with pytest.raises(RefusalError, match="not known; send everything"):
        driver.call("", 0)


def test_a_driver_must_mean_the_cluster_that_is_there():
    sessions, manager = sessions_of("fair", "fifo"), Manager(4)
    SimulatedDriver(sessions, manager, "a", {})
    for wrong, message in (
        ({"executors": 5}, "shared cluster 'c' has executors 4, got 5"),
        ({"mode": "released"}, "has mode paper, got released"),
        ({"moving_delay_ms": 3.0}, "has moving_delay_ms 0.0, got 3.0"),
        ({"scheduler": "fifo"}, "has scheduler fair, got 'fifo'"),
    ):
        with pytest.raises(RefusalError, match=message):
            SimulatedDriver(sessions, manager, "b", {}, **wrong)
    assert len(sessions) == 1
