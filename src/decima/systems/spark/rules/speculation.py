"""Speculation: a task that runs far longer than others of its stage gets a copy.

- **Checks** at multiples of ``speculation_interval_ms``: when ``speculation_quantile`` of the tasks of a stage have
  ended, rounded down but at least one, every task of it gets a copy that has run longer than
  ``speculation_multiplier`` times their median duration, and longer than ``speculation_min_runtime_ms``. A stage of
  one task has no copies, nor have tasks that have read outputs which are lost now.
- **Launch.** A copy waits as a task of its stage that is to be launched, until others of the stage are. Every idle
  executor is offered then. Its duration is drawn anew. A task has one copy at most.
- **End.** The first of both to end counts; the other is killed, or not launched. If one is lost with its unit, the
  other one is the task.

Source: Spark's TaskSetManager.checkSpeculatableTasks and its settings ``spark.speculation.*``. Differs: a copy may run
on the Spark executor of its task, which Spark forbids, on one host even. Tasks that run again because their output was
lost count with those of before; of the durations the first ones count, one for each task of the stage. In Spark a copy
that finds no input lets it be computed again.
"""

import numpy as np

from decima.core.jit import njit
from decima.systems.spark.fields import NONE
from decima.systems.spark.rules.classes import count_unexhausted
from decima.systems.spark.rules.frontier import add_runnable, remove_runnable, update_saturation
from decima.systems.spark.rules.pools import free_reserved, mark_all_pools


@njit
def call_all(state):
    """Offer every idle executor, whatever it waits for in its job."""
    for index in range(state.num_active):
        free_reserved(state, state.active[index])
    mark_all_pools(state)
    for index in range(state.num_active):
        state.job_calls[state.active[index]] = state.calls


@njit
def launch_again(state, stage, count):
    """Let more tasks of a stage wait for their launch."""
    if state.stage_next[stage] == state.stage_tasks[stage]:
        count_unexhausted(state, stage, 1)
        if state.stage_unfinished_parents[stage] == 0:
            add_runnable(state, stage)
    state.stage_next[stage] -= count
    update_saturation(state, stage)


@njit
def note_duration(state, stage, executor):
    """Keep the duration of a task that has ended."""
    count = state.stage_ended[stage]
    if count == state.stage_tasks[stage]:
        return
    duration = state.now_ms - state.executor_start_ms[executor]
    first = state.stage_output[stage]
    entry = first + count
    while entry > first and state.ended_ms[entry - 1] > duration:
        state.ended_ms[entry] = state.ended_ms[entry - 1]
        entry -= 1
    state.ended_ms[entry] = duration
    state.stage_ended[stage] = count + 1


@njit
def _reads_lost(state, stage):
    """Whether outputs that the stage reads are lost and not computed again."""
    row = state.stage_row[stage]
    first = state.job_first_stage[state.stage_job[stage]]
    for index in range(state.parent_offset[row], state.parent_offset[row + 1]):
        if state.stage_missing[first + state.parent[index]] > 0:
            return True
    return False


@njit
def _due_ms(state, executor):
    """Time after which the task of an executor gets a copy; infinite: none."""
    stage = state.executor_stage[executor]
    if stage == NONE or state.executor_partner[executor] != NONE or state.stage_tasks[stage] == 1:
        return np.inf
    if state.stage_finished_tasks[stage] < max(int(state.speculation_quantile * state.stage_tasks[stage]), 1):
        return np.inf
    if state.keeps_outputs and _reads_lost(state, stage):
        return np.inf
    median = state.ended_ms[state.stage_output[stage] + state.stage_ended[stage] // 2]
    longest = max(state.speculation_multiplier * median, state.speculation_min_runtime_ms)
    return state.executor_start_ms[executor] + longest


@njit
def next_check_ms(state):
    """Time of the next check that finds a task; infinite: none."""
    due = np.inf
    for executor in range(state.num_executors if state.speculates else 0):
        due = min(due, _due_ms(state, executor))
    if due == np.inf:
        return due
    due = max(due, state.now_ms)
    time = state.speculation_interval_ms * (np.floor(due / state.speculation_interval_ms) + 1.0)
    return time if time > due else time + state.speculation_interval_ms


@njit
def check_tasks(state):
    """Let the tasks that have run too long wait for a copy."""
    for executor in range(state.num_executors):
        if _due_ms(state, executor) < state.now_ms:
            stage = state.executor_stage[executor]
            state.executor_partner[executor] = executor
            state.stage_copies[stage] += 1
            launch_again(state, stage, 1)
    call_all(state)


@njit
def begin_copy(state, stage, executor):
    """Let a launch copy the longest task if nothing else of the stage waits."""
    copies = state.stage_copies[stage]
    if copies == 0 or state.stage_tasks[stage] - state.stage_next[stage] > copies:
        return
    longest = NONE
    for other in range(state.num_executors):
        waits = state.executor_stage[other] == stage and state.executor_partner[other] == other
        if waits and (longest == NONE or state.executor_start_ms[other] < state.executor_start_ms[longest]):
            longest = other
    state.executor_partner[longest] = executor
    state.executor_partner[executor] = longest
    state.stage_copies[stage] -= 1
    state.num_copies += 1


@njit
def part_copies(state, executor):
    """Forget the copy of a task that is over; returns its executor."""
    partner = state.executor_partner[executor]
    state.executor_partner[executor] = NONE
    if partner == executor:
        state.stage_copies[state.executor_stage[executor]] -= 1
    elif partner != NONE:
        state.executor_partner[partner] = NONE
    return partner


@njit
def withdraw_copy(state, stage):
    """One task less of a stage waits for its launch."""
    state.stage_next[stage] += 1
    if state.stage_next[stage] == state.stage_tasks[stage]:
        if state.stage_runnable[stage]:
            remove_runnable(state, stage)
        count_unexhausted(state, stage, -1)
    update_saturation(state, stage)
