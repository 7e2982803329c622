"""What must hold of the state of a run at every decision: its counts, its executors, its promises."""

from itertools import pairwise

import numpy as np

from decima.systems.spark.decision import DELAY, JOB_COLUMN, PART_COLUMNS, STAGE
from decima.systems.spark.fields import ACTIVE, PRESENT, STARTING, WITHHELD


def parents_of(state, stage):
    """Stage ids of the parents of a stage."""
    row, first = state.stage_row[stage], state.job_first_stage[state.stage_job[stage]]
    return first + state.parent[state.parent_offset[row] : state.parent_offset[row + 1]]


def check_counters(state):
    """Every count that the state keeps up to date agrees with counting afresh; call at a decision."""
    tasks, first = state.stage_tasks, state.job_first_stage
    active = state.active[: state.num_active].tolist()
    stages = [stage for job in active for stage in range(first[job], first[job + 1])]
    room = tasks - state.stage_next - state.stage_commit - state.stage_moving
    bound = state.job_bound and state.source_job in active
    moving = [e for e in range(state.num_executors) if state.executor_moving[e]]
    for stage in stages:
        job, parents = state.stage_job[stage], parents_of(state, stage)
        saturated = room[stage] <= 0
        runnable = state.stage_next[stage] < tasks[stage]
        runnable &= all(state.stage_finished_tasks[p] == tasks[p] for p in parents)
        withheld = state.stage_slot[stage] == WITHHELD
        runnable &= not withheld
        frontier = not saturated and not state.stage_selected[stage]
        frontier &= all(state.stage_saturated[p] for p in parents) and (runnable or not state.runnable_only)
        frontier &= not withheld and (not bound or job == state.source_job)
        frontier &= (state.group_fits[state.stage_group[stage]] & offered_classes(state)) != 0
        assert (state.stage_saturated[stage], state.stage_runnable[stage]) == (saturated, runnable), stage
        assert state.stage_in_frontier[stage] == frontier, stage
        assert state.stage_moving[stage] == sum(state.executor_destination[e] == stage for e in moving), stage
        assert state.stage_executors[stage] == (state.executor_stage == stage).sum(), stage
    open_stages = [stage for stage in stages if state.stage_runnable[stage] and not state.stage_saturated[stage]]
    assert state.num_runnable_open == len(open_stages)
    withheld = [stage for stage in stages if state.stage_slot[stage] == WITHHELD]
    assert sorted(state.timer_heap[: state.num_timers].tolist()) == sorted(withheld)
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


def offered_classes(state):
    """Bit mask of the classes on offer."""
    return sum(1 << kind for kind in range(state.num_classes) if state.class_offers[kind] > 0)


def check_classes(state):
    """What is counted by class, where there are several, agrees with counting afresh; call at a decision."""
    kinds, kind_of = range(state.num_classes), state.executor_class
    assert state.class_offers.sum() == state.num_source
    names = ("stage_class_executors", "job_class_unexhausted", "job_class_kept")
    by_class = {name: getattr(state, name).reshape(-1, state.num_classes) for name in names}
    for stage in range(state.num_stages):
        there = [int((kind_of[state.executor_stage == stage] == kind).sum()) for kind in kinds]
        assert by_class["stage_class_executors"][stage].tolist() == there, stage
    promised = np.zeros((state.num_jobs + 1, state.num_classes), dtype=int)
    for place in range(len(state.commit_head)):
        record, (source, kind) = state.commit_head[place], divmod(place, state.num_classes)
        owner = state.stage_job[source] if source < state.num_stages else source - state.num_stages
        while record != -1:
            if state.commit_stage[record] >= 0:
                promised[state.stage_job[state.commit_stage[record]], kind] += state.commit_count[record]
                promised[owner, kind] -= state.commit_count[record]
            record = state.commit_next[record]
    for job in np.flatnonzero(state.job_state == ACTIVE):
        stages = range(state.job_first_stage[job], state.job_first_stage[job + 1])
        left = [stage for stage in stages if state.stage_next[stage] < state.stage_tasks[stage]]
        for kind in kinds:
            fits = sum(state.group_fits[state.stage_group[stage]] >> kind & 1 for stage in left)
            assert by_class["job_class_unexhausted"][job, kind] == fits, (job, kind)
            moving = (kind_of == kind) & (state.executor_moving == 1)
            coming = sum(stage in stages for stage in state.executor_destination[moving])
            kept = ((state.executor_job == job) & (kind_of == kind)).sum() + coming + promised[job, kind]
            assert by_class["job_class_kept"][job, kind] == kept, (job, kind)
            idle = (state.executor_pool == job) & (kind_of == kind)
            assert not (left and fits == 0 and idle.any()), f"executors idle in job {job} without a stage for them"


