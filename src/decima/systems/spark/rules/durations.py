"""Durations of tasks (§6.2: wave, start-up, slowdown by parallelism)."""

from decima.core.checks import LARGEST_MS
from decima.core.jit import njit
from decima.core.random import draw_below, draw_uniform, next_raw

# Situations of a task launch, in the order of the duration lists.
FRESH, FIRST, REST = 0, 1, 2


@njit(forceinline=True)
def mean_duration_ms(state, stage, executors, situation):
    """Mean duration of a task while its job has that number of executors, ms."""
    row = state.stage_row[stage]
    cell = state.row_grid[row] * state.grid_width + min(executors, state.grid_width - 1)
    base = state.row_list[row] + situation
    left = state.grid_left[cell]
    right = state.grid_right[cell]
    mean = state.list_mean_ms[base + 3 * left]
    if left != right:
        weight = state.grid_weight[cell]
        mean = (1.0 - weight) * mean + weight * state.list_mean_ms[base + 3 * right]
    return mean


@njit(forceinline=True)
def launch_duration(state, stage, situation):
    """Duration in ms of the next task of ``stage`` (§6.2: wave, start-up, slowdown by parallelism)."""
    executors = state.job_attached[state.stage_job[stage]]
    if not state.sampled:
        return mean_duration_ms(state, stage, executors, situation)
    row = state.stage_row[stage]
    cell = state.row_grid[row] * state.grid_width + min(executors, state.grid_width - 1)
    level = state.grid_left[cell]
    if level != state.grid_right[cell]:
        raw = next_raw(state.duration_next, state.duration_rng)
        if not draw_uniform(raw) >= state.grid_weight[cell]:
            level = state.grid_right[cell]
    chosen = state.row_list[row] + situation + 3 * level
    raw = next_raw(state.duration_next, state.duration_rng)
    index = draw_below(raw, state.list_length[chosen])
    return state.values_ms[state.list_offset[chosen] + index] + state.list_add_ms[chosen]


@njit
def straggle(state, duration):
    """Duration in ms of a task that may straggle.

    With probability ``straggler_share`` it is multiplied by a factor of at least 1 from Pareto's law, to at most
    :data:`decima.core.checks.LARGEST_MS`.
    """
    if state.straggler_share == 0.0:
        return duration
    if draw_uniform(next_raw(state.fault_next, state.fault_rng)) >= state.straggler_share:
        return duration
    left = 1.0 - draw_uniform(next_raw(state.fault_next, state.fault_rng))
    return min(duration * left ** (-1.0 / state.straggler_shape), LARGEST_MS)
