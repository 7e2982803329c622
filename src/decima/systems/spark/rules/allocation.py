"""Dynamic allocation: Spark executors are requested while tasks wait, and removed when idle.

A *unit* is a Spark executor: ``unit_size`` executors (task slots) that are registered, removed and lost together.

- **Need.** Units for all tasks that run or wait: their number over the slots of a unit, rounded up. A task waits when
  its stage can run: its parents have finished and no slot withholds it.
- **Requests.** When tasks have waited for ``backlog_timeout_ms``, the target grows by 1 unit; while tasks still wait,
  again after every ``sustained_timeout_ms``, by twice the last step if that was taken whole, else by 1 again.
  It grows from the registered units at least, and never beyond the need or the most units. When no task waits, the
  next step is 1 again.
- **Need falls.** The target falls to the need at once, but not below the fewest units.
- **First units** stay the target until the first stage can run or a unit has timed out.
- **Removal.** A unit on which no task has run for ``idle_timeout_ms`` is removed while more units than the target are
  left, the one that is idle longest first. Without a shuffle service it stays while it holds outputs of active jobs.
- A requested unit is registered after ``executor_startup_ms``, also when the target has fallen meanwhile.

Source: Spark's "Dynamic Resource Allocation" (job-scheduling.html: request and remove policy) and its classes
ExecutorAllocationManager and ExecutorMonitor. Differs: Spark looks every 100 ms, the simulator at every event. Spark
may cancel a request that the cluster manager has not granted; here all are granted at once. Spark keeps a unit with
outputs until they were garbage collected; here until their job ends. There are no cached blocks, and the allocation
ratio is 1.
"""

import numpy as np

from decima.core.jit import njit
from decima.core.random import draw_uniform, next_raw
from decima.systems.spark.fields import ABSENT, NONE, PRESENT, STARTING
from decima.systems.spark.rules.pools import detach, join_null_pool, mark_pool, pool_remove


@njit
def draw_fault(state):
    """Uniform double in [0, 1) from the generator of faults."""
    return draw_uniform(next_raw(state.fault_next, state.fault_rng))


# ---- units -----------------------------------------------------------------------------------------------------------


@njit
def register_unit(state, unit):
    """Let the executors of a unit idle without a job, and be offered."""
    state.unit_state[unit] = PRESENT
    state.num_present += 1
    state.unit_since_ms[unit] = state.now_ms
    state.unit_free_ms[unit] = state.now_ms
    state.unit_outputs[unit] = 0
    state.unit_busy[unit] = state.unit_size
    state.unit_loss_ms[unit] = np.inf
    if state.loss_rate_ms > 0.0:
        state.unit_loss_ms[unit] = state.now_ms - np.log(1.0 - draw_fault(state)) / state.loss_rate_ms
    for executor in range(unit * state.unit_size, (unit + 1) * state.unit_size):
        join_null_pool(state, executor)
    mark_pool(state, state.num_jobs)


@njit
def begin_units(state):
    """Register the units of time 0."""
    state.target_units = state.first_units
    state.add_units = 1
    state.add_ms = np.inf
    for unit in range(state.first_units):
        register_unit(state, unit)


@njit
def end_unit(state, unit, lost):
    """Count a unit as gone; its executors have left before."""
    state.unit_state[unit] = ABSENT
    state.num_present -= 1
    state.held_ms += state.now_ms - state.unit_since_ms[unit]
    if state.log_tasks:
        row = 4 * state.num_lives_logged
        state.life_rows[row] = unit
        state.life_rows[row + 1] = state.unit_since_ms[unit]
        state.life_rows[row + 2] = state.now_ms
        state.life_rows[row + 3] = lost
        state.num_lives_logged += 1


@njit
def leave_pool(state, executor):
    """Take an idle executor out of the cluster."""
    pool_remove(state, executor)
    detach(state, executor)


@njit
def request_unit(state, delay_ms):
    """Start the first absent unit after a delay."""
    unit = 0
    while state.unit_state[unit] != ABSENT:
        unit += 1
    state.unit_state[unit] = STARTING
    state.num_starting += 1
    state.unit_since_ms[unit] = state.now_ms + delay_ms + state.executor_startup_ms


