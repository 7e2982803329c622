"""Event loop: resets a state and advances it to the next decision.

Source: §3, §5.2 and §6.2 of the paper and the rules of the released simulator.
"""

import numpy as np

from decima.core.decision import call_decide
from decima.core.heap import heap_begin, heap_code, heap_remove, heap_repeat_top, heap_subject, heap_time
from decima.core.interrupts import PATIENCE_NS, clock_ns
from decima.core.jit import njit
from decima.systems.spark import decision
from decima.systems.spark.fields import ACTIVE, ARRIVING, FINISHED, MOVE, NONE, TASK, WITHHELD, state_at
from decima.systems.spark.rules import frontier, pools
from decima.systems.spark.rules.allocation import begin_units, brings_units, next_unit_ms, settle_units
from decima.systems.spark.rules.choices import destination_of, job_allocation
from decima.systems.spark.rules.classes import (
    ANY_CLASS,
    classes_of_open,
    classes_of_runnable_open,
    count_unexhausted,
    fits_class,
    fitting_offers,
    of_class,
    pool_classes,
)
from decima.systems.spark.rules.delays import DELAY_OF_IDLING, DELAY_OUT_OF_RANGE, refuse_delay
from decima.systems.spark.rules.durations import REST
from decima.systems.spark.rules.executors import (
    commit,
    drop_commitments,
    fall_back,
    fulfil_one,
    launch,
    take_task,
    wait_for_stage,
)
from decima.systems.spark.rules.faults import cut_task, keep_output, release_outputs, unit_event
from decima.systems.spark.rules.slots import end_first_slot, start_slot, timer_is_next, valid_delay
from decima.systems.spark.rules.speculation import check_tasks, next_check_ms, note_duration, part_copies, withdraw_copy

# What ``advance`` returns.
DONE, NEEDS_DECISION, LOG_FULL, DEADLOCK, INVALID, PAUSED = 0, 1, 2, 3, 4, 5
# Codes in ``state.error``; those of delays are in :mod:`decima.systems.spark.rules.delays`.
NOT_IN_FRONTIER, LIMIT_TOO_SMALL, LIMIT_TOO_LARGE, IDLE_TWICE = 1, 2, 3, 4
CLASS_UNKNOWN, CLASS_NOT_OFFERED, CLASS_TOO_SMALL, CLASS_OF_DELAY = 21, 22, 23, 24
# Work after which ``advance`` looks at the clock, in events; a decision may cost as much as many of them.
WORK, WORK_OF_DECISION = 1 << 14, 1 << 8


# ---- rounds: a source of free executors and the decisions about them ------------------------------------------------


@njit
def _open_pool_round(state, pool, reserved):
    """Offer the executors of a pool that an open stage fits.

    With one class they are offered whether or not a stage is open.
    """
    pools.unmark_pool(state, pool)
    state.source = state.num_stages + pool
    state.source_job = pool if pool < state.num_jobs else NONE
    classes = state.num_classes
    useful = 1 if classes == 1 else classes_of_open(state)
    count = 0
    for executor_class in range(classes):
        before = count
        executor = state.pool_head[pool * classes + executor_class] if (useful >> executor_class) & 1 else NONE
        while executor != NONE:
            if reserved or not state.executor_reserved[executor]:
                state.free_executors[count] = executor
                count += 1
            executor = state.pool_next[executor]
        state.class_offers[executor_class] = count - before
    state.num_source = count
    state.num_free = count
    _show_offers(state)


@njit
def _open_executor_round(state, executor, job):
    """Offer an executor that finished a task, with ``commit_ahead`` all of its stage."""
    stage = state.executor_stage[executor]
    state.source = stage
    state.source_job = job
    state.num_source = state.stage_executors[stage] if state.commit_ahead else 1
    state.class_offers[0] = state.num_source
    state.free_executors[0] = executor
    state.num_free = 1
    if state.num_classes > 1:
        _offer_stage_by_class(state, stage, executor)
        _show_offers(state)


