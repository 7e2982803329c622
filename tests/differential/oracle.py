"""The simulator's rules as a plain loop over Python objects: slow, short, independent of the compiled core.

The compiled core is tested against this file event by event and random draw by random draw, so nothing
compiled is imported here: the standard library and numpy only. Which rules hold, those of the released simulator or
what the paper says instead, the settings say one by one.
"""

import heapq
import math
from collections import Counter
from itertools import count

import numpy as np

from tests.differential.oracle_durations import FIRST, FRESH, REST, DurationModel
from tests.differential.oracle_state import LOSSES, Executor, JobState, Outcome, Pool


class OracleDeadlockError(RuntimeError):
    """No event is left while jobs are unfinished: every executor was parked by the policy."""


class OracleDecisionError(ValueError):
    """The policy chose something that cannot be done in the current state."""


class OracleSimulator:
    """One episode.

    Args:
        workload: has `jobs`, each with `profile.stages`, `arrival_ms`, `initial`.
        settings: what `decima.systems.spark.settings.Settings` has, where every rule is explained.
        seed: of the run; from it the random numbers are those of the core.
    """

    def __init__(self, workload, settings, seed=0):
        self.workload = workload
        self.settings = settings
        self.num_executors = settings.executors
        self.moving_delay_ms = settings.moving_delay_ms if settings.startup else 0.0
        self.time_limit_ms = settings.time_limit_ms if settings.time_limit_applies else math.inf
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.durations = DurationModel(settings, rng)
        self.raised = {}

        self.now_ms = 0.0
        self.truncated = False
        self.classes = range(max(1, len(settings.classes)))
        self.all_jobs = [JobState(i, job, settings.classes) for i, job in enumerate(workload.jobs)]
        self.jobs = []  # in the system, in order of arrival
        kinds = [kind for kind, (_, number, _) in enumerate(settings.classes) for _ in range(number)]
        kinds = kinds or [0] * settings.executors
        self.executors = [Executor(i, kind) for i, kind in enumerate(kinds)]
        self.null_pool = Pool(None)
        self.calling = False  # a slot or a bound job ended, and idle executors are being offered without `reoffer`
        self.calls = 0  # how often all idle executors were called up: a decision to wait holds until the next
        self.destination = {}  # moving executor -> StageState; None when its job finished meanwhile
        self.heap = []
        self.slots = []  # (end, order, stage) of the withheld stages
        self.num_slots = count()
        self.slot_ends = 0
        self.push_order = count()

        # the round: who is to be assigned, and how many are still without a destination
        self.num_source = 0
        self.offers = {}  # class -> how many of num_source
        self.source_job = None
        self.listed = []
        self.selected = {}

        self.decisions = []
        self.tasks = []
        self.num_events = Counter(task=0, job=0, executor=0)
        self.completion_order = []
        self.lives, self.losses = [], dict.fromkeys(LOSSES, 0)  # of Spark executors
        self.lost_rows, self.killed_rows = set(), set()  # of `tasks`
        self.total_reward = 0.0
        self.reward_ms = 0.0  # time up to which rewards are given
        self.unrewarded = {}  # jobs with time in the system not yet in the reward

    # ---- what a policy reads

    def frontier(self):
        """Open stages that fit a class on offer."""
        offered = {kind for kind, number in self.offers.items() if number > 0} if self.num_source > 0 else self.classes
        return [stage for stage in self.open_stages() if stage.fits & set(offered)]

    def open_stages(self):
        """Stages not chosen in this round, unsaturated, all parents saturated (finished)."""

        def ready(stage):
            return all(p.finished if self.settings.runnable_only else p.saturated for p in stage.parents)

        # Executors that are bound to a job can only be given to it.
        bound = self.settings.job_bound and self.num_source > 0
        bound = bound and self.source_job is not None and not self.source_job.finished
        return [
            stage
            for job in self.jobs
            if not bound or job is self.source_job
            for stage in job.stages
            if stage not in self.selected and not stage.saturated and ready(stage) and not stage.withheld
        ]

    def held(self, job):
        """Executors attached to `job`, moving to it, or committed to it from outside."""
        coming = sum(stage.moving for stage in job.stages)
        for source in self.sources():
            if source.job is not job:
                for (_, stage), executors in source.commitments.items():
                    coming += executors if stage is not None and stage.job is job else 0
        return len(job.attached) + coming

    def allocated(self, job):
        """`held` without executors committed to other jobs and those of the source still to be assigned."""
        leaving = sum(
            executors
            for source in (job.pool, *job.stages)
            for (_, stage), executors in source.commitments.items()
            if stage is not None and stage.job is not job
        )
        offered = self.num_source if self.source_job is job and not job.finished else 0
        return self.held(job) - leaving - offered

    def sources(self):
        """Everything that can have commitments."""
        yield self.null_pool
        for job in self.jobs:
            yield job.pool
            yield from job.stages

    # ---- the episode

    def run(self, policy):
        """Run to the end.

        Args:
            policy: called with this object, returns (job index, stage index, limit) or (None, None, limit).
        """
        self.place_executors()
        for job, given in zip(self.all_jobs, self.workload.jobs, strict=True):
            if given.initial:
                self.add_job(job)
            else:
                self.push(job.arrival_ms, job)
        self.open_pool_round(self.null_pool)
        self.run_to_next_round()
        while self.num_source > 0:
            self.decide(policy)
            self.run_to_next_round()
            self.add_reward()
        if self.jobs and not self.truncated:
            raise OracleDeadlockError(f"{len(self.jobs)} unfinished jobs and no event left at {self.now_ms} ms")
        return self.outcome()

    def place_executors(self):
        for executor in self.executors:
            self.null_pool.executors[executor] = None

    def unit_event_first(self):
        """Whether executors came or went before the next event; never so here."""
        return False

    def stretched(self, duration_ms):
        """A duration, longer where a task straggles; never so here."""
        return duration_ms

    def decide(self, policy):
        """Ask the policy once and commit executors; carry out the commitments once all are made."""
        frontier = self.frontier()
        source_job = None if self.source_job is None else self.source_job.index
        row = [self.now_ms, source_job, self.num_source, len(frontier)]
        job_index, stage_index, limit, *more = policy(self)
        delay_ms, kind = (*more, *(0.0, None)[len(more) :])
        if kind is not None and (delay_ms != 0.0 or job_index is None):
            raise OracleDecisionError(f"class {kind} without a stage that gets executors")
        if delay_ms != 0.0:
            self.delay(frontier, row, job_index, stage_index, limit, delay_ms)
            return
        if job_index is None:
            stage, used, kinds = None, limit, list(self.classes)
        else:
            job = self.all_jobs[job_index]
            stage = job.stages[stage_index]
            if stage not in frontier:
                raise OracleDecisionError(f"stage {stage_index} of job {job_index} is not in the frontier")
            kinds = sorted(stage.fits) if kind is None else [kind]
            if not set(kinds) <= stage.fits or (kind is not None and self.offers.get(kind, 0) == 0):
                raise OracleDecisionError(f"class {kind}")
            used = min(stage.room, limit)
            if self.settings.job_limit:
                if self.settings.job_bound:
                    self.raised[job] = max(limit, self.raised.get(job, 0))
                used = min(stage.room, self.raised.get(job, limit) - self.allocated(job), self.num_source)
        if stage in self.selected:
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} chosen twice in a round")
        if not 0 < used <= self.num_source:
            raise OracleDecisionError(f"{used} executors to commit, expected 1 to {self.num_source}")
        used = min(used, sum(self.offers[each] for each in kinds))
        more = [] if kind is None else [0.0, kind]
        self.decisions.append([*row, job_index, stage_index, limit, used, *more])

        self.selected[stage] = None
        left = used
        for each in kinds:
            count = min(left, self.offers[each])
            left -= count
            if count > 0:
                self.promise(self.source(), each, stage, count)
        if self.num_source == 0:
            self.selected.clear()
            self.fulfil(self.listed)
        elif self.settings.reoffer and not self.frontier():
            self.selected = {stage: None for stage in self.selected if stage is None}

    def promise(self, source, kind, stage, count):
        """Promise offered executors of a class to a stage or to idling (None)."""
        source.commitments[kind, stage] = source.commitments.get((kind, stage), 0) + count
        source.decided[kind] = self.calls
        if stage is not None:
            stage.committed += count
        self.offers[kind] -= count
        self.num_source -= count

    def delay(self, frontier, row, job_index, stage_index, limit, delay_ms):
        """Withhold a stage that can run, that nobody works on or is promised to, and that was never delayed."""
        if job_index is None or not 0.0 < delay_ms <= 1e15:
            raise OracleDecisionError(f"delay {delay_ms}")
        stage = self.all_jobs[job_index].stages[stage_index]
        if stage not in frontier or stage not in stage.job.runnable:
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} cannot run now")
        if stage.room < stage.num_tasks or stage.delayed:
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} has begun or was delayed")
        self.decisions.append([*row, job_index, stage_index, limit, 0, delay_ms])
        stage.withheld = stage.delayed = True
        del stage.job.runnable[stage]
        self.slots.append((self.now_ms + delay_ms, next(self.num_slots), stage))
        if self.settings.reoffer and not self.frontier():
            self.selected = {stage: None for stage in self.selected if stage is None}

    def on_slot_end(self):
        """The stage can be chosen again, as if it had just become runnable; all idle executors are called up."""
        slot = min(self.slots)
        self.slots.remove(slot)
        _, _, stage = slot
        self.slot_ends += 1
        stage.withheld = False
        job = stage.job
        if all(parent.finished for parent in stage.parents):  # which may have lost outputs
            job.runnable[stage] = None
        self.mark_all_pools()
        job.called = self.calls
        self.call_without_reoffer()
        self.open_pool_round(job.pool)

    def call_without_reoffer(self):
        """What has just been marked is offered once, although idle executors are not offered again and again."""
        if not self.settings.reoffer:
            self.calling = True
            for pool in [self.null_pool, *(job.pool for job in self.jobs)]:
                pool.marked = pool.open

    def run_to_next_round(self):
        """Handle events until the policy has to be asked or nothing is left."""
        while self.num_source == 0:
            if (self.settings.reoffer or self.calling) and self.offer_idle():
                return
            self.calling = False
            if self.unit_event_first():
                continue
            if not self.heap and not self.slots:
                return
            slot_ms = min(self.slots)[0] if self.slots else math.inf
            slot = not self.heap or slot_ms < self.heap[0][0]
            if (slot_ms if slot else self.heap[0][0]) > self.time_limit_ms:
                if len(self.completion_order) < len(self.all_jobs):
                    self.now_ms = self.time_limit_ms
                    self.truncated = True
                return
            if slot:
                self.now_ms = slot_ms
                self.on_slot_end()
                continue
            self.now_ms, _, subject = heapq.heappop(self.heap)
            if isinstance(subject, JobState):
                self.num_events["job"] += 1
                self.on_job_arrival(subject)
            elif isinstance(subject, Executor) and subject in self.destination:
                self.num_events["executor"] += 1
                self.on_executor_arrival(subject)
            else:
                self.num_events["task"] += 1
                self.on_task_completion(subject)

    def push(self, time_ms, subject):
        """Add an event; events of one instant happen in the order in which they were pushed."""
        heapq.heappush(self.heap, (time_ms, next(self.push_order), subject))

    # ---- events

    def add_job(self, job):
        self.jobs.append(job)
        self.unrewarded[job] = None
        self.mark_all_pools()

    def on_job_arrival(self, job):
        self.add_job(job)
        self.open_pool_round(self.null_pool)

    def on_executor_arrival(self, executor):
        stage = self.destination.pop(executor)
        if stage is None:
            self.backup(executor)
            return
        stage.moving -= 1
        executor.job = stage.job
        stage.job.attached[executor] = None
        if stage.exhausted:
            self.backup(executor)
        elif stage in stage.job.runnable:
            self.launch(executor, stage)
        else:
            self.reserve(executor)

    def on_task_completion(self, executor):
        stage = executor.stage
        job = stage.job
        stage.finished_tasks += 1
        enabled = []
        if stage.finished:
            stage.finish_ms = self.now_ms
            enabled = [s for s in stage.children if all(p.finished for p in s.parents)]
            enabled = [s for s in enabled if not s.exhausted and not s.withheld]
            for child in enabled:
                job.runnable[child] = None
            if enabled:
                self.mark_all_pools()
                job.called = self.calls

        if stage in job.runnable:
            self.launch(executor, stage)
        elif enabled:
            if self.promised(stage, executor.kind):
                self.fulfil([executor])
            else:
                self.enter_pool(executor, job.pool, mark=True)
            self.open_pool_round(job.pool)
        elif self.promised(stage, executor.kind):
            self.fulfil([executor])
        else:
            self.open_stage_round(job, stage, executor)

        if all(s.finished for s in job.stages):
            self.remove_job(job)

    def remove_job(self, job):
        job.completion_ms = self.now_ms
        self.completion_order.append(job.index)
        self.jobs.remove(job)
        self.mark_all_pools()
        for executor in list(job.attached):
            self.detach(executor)
        for executor in job.pool.of_classes(self.classes):
            executor.reserved = False
            self.null_pool.executors[executor] = None
            self.null_pool.marked = True
        if self.settings.job_bound:
            self.call_without_reoffer()
        for source in self.sources():
            for key in [(kind, s) for kind, s in source.commitments if s is not None and s.job is job]:
                del source.commitments[key]
        for executor, stage in self.destination.items():
            if stage is not None and stage.job is job:
                self.destination[executor] = None

    # ---- rounds

    def open_round(self, job, listed, offered):
        """The policy shall say where `offered` executors go (a list of classes); `listed` ones are free now."""
        self.source_job = job
        self.listed = listed
        self.num_source = len(offered)
        self.offers = {kind: offered.count(kind) for kind in self.classes}

    def useful(self, stages):
        """Classes that one of the stages fits; of one class always this one."""
        return set().union(*(stage.fits for stage in stages)) if len(self.classes) > 1 else {0}

    def open_stage_round(self, job, stage, executor):
        """A round over the executors of a stage without tasks left that were not promised before.

        Executors of a class that fits nothing, while another one fits something, are to idle without being asked about.
        """
        there = list(stage.executors) if self.settings.commit_ahead else [executor]
        useful = self.useful(self.open_stages())
        offered = [other.kind for other in there if not self.promised(stage, other.kind)]
        self.open_round(job, [executor], offered)
        if useful & set(offered):
            for kind in sorted(set(offered) - useful):
                self.promise(stage, kind, None, self.offers[kind])

    def open_pool_round(self, pool, reserved=True):
        """A round over a pool, with or without its reserved executors; none if there are none."""
        pool.marked = False
        useful = self.useful(self.open_stages())
        listed = [executor for executor in pool.of_classes(useful) if reserved or not executor.reserved]
        self.open_round(pool.job, listed, [executor.kind for executor in listed])

    def source(self):
        """Where the commitments of the round are kept: stage of the first listed executor, else its pool."""
        executor = self.listed[0]
        return self.own_pool(executor) if executor.stage is None else executor.stage

    def own_pool(self, executor):
        return self.null_pool if executor.job is None else executor.job.pool

    def mark_all_pools(self):
        """A stage became runnable or a job ended: whoever is idle has to be offered again."""
        self.calls += 1
        for pool in [self.null_pool, *(job.pool for job in self.jobs)]:
            pool.marked = pool.marked or pool.open
        if len(self.classes) > 1:
            self.call_without_reoffer()

    def offer_idle(self):
        """Open a round over the first marked pool if there is anything to run; True if a round is open."""
        runnable = [stage for job in self.jobs for stage in job.runnable if not stage.saturated]
        if not runnable:
            return False
        useful = self.useful(runnable)
        for pool in [self.null_pool, *(job.pool for job in self.jobs)]:
            if pool.marked and any(not executor.reserved for executor in pool.of_classes(useful)):
                self.open_pool_round(pool, reserved=False)
                return True
        return False

    def fulfil(self, listed):
        """Carry out commitments of the source of `listed`: each executor the oldest of its class."""
        self.listed = listed
        source = self.source()
        while self.listed:
            executor = self.listed.pop(0)
            stage = self.promised(source, executor.kind)
            if not stage:
                continue
            key = (executor.kind, *stage)
            source.commitments[key] -= 1
            if source.commitments[key] == 0:
                del source.commitments[key]
            if stage[0] is not None:
                stage[0].committed -= 1
            pool = self.own_pool(executor)
            pool.executors.pop(executor, None)
            pool.marked = pool.marked and pool.open
            executor.reserved = False
            executor.decided = source.decided[executor.kind]
            self.carry_out(executor, stage[0])

    def promised(self, source, kind):
        """First destination that executors of a class are promised to, as a list of one; empty if there is none."""
        return next(([stage] for each, stage in source.commitments if each == kind), [])

    def carry_out(self, executor, stage):
        job = executor.job
        if stage is None:
            stale = self.settings.reoffer and executor.decided != self.calls
            bound = self.settings.job_bound
            has_work = job is not None and any(not s.exhausted or (bound and not s.finished) for s in job.stages)
            self.enter_pool(executor, job.pool if has_work else self.null_pool, mark=stale)
        elif stage.exhausted:
            self.backup(executor)
        elif stage.job is not job:
            self.start_moving(executor, stage)
        elif stage in job.runnable:
            self.launch(executor, stage)
        else:
            self.reserve(executor)

    def backup(self, executor):
        """What an executor does whose destination has no task left, without asking the policy."""
        executor.decided = -1
        if self.settings.reoffer:
            self.enter_pool(executor, self.own_pool(executor), mark=True)
            return
        if executor.job is not None:
            for stage in executor.job.runnable:
                if not stage.saturated and executor.kind in stage.fits:
                    self.launch(executor, stage)
                    return
        frontier = [stage for stage in self.open_stages() if executor.kind in stage.fits]
        if frontier and not (self.settings.job_bound and executor.job is not None):
            self.start_moving(executor, frontier[0])
        else:
            self.enter_pool(executor, self.own_pool(executor), mark=False)

    # ---- executors

    def leave_stage(self, executor, forget=True):
        """Having forgotten what it ran, the executor's next task will be a fresh one."""
        if executor.stage is not None:
            del executor.stage.executors[executor]
        executor.stage = None
        if forget:
            executor.last_stage = None

    def detach(self, executor):
        self.leave_stage(executor)
        if executor.job is not None:
            del executor.job.attached[executor]
        executor.job = None

    def enter_pool(self, executor, pool, mark):
        if pool.job is not None and not pool.job.keeps(executor.kind):
            pool = self.null_pool
        if pool.job is None:
            self.detach(executor)
        else:
            self.leave_stage(executor, forget=not self.settings.keep_warm)
        pool.executors[executor] = None
        pool.marked = pool.marked or mark

    def reserve(self, executor):
        """The executor waits for a stage of its job that cannot run yet: it is offered when one of the job can.

        If one became runnable since the policy decided, the executor is offered at once.
        """
        missed = self.settings.reoffer and executor.decided < executor.job.called
        self.enter_pool(executor, executor.job.pool, mark=missed)
        executor.reserved = not missed

    def start_moving(self, executor, stage):
        self.detach(executor)
        self.destination[executor] = stage
        stage.moving += 1
        self.push(self.now_ms + self.moving_delay_ms, executor)

    def launch(self, executor, stage):
        """Start the next task of `stage` on an executor attached to its job."""
        if executor.last_stage is None or executor.last_stage.job is not stage.job:
            wave = FRESH
        elif executor.last_stage is stage:
            wave = REST
        else:
            wave = FIRST
        duration_ms = self.stretched(self.durations.duration_ms(stage.profile, wave, len(stage.job.attached)))
        if executor.stage is not stage:
            self.leave_stage(executor)
            stage.executors[executor] = None
            executor.stage = stage
        executor.last_stage = stage
        stage.next_task += 1
        if stage.exhausted:
            del stage.job.runnable[stage]
            for other in stage.job.pool.of_classes(kind for kind in self.classes if not stage.job.keeps(kind)):
                del stage.job.pool.executors[other]
                other.reserved = False
                self.enter_pool(other, self.null_pool, mark=True)
        stage.durations_ms.append(duration_ms)
        finish_ms = self.now_ms + duration_ms
        self.tasks.append((stage.job.index, stage.index, executor.index, self.now_ms, finish_ms, wave))
        self.push(finish_ms, executor)

    # ---- totals

    def add_reward(self):
        """Minus the time the jobs spent in the system since the last reward, in units of 100 s."""
        reward = 0.0
        for job in list(self.unrewarded):
            reward -= (min(job.completion_ms, self.now_ms) - max(job.arrival_ms, self.reward_ms)) / 100000.0
            if job.finished:
                del self.unrewarded[job]
        self.total_reward += reward
        self.reward_ms = self.now_ms

    def busy_ms(self):
        return sum((duration for job in self.all_jobs for stage in job.stages for duration in stage.durations_ms), 0.0)

    def outcome(self):
        return Outcome(
            decisions=self.decisions,
            tasks=self.tasks,
            completion_ms=[job.completion_ms if job.finished else None for job in self.all_jobs],
            completion_order=self.completion_order,
            stage_finish_ms=[[stage.finish_ms for stage in job.stages] for job in self.all_jobs],
            num_events=dict(self.num_events),
            slot_ends=self.slot_ends,
            now_ms=self.now_ms,
            truncated=self.truncated,
            busy_ms=self.busy_ms(),
            lives=self.lives,
            losses=self.losses,
        )