# ---- the target ------------------------------------------------------------------------------------------------------


@njit
def _is_idle(state, unit):
    """Whether a unit has an idle timer: registered, without a task, holding no output."""
    return state.unit_state[unit] == PRESENT and state.unit_busy[unit] == 0 and state.unit_outputs[unit] == 0


@njit
def _grow_target(state, need):
    """One step of requests; the next is due after the sustained timeout."""
    before = state.target_units
    target = min(max(before, state.num_present) + state.add_units, need)
    target = max(min(target, state.num_units), state.min_units)
    grown = target - before
    if grown <= 0:
        state.add_units = 1
        return
    state.target_units = target
    state.add_units = 2 * state.add_units if grown == state.add_units else 1
    state.add_ms = state.now_ms + state.sustained_timeout_ms


@njit
def settle_units(state):
    """Bring the target up to date, remove and request units; nothing is on offer then."""
    if not state.dynamic:
        return
    waiting = 0
    for index in range(state.num_active):
        stage = state.runnable_head[state.active[index]]
        while stage != NONE:
            waiting += state.stage_tasks[stage] - state.stage_next[stage]
            stage = state.runnable_next[stage]
    if waiting == 0:
        state.add_ms = np.inf
        state.add_units = 1
    elif state.add_ms == np.inf:
        state.add_ms = state.now_ms + state.backlog_timeout_ms
    timed_out = 0
    for unit in range(state.num_units):
        if _is_idle(state, unit) and state.unit_free_ms[unit] + state.idle_timeout_ms <= state.now_ms:
            timed_out += 1
    if waiting + state.num_running + timed_out > 0:
        state.allocation_begun = 1
    need = (waiting + state.num_running + state.unit_size - 1) // state.unit_size
    if state.allocation_begun:
        if need < state.target_units:
            state.target_units = max(need, state.min_units)
            state.add_units = 1
        elif state.add_ms <= state.now_ms:
            _grow_target(state, need)
    while timed_out > 0 and state.num_present > state.target_units:
        first = NONE
        for unit in range(state.num_units):
            if _is_idle(state, unit) and (first == NONE or state.unit_free_ms[unit] < state.unit_free_ms[first]):
                first = unit
        for executor in range(first * state.unit_size, (first + 1) * state.unit_size):
            leave_pool(state, executor)
        end_unit(state, first, 0)
        timed_out -= 1
    while state.num_present + state.num_starting < state.target_units:
        request_unit(state, 0.0)


@njit
def _requests_are_due(state):
    """Whether the target may grow at ``add_ms``."""
    return state.now_ms < state.add_ms < np.inf and state.target_units < state.num_units


@njit
def next_unit_ms(state):
    """Return when a unit comes, fails or times out, or requests are due; infinite: never."""
    time_ms = np.inf
    if state.next_loss < state.num_losses:
        time_ms = state.loss_ms[state.next_loss]
    if _requests_are_due(state):
        time_ms = min(time_ms, state.add_ms)
    for unit in range(state.num_units):
        if state.unit_state[unit] == STARTING:
            time_ms = min(time_ms, state.unit_since_ms[unit])
        elif state.unit_state[unit] == PRESENT:
            time_ms = min(time_ms, state.unit_loss_ms[unit])
            if state.dynamic and _is_idle(state, unit):
                end_ms = state.unit_free_ms[unit] + state.idle_timeout_ms
                if end_ms > state.now_ms:
                    time_ms = min(time_ms, end_ms)
    return time_ms


@njit
def brings_units(state):
    """Whether units are on their way or will be requested."""
    return state.num_starting > 0 or _requests_are_due(state)


@njit
def register_due_units(state):
    """Register the units whose start is over."""
    for unit in range(state.num_units):
        if state.unit_state[unit] == STARTING and state.unit_since_ms[unit] <= state.now_ms:
            state.num_starting -= 1
            register_unit(state, unit)