@njit
def _offer_stage_by_class(state, stage, executor):
    """Split the offer of a stage's executors by class.

    Those already promised are left out. If an open stage fits some of the classes, executors of the others are to idle.
    """
    classes = state.num_classes
    useful = classes_of_open(state)
    state.num_source = 0
    fits = 0
    for executor_class in range(classes):
        position = stage * classes + executor_class
        count = state.stage_class_executors[position]
        if not state.commit_ahead:
            count = 1 if executor_class == state.executor_class[executor] else 0
        if state.commit_head[position] != NONE:
            count = 0
        state.class_offers[executor_class] = count
        state.num_source += count
        if (useful >> executor_class) & 1:
            fits += count
    if fits == 0:
        return
    for executor_class in range(classes):
        if not (useful >> executor_class) & 1 and state.class_offers[executor_class] > 0:
            commit(state, stage * classes + executor_class, NONE, state.class_offers[executor_class])
            state.num_source -= state.class_offers[executor_class]
            state.class_offers[executor_class] = 0


@njit
def _show_offers(state):
    """Let the frontier hold what fits a class on offer."""
    if state.num_classes > 1:
        classes = 0
        for executor_class in range(state.num_classes):
            if state.class_offers[executor_class] > 0:
                classes |= 1 << executor_class
        frontier.show_classes(state, classes)


@njit
def _open_marked_round(state):
    """Offer the first marked pool, the null pool first; False if there is none."""
    if state.num_marked == 0 or state.num_runnable_open == 0 or state.marks_seen:
        return False
    several = state.num_classes > 1
    useful = classes_of_runnable_open(state) if several else 1
    null = state.num_jobs
    if state.pool_marked[null] and (not several or (pool_classes(state, null) & useful) != 0):
        _open_pool_round(state, null, False)
        return True
    for index in range(state.num_active):
        pool = state.active[index]
        if state.pool_marked[pool] and (not several or (pool_classes(state, pool) & useful) != 0):
            _open_pool_round(state, pool, False)
            return True
    state.marks_seen = several
    return False


@njit
def _forget_selections(state):
    for index in range(state.num_selected):
        stage = state.selected[index]
        state.stage_selected[stage] = 0
        frontier.update_frontier(state, stage)
    state.num_selected = 0


@njit
def _close_round(state):
    """Forget the selections, then let the free executors follow the commitments."""
    _forget_selections(state)
    if state.round_bound:
        frontier.admit_other_jobs(state)
    state.idle_selected = 0
    source = state.source
    index = 0
    while index < state.num_free:
        executor = state.free_executors[index]
        if state.commit_head[of_class(state, source, executor)] != NONE:
            pools.pool_remove(state, executor)
            fulfil_one(state, source, executor)
        elif state.num_classes == 1:
            break
        index += 1
    state.num_free = 0


@njit
def _record_decision(state, used):
    """Append to the decision log, columns of :data:`decima.systems.spark.decision.DECISION_COLUMNS`."""
    rows = state.decision_rows
    row = decision.NUM_COLUMNS * state.num_decisions_logged
    stage = int(state.action[decision.STAGE])
    job = NONE if stage == NONE else state.stage_job[stage]
    rows[row] = state.now_ms
    rows[row + 1] = state.source_job
    rows[row + 2] = state.num_source
    rows[row + 3] = state.num_frontier
    rows[row + decision.JOB_COLUMN] = job
    for part in range(decision.NUM_PARTS):
        rows[row + decision.PART_COLUMNS[part]] = state.action[part]
    if stage != NONE:
        rows[row + decision.PART_COLUMNS[decision.STAGE]] = stage - state.job_first_stage[job]
    rows[row + decision.USED_COLUMN] = used
    state.num_decisions_logged += 1


@njit
def _apply_delay(state):
    """Delay the chosen stage and continue the round; return an error code, 0 for none."""
    stage = int(state.action[decision.STAGE])
    if stage == NONE:
        return DELAY_OF_IDLING
    if state.action[decision.CLASS] != decision.DEFAULTS[decision.CLASS]:
        return CLASS_OF_DELAY
    if not valid_delay(state.action[decision.DELAY]):
        return DELAY_OUT_OF_RANGE
    if stage < 0 or stage >= state.num_stages or not state.stage_in_frontier[stage]:
        return NOT_IN_FRONTIER
    error = refuse_delay(state, stage)
    if error != 0:
        return error
    if state.log_decisions:
        _record_decision(state, 0)
    state.num_decisions += 1
    start_slot(state, stage, state.action[decision.DELAY])
    return 0


