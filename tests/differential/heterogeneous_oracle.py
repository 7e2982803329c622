"""List scheduling with DEFT in plain Python, by the definitions: every executor, every parent, every copy."""

import math


class PlainScheduler:
    """Twin of `decima.systems.heterogeneous.engine.Planner`: lists and loops, nothing compiled, nothing skipped."""

    def __init__(self, instance, rules, *, choice="fixed", bias=None, forced=None):
        self.rules, self.choice, self.bias, self.forced = rules, choice, bias, forced
        cluster = instance.cluster
        self.executors, self.nodes = len(cluster), len(instance)
        self.latency = cluster.latency_s
        self.rate = cluster.rate
        self.uniform = cluster.uniform
        self.speeds = None if cluster.speeds is None else cluster.speeds.tolist()
        self.costs = None if cluster.costs is None else cluster.costs.tolist()
        self.work, self.arrival = instance.work.tolist(), instance.arrival_s.tolist()
        self.mean, self.job = instance.mean_time_s.tolist(), instance.job_of_node.tolist()
        self.parents = [[] for _ in range(self.nodes)]
        self.children = [[] for _ in range(self.nodes)]
        for job, first in zip(instance.jobs, instance.first_node.tolist(), strict=False):
            for (parent, child), data in sorted(zip(job.edges.tolist(), job.data.tolist(), strict=True)):
                self.parents[child + first].append((parent + first, data))
                self.children[parent + first].append(child + first)
        self.copies = [[] for _ in range(self.nodes)]  # (executor, start, finish)
        self.busy = [[] for _ in range(self.executors)]  # (start, finish), ascending
        self.log = []  # (node, executor, start, finish)
        self.steps = []  # (least EFT, finish that was chosen, whether a copy was made)

    def time(self, node, executor):
        return self.work[node] / self.speeds[executor] if self.costs is None else self.costs[node][executor]

    def there(self, parent, data, executor, sent_from):
        """Time at which data of a parent is on an executor."""
        times = []
        for sender, _, finish in self.copies[parent]:
            if sender == executor:
                times.append(finish)
            else:
                rate = self.rate if self.uniform else float(self.rate[sender, executor])
                times.append(max(finish, sent_from) + (self.latency + data / rate))
        return min(times)

    def slot(self, executor, ready, duration):
        end = 0.0
        if self.rules.slots == "insertion":
            for start, finish in self.busy[executor]:
                begin = max(end, ready)
                if start > end and begin + duration <= start:
                    return begin
                end = max(end, finish)
        elif self.busy[executor]:
            end = self.busy[executor][-1][1]
        return max(end, ready)

    def put(self, node, executor, start):
        finish = start + self.time(node, executor)
        self.copies[node].append((executor, start, finish))
        self.busy[executor].append((start, finish))
        self.busy[executor].sort()
        self.log.append((node, executor, start, finish))
        return finish

    def inputs(self, node, executor, now, sent_from):
        return max([now, *(self.there(parent, data, executor, sent_from) for parent, data in self.parents[node])])

    def eft(self, node, executor, now, sent_from):
        duration = self.time(node, executor)
        return self.slot(executor, self.inputs(node, executor, now, sent_from), duration) + duration

    def cpeft(self, node, copied, executor, now, sent_from):
        """Finish of a node behind a copy of one parent on the same executor (Eq. 10)."""
        if any(sender == executor for sender, _, _ in self.copies[copied]):
            return math.inf
        duration = self.time(copied, executor)
        start = self.slot(executor, self.inputs(copied, executor, now, sent_from), duration)
        finish = start + duration
        others = [
            self.there(parent, data, executor, sent_from) for parent, data in self.parents[node] if parent != copied
        ]
        ready = max([finish, now, *others])
        duration = self.time(node, executor)
        if self.rules.slots == "insertion":
            return self.slot(executor, ready, duration) + duration
        return ready + duration

    def free(self, executor, now):
        return not self.busy[executor] or self.busy[executor][-1][1] <= now

    def place(self, node, now):
        sent_from = now if self.rules.transfers == "decision" else -math.inf
        allowed = [
            executor for executor in range(self.executors) if self.rules.decision != "idle" or self.free(executor, now)
        ]
        if self.forced is not None and self.forced[node] >= 0:
            allowed = [int(self.forced[node])]
        finishes = {executor: self.eft(node, executor, now, sent_from) for executor in allowed}
        if self.bias is None:
            plain = min(allowed, key=lambda executor: (finishes[executor], executor))
        else:
            plain = min(allowed, key=lambda executor: (finishes[executor] + self.bias[node][executor], executor))
        best, copied = plain, None
        if self.rules.duplicate:
            options = [
                (self.cpeft(node, parent, executor, now, sent_from), executor, parent)
                for executor in allowed
                for parent, _ in self.parents[node]
            ]
            if options and min(options)[0] < finishes[plain]:
                _, best, copied = min(options)
        if copied is not None:
            ready = self.inputs(copied, best, now, sent_from)
            self.put(copied, best, self.slot(best, ready, self.time(copied, best)))
        start = self.slot(best, self.inputs(node, best, now, sent_from), self.time(node, best))
        finish = self.put(node, best, start)
        self.steps.append((min(finishes.values()), finish, copied is not None))

    def key(self, node, priority, left, since, now):
        if self.choice == "fixed":
            return -priority[node]
        if self.choice == "least_left":
            return left[self.job[node]]
        waited = now - since[node]
        total = waited + self.mean[node]
        return -waited / total if total > 0.0 else 0.0

    def run(self, priority=None):
        """Copies in the order of the decisions: (node, executor, start, finish)."""
        planned = self.rules.decision == "plan"
        waiting = [len(parents) for parents in self.parents]
        left = [0.0] * (max(self.job) + 1)
        for node in range(self.nodes):
            left[self.job[node]] += self.mean[node]
        since, pool = {}, []
        arriving = sorted(range(self.nodes), key=lambda node: self.arrival[node])
        finishes = []
        while arriving or finishes:
            now = min([*(self.arrival[node] for node in arriving[:1]), *(time for time, _ in finishes)])
            while arriving and self.arrival[arriving[0]] <= now:
                node = arriving.pop(0)
                if waiting[node] == 0:
                    since[node] = now
                    pool.append(node)
            done = [node for time, node in finishes if time <= now]
            finishes = [(time, node) for time, node in finishes if time > now]
            for node in done:
                self._release(node, waiting, since, pool, now)
            while pool and (
                self.rules.decision != "idle" or any(self.free(executor, now) for executor in range(self.executors))
            ):
                node = min(pool, key=lambda each: (self.key(each, priority, left, since, now), each))
                pool.remove(node)
                left[self.job[node]] -= self.mean[node]
                self.place(node, now)
                if planned:
                    self._release(node, waiting, since, pool, now)
                else:
                    finishes.append((min(finish for _, _, finish in self.copies[node]), node))
        return self.log

    def _release(self, node, waiting, since, pool, now):
        for child in self.children[node]:
            waiting[child] -= 1
            if waiting[child] == 0:
                since[child] = now
                pool.append(child)
