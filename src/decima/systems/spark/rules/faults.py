"""Faults: units (Spark executors) are lost, their tasks run again, lost outputs are computed again.

- **Losses.** Every unit is lost after an exponential time (``loss_rate`` per hour), and at each of ``loss_times_ms``
  one that is drawn among the registered ones.
- **Tasks** that ran on it are to be launched again. Every idle executor is offered then.
- **Outputs** of finished tasks on it are lost without a shuffle service, unless no other stage reads them. If a stage
  that reads them has tasks to launch, they are computed again, and it starts no task before that is done. Its running
  tasks continue. Else they are computed again when such a stage loses a task later.
- **Replacement.** Where fewer units than the target are left, another one is requested after ``replacement_delay_ms``.
- **Stragglers** (:func:`decima.systems.spark.rules.durations.straggle`): a share of tasks takes longer by a factor
  from Pareto's law.

Source: Spark's TaskSetManager.executorLost, DAGScheduler.handleExecutorLost and its resubmission of missing partitions.
Differs: Spark finds missing outputs when the next task fails to read them, the simulator at the loss; a task that runs
has read its input. There is no limit of failures.
"""

import numpy as np

from decima.core.heap import heap_remove
from decima.core.jit import njit
from decima.systems.spark.fields import NONE, PRESENT
from decima.systems.spark.rules.allocation import draw_fault, end_unit, leave_pool, register_due_units, request_unit
from decima.systems.spark.rules.choices import destination_of
from decima.systems.spark.rules.executors import drop_promise
from decima.systems.spark.rules.frontier import remove_runnable, update_frontier, update_saturation
from decima.systems.spark.rules.pools import detach, leave_stage
from decima.systems.spark.rules.speculation import call_all, launch_again, part_copies

# ---- outputs ---------------------------------------------------------------------------------------------------------


@njit
def _has_readers(state, stage):
    row = state.stage_row[stage]
    return state.child_offset[row] < state.child_offset[row + 1]


@njit
def keep_output(state, stage, executor):
    """Note where the output of a task lies that has just been counted as finished."""
    if _has_readers(state, stage):
        unit = executor // state.unit_size
        entry = state.stage_finished_tasks[stage] - 1 - state.stage_missing[stage]
        state.output_unit[state.stage_output[stage] + entry] = unit
        state.unit_outputs[unit] += 1


@njit
def release_outputs(state, job):
    """Forget the outputs of a job that has ended."""
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if _has_readers(state, stage):
            first = state.stage_output[stage]
            for entry in range(first, first + state.stage_finished_tasks[stage] - state.stage_missing[stage]):
                state.unit_outputs[state.output_unit[entry]] -= 1


@njit
def _lose_outputs(state, stage, unit):
    first = state.stage_output[stage]
    kept = first
    end = first + state.stage_finished_tasks[stage] - state.stage_missing[stage]
    for entry in range(first, end):
        if state.output_unit[entry] != unit:
            state.output_unit[kept] = state.output_unit[entry]
            kept += 1
    state.stage_missing[stage] += end - kept


# ---- tasks that run again --------------------------------------------------------------------------------------------


@njit
def _is_read(state, stage):
    """Whether a stage that reads the outputs of this one has tasks to launch."""
    row = state.stage_row[stage]
    first = state.job_first_stage[state.stage_job[stage]]
    for index in range(state.child_offset[row], state.child_offset[row + 1]):
        child = first + state.child[index]
        if state.stage_next[child] < state.stage_tasks[child]:
            return True
    return False


@njit
def _compute_again(state, stage):
    """Let the tasks whose output is missing run again; a finished stage is unfinished again."""
    count = state.stage_missing[stage]
    state.lost_outputs += count
    state.stage_missing[stage] = 0
    finished = state.stage_finished_tasks[stage] == state.stage_tasks[stage]
    state.stage_finished_tasks[stage] -= count
    if finished:
        job = state.stage_job[stage]
        state.stage_finish_ms[stage] = np.nan
        state.job_unfinished[job] += 1
        row = state.stage_row[stage]
        first = state.job_first_stage[job]
        for index in range(state.child_offset[row], state.child_offset[row + 1]):
            child = first + state.child[index]
            state.stage_unfinished_parents[child] += 1
            if state.stage_runnable[child]:
                remove_runnable(state, child)
            update_frontier(state, child)
    launch_again(state, stage, count)


@njit
def _compute_needed(state, job):
    """Compute what is missing and read; a stage that runs again may read others."""
    again = True
    while again:
        again = False
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_missing[stage] > 0 and _is_read(state, stage):
                _compute_again(state, stage)
                again = True


# ---- losses ----------------------------------------------------------------------------------------------------------


@njit
def cut_task(state, executor, how):
    """End the task of an executor before its time; ``how`` is what the log says."""
    state.busy_ms -= heap_remove(state, executor) - state.now_ms
    if state.log_tasks:
        state.task_finish_ms[state.executor_row[executor]] = state.now_ms
        state.task_lost[state.executor_row[executor]] = how
    state.num_running -= 1


@njit
def _lose_executor(state, executor):
    if state.executor_pool[executor] != NONE:
        leave_pool(state, executor)
        return
    if state.executor_moving[executor]:
        heap_remove(state, executor)
        stage = destination_of(state, executor)
        state.executor_moving[executor] = 0
        state.executor_destination[executor] = NONE
        if stage != NONE:
            state.stage_moving[stage] -= 1
            state.job_moving[state.stage_job[stage]] -= 1
            update_saturation(state, stage)
        return
    stage = state.executor_stage[executor]
    cut_task(state, executor, 1)
    state.lost_tasks += 1
    alone = not state.speculates or part_copies(state, executor) == NONE
    leave_stage(state, executor)
    detach(state, executor)
    drop_promise(state, stage)
    if alone:
        launch_again(state, stage, 1)


@njit
def _lose_unit(state, unit):
    """Lose a unit, offer every idle executor, request another unit."""
    state.lost_units += 1
    for executor in range(unit * state.unit_size, (unit + 1) * state.unit_size):
        _lose_executor(state, executor)
    end_unit(state, unit, 1)
    for index in range(state.num_active):
        job = state.active[index]
        if state.keeps_outputs:
            for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
                if _has_readers(state, stage):
                    _lose_outputs(state, stage, unit)
            _compute_needed(state, job)
    call_all(state)
    if state.num_present + state.num_starting < state.target_units:
        request_unit(state, state.replacement_delay_ms)


@njit
def unit_event(state):
    """Register and lose the units that are due; losses come second."""
    register_due_units(state)
    for unit in range(state.num_units):
        if state.unit_state[unit] == PRESENT and state.unit_loss_ms[unit] <= state.now_ms:
            _lose_unit(state, unit)
    while state.next_loss < state.num_losses and state.loss_ms[state.next_loss] <= state.now_ms:
        state.next_loss += 1
        if state.num_present > 0:
            left = int(draw_fault(state) * state.num_present)
            unit = NONE
            while left >= 0:
                unit += 1
                if state.unit_state[unit] == PRESENT:
                    left -= 1
            _lose_unit(state, unit)