@njit
def _refuse_class(state, stage, executor_class):
    """Code of why a stage cannot have executors of a class, 0 if it can."""
    if executor_class < 0 or executor_class >= state.num_classes:
        return CLASS_UNKNOWN
    if not fits_class(state, stage, executor_class):
        return CLASS_TOO_SMALL
    return 0 if state.class_offers[executor_class] > 0 else CLASS_NOT_OFFERED


@njit
def _commit_by_class(state, stage, executor_class, used):
    """Promise offered executors of a class, or of all that fit, the smallest first."""
    for each in range(state.num_classes):
        count = min(used, state.class_offers[each])
        if count > 0 and executor_class in (ANY_CLASS, each) and (stage == NONE or fits_class(state, stage, each)):
            commit(state, state.source * state.num_classes + each, stage, count)
            state.class_offers[each] -= count
            used -= count


@njit
def _apply_action(state):
    """Carry out the decision in ``action``; returns an error code, 0 if it was valid."""
    if state.action[decision.DELAY] != 0.0:
        return _apply_delay(state)
    stage = int(state.action[decision.STAGE])
    executor_class = int(state.action[decision.CLASS])
    available = state.num_source
    if stage == NONE:
        used = int(state.action[decision.LIMIT])
        if state.idle_selected:
            return IDLE_TWICE
        if executor_class != ANY_CLASS:
            return CLASS_OF_DELAY
    else:
        if stage < 0 or stage >= state.num_stages or not state.stage_in_frontier[stage]:
            return NOT_IN_FRONTIER
        if executor_class != ANY_CLASS:
            error = _refuse_class(state, stage, executor_class)
            if error != 0:
                return error
        available = fitting_offers(state, stage, executor_class)
        used = int(state.action[decision.LIMIT])
        if state.job_limit:
            job = state.stage_job[stage]
            if state.job_bound:
                used = state.job_raised[job] = max(used, state.job_raised[job])
            used = min(used - job_allocation(state, job), available)
        used = min(used, frontier.stage_room(state, stage))
    if used <= 0:
        return LIMIT_TOO_SMALL
    if used > state.num_source:
        return LIMIT_TOO_LARGE
    used = min(used, available)
    if state.log_decisions:
        _record_decision(state, used)
    state.num_decisions += 1
    if state.num_classes == 1:
        commit(state, state.source, stage, used)
        state.class_offers[0] -= used
    else:
        _commit_by_class(state, stage, executor_class, used)
    if stage == NONE:
        state.idle_selected = 1
    else:
        state.stage_selected[stage] = 1
        state.selected[state.num_selected] = stage
        state.num_selected += 1
        frontier.update_saturation(state, stage)
        frontier.update_frontier(state, stage)
    state.num_source -= used
    _show_offers(state)
    return 0


# ---- events ---------------------------------------------------------------------------------------------------------


@njit
def _count_area(state):
    """Bring the integral of active jobs up to now; call before their number changes."""
    state.area_ms += state.num_active * (state.now_ms - state.area_time_ms)
    state.area_time_ms = state.now_ms


@njit
def _admit_job(state, job):
    _count_area(state)
    state.job_state[job] = ACTIVE
    state.active[state.num_active] = job
    state.num_active += 1
    first = state.job_first_stage[job]
    end = state.job_first_stage[job + 1]
    state.job_unsaturated[job] = end - first
    state.num_jobs_unsaturated += 1
    state.job_unfinished[job] = end - first
    for stage in range(first, end):
        count_unexhausted(state, stage, 1)
        row = state.stage_row[stage]
        parents = state.parent_offset[row + 1] - state.parent_offset[row]
        state.stage_unsaturated_parents[stage] = parents
        state.stage_unfinished_parents[stage] = parents
        if parents == 0:
            frontier.add_runnable(state, stage)
        frontier.update_frontier(state, stage)
    pools.mark_all_pools(state)


