"""Executor placement in plain Python: the rules written out once more, for tests and as the yardstick of speed."""

import copy
import heapq
import math
from fractions import Fraction


class Running:
    """A job that runs; ties of the heap are as in the published environment."""

    def __init__(self, finish_s, job, vms):
        self.finish_s, self.job, self.vms = finish_s, job, vms

    def __lt__(self, other):
        return self.finish_s < other.finish_s


class PlainPlacement:
    """The environment for per-second billing without boot time, or with what `billing` says."""

    def __init__(self, workload, settings):
        self.jobs, self.settings, self.rules = workload.jobs, settings, settings.rules
        self.vms = settings.cluster.vms
        self.reset()

    def reset(self):
        self.cores = [vm.cores for vm in self.vms]
        self.memory = [vm.memory_gb for vm in self.vms]
        self.job = self.placed = self.waits = 0
        self.where = []
        self.now_s = self.jobs[0].arrival_s
        self.heap = []
        self.over = self.complete = False
        self.uses = [[] for _ in self.vms]
        self.ready_s = [-math.inf] * len(self.vms)
        self.run_s, self.finish_s, self.good = [], [], 0

    def twin(self):
        """A copy that goes its own way."""
        other = copy.copy(self)
        for name in ("cores", "memory", "where", "heap", "ready_s", "run_s", "finish_s"):
            setattr(other, name, list(getattr(self, name)))
        other.uses = [list(each) for each in self.uses]
        return other

    def fits(self, vm):
        job = self.jobs[self.job]
        return self.cores[vm] >= job.cores and self.memory[vm] >= job.memory_gb

    def mask(self):
        """Valid actions, with whole executors counted once per job."""
        job, count = self.jobs[self.job], len(self.vms)
        if self.over:
            return [False] * (count + 1)
        room = sum(
            min(cores // job.cores, int(memory // job.memory_gb))
            for cores, memory in zip(self.cores, self.memory, strict=True)
        )
        enough = self.placed > 0 or room >= job.executors
        wait = self.placed == 0 and (bool(self.heap) or self.waits < self.rules.idle_waits)
        return [wait] + [enough and self.fits(vm) for vm in range(count)]

    def good_placement(self, job, vms):
        if job.type == 3:
            return len(set(vms)) == 1
        return len(set(vms)) == len(vms)

    def next_fits(self):
        job = self.jobs[self.job]
        pairs = zip(self.cores, self.memory, strict=True)
        shares = [min(cores / job.cores, memory / job.memory_gb) for cores, memory in pairs]
        return sum(shares) >= job.executors - self.placed

    def step(self, action):
        rules, job = self.rules, self.jobs[self.job]
        if action == 0:
            if self.placed:
                self.over = True
                return rules.partial_wait_reward
            if not self.heap and self.waits >= rules.idle_waits:
                self.over = True
                return rules.invalid_reward
            self.waits += 1
            if self.heap:
                self.now_s = self.heap[0].finish_s
                self.end(heapq.heappop(self.heap))
            while not rules.wait_frees_one and self.heap and self.heap[0].finish_s <= self.now_s:
                self.end(heapq.heappop(self.heap))
            return rules.wait_reward
        vm = action - 1
        if not self.fits(vm):
            self.over = True
            return rules.invalid_reward
        self.cores[vm] -= job.cores
        self.memory[vm] -= job.memory_gb
        self.where.append(vm)
        self.placed += 1
        if self.placed == job.executors:
            self.start(job)
            if self.job + 1 == len(self.jobs):
                self.over = self.complete = True
                return self.reward()
            self.job, self.placed, self.where = self.job + 1, 0, []
            arrival_s = self.jobs[self.job].arrival_s
            self.now_s = arrival_s if rules.clock_goes_back else max(self.now_s, arrival_s)
            while self.heap:
                first = heapq.heappop(self.heap)
                if first.finish_s > self.now_s:
                    heapq.heappush(self.heap, first)
                    break
                self.end(first)
        if rules.lookahead != "none" and not self.next_fits():
            self.over = True
            return rules.invalid_reward
        return rules.placement_reward

    def start(self, job):
        good = self.good_placement(job, self.where)
        run_s = job.duration_s if good else job.duration_s + job.duration_s * self.rules.penalty_percent / 100
        billing = self.settings.billing
        start_s = self.now_s
        for vm in set(self.where):
            if billing.boot_s and self.is_off(vm):
                self.ready_s[vm] = self.now_s + billing.boot_s
            start_s = max(start_s, self.ready_s[vm])
        finish_s = start_s + run_s
        for vm in set(self.where):
            self.uses[vm].append((self.now_s, finish_s))
        self.good += good
        self.run_s.append(run_s)
        self.finish_s.append(finish_s)
        heapq.heappush(self.heap, Running(finish_s, job, list(self.where)))

    def end(self, running):
        for vm in running.vms:
            self.cores[vm] += running.job.cores
            self.memory[vm] += running.job.memory_gb

    def is_off(self, vm):
        rentals = self.rentals(vm)
        return not rentals or self.exact(self.now_s) > rentals[-1][0] + self.charged(rentals[-1][1] - rentals[-1][0])

    def exact(self, time_s):
        """A moment as billing counts it: as it is by the second, else in whole microseconds."""
        return time_s if self.settings.billing.per_second else Fraction(round(time_s * 1e6), 10**6)

    def charged(self, length_s):
        billing = self.settings.billing
        if billing.granularity_s:
            granularity_s = self.exact(billing.granularity_s)
            length_s = math.ceil(length_s / granularity_s) * granularity_s
        return max(length_s, self.exact(billing.minimum_s))

    def rentals(self, vm):
        """Rentals (begin, last end of use): use that begins while a rental is paid for prolongs it."""
        found = []
        for use in self.uses[vm]:
            begin, end = map(self.exact, use)
            if found and begin <= found[-1][0] + self.charged(found[-1][1] - found[-1][0]):
                found[-1][1] = max(found[-1][1], end)
            else:
                found.append([begin, end])
        return found

    def billed_s(self, vm):
        if self.rules.clock_goes_back:  # the published environment: time already paid for costs nothing
            total, until = 0.0, -1.0
            for begin, end in self.uses[vm]:
                total += end - begin if begin > until else max(0.0, end - until)
                until = max(until, end)
            return total
        return sum(self.charged(end - begin) for begin, end in self.rentals(vm))

    def cost(self):
        return sum(vm.price_per_hour / 3600.0 * float(self.billed_s(i)) for i, vm in enumerate(self.vms))

    def reward(self):
        rules, beta = self.rules, self.settings.beta
        best = sum(job.duration_s for job in self.jobs)
        worst = best * (1.0 + rules.penalty_percent / 100.0)
        longest = worst if rules.penalty_in_cost_max else best
        cost_max = longest * self.settings.cluster.price_per_hour / 3600.0
        share = (sum(self.run_s) - best) / (worst - best)
        return rules.fixed_reward * (beta * (1.0 - self.cost() / cost_max) + (1.0 - beta) * (1.0 - share))

    def tried_mask(self):
        """Actions after which the job that is shown can be finished without waiting, by trying everything."""
        return [self._leads_on(action) for action in range(len(self.vms) + 1)]

    def _leads_on(self, action):
        twin = self.twin()
        twin.step(action)
        if twin.over:
            return twin.complete
        if action == 0 or twin.job > self.job:
            return True
        return any(twin._leads_on(following) for following in range(1, len(self.vms) + 1))


def random_episode(environment, rng):
    """Random valid actions to the end; returns the number of steps. Costs are worked out at the end only."""
    environment.reset()
    environment.cost = lambda: 0.0
    steps = 0
    while not environment.over:
        valid = [action for action, allowed in enumerate(environment.mask()) if allowed]
        environment.step(rng.choice(valid))
        steps += 1
    return steps
