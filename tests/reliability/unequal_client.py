"""A client of unequal executors whose nodes take shorter or longer than expected, and which may do wrong on purpose.

It drives a session without a network and keeps the dialogue for ``heterogeneous_checker.py``.
"""

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from decima.connect.service import scheduler_pb2 as protocol
from decima.connect.service.errors import RefusalError
from decima.connect.service.limits import Budget, Limits
from decima.connect.service.node_client import open_request
from decima.connect.service.node_session import NodeRule, NodeSession, read_cluster
from decima.connect.service.steps import finish
from tests.reliability.protocol_noise import Noise

MOST_CALLS = 120
# Execution times in parts of what was expected.
FACTORS = (1.0, 1.0, 1.0, 0.0, 0.5, 1.7, 3.0)


@dataclass
class Work:
    """A copy that the service assigned."""

    job: int
    node: int
    executor: int
    start_s: float
    finish_s: float  # expected
    needed_s: float  # expected
    real_s: float  # what it will take; nobody knows before its end
    begun: bool = False
    executed: bool = False


class Client:
    """Executes what a session assigns.

    Args:
        instance: Jobs and cluster.
        scheduler: Who decides.
        rng: Source of chance.
        wrong: Probability that a call is preceded by one that no client should make.
    """

    def __init__(self, instance, scheduler, rng, wrong=0.0):
        self.instance, self.rng, self.wrong = instance, rng, wrong
        self.session = _session(instance, scheduler)
        self.rules = scheduler.rules
        self.noise = Noise(int(rng.integers(2**31)), [], "Assign")
        self.now_s, self.sequence, self.full = 0.0, 0, True
        self.work = {}  # by job, node, executor, in the order of the decisions
        self.told_jobs, self.gone, self.available, self.held = set(), set(), {}, {}
        self.first_node = instance.first_node.tolist()
        self.calls = []

    def run(self):
        """Make calls until everything was executed; returns the dialogue as the checker reads it."""
        while len(self.calls) < MOST_CALLS and not self.finished():
            self.advance()
            for _ in range(3):
                if self.rng.random() < self.wrong:
                    self.do_wrong()
                made = self.ask(most=int(self.rng.choice([0, 0, 1, 3])))
                if not made or self.rng.random() < 0.5:
                    break
        return {"asked": vars(self.rules), "dialogue": self.calls, "ended": self.finished()}

    # ---- execution --------------------------------------------------------------------------------------------------

    def is_done(self, number):
        """Whether all nodes of a job were executed."""
        done = {one.node for one in self.work.values() if one.executed and one.job == number}
        return len(done) == len(self.instance.jobs[number])

    def finished(self):
        return all(number in self.gone or self.is_done(number) for number in range(len(self.instance.jobs)))

    def advance(self):
        """Go to the next arrival or finish, or to some time before it, or stay."""
        coming = [job.arrival_s for job in self.instance.jobs]
        coming += [one.start_s + one.real_s for one in self.work.values() if one.begun and not one.executed]
        coming += [one.start_s for one in self.work.values() if not one.begun]
        coming += self.available.values()
        later = [time_s for time_s in coming if time_s > self.now_s]
        if not later:
            return
        chance = self.rng.random()
        if chance < 0.7:
            self.now_s = min(later)
        elif chance < 0.9:
            self.now_s = float(self.rng.uniform(self.now_s, min(later)))
        self.execute()

    def execute(self):
        """What has happened by now, and what is expected from now on."""
        order = sorted(self.work.values(), key=lambda one: one.start_s)  # stable: as decided among equals
        for known in (False, True):  # what happens, then what can be known of it
            free, ends = {}, {}
            for one in order:
                start_s = one.start_s
                if not one.begun:
                    start_s = max(start_s, free.get(one.executor, 0.0), self.there_s(one, ends))
                    start_s = max(start_s, self.now_s) if known else start_s
                end_s = start_s + one.real_s
                if known and not one.executed:
                    end_s = max(start_s + one.needed_s, self.now_s)
                    one.start_s, one.finish_s = start_s, end_s
                elif not known and start_s <= self.now_s:
                    one.begun, one.start_s = True, start_s
                    if end_s <= self.now_s:
                        one.executed, one.finish_s = True, end_s
                end_s = one.finish_s if one.executed else end_s
                free[one.executor] = max(free.get(one.executor, 0.0), end_s)
                ends.setdefault((one.job, one.node), []).append((one.executor, end_s))

    def there_s(self, one, ends):
        """When the data of all parents is on a copy's executor."""
        job = self.instance.jobs[one.job]
        ready_s = 0.0
        for (parent, child), data in zip(job.edges.tolist(), job.data.tolist(), strict=True):
            if child == one.node:
                sent = [end + self.instance.transfer_s(data, at, one.executor) for at, end in ends[one.job, parent]]
                ready_s = max(ready_s, min(sent))
        return ready_s

    # ---- calls ------------------------------------------------------------------------------------------------------

    def report(self, most):
        """The next report, and what of it the checker has to know."""
        request = protocol.AssignRequest(full=self.full, now_s=self.now_s, most=most)
        if self.full:
            self.told_jobs = set()
        else:
            self.forget_some()
        if self.rng.random() < 0.2:
            executor = int(self.rng.integers(len(self.instance.cluster)))
            time_s = self.now_s + float(self.rng.choice([0.0, 0.0, 5.0, 30.0]))
            self.available[executor] = max(time_s, self.held.get(executor, 0.0))
        jobs = [n for n, job in enumerate(self.instance.jobs) if job.arrival_s <= self.now_s and n not in self.gone]
        for number in jobs:
            self.put_job(request.jobs.add(), number, known=number in self.told_jobs and self.rng.random() < 0.9)
        self.told_jobs = set(jobs)
        self.put_copies(request)
        for executor, time_s in self.available.items():
            request.executors.add(executor=executor, available_s=time_s)
        named = [
            (one.job, self.name(one.job, one.node), one.executor, one.start_s, one.finish_s, one.executed)
            for one in self.work.values()
        ]
        executors = dict(self.available)
        return request, {"now_s": self.now_s, "most": most, "jobs": jobs, "copies": named, "executors": executors}

    def forget_some(self):
        """Some of the jobs whose nodes were all executed are gone; what still runs of them holds its executor."""
        for number in sorted(self.told_jobs):
            if self.is_done(number) and self.rng.random() < 0.5:
                self.gone.add(number)
        for key in [key for key in self.work if key[0] in self.gone]:
            one = self.work.pop(key)
            if one.begun and not one.executed:
                self.held[one.executor] = max(self.held.get(one.executor, 0.0), one.finish_s)
                self.available[one.executor] = self.held[one.executor]

    def ask(self, most):
        """Make a lawful call, and take what is assigned; the number of nodes."""
        request, what = self.report(most)
        self.sequence += 1
        request.sequence = self.sequence
        reply = self.call(request, what | {"lawful": True})
        self.full = reply is None or self.rng.random() < 0.05
        if reply is None:
            return 0
        answer = self.calls[-1]["answer"]
        for each in reply.assignments:
            self.take(each)
        return len(answer)

    def take(self, copy):
        job, node = int(copy.job), int(copy.node)
        needed_s = self.instance.time_s(self.first_node[job] + node, copy.executor)
        real_s = needed_s * float(self.rng.choice(FACTORS))
        self.work[job, node, copy.executor] = Work(
            job, node, copy.executor, copy.start_s, copy.finish_s, needed_s, real_s
        )

    def do_wrong(self):
        """Make a call that no client should make; everything is told anew after it."""
        request = protocol.AssignRequest(sequence=self.sequence + 1, full=self.full, now_s=self.now_s)
        for number in range(len(self.instance.jobs)):
            self.put_job(request.jobs.add(), number, known=number in self.told_jobs and self.rng.random() < 0.8)
        self.put_copies(request)
        request.executors.add(executor=0, available_s=self.now_s)
        self.full = True
        try:
            damaged = protocol.AssignRequest.FromString(self.noise.damaged(request))
        except DecodeError:
            return
        # One that a session took hides all that come before it.
        damaged.sequence = self.sequence + int(self.rng.integers(3))
        self.sequence = max(self.sequence, damaged.sequence)
        self.call(damaged, {"now_s": 0.0, "lawful": False})

    def call(self, request, what):
        """The reply, None for a refusal; the call is kept."""
        kept = {"jobs": [], "copies": [], "executors": {}, "most": 0} | what
        self.calls.append(kept | {"answer": None, "refused": None})
        try:
            reply = finish(self.session.assign(protocol.AssignRequest.FromString(request.SerializeToString())))
        except RefusalError as error:
            self.calls[-1]["refused"] = error.code.name, str(error)
            return None
        placed = {(str(job), node) for job, node, _ in self.work}
        self.calls[-1]["answer"] = list(self.paired(reply.assignments, placed))
        return reply

    def paired(self, copies, placed):
        """The nodes that were assigned, each with the further copy that goes before it."""
        other = None
        for copy in copies:
            job = int(copy.job) if copy.job.isdecimal() else -1
            name, times = self.name(job, copy.node), (copy.start_s, copy.finish_s)
            if other is None and (copy.job, copy.node) in placed:
                other = name, *times
                continue
            placed.add((copy.job, copy.node))
            body = {"job": job, "node": name, "executor": copy.executor, "duplicate": other}
            yield body | dict(zip(("start_s", "finish_s"), times, strict=True))
            other = None

    def name(self, job, node):
        jobs = self.instance.jobs
        there = 0 <= job < len(jobs) and 0 <= node < len(jobs[job])
        return jobs[job].nodes[node] if there else f"?{node}"

    def put_copies(self, request):
        for one in self.work.values():
            times = {"start_s": one.start_s, "finish_s": one.finish_s, "executed": one.executed}
            request.copies.add(job=str(one.job), node=one.node, executor=one.executor, **times)

    def put_job(self, message, number, known):
        job, costs = self.instance.jobs[number], self.instance.cluster.costs
        message.job = str(number)
        if known:
            return
        message.arrival_s = job.arrival_s
        for node, work in enumerate(job.work.tolist()):
            message.nodes.add(node=node, work=work)
            if costs is not None:
                message.nodes[node].times_s.extend(costs[self.first_node[number] + node])
        for (parent, child), data in zip(job.edges.tolist(), job.data.tolist(), strict=True):
            message.nodes[child].inputs.add(parent=parent, data=data)


def _session(instance, scheduler):
    request, limits = open_request(instance.cluster), Limits()
    described = finish(read_cluster(request))
    return NodeSession(request, described, NodeRule(scheduler), limits, Budget(limits).account())
