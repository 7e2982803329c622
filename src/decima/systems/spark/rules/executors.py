"""What an executor does next: run a task, move to another job, wait, or idle.

A commitment (§5.2) promises executors to a stage, or to idling, before they are free.
"""

from decima.core.heap import heap_push
from decima.core.jit import njit
from decima.systems.spark.fields import MOVE, NONE, TASK
from decima.systems.spark.rules import pools
from decima.systems.spark.rules.classes import count_unexhausted, fits_class, keep_of_class, no_stage_left, of_class
from decima.systems.spark.rules.durations import FIRST, FRESH, REST, launch_duration, straggle
from decima.systems.spark.rules.frontier import first_frontier_stage, remove_runnable, show_classes, update_saturation
from decima.systems.spark.rules.pools import join_job_pool, join_null_pool
from decima.systems.spark.rules.speculation import begin_copy


@njit
def record_task(state, stage, executor, wave, duration):
    """Append to the task log."""
    row = state.num_tasks_logged
    state.task_stage[row] = stage
    state.task_executor[row] = executor
    state.task_wave[row] = wave
    state.task_start_ms[row] = state.now_ms
    state.task_finish_ms[row] = state.now_ms + duration
    state.num_tasks_logged = row + 1


@njit
def _exhaust(state, stage):
    """Keep lists and counts after the last task of a stage was launched."""
    remove_runnable(state, stage)
    count_unexhausted(state, stage, -1)
    if state.num_classes > 1:
        job = state.stage_job[stage]
        for executor_class in range(state.num_classes):
            if no_stage_left(state, job, executor_class):
                pools.release_class(state, job, executor_class)


@njit(forceinline=True)
def take_task(state, stage, executor, situation, elastic):
    """Count the next task of the stage as launched and return its finish time.

    ``elastic`` is 0 where executors surely neither come, go nor fail, and what they need is left out when compiled.
    """
    duration = launch_duration(state, stage, situation)
    if elastic:
        duration = straggle(state, duration)
        state.num_running += 1
        state.executor_row[executor] = state.num_tasks_logged
        if state.log_tasks:
            state.task_lost[state.num_tasks_logged] = 0
        if state.speculates:
            begin_copy(state, stage, executor)
    state.busy_ms += duration
    state.executor_start_ms[executor] = state.now_ms
    if state.log_tasks:
        record_task(state, stage, executor, situation, duration)
    launched = state.stage_next[stage] + 1
    state.stage_next[stage] = launched
    if launched == state.stage_tasks[stage]:
        _exhaust(state, stage)
    return state.now_ms + duration


@njit
def launch(state, executor, stage):
    """Start the next task of a runnable stage of the executor's job."""
    last = state.executor_last[executor]
    situation = REST if last == stage else (FIRST if last != NONE else FRESH)
    if state.executor_stage[executor] != stage:
        pools.leave_stage(state, executor)
        state.executor_stage[executor] = stage
        state.stage_executors[stage] += 1
        if state.num_classes > 1:
            state.stage_class_executors[of_class(state, stage, executor)] += 1
    finish = take_task(state, stage, executor, situation, state.elastic)
    state.executor_last[executor] = stage
    heap_push(state, finish, TASK, executor)


@njit
def start_move(state, executor, stage):
    """Send the executor to a stage; it arrives after the moving delay (§6.2)."""
    pools.leave_stage(state, executor)
    pools.detach(state, executor)
    state.executor_destination[executor] = stage
    state.executor_moving[executor] = 1
    state.stage_moving[stage] += 1
    state.job_moving[state.stage_job[stage]] += 1
    keep_of_class(state, state.stage_job[stage], executor, 1)
    heap_push(state, state.now_ms + state.moving_delay_ms, MOVE, executor)


@njit
def idle_on_decision(state, executor):
    """The executor idles in its pool because the scheduler said so.

    That holds until all idle executors are called up (``reoffer``); if it happened since the decision, it is offered.
    """
    if state.reoffer and state.executor_calls[executor] != state.calls:
        pools.mark_pool(state, state.executor_pool[executor])


@njit
def wait_for_stage(state, executor):
    """Let the executor wait in its job's pool for a stage of the job.

    It is offered again when a stage of the job becomes runnable, not when one of another job does; at once if that
    happened since the decision (``reoffer``).
    """
    pools.join_job_pool(state, executor)
    pool = state.executor_pool[executor]
    if state.reoffer and state.executor_calls[executor] < state.job_calls[pool]:
        pools.mark_pool(state, pool)
        return
    pools.reserve_executor(state, executor)


