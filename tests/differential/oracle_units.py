"""The oracle on a cluster whose Spark executors come, go and fail: the rules once more in plain Python.

A unit is a Spark executor: some task slots that are registered, removed and lost together.
"""

import heapq
import math

import numpy as np

from tests.differential.oracle import OracleSimulator
from tests.differential.oracle_durations import uniform


class Unit:
    def __init__(self, index, executors):
        self.index = index
        self.executors = executors
        self.registered = False
        self.due_ms = None  # when it will be registered, while it starts
        self.since_ms = self.free_ms = self.loss_ms = math.inf


class OracleUnits(OracleSimulator):
    """One episode of such a cluster."""

    def __init__(self, workload, settings, seed=0):
        super().__init__(workload, settings, seed)
        self.chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 1)))
        size = settings.executor_cores
        self.units = [Unit(i, self.executors[i * size : (i + 1) * size]) for i in range(settings.most_executors)]
        self.unit_of = {executor: unit for unit in self.units for executor in unit.executors}
        fails = settings.loss_rate > 0 or len(settings.loss_times_ms) > 0
        self.keeps_outputs = not settings.shuffle_service and (settings.dynamic or fails)
        self.outputs = {stage: [] for job in self.all_jobs for stage in job.stages}  # units, in any order
        self.missing = {stage: 0 for job in self.all_jobs for stage in job.stages}
        self.running = {}  # executor -> row of its task
        self.to_come = sorted(settings.loss_times_ms)
        self.target = settings.first_executors
        self.step, self.add_ms, self.begun = 1, math.inf, False
        self.twin = {}  # executor -> that of the other copy of its task; itself while the copy waits
        self.ended_ms = {stage: [] for job in self.all_jobs for stage in job.stages}

    # ---- units

    def present(self):
        return [unit for unit in self.units if unit.registered]

    def place_executors(self):
        for unit in self.units[: self.target]:
            self.register(unit)

    def register(self, unit):
        unit.registered, unit.due_ms = True, None
        unit.since_ms = unit.free_ms = self.now_ms
        rate = self.settings.loss_rate / 3.6e6
        unit.loss_ms = self.now_ms - math.log(1.0 - uniform(self.chance)) / rate if rate > 0 else math.inf
        for executor in unit.executors:
            self.null_pool.executors[executor] = None
        self.null_pool.marked = True

    def request(self, delay_ms):
        unit = next(unit for unit in self.units if not unit.registered and unit.due_ms is None)
        unit.due_ms = self.now_ms + delay_ms + self.settings.executor_startup_ms

    def leave(self, unit, lost):
        unit.registered = False
        self.lives.append((unit.index, unit.since_ms, self.now_ms, int(lost)))

    def idles(self, executor):
        return executor in self.own_pool(executor).executors

    def take_from_pool(self, executor):
        pool = self.own_pool(executor)
        del pool.executors[executor]
        executor.reserved = False
        pool.marked = pool.marked and pool.open
        self.detach(executor)

    def is_needed(self, unit):
        return any(unit in self.outputs[stage] for job in self.jobs for stage in job.stages)

    def timers(self):
        """End of the idle time of every unit without a task."""
        if not self.settings.dynamic:
            return {}
        idle = [unit for unit in self.present() if all(map(self.idles, unit.executors)) and not self.is_needed(unit)]
        return {unit: unit.free_ms + self.settings.idle_timeout_ms for unit in idle}

    def settle(self):
        settings = self.settings
        if not settings.dynamic:
            return
        waiting = sum(stage.num_tasks - stage.next_task for job in self.jobs for stage in job.runnable)
        need = math.ceil((waiting + len(self.running)) / settings.executor_cores)
        if not waiting:
            self.step, self.add_ms = 1, math.inf
        elif self.add_ms == math.inf:
            self.add_ms = self.now_ms + settings.backlog_timeout_ms
        over = [unit for unit, end_ms in self.timers().items() if end_ms <= self.now_ms]
        self.begun = self.begun or bool(need or over)
        if self.begun and need < self.target:
            self.target, self.step = max(need, settings.min_executors), 1
        elif self.begun and self.add_ms <= self.now_ms:
            self.grow(need)
        for unit in sorted(over, key=lambda unit: (unit.free_ms, unit.index)):
            if len(self.present()) > self.target:
                for executor in unit.executors:
                    self.take_from_pool(executor)
                self.leave(unit, lost=False)
        while self.requested() < self.target:
            self.request(0.0)

    def requested(self):
        return sum(unit.registered or unit.due_ms is not None for unit in self.units)

    def grow(self, need):
        wanted = max(self.target, len(self.present())) + self.step
        wanted = max(min(wanted, need, len(self.units)), self.settings.min_executors)
        grown = wanted - self.target
        if grown <= 0:
            self.step = 1
            return
        self.target = wanted
        self.step = 2 * self.step if grown == self.step else 1
        sustained_ms = self.settings.sustained_timeout_ms
        self.add_ms = self.now_ms + (self.settings.backlog_timeout_ms if sustained_ms is None else sustained_ms)

    # ---- events

    def unit_event_first(self):
        if len(self.completion_order) == len(self.all_jobs):
            return False
        self.settle()
        due = [unit.due_ms for unit in self.units if unit.due_ms is not None]
        if self.now_ms < self.add_ms < math.inf and self.target < len(self.units):
            due.append(self.add_ms)
        coming = bool(due)
        due += [end_ms for end_ms in self.timers().values() if end_ms > self.now_ms]
        due += [unit.loss_ms for unit in self.present()] + self.to_come[:1]
        check_ms = self.next_check_ms()
        time_ms = min([*due, check_ms])
        others = [self.heap[0][0]] if self.heap else []
        others += [min(self.slots)[0]] if self.slots else []
        if time_ms == math.inf or min(others, default=math.inf) <= time_ms:
            return False
        if not others and not coming:
            return False
        if time_ms > self.time_limit_ms:
            if not others:
                self.now_ms, self.truncated = self.time_limit_ms, True
            return False
        self.now_ms = time_ms
        if check_ms == time_ms:
            self.check_tasks()
        for unit in self.units:
            if unit.due_ms is not None and unit.due_ms <= time_ms:
                self.register(unit)
        for unit in self.units:
            if unit.registered and unit.loss_ms <= time_ms:
                self.lose(unit)
        while self.to_come and self.to_come[0] <= time_ms:
            del self.to_come[0]
            if present := self.present():
                self.lose(present[int(uniform(self.chance) * len(present))])
        return True

    def on_task_completion(self, executor):
        stage, unit = executor.stage, self.unit_of[executor]
        row = self.running.pop(executor)
        unit.free_ms = self.now_ms
        if self.keeps_outputs and stage.children:
            self.outputs[stage].append(unit)
        if len(self.ended_ms[stage]) < stage.num_tasks:
            self.ended_ms[stage].append(self.now_ms - self.tasks[row][3])
        self.end_copy(executor, stage)
        super().on_task_completion(executor)

    def launch(self, executor, stage):
        copies = self.waiting_copies(stage)
        copied = len(copies) > 0 and stage.num_tasks - stage.next_task <= len(copies)
        super().launch(executor, stage)
        self.running[executor] = len(self.tasks) - 1
        if copied:
            longest = min(copies, key=self.start_ms)
            self.twin[longest], self.twin[executor] = executor, longest
            self.losses["copies"] += 1

    def stretched(self, duration_ms):
        if self.settings.straggler_share > 0 and uniform(self.chance) < self.settings.straggler_share:
            return duration_ms * (1.0 - uniform(self.chance)) ** (-1.0 / self.settings.straggler_shape)
        return duration_ms

    # ---- copies of tasks that take long

    def start_ms(self, executor):
        return self.tasks[self.running[executor]][3]

    def waiting_copies(self, stage):
        """Executors of the stage whose task has a copy that is to be launched."""
        return [each for each in self.executors if self.twin.get(each) is each and each.stage is stage]

    def copy_due_ms(self, executor):
        stage, settings = executor.stage, self.settings
        enough = max(math.floor(settings.speculation_quantile * stage.num_tasks), 1)
        if executor in self.twin or stage.num_tasks == 1 or stage.finished_tasks < enough:
            return math.inf
        if any(self.missing[parent] for parent in stage.parents):
            return math.inf
        ended_ms = sorted(self.ended_ms[stage])
        median_ms = ended_ms[len(ended_ms) // 2]
        long_ms = max(settings.speculation_multiplier * median_ms, settings.speculation_min_runtime_ms)
        return self.start_ms(executor) + long_ms

    def next_check_ms(self):
        due_ms = min(map(self.copy_due_ms, self.running), default=math.inf) if self.settings.speculation else math.inf
        if due_ms == math.inf:
            return math.inf
        due_ms, step_ms = max(due_ms, self.now_ms), self.settings.speculation_interval_ms
        time_ms = step_ms * (math.floor(due_ms / step_ms) + 1)
        return time_ms if time_ms > due_ms else time_ms + step_ms

    def check_tasks(self):
        for executor in [each for each in self.running if self.copy_due_ms(each) < self.now_ms]:
            self.twin[executor] = executor
            self.launch_again(executor.stage, 1)
        self.call_all()

    def call_all(self):
        for job in self.jobs:
            for executor in job.pool.executors:
                executor.reserved = False
        self.mark_all_pools()
        for job in self.jobs:
            job.called = self.calls

    def end_copy(self, executor, stage):
        """The task of an executor has ended: so has its copy."""
        twin = self.twin.pop(executor, None)
        if twin is executor:
            stage.next_task += 1
            if stage.exhausted:
                stage.job.runnable.pop(stage, None)
        elif twin is not None:
            del self.twin[twin]
            self.killed_rows.add(self.cut(twin))
            self.unit_of[twin].free_ms = self.now_ms
            if stage in stage.job.runnable:
                self.launch(twin, stage)
            elif self.promised(stage, twin.kind):
                self.fulfil([twin])
            else:
                self.backup(twin)

    def cut(self, executor):
        """End the task of an executor now; returns its row."""
        self.heap = [event for event in self.heap if event[2] is not executor]
        heapq.heapify(self.heap)
        row = self.running.pop(executor)
        job, index, number, start_ms, _, wave = self.tasks[row]
        self.tasks[row] = (job, index, number, start_ms, self.now_ms, wave)
        return row

    # ---- losses

    def lose(self, unit):
        self.losses["executors"] += 1
        for executor in unit.executors:
            self.lose_executor(executor)
        self.leave(unit, lost=True)
        for job in self.jobs:
            for stage in job.stages:
                kept = [other for other in self.outputs[stage] if other is not unit]
                self.missing[stage] += len(self.outputs[stage]) - len(kept)
                self.outputs[stage] = kept
            while again := [stage for stage in job.stages if self.missing[stage] and self.is_read(stage)]:
                self.compute_again(again[0])
        self.call_all()
        if self.requested() < self.target:
            self.request(self.settings.replacement_delay_ms)

    def lose_executor(self, executor):
        if executor in self.destination:
            self.heap = [event for event in self.heap if event[2] is not executor]
            heapq.heapify(self.heap)
            stage = self.destination.pop(executor)
            if stage is not None:
                stage.moving -= 1
        elif executor in self.running:
            stage = executor.stage
            self.lost_rows.add(self.cut(executor))
            self.losses["tasks"] += 1
            twin = self.twin.pop(executor, None)
            if twin is not executor:
                self.twin.pop(twin, None)
            self.detach(executor)
            if sum(stage.commitments.values()) > len(stage.executors):
                key = list(stage.commitments)[-1]
                stage.commitments[key] -= 1
                if not stage.commitments[key]:
                    del stage.commitments[key]
                if key[1] is not None:
                    key[1].committed -= 1
            if twin is None:
                self.launch_again(stage, 1)
        else:
            self.take_from_pool(executor)

    def launch_again(self, stage, count):
        if stage.exhausted and all(parent.finished for parent in stage.parents):
            stage.job.runnable[stage] = None
        stage.next_task -= count

    def is_read(self, stage):
        return any(not child.exhausted for child in stage.children)

    def compute_again(self, stage):
        count, self.missing[stage] = self.missing[stage], 0
        self.losses["outputs"] += count
        stage.finished_tasks -= count
        stage.finish_ms = None
        for child in stage.children:
            stage.job.runnable.pop(child, None)
        self.launch_again(stage, count)

    # ---- totals

    def busy_ms(self):
        return math.fsum(finish_ms - start_ms for _, _, _, start_ms, finish_ms, _ in self.tasks)
