"""Rules of the cluster as compiled functions over the state: durations, saturation, pools, commitments.

Every function takes the state first and changes only it. The event loop is in :mod:`decima.simulator.engine`.

Source: §3, §5.2, §6.2 of the paper, and the released simulator, whose order of operations is kept so that runs agree
bit for bit. ``docs/glossary.md`` defines the words.
"""

from numba import njit

from decima.simulator.state_type import next_raw

# Situations of a task launch, in the order of the duration lists.
FRESH, FIRST, REST = 0, 1, 2
NONE = -1
ARRIVING, ACTIVE, FINISHED = 0, 1, 2

# Random numbers: the same arithmetic on the same 64-bit outputs in plain Python gives the same numbers.


@njit
def draw_below(raw, bound):
    """Integer in [0, bound) from 64 random bits (upper half times bound)."""
    return ((raw >> 32) * bound) >> 32


@njit
def draw_uniform(raw):
    """Uniform double in [0, 1) from 64 random bits."""
    return (raw >> 11) * (1.0 / 9007199254740992.0)


# ---- durations ------------------------------------------------------------------------------------------------------


@njit
def launch_duration(state, stage, situation):
    """Duration in ms of the next task of ``stage`` (§6.2: wave, start-up, slowdown by parallelism)."""
    row = state.stage_row[stage]
    executors = state.job_attached[state.stage_job[stage]]
    if executors >= state.grid_width:
        executors = state.grid_width - 1
    cell = state.row_grid[row] * state.grid_width + executors
    left = state.grid_left[cell]
    right = state.grid_right[cell]
    base = state.row_list[row] + situation
    if state.sampled:
        level = left
        if left != right:
            raw = next_raw(state.duration_next, state.duration_rng)
            if not draw_uniform(raw) >= state.grid_weight[cell]:
                level = right
        chosen = base + 3 * level
        raw = next_raw(state.duration_next, state.duration_rng)
        index = draw_below(raw, state.list_length[chosen])
        return state.values_ms[state.list_offset[chosen] + index] + state.list_add_ms[chosen]
    mean = state.list_mean_ms[base + 3 * left]
    if left != right:
        weight = state.grid_weight[cell]
        mean = (1.0 - weight) * mean + weight * state.list_mean_ms[base + 3 * right]
    return mean


# ---- event heap: (time, push counter), one entry per busy executor --------------------------------------------------


@njit
def _sift_down(state, time, sequence, executor):
    """Put an entry at the root and let it sink."""
    times = state.heap_ms
    order = state.heap_sequence
    owner = state.heap_executor
    size = state.heap_size
    hole = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and (
            times[right] < times[child] or (times[right] == times[child] and order[right] < order[child])
        ):
            child = right
        if times[child] > time or (times[child] == time and order[child] > sequence):
            break
        times[hole] = times[child]
        order[hole] = order[child]
        owner[hole] = owner[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    order[hole] = sequence
    owner[hole] = executor


@njit
def heap_replace_top(state, time, executor):
    """Pop the earliest event and push one in its place."""
    sequence = state.sequence
    state.sequence = sequence + 1
    _sift_down(state, time, sequence, executor)


@njit
def heap_pop(state):
    """Remove the earliest event."""
    size = state.heap_size - 1
    state.heap_size = size
    if size > 0:
        _sift_down(state, state.heap_ms[size], state.heap_sequence[size], state.heap_executor[size])


@njit
def heap_push(state, time, executor):
    """Add an event; later pushes lose ties."""
    times = state.heap_ms
    order = state.heap_sequence
    owner = state.heap_executor
    sequence = state.sequence
    state.sequence = sequence + 1
    hole = state.heap_size
    state.heap_size = hole + 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] <= time:
            break
        times[hole] = times[parent]
        order[hole] = order[parent]
        owner[hole] = owner[parent]
        hole = parent
    times[hole] = time
    order[hole] = sequence
    owner[hole] = executor


# ---- saturation and the frontier ------------------------------------------------------------------------------------


@njit
def stage_room(state, stage):
    """Tasks of ``stage`` that no executor is launching, committed or moving for."""
    return (
        state.stage_tasks[stage]
        - state.stage_next[stage]
        - state.stage_commit[stage]
        - state.stage_moving[stage]
    )


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
    if member != state.stage_in_frontier[stage]:
        change = 1 if member else -1
        state.stage_in_frontier[stage] = member
        state.job_frontier[state.stage_job[stage]] += change
        state.num_frontier += change


