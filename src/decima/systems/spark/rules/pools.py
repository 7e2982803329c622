"""Pools of idle executors, of every job and of none, and their offers."""

from decima.core.jit import njit
from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.classes import keep_of_class, no_stage_left, of_class


@njit
def mark_pool(state, pool):
    """Note that the pool's executors are to be offered, unless all of them are reserved."""
    state.marks_seen = 0
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
    """A stage became runnable or a job ended: every idle executor is to be offered.

    With several classes it is offered without ``reoffer`` too: those that the job has may not fit.
    """
    state.calls += 1
    if state.num_classes > 1 and not state.reoffer:
        state.calling = 1
    mark_pool(state, state.num_jobs)
    for index in range(state.num_active):
        mark_pool(state, state.active[index])


@njit
def _count_busy(state, executor, change):
    """Keep the number of executors of a unit that are in no pool."""
    if state.elastic:
        state.unit_busy[executor // state.unit_size] += change


@njit
def _count_open(state, pool, executor, change):
    """Keep the counters of members that are not reserved."""
    state.pool_open[pool] += change
    if state.num_classes > 1:
        state.pool_class_open[of_class(state, pool, executor)] += change
        state.marks_seen = 0


@njit
def reserve_executor(state, executor):
    """Reserve a member of a job's pool for a stage of that job."""
    pool = state.executor_pool[executor]
    state.executor_reserved[executor] = 1
    _count_open(state, pool, executor, -1)
    if state.pool_open[pool] == 0:
        unmark_pool(state, pool)


@njit
def free_reserved(state, pool):
    """Let every member of a pool be offered."""
    executor = state.pool_head[pool]
    while executor != NONE:
        if state.executor_reserved[executor]:
            state.executor_reserved[executor] = 0
            _count_open(state, pool, executor, 1)
        executor = state.pool_next[executor]


@njit
def _pool_append(state, pool, executor):
    if state.executor_pool[executor] == pool:
        return
    position = of_class(state, pool, executor)
    tail = state.pool_tail[position]
    state.pool_prev[executor] = tail
    state.pool_next[executor] = NONE
    if tail == NONE:
        state.pool_head[position] = executor
    else:
        state.pool_next[tail] = executor
    state.pool_tail[position] = executor
    state.pool_size[pool] += 1
    _count_busy(state, executor, -1)
    _count_open(state, pool, executor, 1)
    state.executor_pool[executor] = pool


@njit
def pool_remove(state, executor):
    """Take the executor out of the pool it idles in, if any."""
    pool = state.executor_pool[executor]
    if pool == NONE:
        return
    before = state.pool_prev[executor]
    after = state.pool_next[executor]
    position = of_class(state, pool, executor)
    if before == NONE:
        state.pool_head[position] = after
    else:
        state.pool_next[before] = after
    if after == NONE:
        state.pool_tail[position] = before
    else:
        state.pool_prev[after] = before
    state.executor_pool[executor] = NONE
    state.pool_size[pool] -= 1
    _count_busy(state, executor, 1)
    if state.executor_reserved[executor]:
        state.executor_reserved[executor] = 0
    else:
        _count_open(state, pool, executor, -1)
    if state.pool_open[pool] == 0:
        unmark_pool(state, pool)


@njit
def leave_stage(state, executor):
    """The executor is at no stage any more."""
    stage = state.executor_stage[executor]
    if stage != NONE:
        state.stage_executors[stage] -= 1
        if state.num_classes > 1:
            state.stage_class_executors[of_class(state, stage, executor)] -= 1
        state.executor_stage[executor] = NONE


@njit
def detach(state, executor):
    """The executor leaves its job; its JVM is gone."""
    state.executor_last[executor] = NONE
    job = state.executor_job[executor]
    if job != NONE:
        state.job_attached[job] -= 1
        keep_of_class(state, job, executor, -1)
        state.executor_job[executor] = NONE


@njit
def join_job_pool(state, executor):
    """Let the executor idle in its job's pool, or without a job if nothing fits.

    Differs: the released simulator then treats it as newly started (``keep_warm`` off).
    """
    if no_stage_left(state, state.executor_job[executor], state.executor_class[executor]):
        join_null_pool(state, executor)
        return
    leave_stage(state, executor)
    if not state.keep_warm:
        state.executor_last[executor] = NONE
    _pool_append(state, state.executor_job[executor], executor)


@njit
def join_null_pool(state, executor):
    """The executor belongs to no job."""
    leave_stage(state, executor)
    detach(state, executor)
    _pool_append(state, state.num_jobs, executor)


@njit
def join_pool_of_job(state, executor):
    """Let the executor idle in its job's pool or the null pool; returns the pool."""
    if state.executor_job[executor] != NONE:
        join_job_pool(state, executor)
    else:
        join_null_pool(state, executor)
    return state.executor_pool[executor]


@njit
def release_class(state, job, executor_class):
    """Release idle executors of a class from a job that none fits any more."""
    executor = state.pool_head[job * state.num_classes + executor_class]
    while executor != NONE:
        after = state.pool_next[executor]
        pool_remove(state, executor)
        join_null_pool(state, executor)
        mark_pool(state, state.num_jobs)
        executor = after
