"""What a compiled scheduler asks about jobs, and how it returns its decision."""

from decima.core.jit import njit
from decima.systems.spark.decision import CLASS, DEFAULTS, LIMIT, NUM_PARTS, STAGE
from decima.systems.spark.fields import ACTIVE, FINISHED, NONE
from decima.systems.spark.rules.durations import FIRST, FRESH, REST, mean_duration_ms


@njit
def job_held(state, job):
    """Executors of the job: attached, moving to it, or promised to it by others."""
    return state.job_attached[job] + state.job_moving[job] + state.job_commit[job]


@njit
def job_allocation(state, job):
    """Executors the job keeps, without those on offer; limits must exceed it (§5.2)."""
    held = job_held(state, job) - state.job_outgoing[job]
    if job == state.source_job and state.job_state[job] == ACTIVE:
        held -= state.num_source
    return held


@njit
def destination_of(state, executor):
    """Stage that an executor is on its way to; NONE where its job has finished."""
    stage = state.executor_destination[executor]
    return NONE if stage != NONE and state.job_state[state.stage_job[stage]] == FINISHED else stage


@njit
def remaining_work_ms(state, job):
    """Remaining work of a job in ms: unfinished tasks times nominal duration, over its stages."""
    work = 0.0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
        work += unfinished * state.row_nominal_ms[state.stage_row[stage]]
    return work


@njit
def work_at_level_ms(state, job, level):
    """Remaining work of a job on ``level`` executors, ms; slow first tasks count."""
    work = 0.0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        tasks = state.stage_tasks[stage]
        unfinished = tasks - state.stage_finished_tasks[stage]
        if unfinished > 0:
            slow = max(0, min(tasks, level) - state.stage_next[stage])
            if slow > 0:
                work += slow * mean_duration_ms(state, stage, level, FIRST)
            if unfinished != slow:
                work += (unfinished - slow) * mean_duration_ms(state, stage, level, REST)
    return work


@njit
def offers_working(state):
    """Whether executors that still work are among those offered.

    If they were left idle, they might be the last ones to work, and nothing would offer an executor again.
    """
    source = state.source
    return state.commit_ahead and source < state.num_stages and state.stage_executors[source] > 1


@njit
def choose(state, stage, executors):
    """Decide: use ``executors`` of the offered ones for ``stage``."""
    action = state.action
    action[STAGE] = stage
    action[LIMIT] = executors
    if state.job_limit:
        action[LIMIT] += job_allocation(state, state.stage_job[stage])
    for part in range(LIMIT + 1, NUM_PARTS):
        action[part] = DEFAULTS[part]


@njit
def choose_class(state, stage, executors, executor_class):
    """Decide: use ``executors`` of the offered ones of a class for ``stage``."""
    choose(state, stage, executors)
    if state.num_classes > 1:
        state.action[CLASS] = executor_class


@njit
def choose_idle(state):
    """Decide: leave all offered executors idle."""
    action = state.action
    action[STAGE] = NONE
    action[LIMIT] = state.num_source
    for part in range(LIMIT + 1, NUM_PARTS):
        action[part] = DEFAULTS[part]


def kept_executors(state, jobs):
    """Executors that jobs hold and do not give away, those being offered now included.

    :func:`job_allocation` has the same sum for compiled code.

    Args:
        state: A state, or whatever has its arrays of jobs.
        jobs: Job id, or int array [n].

    Returns:
        int32, shaped as ``jobs``.
    """
    return state.job_attached[jobs] + state.job_moving[jobs] + state.job_commit[jobs] - state.job_outgoing[jobs]


@njit
def entry_cost_ms(state, stage, executors):
    """Executor time that coming to a stage costs: the move, and a first task."""
    return state.moving_delay_ms + mean_duration_ms(state, stage, executors, FRESH)