@njit
def update_saturation(state, stage):
    """Recompute whether the stage is saturated; on a change tell its job and its children."""
    saturated = stage_room(state, stage) <= 0
    if saturated == state.stage_saturated[stage]:
        return
    state.stage_saturated[stage] = saturated
    change = -1 if saturated else 1
    job = state.stage_job[stage]
    state.job_unsaturated[job] += change
    if state.job_unsaturated[job] == (1 if change > 0 else 0):
        state.num_jobs_unsaturated += change
    if state.stage_runnable[stage]:
        state.num_runnable_open += change
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
        state.num_runnable_open += 1


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
        state.num_runnable_open -= 1


@njit
def first_frontier_stage(state, job):
    """First stage of the job in the frontier by index, or NONE."""
    if state.job_frontier[job] > 0:
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_in_frontier[stage]:
                return stage
    return NONE


# ---- pools ----------------------------------------------------------------------------------------------------------


@njit
def mark_pool(state, pool):
    """Note that the pool's executors are to be offered, unless all of them are reserved."""
    if state.pool_open[pool] > 0 and not state.pool_marked[pool]:
        state.pool_marked[pool] = 1
        state.num_marked += 1


@njit
def unmark_pool(state, pool):
    """The pool is being offered, or has become empty."""
    if state.pool_marked[pool]:
        state.pool_marked[pool] = 0
        state.num_marked -= 1


@njit
def mark_all_pools(state):
    """A stage became runnable or a job ended: every idle executor is to be offered."""
    state.calls += 1
    mark_pool(state, state.num_jobs)
    for index in range(state.num_active):
        mark_pool(state, state.active[index])


@njit
def _pool_append(state, pool, executor):
    if state.executor_pool[executor] == pool:
        return
    tail = state.pool_tail[pool]
    state.pool_prev[executor] = tail
    state.pool_next[executor] = NONE
    if tail == NONE:
        state.pool_head[pool] = executor
    else:
        state.pool_next[tail] = executor
    state.pool_tail[pool] = executor
    state.pool_size[pool] += 1
    state.pool_open[pool] += 1
    state.executor_pool[executor] = pool


@njit
def pool_remove(state, executor):
    """Take the executor out of the pool it idles in, if any."""
    pool = state.executor_pool[executor]
    if pool == NONE:
        return
    before = state.pool_prev[executor]
    after = state.pool_next[executor]
    if before == NONE:
        state.pool_head[pool] = after
    else:
        state.pool_next[before] = after
    if after == NONE:
        state.pool_tail[pool] = before
    else:
        state.pool_prev[after] = before
    state.executor_pool[executor] = NONE
    state.pool_size[pool] -= 1
    if state.executor_reserved[executor]:
        state.executor_reserved[executor] = 0
    else:
        state.pool_open[pool] -= 1
    if state.pool_open[pool] == 0:
        unmark_pool(state, pool)


@njit
def _leave_stage(state, executor):
    stage = state.executor_stage[executor]
    if stage != NONE:
        state.stage_executors[stage] -= 1
        state.executor_stage[executor] = NONE


@njit
def detach(state, executor):
    """The executor leaves its job; its JVM is gone."""
    state.executor_last[executor] = NONE
    job = state.executor_job[executor]
    if job != NONE:
        state.job_attached[job] -= 1
        state.executor_job[executor] = NONE


@njit
def join_job_pool(state, executor):
    """The executor idles in the pool of the job it is attached to.

    Differs: the released simulator then treats it as newly started (``keep_warm`` off).
    """
    _leave_stage(state, executor)
    if not state.keep_warm:
        state.executor_last[executor] = NONE
    _pool_append(state, state.executor_job[executor], executor)


@njit
def join_null_pool(state, executor):
    """The executor belongs to no job."""
    _leave_stage(state, executor)
    detach(state, executor)
    _pool_append(state, state.num_jobs, executor)


@njit
def join_own_pool(state, executor):
    """The job's pool if the executor has a job, else the null pool; returns the pool."""
    if state.executor_job[executor] != NONE:
        join_job_pool(state, executor)
    else:
        join_null_pool(state, executor)
    return state.executor_pool[executor]


# ---- what an executor does next -------------------------------------------------------------------------------------


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
def take_task(state, stage, executor, situation):
    """Count the next task of the stage as launched and return its finish time."""
    duration = launch_duration(state, stage, situation)
    state.busy_ms += duration
    if state.log_tasks:
        record_task(state, stage, executor, situation, duration)
    launched = state.stage_next[stage] + 1
    state.stage_next[stage] = launched
    if launched == state.stage_tasks[stage]:
        remove_runnable(state, stage)
        state.job_unexhausted[state.stage_job[stage]] -= 1
    return state.now_ms + duration


