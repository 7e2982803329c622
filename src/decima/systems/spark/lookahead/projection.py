"""Projection of a running cluster to a smaller one: the jobs in the system, and what is assumed of the future.

The target has job 0, which stands for all jobs that are gone, then the jobs in the system in order of arrival, then
jobs that are assumed to come. What a scheduler may not know stays behind: jobs that have not arrived, and the
true ends of running tasks, which are drawn anew given how long the tasks have run already.
"""

from numba import njit

from decima.core.cache import cached
from decima.core.heap import heap_push
from decima.core.random import draw_below, draw_uniform
from decima.systems.spark.fields import ACTIVE, ARRIVING, FINISHED, NONE, TASK, state_at
from decima.systems.spark.lookahead.chance import next_bits
from decima.systems.spark.rules.durations import FIRST, FRESH, REST

# What a task that runs longer than any that was measured still takes, as a part of its nominal duration.
_OVERDUE = 0.1


@cached(njit(cache=True, nogil=True))
def lay_out(source_address, target_address, jobs, future, future_ms):
    """Fill the tables of the target.

    Args:
        source_address: State with the tables of all jobs.
        target_address: State whose tables are filled; there must be room.
        jobs: Jobs in the system, in order of arrival, int32 [jobs].
        future: Jobs of the source that those to come are like, in order of arrival, int32 [future].
        future_ms: When they come, ms of simulated time, float64 [future].
    """
    source = state_at(source_address)
    target = state_at(target_address)
    target.job_first_stage[0] = 0
    target.stage_job[0] = 0
    target.stage_tasks[0] = 1
    target.stage_row[0] = 0
    target.stage_group[0] = 0
    stage = 1
    known = len(jobs)
    arrivals = 0
    for place in range(known + len(future)):
        like = jobs[place] if place < known else future[place - known]
        job = place + 1
        target.job_first_stage[job] = stage
        target.job_work_ms[job] = source.job_work_ms[like]
        target.job_arrival_ms[job] = source.job_arrival_ms[like]
        if place >= known:
            target.job_arrival_ms[job] = future_ms[place - known]
        if place >= known or source.job_arrival_ms[like] > 0.0:
            target.arrival_order[arrivals] = job
            arrivals += 1
        for old in range(source.job_first_stage[like], source.job_first_stage[like + 1]):
            target.stage_job[stage] = job
            target.stage_tasks[stage] = source.stage_tasks[old]
            target.stage_row[stage] = source.stage_row[old]
            target.stage_group[stage] = source.stage_group[old]
            target.stage_memory[stage] = source.stage_memory[old]
            target.stage_cpu[stage] = source.stage_cpu[old]
            stage += 1
    for job in range(known + len(future) + 1, target.num_jobs + 1):
        target.job_first_stage[job] = stage
    target.next_arrival = arrivals - len(future)
    target.num_arrivals = arrivals


@njit
def _level(state, stage, word):
    """First duration list of the level at which a task of the stage runs, drawn between two neighbouring ones."""
    row = state.stage_row[stage]
    executors = min(state.job_attached[state.stage_job[stage]], state.grid_width - 1)
    cell = state.row_grid[row] * state.grid_width + executors
    level = state.grid_left[cell]
    if draw_uniform(next_bits(word)) < state.grid_weight[cell]:
        level = state.grid_right[cell]
    return state.row_list[row] + 3 * level


@njit
def _remaining_ms(state, stage, elapsed_ms, word):
    """Time in ms that a task still takes: drawn among the measured durations that exceed the time it has run.

    A time below 0 is not known; then some part of a duration is left.
    """
    lists = _level(state, stage, word)
    bits = next_bits(word)
    if elapsed_ms < 0.0:
        chosen = lists + REST
        index = state.list_offset[chosen] + draw_below(bits, state.list_length[chosen])
        return draw_uniform(next_bits(word)) * (state.values_ms[index] + state.list_add_ms[chosen])
    for situation in (REST, FIRST, FRESH):
        chosen = lists + situation
        first = state.list_offset[chosen]
        end = first + state.list_length[chosen]
        added = state.list_add_ms[chosen]
        longer = 0
        for index in range(first, end):
            if state.values_ms[index] + added > elapsed_ms:
                longer += 1
        if longer > 0:
            left = draw_below(bits, longer)
            for index in range(first, end):
                if state.values_ms[index] + added > elapsed_ms:
                    if left == 0:
                        return state.values_ms[index] + added - elapsed_ms
                    left -= 1
    return _OVERDUE * state.row_nominal_ms[state.stage_row[stage]]


