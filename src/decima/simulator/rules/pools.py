"""Idle executors: the pool of every job, the null pool of those without a job, and which pools are to be offered."""

from numba import njit

from decima.simulator.fields import NONE


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
def leave_stage(state, executor):
    """The executor is at no stage any more."""
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
def join_own_pool(state, executor):
    """The job's pool if the executor has a job, else the null pool; returns the pool."""
    if state.executor_job[executor] != NONE:
        join_job_pool(state, executor)
    else:
        join_null_pool(state, executor)
    return state.executor_pool[executor]
