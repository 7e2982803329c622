"""Commitments: executors promised to a stage, or to idling, before they are free (§5.2)."""

from decima.core.jit import njit
from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.classes import of_class
from decima.systems.spark.rules.executors import fall_back, idle_on_decision, launch, start_move, wait_for_stage
from decima.systems.spark.rules.frontier import update_saturation
from decima.systems.spark.rules.pools import join_job_pool, join_null_pool


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