@njit
def fall_back(state, executor):
    """Its destination has no task left: what the executor does without asking the scheduler.

    Differs: with ``reoffer`` it goes to its pool and is offered; the released simulator sends it to the first runnable,
    unsaturated stage of its job, else (unless ``job_bound``) to the first frontier stage of all jobs, else to its pool.
    It fits the stages it is sent to.
    """
    job = state.executor_job[executor]
    state.executor_calls[executor] = NONE
    if state.reoffer:
        pools.mark_pool(state, pools.join_pool_of_job(state, executor))
        return
    if job != NONE:
        stage = state.runnable_head[job]
        while stage != NONE:
            if not state.stage_saturated[stage] and fits_class(state, stage, state.executor_class[executor]):
                launch(state, executor, stage)
                update_saturation(state, stage)
                return
            stage = state.runnable_next[stage]
    if state.num_classes > 1:
        show_classes(state, 1 << state.executor_class[executor])
    if state.num_frontier > 0 and (job == NONE or not state.job_bound):
        for index in range(state.num_active):
            stage = first_frontier_stage(state, state.active[index])
            if stage != NONE:
                start_move(state, executor, stage)
                update_saturation(state, stage)
                return
    pools.join_pool_of_job(state, executor)


@njit
def source_job_of(state, source):
    """Job that a source id belongs to, NONE for the null pool."""
    if source < state.num_stages:
        return state.stage_job[source]
    if source < state.num_stages + state.num_jobs:
        return source - state.num_stages
    return NONE


@njit
def _count_commitment(state, source, stage, change):
    state.stage_commit[stage] += change
    job = state.stage_job[stage]
    classes = state.num_classes
    owner = source_job_of(state, source if classes == 1 else source // classes)
    if owner != job:
        state.job_commit[job] += change
        if owner != NONE:
            state.job_outgoing[owner] += change
        if classes > 1:
            executor_class = source % classes
            state.job_class_kept[job * classes + executor_class] += change
            if owner != NONE:
                state.job_class_kept[owner * classes + executor_class] -= change


@njit
def commit(state, source, stage, count):
    """Promise executors of source id x classes + class to a stage (NONE: idling)."""
    state.source_calls[source] = state.calls
    if stage != NONE:
        _count_commitment(state, source, stage, count)
    record = state.commit_head[source]
    while record != NONE:
        if state.commit_stage[record] == stage:
            state.commit_count[record] += count
            return
        record = state.commit_next[record]
    record = state.commit_free
    state.commit_free = state.commit_next[record]
    state.commit_source[record] = source
    state.commit_stage[record] = stage
    state.commit_count[record] = count
    state.commit_next[record] = NONE
    tail = state.commit_tail[source]
    if tail == NONE:
        state.commit_head[source] = record
    else:
        state.commit_next[tail] = record
    state.commit_tail[source] = record


@njit
def _remove_commit(state, source, record):
    before = NONE
    current = state.commit_head[source]
    while current != record:
        before = current
        current = state.commit_next[current]
    after = state.commit_next[record]
    if before == NONE:
        state.commit_head[source] = after
    else:
        state.commit_next[before] = after
    if after == NONE:
        state.commit_tail[source] = before
    state.commit_count[record] = 0
    state.commit_next[record] = state.commit_free
    state.commit_free = record


@njit
def fulfil_one(state, source, executor):
    """The executor does what the first commitment of its class of the source says."""
    source = of_class(state, source, executor)
    record = state.commit_head[source]
    stage = state.commit_stage[record]
    state.commit_count[record] -= 1
    if state.commit_count[record] == 0:
        _remove_commit(state, source, record)
    state.executor_calls[executor] = state.source_calls[source]
    job = state.executor_job[executor]
    if stage == NONE:
        if job != NONE and (state.job_unexhausted[job] > 0 or (state.job_bound and state.job_unfinished[job] > 0)):
            join_job_pool(state, executor)
        else:
            join_null_pool(state, executor)
        idle_on_decision(state, executor)
        return
    _count_commitment(state, source, stage, -1)
    if state.stage_next[stage] >= state.stage_tasks[stage]:
        fall_back(state, executor)
    elif job != state.stage_job[stage]:
        start_move(state, executor, stage)
    elif state.stage_unfinished_parents[stage] == 0:
        launch(state, executor, stage)
    else:
        wait_for_stage(state, executor)
    update_saturation(state, stage)


@njit
def drop_promise(state, source):
    """Forget the last promise of a stage's executors if more are promised than are left.

    There is one class of executors.
    """
    promised = 0
    record = state.commit_head[source]
    while record != NONE:
        promised += state.commit_count[record]
        record = state.commit_next[record]
    if promised <= state.stage_executors[source]:
        return
    record = state.commit_tail[source]
    stage = state.commit_stage[record]
    state.commit_count[record] -= 1
    if state.commit_count[record] == 0:
        _remove_commit(state, source, record)
    if stage != NONE:
        _count_commitment(state, source, stage, -1)
        update_saturation(state, stage)


@njit
def drop_commitments(state, job):
    """Forget promises of other sources to a job that has finished."""
    if state.job_commit[job] == 0:
        return
    for record in range(state.num_commits):
        if state.commit_count[record] > 0 and state.commit_stage[record] != NONE:
            stage = state.commit_stage[record]
            if state.stage_job[stage] == job:
                source = state.commit_source[record]
                _count_commitment(state, source, stage, -state.commit_count[record])
                _remove_commit(state, source, record)