def check_places(state):
    """Every executor is in exactly one place: a pool, a stage or under way.

    Only the last executor of a job that just ended is in none while it is offered, and those that are not registered.
    """
    there = registered(state)
    offered = state.free_executors[: state.num_free].tolist()
    members = {}
    for pool in range(state.num_jobs + 1):
        found = []
        for kind in range(state.num_classes):
            executor = int(state.pool_head[pool * state.num_classes + kind])
            while executor != -1:
                assert state.executor_class[executor] == kind, f"executor {executor}"
                found.append(executor)
                executor = int(state.pool_next[executor])
        assert len(found) == state.pool_size[pool], f"pool {pool}"
        assert state.pool_open[pool] == sum(not state.executor_reserved[e] for e in found), f"pool {pool}"
        members |= dict.fromkeys(found, pool)
    for executor in range(state.num_executors):
        job = state.executor_job[executor]
        idle, running = executor in members, state.executor_stage[executor] != -1
        places = idle + running + int(state.executor_moving[executor])
        nowhere = not there[executor] or (offered == [executor] and job == -1 and not idle)
        assert places == (0 if nowhere else 1), f"executor {executor}"
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


def registered(state):
    """Whether each executor is there, where they come, go and fail; bool [executors]."""
    if not state.elastic:
        return np.ones(state.num_executors, dtype=bool)
    return np.repeat(state.unit_state == PRESENT, state.unit_size)


def check_units(state):
    """What is counted where executors come, go and fail agrees with counting afresh; call at a decision."""
    check_counters(state)
    tasks, first, present = state.stage_tasks, state.job_first_stage, state.unit_state == PRESENT
    assert state.num_present == present.sum()
    assert state.num_starting == (state.unit_state == STARTING).sum()
    busy = (state.executor_pool == -1).reshape(-1, state.unit_size).sum(axis=1)
    assert (state.unit_busy == busy)[present].all()
    for array in (state.executor_pool, state.executor_job, state.executor_stage, state.executor_destination):
        assert (array[~registered(state)] == -1).all()
    outputs = np.zeros(len(state.unit_state), dtype=int)
    for job in state.active[: state.num_active].tolist():
        for stage in range(first[job], first[job + 1]):
            row = state.stage_row[stage]
            unfinished = sum(state.stage_finished_tasks[p] < tasks[p] for p in parents_of(state, stage))
            assert state.stage_unfinished_parents[stage] == unfinished, stage
            if state.keeps_outputs and state.child_offset[row] < state.child_offset[row + 1]:
                there = state.stage_finished_tasks[stage] - state.stage_missing[stage]
                units = state.output_unit[state.stage_output[stage] :][:there]
                np.add.at(outputs, units, 1)
    assert state.unit_outputs[present].tolist() == outputs[present].tolist()
    assert (outputs[~present] == 0).all()


def check_nobody_idles(state):
    """No executor idled beside tasks that fit it and could start; call at the end of a run with both logs.

    That is, their stage had no unfinished parent and was in no slot. It holds of rules that idle nobody, where nobody
    is under way or promised elsewhere.
    """
    tasks = slice(0, state.num_tasks_logged)
    stage, kind = state.task_stage[tasks], state.executor_class[state.task_executor[tasks]]
    start_ms, finish_ms = state.task_start_ms[tasks], state.task_finish_ms[tasks]
    ready_ms = state.job_arrival_ms[state.stage_job]
    for each in range(state.num_stages):
        ready_ms[each] = max([ready_ms[each], *state.stage_finish_ms[parents_of(state, each)]])
    slots = state.logged_decisions[state.logged_decisions[:, PART_COLUMNS[DELAY]] > 0.0]
    withheld = state.job_first_stage[slots[:, JOB_COLUMN].astype(int)] + slots[:, PART_COLUMNS[STAGE]].astype(int)
    begin_ms, end_ms = np.full((2, state.num_stages), np.inf)
    begin_ms[withheld], end_ms[withheld] = slots[:, 0], slots[:, 0] + slots[:, PART_COLUMNS[DELAY]]
    fits = state.group_fits[state.stage_group[stage]]
    instants = np.concatenate([start_ms, finish_ms, state.job_arrival_ms, end_ms[withheld]])
    for now_ms, after_ms in pairwise(np.unique(instants)):
        startable = (ready_ms <= now_ms) & ~((begin_ms <= now_ms) & (now_ms < end_ms))
        waiting = fits[(start_ms >= after_ms) & startable[stage]]
        busy = np.bincount(kind[(start_ms <= now_ms) & (finish_ms >= after_ms)], minlength=state.num_classes)
        for each, (number, size) in enumerate(zip(busy, state.class_executors, strict=True)):
            assert number == size or not (waiting >> each & 1).any(), (now_ms, each)
