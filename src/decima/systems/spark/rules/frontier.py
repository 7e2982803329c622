"""Saturation of stages, the frontier and the lists of runnable stages."""

from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE, WITHHELD
from decima.systems.spark.rules.classes import count_runnable_open, file_open


@njit
def stage_room(state, stage):
    """Tasks of ``stage`` that no executor is launching, committed or moving for."""
    return state.stage_tasks[stage] - state.stage_next[stage] - state.stage_commit[stage] - state.stage_moving[stage]


@njit
def _set_member(state, stage, member):
    if member != state.stage_in_frontier[stage]:
        change = 1 if member else -1
        state.stage_in_frontier[stage] = member
        state.job_frontier[state.stage_job[stage]] += change
        state.num_frontier += change


@njit
def show_classes(state, classes):
    """Let the frontier hold the open stages that fit some class of a mask."""
    before = state.offered_classes
    if classes == before:
        return
    state.offered_classes = classes
    for group in range(state.num_groups):
        fits = state.group_fits[group]
        shown = (fits & classes) != 0
        if shown != ((fits & before) != 0):
            stage = state.open_head[group]
            while stage != NONE:
                _set_member(state, stage, shown)
                stage = state.open_next[stage]


@njit
def update_frontier(state, stage):
    """Bring the stage's membership of the frontier up to date."""
    member = (
        not state.stage_saturated[stage]
        and state.stage_unsaturated_parents[stage] == 0
        and not state.stage_selected[stage]
    )
    if state.runnable_only and state.stage_unfinished_parents[stage] > 0:
        member = False
    if state.elastic and state.stage_slot[stage] == WITHHELD:  # whose parents may lose outputs
        member = False
    if state.num_classes > 1:
        member = file_open(state, stage, member)
    _set_member(state, stage, member)


@njit(forceinline=True)
def update_saturation(state, stage):
    """Recompute whether the stage is saturated; on a change tell its job and its children."""
    saturated = stage_room(state, stage) <= 0
    if saturated != state.stage_saturated[stage]:
        _set_saturation(state, stage, saturated)


@njit
def _set_saturation(state, stage, saturated):
    state.stage_saturated[stage] = saturated
    change = -1 if saturated else 1
    job = state.stage_job[stage]
    state.job_unsaturated[job] += change
    if state.job_unsaturated[job] == (1 if change > 0 else 0):
        state.num_jobs_unsaturated += change
    if state.stage_runnable[stage]:
        count_runnable_open(state, stage, change)
    update_frontier(state, stage)
    row = state.stage_row[stage]
    first = state.job_first_stage[job]
    for index in range(state.child_offset[row], state.child_offset[row + 1]):
        child = first + state.child[index]
        state.stage_unsaturated_parents[child] += change
        update_frontier(state, child)


@njit
def add_runnable(state, stage):
    """Append a stage whose parents have finished to its job's runnable list."""
    job = state.stage_job[stage]
    tail = state.runnable_tail[job]
    state.runnable_prev[stage] = tail
    state.runnable_next[stage] = NONE
    if tail == NONE:
        state.runnable_head[job] = stage
    else:
        state.runnable_next[tail] = stage
    state.runnable_tail[job] = stage
    state.stage_runnable[stage] = 1
    if not state.stage_saturated[stage]:
        count_runnable_open(state, stage, 1)


@njit
def remove_runnable(state, stage):
    """Take a stage whose last task was launched out of the runnable list."""
    job = state.stage_job[stage]
    before = state.runnable_prev[stage]
    after = state.runnable_next[stage]
    if before == NONE:
        state.runnable_head[job] = after
    else:
        state.runnable_next[before] = after
    if after == NONE:
        state.runnable_tail[job] = before
    else:
        state.runnable_prev[after] = before
    state.stage_runnable[stage] = 0
    if not state.stage_saturated[stage]:
        count_runnable_open(state, stage, -1)


@njit
def leave_frontier(state, stage):
    """Take a stage out of the frontier whatever its room; :func:`update_frontier` puts it back."""
    if state.num_classes > 1:
        file_open(state, stage, False)
    _set_member(state, stage, False)


@njit
def first_frontier_stage(state, job):
    """First stage of the job in the frontier by index, or NONE."""
    if state.job_frontier[job] > 0:
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_in_frontier[stage]:
                return stage
    return NONE


# ---- executors that stay with a job until it ends: while they are offered, only stages of that job can be chosen ----


@njit
def bar_other_jobs(state):
    """Bar stages of other jobs from a round over an unfinished job's executors."""
    state.round_bound = 1
    job = state.source_job
    if job == NONE or state.job_state[job] != ACTIVE:
        return
    for index in range(state.num_active):
        other = state.active[index]
        if other == job or state.job_frontier[other] == 0:
            continue
        for stage in range(state.job_first_stage[other], state.job_first_stage[other + 1]):
            if state.stage_in_frontier[stage]:
                leave_frontier(state, stage)
                state.barred[state.num_barred] = stage
                state.num_barred += 1


@njit
def admit_other_jobs(state):
    """Put the stages back that :func:`bar_other_jobs` took out."""
    state.round_bound = 0
    for index in range(state.num_barred):
        update_frontier(state, state.barred[index])
    state.num_barred = 0