@njit
def _job_at(place, job):
    """Job of the target; 0 for a job that is gone."""
    return job if job < 0 else place[job]


@njit
def _stage_at(source, target, place, stage):
    """Stage of the target; 0, that of job 0, for a stage of a job that is gone."""
    if stage < 0:
        return stage
    job = source.stage_job[stage]
    if place[job] == 0:
        return 0
    return stage - source.job_first_stage[job] + target.job_first_stage[place[job]]


@njit
def _source_at(source, target, place, number):
    """Source id of the target."""
    if number < source.num_stages:
        return _stage_at(source, target, place, number)
    number -= source.num_stages
    if number == source.num_jobs:
        return target.num_stages + target.num_jobs
    return target.num_stages + place[number]


@njit
def _project_stages(source, target, place, job):
    """Copy the stages of a job and the commitments of executors at them."""
    first, start = source.job_first_stage[job], target.job_first_stage[place[job]]
    for old in range(first, source.job_first_stage[job + 1]):
        new = start + old - first
        target.stage_next[new] = source.stage_next[old]
        target.stage_finished_tasks[new] = source.stage_finished_tasks[old]
        target.stage_commit[new] = source.stage_commit[old]
        target.stage_moving[new] = source.stage_moving[old]
        target.stage_executors[new] = source.stage_executors[old]
        target.stage_unsaturated_parents[new] = source.stage_unsaturated_parents[old]
        target.stage_unfinished_parents[new] = source.stage_unfinished_parents[old]
        target.runnable_next[new] = _stage_at(source, target, place, source.runnable_next[old])
        target.runnable_prev[new] = _stage_at(source, target, place, source.runnable_prev[old])
        target.stage_saturated[new] = source.stage_saturated[old]
        target.stage_in_frontier[new] = source.stage_in_frontier[old]
        target.stage_selected[new] = source.stage_selected[old]
        target.stage_runnable[new] = source.stage_runnable[old]
        target.stage_slot[new] = source.stage_slot[old]
        target.slot_limit[new] = source.slot_limit[old]
        target.slot_order[new] = source.slot_order[old]
        target.slot_end_ms[new] = source.slot_end_ms[old]
        _project_source(source, target, old, new)
        if source.num_classes > 1:
            target.stage_open[new] = source.stage_open[old]
            target.open_next[new] = _stage_at(source, target, place, source.open_next[old])
            target.open_prev[new] = _stage_at(source, target, place, source.open_prev[old])
            for kind in range(source.num_classes):
                count = source.stage_class_executors[old * source.num_classes + kind]
                target.stage_class_executors[new * source.num_classes + kind] = count


@njit
def _project_source(source, target, old, new):
    """Copy the lists of commitments of a source, one per class; the records keep their numbers."""
    for kind in range(source.num_classes):
        here, there = old * source.num_classes + kind, new * source.num_classes + kind
        target.commit_head[there] = source.commit_head[here]
        target.commit_tail[there] = source.commit_tail[here]
        target.source_calls[there] = source.source_calls[here]


@njit
def _project_pool(source, target, old, new):
    """Copy a pool; executors keep their numbers."""
    for kind in range(source.num_classes):
        here, there = old * source.num_classes + kind, new * source.num_classes + kind
        target.pool_head[there] = source.pool_head[here]
        target.pool_tail[there] = source.pool_tail[here]
        if source.num_classes > 1:
            target.pool_class_open[there] = source.pool_class_open[here]
    target.pool_size[new] = source.pool_size[old]
    target.pool_open[new] = source.pool_open[old]
    target.pool_marked[new] = source.pool_marked[old]
    _project_source(source, target, source.num_stages + old, target.num_stages + new)