@njit
def _retire_job(state, job):
    """Retire a finished job: free its executors, drop promises to it."""
    _count_area(state)
    state.job_state[job] = FINISHED
    state.job_finish_ms[job] = state.now_ms
    state.completion_order[state.num_done] = job
    state.num_done += 1
    state.num_active -= 1
    index = 0
    while state.active[index] != job:
        index += 1
    while index < state.num_active:
        state.active[index] = state.active[index + 1]
        index += 1
    for executor_class in range(state.num_classes):
        executor = state.pool_head[job * state.num_classes + executor_class]
        while executor != NONE:
            after = state.pool_next[executor]
            pools.pool_remove(state, executor)
            pools.join_null_pool(state, executor)
            executor = after
    if state.keeps_outputs:
        release_outputs(state, job)
    pools.mark_all_pools(state)
    if state.job_bound and not state.reoffer:
        # Executors that could serve no other job before are offered now.
        state.calling = 1
    drop_commitments(state, job)
    state.job_moving[job] = 0
    for executor_class in range(state.num_classes if state.num_classes > 1 else 0):
        state.job_class_kept[job * state.num_classes + executor_class] = 0


@njit
def _finish_stage(state, stage):
    """Mark the stage finished and make its children runnable; returns how many became so."""
    state.stage_finish_ms[stage] = state.now_ms
    job = state.stage_job[stage]
    state.job_unfinished[job] -= 1
    row = state.stage_row[stage]
    first = state.job_first_stage[job]
    enabled = 0
    for index in range(state.child_offset[row], state.child_offset[row + 1]):
        child = first + state.child[index]
        state.stage_unfinished_parents[child] -= 1
        # A stage that runs again may have been read by all tasks of a child, or the child may be withheld.
        begins = state.stage_next[child] < state.stage_tasks[child] and state.stage_slot[child] != WITHHELD
        if state.stage_unfinished_parents[child] == 0 and begins:
            frontier.add_runnable(state, child)
            enabled += 1
            if state.runnable_only:
                frontier.update_frontier(state, child)
    if enabled > 0:
        pools.mark_all_pools(state)
        state.job_calls[job] = state.calls
    return enabled


@njit
def _drained_stage_event(state, executor, stage, finished):
    """End the last launched task of a stage: scheduling events (i) and (ii) of §5.2."""
    job = state.stage_job[stage]
    enabled = _finish_stage(state, stage) if finished else 0
    if state.commit_head[of_class(state, stage, executor)] != NONE:
        fulfil_one(state, stage, executor)
        if enabled > 0 and state.pool_size[job] > 0:
            _open_pool_round(state, job, True)
    elif enabled > 0:
        pools.join_job_pool(state, executor)
        pools.mark_pool(state, state.executor_pool[executor])
        _open_pool_round(state, job, True)
    else:
        _open_executor_round(state, executor, job)
    if state.job_unfinished[job] == 0:
        if state.num_free > 0 and state.executor_job[executor] == job and state.executor_pool[executor] == NONE:
            # The last executor is offered without a job; it keeps no tie to the stage that made it free.
            pools.leave_stage(state, executor)
            pools.detach(state, executor)
            state.source = state.num_stages + state.num_jobs
        _retire_job(state, job)


@njit
def _executor_arrival_event(state, executor):
    state.executor_events += 1
    state.executor_moving[executor] = 0
    stage = destination_of(state, executor)
    state.executor_destination[executor] = NONE
    if stage == NONE:
        fall_back(state, executor)
        return
    job = state.stage_job[stage]
    state.stage_moving[stage] -= 1
    state.job_moving[job] -= 1
    state.executor_job[executor] = job
    state.job_attached[job] += 1
    if state.stage_next[stage] >= state.stage_tasks[stage]:
        fall_back(state, executor)
    elif state.stage_unfinished_parents[stage] == 0:
        launch(state, executor, stage)
    else:
        wait_for_stage(state, executor)
    frontier.update_saturation(state, stage)


@njit
def _slot_end_event(state):
    """The slot of a stage ends: every idle executor is called up, in either mode.

    First those of the stage's own job are offered, the reserved ones too, as when a stage becomes runnable. Returns
    False if the time limit comes first.
    """
    end_ms = state.slot_end_ms[state.timer_heap[0]]
    if end_ms > state.time_limit_ms:
        state.now_ms = state.time_limit_ms
        state.truncated = 1
        return False
    state.now_ms = end_ms
    state.slot_events += 1
    stage = end_first_slot(state)
    job = state.stage_job[stage]
    pools.mark_all_pools(state)
    state.job_calls[job] = state.calls
    state.calling = not state.reoffer
    if state.pool_size[job] > 0:
        _open_pool_round(state, job, True)
    return True


