"""A cluster manager and applications on it, in whole ticks, as clients of a shared cluster."""

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.steps import finish
from tests.services import leave


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
        reply = finish(self.sessions.find(self.session).session.decide(request))
        self.obey(reply.command)
        return reply

    def obey(self, command):
        assert command.number >= self.number
        self.number, self.target = command.number, command.target
        while self.registered > self.target and self.idle:
            self.idle.pop()