@njit
def launch(state, executor, stage):
    """The executor starts the next task of a runnable stage of its own job."""
    last = state.executor_last[executor]
    situation = REST if last == stage else (FIRST if last != NONE else FRESH)
    if state.executor_stage[executor] != stage:
        _leave_stage(state, executor)
        state.executor_stage[executor] = stage
        state.stage_executors[stage] += 1
    finish = take_task(state, stage, executor, situation)
    state.executor_last[executor] = stage
    heap_push(state, finish, executor)


@njit
def start_move(state, executor, stage):
    """The executor leaves for a stage, as a rule of another job, and arrives after the moving delay (§6.2)."""
    _leave_stage(state, executor)
    detach(state, executor)
    state.executor_destination[executor] = stage
    state.executor_moving[executor] = 1
    state.stage_moving[stage] += 1
    state.job_moving[state.stage_job[stage]] += 1
    heap_push(state, state.now_ms + state.moving_delay_ms, executor)


@njit
def idle_on_decision(state, executor):
    """The executor idles in its pool because the scheduler said so.

    That holds until all idle executors are called up (``reoffer``); if it happened since the decision, it is offered.
    """
    if state.reoffer and state.executor_calls[executor] != state.calls:
        mark_pool(state, state.executor_pool[executor])


@njit
def wait_for_stage(state, executor):
    """The executor idles in its job's pool for a stage of the job that is not runnable yet.

    It is offered again when a stage of the job becomes runnable, not when one of another job does; at once if that
    happened since the decision (``reoffer``).
    """
    join_job_pool(state, executor)
    pool = state.executor_pool[executor]
    if state.reoffer and state.executor_calls[executor] < state.job_calls[pool]:
        mark_pool(state, pool)
        return
    state.executor_reserved[executor] = 1
    state.pool_open[pool] -= 1
    if state.pool_open[pool] == 0:
        unmark_pool(state, pool)


@njit
def fall_back(state, executor):
    """Its destination has no task left: what the executor does without asking the scheduler.

    Differs: with ``reoffer`` it goes to its pool and is offered; the released simulator sends it to the first runnable,
    unsaturated stage of its job, else to the first frontier stage of all jobs, else to its pool.
    """
    job = state.executor_job[executor]
    state.executor_calls[executor] = NONE
    if state.reoffer:
        mark_pool(state, join_own_pool(state, executor))
        return
    if job != NONE:
        stage = state.runnable_head[job]
        while stage != NONE:
            if not state.stage_saturated[stage]:
                launch(state, executor, stage)
                update_saturation(state, stage)
                return
            stage = state.runnable_next[stage]
    if state.num_frontier > 0:
        for index in range(state.num_active):
            stage = first_frontier_stage(state, state.active[index])
            if stage != NONE:
                start_move(state, executor, stage)
                update_saturation(state, stage)
                return
    join_own_pool(state, executor)


# ---- commitments ----------------------------------------------------------------------------------------------------


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
    """Keep the counters of a promise to a stage."""
    state.stage_commit[stage] += change
    job = state.stage_job[stage]
    owner = source_job_of(state, source)
    if owner != job:
        state.job_commit[job] += change
        if owner != NONE:
            state.job_outgoing[owner] += change


@njit
def commit(state, source, stage, count):
    """Promise ``count`` executors of the source to a stage (NONE: to idling)."""
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
    """The executor does what the source's first commitment says."""
    record = state.commit_head[source]
    stage = state.commit_stage[record]
    state.commit_count[record] -= 1
    if state.commit_count[record] == 0:
        _remove_commit(state, source, record)
    state.executor_calls[executor] = state.source_calls[source]
    job = state.executor_job[executor]
    if stage == NONE:
        if job != NONE and state.job_unexhausted[job] > 0:
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


# ---- the scheduler's view -------------------------------------------------------------------------------------------


@njit
def job_held(state, job):
    """Executors of the job: attached, moving to it, or promised to it by others."""
    return state.job_attached[job] + state.job_moving[job] + state.job_commit[job]


@njit
def job_allocation(state, job):
    """Executors the job holds and keeps, apart from those being offered now; a limit must exceed it (§5.2)."""
    held = job_held(state, job) - state.job_outgoing[job]
    if job == state.source_job and state.job_state[job] == ACTIVE:
        held -= state.num_source
    return held


@njit
def choose(state, stage, executors):
    """Decide: use ``executors`` of the offered ones for ``stage``."""
    state.action_stage = stage
    state.action_limit = executors
    if state.job_limit:
        state.action_limit += job_allocation(state, state.stage_job[stage])


@njit
def choose_idle(state):
    """Decide: leave all offered executors idle."""
    state.action_stage = NONE
    state.action_limit = state.num_source