@njit
def _project_job(source, target, place, job):
    """Copy a job with its stages and its pool."""
    new = place[job]
    target.job_attached[new] = source.job_attached[job]
    target.job_moving[new] = source.job_moving[job]
    target.job_commit[new] = source.job_commit[job]
    target.job_outgoing[new] = source.job_outgoing[job]
    target.job_calls[new] = source.job_calls[job]
    target.job_unsaturated[new] = source.job_unsaturated[job]
    target.job_frontier[new] = source.job_frontier[job]
    target.job_unexhausted[new] = source.job_unexhausted[job]
    target.job_unfinished[new] = source.job_unfinished[job]
    target.runnable_head[new] = _stage_at(source, target, place, source.runnable_head[job])
    target.runnable_tail[new] = _stage_at(source, target, place, source.runnable_tail[job])
    target.job_state[new] = ACTIVE
    if source.num_classes > 1:
        for kind in range(source.num_classes):
            here, there = job * source.num_classes + kind, new * source.num_classes + kind
            target.job_class_unexhausted[there] = source.job_class_unexhausted[here]
            target.job_class_kept[there] = source.job_class_kept[here]
    _project_stages(source, target, place, job)
    _project_pool(source, target, job, new)


@njit
def _project_executors(source, target, place):
    """Copy where executors are."""
    for executor in range(source.num_executors):
        target.executor_job[executor] = _job_at(place, source.executor_job[executor])
        target.executor_stage[executor] = _stage_at(source, target, place, source.executor_stage[executor])
        target.executor_last[executor] = _stage_at(source, target, place, source.executor_last[executor])
        target.executor_destination[executor] = _stage_at(source, target, place, source.executor_destination[executor])
        pool = source.executor_pool[executor]
        target.executor_pool[executor] = target.num_jobs if pool == source.num_jobs else _job_at(place, pool)
        target.executor_calls[executor] = source.executor_calls[executor]
        target.pool_next[executor] = source.pool_next[executor]
        target.pool_prev[executor] = source.pool_prev[executor]
        target.free_executors[executor] = source.free_executors[executor]
        target.executor_moving[executor] = source.executor_moving[executor]
        target.executor_reserved[executor] = source.executor_reserved[executor]
        target.executor_start_ms[executor] = source.executor_start_ms[executor]
        target.executor_class[executor] = source.executor_class[executor]


@njit
def _project_classes(source, target, place):
    """Copy what is kept by class or group; only stages of jobs in the system are open, so lists of them stay whole."""
    for kind in range(source.num_classes):
        target.class_offers[kind] = source.class_offers[kind]
    target.offered_classes = source.offered_classes
    target.marks_seen = source.marks_seen
    for group in range(source.num_groups):
        target.open_head[group] = _stage_at(source, target, place, source.open_head[group])
        target.group_runnable_open[group] = source.group_runnable_open[group]


@njit
def _copy_events(source, target):
    """Copy the events as they are: where durations are means, the end of a task follows from its beginning."""
    target.heap_size = source.heap_size
    target.sequence = source.sequence
    target.busy_ms = source.busy_ms
    for index in range(source.heap_size):
        target.heap_ms[index] = source.heap_ms[index]
        target.heap_order[index] = source.heap_order[index]
        target.heap_event[index] = source.heap_event[index]


@njit
def _draw_events(source, target, kinds, ends_ms, word):
    """Draw the ends of running tasks; executors under way arrive when they do.

    Events are pushed in the order of executors, so that not even the order in the heap tells of true ends. The time
    that all launched tasks take is that of those drawn, too.
    """
    busy_ms = source.busy_ms
    for executor in range(source.num_executors):
        kinds[executor] = NONE
    for index in range(source.heap_size):
        executor = source.heap_event[index] & 0xFFFFFFFF
        kinds[executor] = source.heap_event[index] >> 32
        ends_ms[executor] = source.heap_ms[index]
    for executor in range(source.num_executors):
        if kinds[executor] == NONE:
            continue
        end_ms = ends_ms[executor]
        if kinds[executor] == TASK:
            start_ms = source.executor_start_ms[executor]
            elapsed_ms = source.now_ms - start_ms if start_ms >= 0.0 else -1.0
            end_ms = source.now_ms + _remaining_ms(source, source.executor_stage[executor], elapsed_ms, word)
            busy_ms += end_ms - ends_ms[executor]
        heap_push(target, end_ms, kinds[executor], executor)
    target.sequence = source.sequence
    target.busy_ms = max(0.0, busy_ms)


