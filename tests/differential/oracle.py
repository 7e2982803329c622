"""The simulator's rules as a plain loop over Python objects: slow, short, independent of the compiled core.

The compiled core is tested against this file event by event and random draw by random draw, so nothing
compiled is imported here: the standard library and numpy only. The defaults are the rules of the released
simulator; keyword arguments of `OracleSimulator` switch single rules to what the paper says instead.
"""

import heapq
import math
from collections import Counter
from itertools import count

import numpy as np

from tests.differential.oracle_durations import FIRST, FRESH, REST, DurationModel
from tests.differential.oracle_state import Executor, JobState, OracleResult, Pool


class OracleDeadlockError(RuntimeError):
    """No event is left while jobs are unfinished: every executor was parked by the policy."""


class OracleDecisionError(ValueError):
    """The policy chose something that cannot be done in the current state."""


class OracleSimulator:
    """One episode.

    Args:
        workload: has `jobs`, each with `profile.stages`, `arrival_ms`, `initial`.
        executors: number of executors.
        moving_delay_ms: time an executor needs to get to another job.
        warmup_delay_ms: added when a fresh duration has to be taken from the first wave.
        key_rule: which profiled executor count gives the duration, see `DurationModel`.
        durations: "mean" or "sampled".
        rng: numpy Generator, needed for "sampled".
        job_limit: the policy's limit bounds what the job holds, not what this decision grants.
        reoffer: offer idle executors again when a stage becomes runnable or a job ends, and offer those whose
            destination has no task left instead of sending them elsewhere by a rule; a stage may be chosen
            again in a round when nothing else is left to choose.
        commit_ahead: a stage that runs out of tasks asks for all executors still on it, not only the free
            one.
        keep_warm: an executor that idles in the pool of its own job remembers what it ran last.
        runnable_only: only stages whose parents have finished can be chosen.
        first_wave, startup, inflation: effects on durations, see `DurationModel`; without `startup` moving
            takes no time either.
        time_limit_ms: events later than this do not happen.
        timer_assign: at the end of a slot idle executors go to the stage up to the limit it was delayed with.
        delay_once: a stage may be delayed once only.
        job_bound: executors of a job serve its own stages only, until it has finished.
    """

    def __init__(
        self,
        workload,
        executors,
        moving_delay_ms=2000.0,
        warmup_delay_ms=1000.0,
        key_rule="left",
        durations="mean",
        rng=None,
        job_limit=False,
        reoffer=False,
        commit_ahead=True,
        keep_warm=False,
        runnable_only=False,
        first_wave=True,
        startup=True,
        inflation=True,
        time_limit_ms=math.inf,
        timer_assign=False,
        delay_once=True,
        job_bound=False,
    ):
        self.workload = workload
        self.num_executors = executors
        self.moving_delay_ms = moving_delay_ms if startup else 0.0
        self.durations = DurationModel(
            key_rule, durations, warmup_delay_ms, rng, first_wave=first_wave, startup=startup, inflation=inflation
        )
        self.job_limit = job_limit
        self.reoffer = reoffer
        self.commit_ahead = commit_ahead
        self.keep_warm = keep_warm
        self.runnable_only = runnable_only
        self.time_limit_ms = time_limit_ms
        self.timer_assign = timer_assign
        self.delay_once = delay_once
        self.job_bound = job_bound

        self.now_ms = 0.0
        self.truncated = False
        self.all_jobs = [JobState(i, job) for i, job in enumerate(workload.jobs)]
        self.jobs = []  # in the system, in order of arrival
        self.executors = [Executor(i) for i in range(executors)]
        self.null_pool = Pool(None)
        self.calling = False  # a slot or a bound job ended, and idle executors are being offered without `reoffer`
        self.calls = 0  # how often all idle executors were called up: a decision to wait holds until the next
        self.destination = {}  # moving executor -> StageState; None when its job finished meanwhile
        self.heap = []
        self.slots = []  # (end, order, stage, limit) of the withheld stages
        self.num_slots = count()
        self.slot_ends = 0
        self.push_order = count()

        # the round: who is to be assigned, and how many are still without a destination
        self.num_source = 0
        self.source_job = None
        self.listed = []
        self.selected = {}

        self.decisions = []
        self.tasks = []
        self.num_events = Counter(task=0, job=0, executor=0)
        self.completion_order = []
        self.total_reward = 0.0
        self.reward_ms = 0.0  # time up to which rewards are given
        self.unrewarded = {}  # jobs with time in the system not yet in the reward

    # ---- what a policy reads

    def frontier(self):
        """Stages that can be chosen: not chosen in this round, unsaturated, all parents saturated (finished)."""

        def ready(stage):
            return all(p.finished if self.runnable_only else p.saturated for p in stage.parents)

        # Executors that are bound to a job can only be given to it.
        bound = self.job_bound and self.num_source > 0 and self.source_job is not None and not self.source_job.finished
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
                for stage, executors in source.commitments.items():
                    coming += executors if stage is not None and stage.job is job else 0
        return len(job.attached) + coming

    def allocated(self, job):
        """`held` without executors committed to other jobs and those of the source still to be assigned."""
        leaving = sum(
            executors
            for source in (job.pool, *job.stages)
            for stage, executors in source.commitments.items()
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
        for executor in self.executors:
            self.null_pool.executors[executor] = None
        for job, given in zip(self.all_jobs, self.workload.jobs, strict=True):
            if given.initial:
                self.add_job(job)
            else:
                self.push(job.arrival_ms, job)
        self.open_pool_round(self.null_pool)
        while self.num_source > 0:
            self.decide(policy)
            self.run_to_next_round()
            self.add_reward()
        if self.jobs and not self.truncated:
            raise OracleDeadlockError(f"{len(self.jobs)} unfinished jobs and no event left at {self.now_ms} ms")
        return self.result()

    def decide(self, policy):
        """Ask the policy once and commit executors; carry out the commitments once all are made."""
        frontier = self.frontier()
        source_job = None if self.source_job is None else self.source_job.index
        row = [self.now_ms, source_job, self.num_source, len(frontier)]
        job_index, stage_index, limit, *more = policy(self)
        delay_ms = more[0] if more else 0.0
        if delay_ms != 0.0:
            self.delay(frontier, row, job_index, stage_index, limit, delay_ms)
            return
        if job_index is None:
            stage, used = None, limit
        else:
            job = self.all_jobs[job_index]
            stage = job.stages[stage_index]
            if stage not in frontier:
                raise OracleDecisionError(f"stage {stage_index} of job {job_index} is not in the frontier")
            used = min(stage.room, limit)
            if self.job_limit:
                used = min(stage.room, limit - self.allocated(job), self.num_source)
        if stage in self.selected:
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} chosen twice in a round")
        if not 0 < used <= self.num_source:
            raise OracleDecisionError(f"{used} executors to commit, expected 1 to {self.num_source}")
        self.decisions.append([*row, job_index, stage_index, limit, used])

        self.selected[stage] = None
        source = self.source()
        source.commitments[stage] = source.commitments.get(stage, 0) + used
        source.decided = self.calls
        if stage is not None:
            stage.committed += used
        self.num_source -= used
        if self.num_source == 0:
            self.selected.clear()
            self.fulfil()
        elif self.reoffer and not self.frontier():
            self.selected = {stage: None for stage in self.selected if stage is None}

    def delay(self, frontier, row, job_index, stage_index, limit, delay_ms):
        """Withhold a stage that can run, that nobody works on or is promised to, and that was never delayed."""
        if job_index is None or not 0.0 < delay_ms <= 1e15:
            raise OracleDecisionError(f"delay {delay_ms}")
        stage = self.all_jobs[job_index].stages[stage_index]
        if stage not in frontier or stage not in stage.job.runnable:
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} cannot run now")
        if stage.room < stage.num_tasks or (self.delay_once and stage.delayed):
            raise OracleDecisionError(f"stage {stage_index} of job {job_index} has begun or was delayed")
        if self.timer_assign and limit < 1:
            raise OracleDecisionError(f"limit {limit}")
        self.decisions.append([*row, job_index, stage_index, limit, 0, delay_ms])
        stage.withheld = stage.delayed = True
        del stage.job.runnable[stage]
        self.slots.append((self.now_ms + delay_ms, next(self.num_slots), stage, limit))
        if self.reoffer and not self.frontier():
            self.selected = {stage: None for stage in self.selected if stage is None}

    def on_slot_end(self):
        """The stage can be chosen again, as if it had just become runnable; all idle executors are called up."""
        slot = min(self.slots)
        self.slots.remove(slot)
        _, _, stage, limit = slot
        self.slot_ends += 1
        stage.withheld = False
        job = stage.job
        job.runnable[stage] = None
        self.mark_all_pools()
        job.called = self.calls
        self.call_without_reoffer()
        if self.timer_assign:
            self.assign(stage, limit)
        else:
            self.open_pool_round(job.pool)

    def call_without_reoffer(self):
        """What has just been marked is offered once, although idle executors are not offered again and again."""
        if not self.reoffer:
            self.calling = True
            for pool in [self.null_pool, *(job.pool for job in self.jobs)]:
                pool.marked = pool.open

    def assign(self, stage, limit):
        """Idle executors go to the stage up to the limit: those of its job, those without a job, those of others."""
        job = stage.job
        kept = self.allocated(job)
        idle = len(job.pool.executors)
        allowed = limit - kept + idle if self.job_limit else limit
        used = 0
        for pool in [job.pool, self.null_pool, *([] if self.job_bound else [other.pool for other in self.jobs])]:
            if pool is self.null_pool:
                allowed = limit - kept if self.job_limit else limit - used
            for executor in list(pool.executors):
                if allowed <= 0 or stage.room <= 0:
                    return
                if executor.reserved and pool is not job.pool:
                    continue
                del pool.executors[executor]
                executor.reserved = False
                executor.decided = self.calls
                pool.marked = pool.marked and pool.open
                if executor.job is job:
                    self.launch(executor, stage)
                else:
                    self.start_moving(executor, stage)
                used += 1
                allowed -= 1

    def run_to_next_round(self):
        """Handle events until the policy has to be asked or nothing is left."""
        while self.num_source == 0:
            if (self.reoffer or self.calling) and self.offer_idle():
                return
            self.calling = False
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
            for child in enabled:
                job.runnable[child] = None
            if enabled:
                self.mark_all_pools()
                job.called = self.calls

        if not stage.exhausted:
            self.launch(executor, stage)
        elif enabled:
            if stage.commitments:
                self.fulfil_with([executor])
            else:
                self.enter_pool(executor, job.pool, mark=True)
            self.open_pool_round(job.pool)
        elif stage.commitments:
            self.fulfil_with([executor])
        else:
            on_stage = len(stage.executors) if self.commit_ahead else 1
            self.open_round(job, [executor], on_stage)

        if all(s.finished for s in job.stages):
            self.remove_job(job)

    def remove_job(self, job):
        job.completion_ms = self.now_ms
        self.completion_order.append(job.index)
        self.jobs.remove(job)
        self.mark_all_pools()
        for executor in list(job.attached):
            self.detach(executor)
        for executor in job.pool.executors:
            executor.reserved = False
            self.null_pool.executors[executor] = None
            self.null_pool.marked = True
        if self.job_bound:
            self.call_without_reoffer()
        for source in self.sources():
            for stage in [s for s in source.commitments if s is not None and s.job is job]:
                del source.commitments[stage]
        for executor, stage in self.destination.items():
            if stage is not None and stage.job is job:
                self.destination[executor] = None

    # ---- rounds

    def open_round(self, job, listed, num_source):
        """The policy shall say where `num_source` executors go; `listed` ones are free now."""
        self.source_job = job
        self.listed = listed
        self.num_source = num_source

    def open_pool_round(self, pool, reserved=True):
        """A round over a pool, with or without its reserved executors; none if there are none."""
        pool.marked = False
        listed = [executor for executor in pool.executors if reserved or not executor.reserved]
        self.open_round(pool.job, listed, len(listed))

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

    def offer_idle(self):
        """Open a round over the first marked pool if there is anything to run; True if a round is open."""
        if not any(not stage.saturated for job in self.jobs for stage in job.runnable):
            return False
        for pool in [self.null_pool, *(job.pool for job in self.jobs)]:
            if pool.marked and pool.open:
                self.open_pool_round(pool, reserved=False)
                return True
        return False

    def fulfil(self):
        listed, self.listed = self.listed, []
        self.fulfil_with(listed)

    def fulfil_with(self, listed):
        """Carry out commitments of the source of `listed`, oldest destination first, one executor each."""
        self.listed = listed
        source = self.source()
        while source.commitments and self.listed:
            stage = next(iter(source.commitments))
            source.commitments[stage] -= 1
            if source.commitments[stage] == 0:
                del source.commitments[stage]
            if stage is not None:
                stage.committed -= 1
            executor = self.listed.pop(0)
            self.own_pool(executor).executors.pop(executor, None)
            executor.reserved = False
            executor.decided = source.decided
            self.carry_out(executor, stage)

    def carry_out(self, executor, stage):
        job = executor.job
        if stage is None:
            stale = executor.decided != self.calls
            has_work = job is not None and any(not s.exhausted for s in job.stages)
            has_work = has_work or (self.job_bound and job is not None and not all(s.finished for s in job.stages))
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
        if self.reoffer:
            self.enter_pool(executor, self.own_pool(executor), mark=True)
            return
        if executor.job is not None:
            for stage in executor.job.runnable:
                if not stage.saturated:
                    self.launch(executor, stage)
                    return
        frontier = self.frontier()
        if frontier and not (self.job_bound and executor.job is not None):
            self.start_moving(executor, frontier[0])
        else:
            self.enter_pool(executor, self.own_pool(executor), mark=True)

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
        if pool.job is None:
            self.detach(executor)
        else:
            self.leave_stage(executor, forget=not self.keep_warm)
        pool.executors[executor] = None
        pool.marked = pool.marked or mark

    def reserve(self, executor):
        """The executor waits for a stage of its job that cannot run yet: it is offered when one of the job can.

        If one became runnable since the policy decided, the executor is offered at once.
        """
        missed = self.reoffer and executor.decided < executor.job.called
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
        duration_ms = self.durations.duration_ms(stage.profile, wave, len(stage.job.attached))
        if executor.stage is not stage:
            self.leave_stage(executor)
            stage.executors[executor] = None
            executor.stage = stage
        executor.last_stage = stage
        stage.next_task += 1
        if stage.exhausted:
            del stage.job.runnable[stage]
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

    def result(self):
        done = [job for job in self.all_jobs if job.finished]
        all_durations_ms = (d for job in self.all_jobs for stage in job.stages for d in stage.durations_ms)
        jct_ms = [job.completion_ms - job.arrival_ms for job in done]
        return OracleResult(
            completion_ms=[job.completion_ms if job.finished else math.nan for job in self.all_jobs],
            completion_order=self.completion_order,
            makespan_ms=max((job.completion_ms for job in done), default=math.nan),
            avg_jct_ms=float(np.mean(jct_ms)) if done else math.nan,
            num_events=dict(self.num_events),
            node_finish_ms=[[stage.finish_ms for stage in job.stages] for job in self.all_jobs],
            busy_ms=sum(all_durations_ms, 0.0),
            total_reward=self.total_reward,
            now_ms=self.now_ms,
            truncated=self.truncated,
            decisions=self.decisions,
            tasks=self.tasks,
        )