@njit
def _repeat_tasks(state, most):
    """Handle up to ``most`` ends of tasks whose executor repeats its stage; returns their number.

    They are nearly all events. None of them opens a round: executors are neither free nor called up by them.
    """
    arrival_ms = end_ms = np.inf
    if state.next_arrival < state.num_arrivals:
        arrival_ms = state.job_arrival_ms[state.arrival_order[state.next_arrival]]
    if state.num_timers > 0:
        end_ms = state.slot_end_ms[state.timer_heap[0]]
    end_ms = min(end_ms, state.time_limit_ms)
    count = 0
    while count < most and state.heap_size > 0 and heap_code(state) == TASK:
        time = heap_time(state)
        executor = heap_subject(state)
        stage = state.executor_stage[executor]
        # What happens at the same instant: arrivals come first, ends of slots last.
        if time >= arrival_ms or time > end_ms or state.stage_next[stage] >= state.stage_tasks[stage]:
            break
        state.now_ms = time
        state.stage_finished_tasks[stage] += 1
        heap_repeat_top(state, take_task(state, stage, executor, REST, 0))
        frontier.update_saturation(state, stage)
        count += 1
    state.task_events += count
    return count


@njit
def _end_copy(state, stage, executor):
    """Kill or withdraw the other copy of a task that has ended."""
    partner = part_copies(state, executor)
    if partner == NONE:
        return
    if partner == executor:
        withdraw_copy(state, stage)
        return
    cut_task(state, partner, 2)
    state.unit_free_ms[partner // state.unit_size] = state.now_ms
    if state.stage_runnable[stage]:
        launch(state, partner, stage)
        frontier.update_saturation(state, stage)
    elif state.commit_head[stage] != NONE:
        fulfil_one(state, stage, partner)
    else:
        fall_back(state, partner)


@njit
def _go_on(state, executor, stage):
    """Count a finished task and launch the next one; False if the stage has none."""
    state.num_running -= 1
    state.unit_free_ms[executor // state.unit_size] = state.now_ms
    if state.keeps_outputs:
        keep_output(state, stage, executor)
    if state.speculates:
        note_duration(state, stage, executor)
        _end_copy(state, stage, executor)
    if not state.stage_runnable[stage]:
        return False
    launch(state, executor, stage)
    frontier.update_saturation(state, stage)
    return True


@njit
def _unit_event_first(state):
    """Handle changes of units and checks of tasks that precede any other event."""
    if state.num_done == state.num_jobs:
        return False
    settle_units(state)
    check_ms = next_check_ms(state)
    time = min(next_unit_ms(state), check_ms)
    if time == np.inf:
        return False
    if heap_time(state) <= time:
        return False
    arrival = state.next_arrival < state.num_arrivals
    if arrival and state.job_arrival_ms[state.arrival_order[state.next_arrival]] <= time:
        return False
    if state.num_timers > 0 and state.slot_end_ms[state.timer_heap[0]] <= time:
        return False
    waits = state.heap_size == 0 and not arrival and state.num_timers == 0
    if waits and not brings_units(state):
        return False  # nothing is left to do but to lose units
    if time > state.time_limit_ms:
        if waits:
            state.now_ms = state.time_limit_ms
            state.truncated = 1
        return False
    state.now_ms = time
    if check_ms == time:
        check_tasks(state)
    unit_event(state)
    return True


@njit
def _next_event(state):
    """Handle the event after :func:`_repeat_tasks`; False without one before the time limit."""
    if state.elastic and _unit_event_first(state):
        return True
    if state.num_timers > 0 and timer_is_next(state):
        return _slot_end_event(state)
    arrival = state.next_arrival < state.num_arrivals
    if not arrival and state.heap_size == 0:
        return False
    time = heap_time(state)
    if arrival:
        arrival_ms = state.job_arrival_ms[state.arrival_order[state.next_arrival]]
        arrival = arrival_ms <= time  # they were there first, so they win ties
        time = min(time, arrival_ms)
    if time > state.time_limit_ms:
        if state.num_done < state.num_jobs:  # else only moves to jobs that are gone are left
            state.now_ms = state.time_limit_ms
            state.truncated = 1
        return False
    state.now_ms = time
    if arrival:
        state.job_events += 1
        job = state.arrival_order[state.next_arrival]
        state.next_arrival += 1
        _admit_job(state, job)
        if state.pool_size[state.num_jobs] > 0:
            _open_pool_round(state, state.num_jobs, True)
        return True
    executor = heap_subject(state)
    if heap_code(state) == MOVE:
        heap_remove(state, executor)
        _executor_arrival_event(state, executor)
        return True
    state.task_events += 1
    stage = state.executor_stage[executor]
    finished = state.stage_finished_tasks[stage] + 1
    state.stage_finished_tasks[stage] = finished
    heap_remove(state, executor)
    if state.elastic and _go_on(state, executor, stage):
        return True
    _drained_stage_event(state, executor, stage, finished == state.stage_tasks[stage])
    return True


@njit
def _logs_are_full(state):
    """Whether the logs of tasks and units may be too short for the next event."""
    if not state.log_tasks:
        return False
    tasks = state.num_tasks_logged + 2 * state.num_executors > state.max_tasks_logged
    return tasks or state.num_lives_logged + state.num_units > state.max_lives_logged


# ---- entry points ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def reset(address):
    """Put a restarted state at time 0 and open the first round."""
    state = state_at(address)
    for record in range(state.num_commits):
        state.commit_next[record] = record + 1 if record + 1 < state.num_commits else NONE
    state.commit_free = 0
    heap_begin(state, state.num_executors)
    executor = 0
    for executor_class in range(state.num_classes):
        for _ in range(state.class_executors[executor_class]):
            state.executor_class[executor] = executor_class
            if not state.elastic:
                pools.join_null_pool(state, executor)
            executor += 1
    if state.elastic:
        output = 0
        for stage in range(state.num_stages if state.keeps_outputs or state.speculates else 0):
            state.stage_output[stage] = output
            output += state.stage_tasks[stage]
        begin_units(state)
    for job in range(state.num_jobs):
        if state.job_state[job] == ARRIVING and state.job_initial[job]:
            _admit_job(state, job)
    _open_pool_round(state, state.num_jobs, True)


@njit(cache=True, nogil=True)
def offer_all(address):
    """Let every idle executor be offered again, whatever the scheduler said of it."""
    state = state_at(address)
    for index in range(state.num_active):
        pools.free_reserved(state, state.active[index])
    pools.mark_all_pools(state)
    state.calling = not state.reoffer


@njit(cache=True, nogil=True)
def advance(address):
    """Run until a decision is needed, the end, or time is up; returns a code."""
    state = state_at(address)
    until = clock_ns() + PATIENCE_NS
    work = 0
    while True:
        if state.num_source > 0:
            if state.job_bound and not state.round_bound:
                frontier.bar_other_jobs(state)
            if state.log_decisions and state.num_decisions_logged == state.max_decisions_logged:
                return LOG_FULL
            if state.has_action:
                state.has_action = 0
            elif state.decide_fn != 0:
                call_decide(state.decide_fn, state)
            else:
                return NEEDS_DECISION
            state.error = _apply_action(state)
            if state.error != 0:
                return INVALID
            if state.num_source == 0:
                _close_round(state)
            elif state.reoffer and state.num_frontier == 0:
                _forget_selections(state)
            work += WORK_OF_DECISION
        elif state.reoffer and _open_marked_round(state):
            pass
        elif state.calling:
            if not _open_marked_round(state):
                state.calling = 0
        else:
            # With several classes, a stage that takes a task may leave other executors something to be offered.
            most = WORK if state.num_classes == 1 else 1
            if state.elastic:
                repeated = 0  # every event may change the cluster
                if _logs_are_full(state):
                    return LOG_FULL
            else:
                repeated = _repeat_tasks(state, most)
            work += repeated
            if repeated < most and not _next_event(state):
                _count_area(state)
                if state.truncated or state.num_done == state.num_jobs:
                    return DONE
                return DEADLOCK
        work += 1
        if work >= WORK:
            work = 0
            if clock_ns() > until:
                return PAUSED
