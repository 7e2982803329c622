"""What every schedule must satisfy, checked from the log of a run alone."""

import math

import numpy as np

FRESH, FIRST, REST = 0, 1, 2


def shortest_duration_ms(stage, settings):
    """Smallest duration that a task of the stage can take under the settings."""
    levels = range(len(stage.levels)) if settings.inflation else range(1)
    lists = [values for wave in (stage.fresh, stage.first, stage.rest) for values in (wave[i] for i in levels)]
    if settings.durations == "mean":
        return min(math.fsum(values) / len(values) for values in lists if len(values))
    return min(values.min() for values in lists if len(values))


def critical_path_ms(profile, settings):
    """Longest path with one shortest task per stage: no schedule is quicker."""
    longest = {}
    for index in profile.topological_order:
        above = max((longest[parent] for parent in profile.stages[index].parents), default=0.0)
        longest[index] = above + shortest_duration_ms(profile.stages[index], settings)
    return max(longest.values())


def check_schedule(result):
    """Check a finished run with a log; the first violation is named."""
    _check_order(result)
    _check_stages(result)
    _check_executors(result)
    _check_totals(result)


def _check_order(result):
    log = result.log
    assert (np.diff(log.start_ms) >= 0.0).all(), "time goes back between launches"
    assert (np.diff(log.decisions[:, 0]) >= 0.0).all(), "time goes back between decisions"
    assert (log.finish_ms >= log.start_ms).all(), "a task ends before it starts"
    completions = result.completion_ms[result.completion_order]
    assert (np.diff(completions) >= 0.0).all(), "jobs do not complete in order"
    assert sorted(result.completion_order) == list(range(len(result.workload))), "a job completes never or twice"


def _check_stages(result):
    log, settings = result.log, result.settings
    delay_ms = settings.moving_delay_ms if settings.startup else 0.0
    assert len(log.job) == sum(job.profile.num_tasks for job in result.workload.jobs), "tasks run"
    for number, job in enumerate(result.workload.jobs):
        finish_ms = []
        for index, stage in enumerate(job.profile.stages):
            where = f"job {number}, stage {index}"
            mine = (log.job == number) & (log.stage == index)
            assert mine.sum() == stage.num_tasks, f"{where}: tasks run"
            finish_ms.append(log.finish_ms[mine].max())
            assert result.stage_finish_ms[number][index] == finish_ms[-1], f"{where}: finish time"
        for index, stage in enumerate(job.profile.stages):
            starts = log.start_ms[(log.job == number) & (log.stage == index)]
            # every executor comes from elsewhere at first
            assert starts.min() >= job.arrival_ms + delay_ms, f"job {number}, stage {index}: starts before its job"
            for parent in stage.parents:
                assert starts.min() >= finish_ms[parent], f"job {number}, stage {index}: starts before {parent} ends"
        assert result.completion_ms[number] == max(finish_ms), f"job {number}: completion"
        least_ms = delay_ms + critical_path_ms(job.profile, settings)
        assert result.jct_ms[number] >= least_ms * (1.0 - 1e-9), f"job {number}: quicker than its critical path"


def _check_executors(result):
    log, settings = result.log, result.settings
    delay_ms = settings.moving_delay_ms if settings.startup else 0.0
    assert 0 <= log.executor.min() <= log.executor.max() < settings.executors, "unknown executor"
    last = {}
    for task in range(len(log.job)):
        executor, job = int(log.executor[task]), int(log.job[task])
        start_ms, wave = log.start_ms[task], log.wave[task]
        where = f"task {task} on executor {executor}"
        before = last.get(executor)
        last[executor] = task
        if before is None:
            assert wave == FRESH, f"{where}: wave of its first task"
            continue
        assert start_ms >= log.finish_ms[before], f"{where}: two tasks at a time"
        if job != log.job[before]:
            assert wave == FRESH, f"{where}: wave after a move"
            assert start_ms >= log.finish_ms[before] + delay_ms, f"{where}: moved too quickly"
        elif wave == FRESH:
            moved = start_ms >= log.finish_ms[before] + delay_ms
            assert moved or not settings.keep_warm, f"{where}: cold without having left"
        else:
            expected = REST if log.stage[task] == log.stage[before] else FIRST
            assert wave == expected, f"{where}: wave inside its job"
            assert settings.keep_warm or start_ms == log.finish_ms[before], f"{where}: warm after a pause"


def _check_totals(result):
    log = result.log
    arrivals = int((~result.workload.initial).sum())
    assert result.num_events["task"] == len(log.job)
    assert result.num_events["job"] == arrivals
    assert result.num_decisions == len(log.decisions)
    assert math.isclose(result.busy_ms, math.fsum(log.finish_ms - log.start_ms), rel_tol=1e-9)
    assert result.busy_ms <= result.settings.executors * result.makespan_ms * (1.0 + 1e-9)
    used, offered = log.decisions[:, 7], log.decisions[:, 2]
    assert ((used >= 1) & (used <= offered)).all(), "executors used in a decision"