@cached(njit(cache=True, nogil=True))
def project(source_address, target_address, jobs, place, kinds, ends_ms, word):
    """Put the target into the state that the source is in.

    Args:
        source_address: A state in which a decision is asked for.
        target_address: A state put to its beginning, whose tables :func:`lay_out` filled.
        jobs: Jobs in the system, in order of arrival, int32 [jobs].
        place: Memory, int32 [jobs of the source].
        kinds: Memory, int64 [executors].
        ends_ms: Memory, float64 [executors].
        word: Source of chance, uint64 [1].
    """
    source = state_at(source_address)
    target = state_at(target_address)
    for job in range(source.num_jobs):
        place[job] = 0
    for index in range(len(jobs)):
        place[jobs[index]] = index + 1
        target.active[index] = index + 1
    coming = target.num_arrivals - target.next_arrival
    for job in range(target.num_jobs):
        target.job_state[job] = ARRIVING if len(jobs) < job <= len(jobs) + coming else FINISHED
    for index in range(len(jobs)):
        _project_job(source, target, place, jobs[index])
    _project_pool(source, target, source.num_jobs, target.num_jobs)
    _project_executors(source, target, place)
    _project_classes(source, target, place)
    if source.sampled:
        _draw_events(source, target, kinds, ends_ms, word)
    else:
        _copy_events(source, target)
    for record in range(source.num_commits):
        target.commit_next[record] = source.commit_next[record]
        target.commit_count[record] = source.commit_count[record]
        if source.commit_count[record] > 0:
            kind = source.commit_source[record] % source.num_classes
            owner = _source_at(source, target, place, source.commit_source[record] // source.num_classes)
            target.commit_source[record] = owner * source.num_classes + kind
            target.commit_stage[record] = _stage_at(source, target, place, source.commit_stage[record])
    target.commit_free = source.commit_free
    for index in range(source.num_selected):
        target.selected[index] = _stage_at(source, target, place, source.selected[index])
    for index in range(source.num_timers):
        target.timer_heap[index] = _stage_at(source, target, place, source.timer_heap[index])
    for index in range(source.num_barred):
        target.barred[index] = _stage_at(source, target, place, source.barred[index])
    target.num_timers = source.num_timers
    target.num_barred = source.num_barred
    target.round_bound = source.round_bound
    target.calling = source.calling
    target.now_ms = source.now_ms
    target.area_time_ms = source.now_ms
    target.task_events = source.task_events
    target.num_active = source.num_active
    target.num_frontier = source.num_frontier
    target.num_jobs_unsaturated = source.num_jobs_unsaturated
    target.num_runnable_open = source.num_runnable_open
    target.num_marked = source.num_marked
    target.calls = source.calls
    target.source = _source_at(source, target, place, source.source)
    target.source_job = _job_at(place, source.source_job)
    target.num_source = source.num_source
    target.num_free = source.num_free
    target.num_selected = source.num_selected
    target.idle_selected = source.idle_selected


@cached(njit(cache=True, nogil=True))
def unfinished_ms(address, memory):
    """Least time in ms that the jobs in the system would yet spend there, summed, were their work divisible at will.

    The jobs are served one after the other, smallest remaining work first, each by all executors: what a run that was
    cut still has before it.

    Args:
        address: A state.
        memory: float64 [jobs].
    """
    state = state_at(address)
    for index in range(state.num_active):
        job = state.active[index]
        work = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            work += unfinished * state.row_nominal_ms[state.stage_row[stage]]
        memory[index] = work
    works = memory[: state.num_active]
    works.sort()
    total = 0.0
    for index in range(state.num_active):
        total += works[index] * (state.num_active - index)
    return total / state.num_executors