def check_durations(result):
    """Every task took one of the recorded durations of its stage (sampled durations)."""
    log, settings = result.log, result.settings
    for number, job in enumerate(result.workload.jobs):
        for index, stage in enumerate(job.profile.stages):
            mine = (log.job == number) & (log.stage == index)
            recorded = stage.all_durations_ms
            possible = np.concatenate([recorded, recorded + settings.warmup_delay_ms])
            took = (log.finish_ms - log.start_ms)[mine]
            assert (np.abs(took[:, None] - possible[None, :]).min(axis=1) < 1e-6).all(), f"job {number}, stage {index}"


def check_counters(state):
    """Every count that the state keeps up to date agrees with counting afresh; call at a decision."""
    tasks, first = state.stage_tasks, state.job_first_stage
    active = state.active[: state.num_active].tolist()
    stages = [stage for job in active for stage in range(first[job], first[job + 1])]
    room = tasks - state.stage_next - state.stage_commit - state.stage_moving
    moving = [e for e in range(state.num_executors) if state.executor_moving[e]]
    for stage in stages:
        job, row = state.stage_job[stage], state.stage_row[stage]
        parents = first[job] + state.parent[state.parent_offset[row] : state.parent_offset[row + 1]]
        saturated = room[stage] <= 0
        runnable = state.stage_next[stage] < tasks[stage]
        runnable &= all(state.stage_finished_tasks[p] == tasks[p] for p in parents)
        frontier = not saturated and not state.stage_selected[stage]
        frontier &= all(state.stage_saturated[p] for p in parents) and (runnable or not state.runnable_only)
        assert (state.stage_saturated[stage], state.stage_runnable[stage]) == (saturated, runnable), stage
        assert state.stage_in_frontier[stage] == frontier, stage
        assert state.stage_moving[stage] == sum(state.executor_destination[e] == stage for e in moving), stage
        assert state.stage_executors[stage] == (state.executor_stage == stage).sum(), stage
    open_stages = [stage for stage in stages if state.stage_runnable[stage] and not state.stage_saturated[stage]]
    assert state.num_runnable_open == len(open_stages)
    assert state.num_frontier == sum(state.stage_in_frontier[stage] for stage in stages) == len(state.frontier())
    assert state.num_jobs_unsaturated == sum(any(room[first[j] : first[j + 1]] > 0) for j in active)
    for job in active:
        own = range(first[job], first[job + 1])
        assert state.job_attached[job] == (state.executor_job == job).sum(), job
        assert state.job_moving[job] == sum(state.stage_moving[stage] for stage in own), job
        assert state.job_unsaturated[job] == sum(room[stage] > 0 for stage in own), job
        assert state.job_unfinished[job] == sum(state.stage_finished_tasks[stage] < tasks[stage] for stage in own), job
        assert state.job_unexhausted[job] == sum(state.stage_next[stage] < tasks[stage] for stage in own), job
    check_places(state)


def check_places(state):
    """Every executor is in exactly one place: a pool, a stage or under way.

    Only the last executor of a job that just ended is in none while it is offered.
    """
    offered = state.free_executors[: state.num_free].tolist()
    members = {}
    for pool in range(state.num_jobs + 1):
        found, executor = [], int(state.pool_head[pool])
        while executor != -1:
            found.append(executor)
            executor = int(state.pool_next[executor])
        assert len(found) == state.pool_size[pool], f"pool {pool}"
        assert state.pool_open[pool] == sum(not state.executor_reserved[e] for e in found), f"pool {pool}"
        members |= dict.fromkeys(found, pool)
    for executor in range(state.num_executors):
        job = state.executor_job[executor]
        idle, running = executor in members, state.executor_stage[executor] != -1
        places = idle + running + int(state.executor_moving[executor])
        assert places == (0 if offered == [executor] and job == -1 and not idle else 1), f"executor {executor}"
        assert state.executor_pool[executor] == members.get(executor, -1), f"executor {executor}"
        if idle:
            assert members[executor] == (job if job != -1 else state.num_jobs), f"executor {executor}"
        if running:
            assert job == state.stage_job[state.executor_stage[executor]], f"executor {executor}"


def check_commitments(state):
    """The records of the commitments in force and the unused ones are all there; returns how many are in force."""
    used = 0
    promised = np.zeros(state.num_stages, dtype=int)
    for source in range(len(state.commit_head)):
        record = state.commit_head[source]
        while record != -1:
            assert state.commit_count[record] > 0
            assert state.commit_source[record] == source
            if state.commit_stage[record] >= 0:
                promised[state.commit_stage[record]] += state.commit_count[record]
            used += 1
            record = state.commit_next[record]
    unused, record = 0, state.commit_free
    while record != -1:
        unused += 1
        record = state.commit_next[record]
    assert used + unused == state.num_commits, "lost commitment records"
    assert promised.tolist() == state.stage_commit.tolist()
    return used
