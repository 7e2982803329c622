"""Compiled recording of decisions: which job graphs were seen, what was chosen, a state summary for a baseline.

A job graph is recorded once for as long as its features do not change; decisions refer to it.
"""

from math import sqrt

import numpy as np
from numba import njit

from decima.policy.core.layout import EMBEDDING, NUM_FEATURES
from decima.simulator.fields import NONE

NUM_CHOICE, NUM_VALUE, NUM_CRITIC = 7, 5, 8


@njit
def _has_room(state, count):
    """Whether one more decision with ``count`` candidates fits; counts its new job graphs."""
    instances = 0
    nodes = 0
    for index in range(state.num_active):
        job = state.active[index]
        if state.net_job_instance[job] == NONE:
            instances += 1
            nodes += state.net_job_size[job]
    return (
        state.rec_decisions < state.rec_max_decisions
        and state.rec_instances + instances <= state.rec_max_instances
        and state.rec_nodes + nodes <= state.rec_max_nodes
        and state.rec_pairs + state.num_active <= state.rec_max_pairs
        and state.rec_candidates + count <= state.rec_max_candidates
    )


@njit
def _record_instance(state, job):
    """Append the job's unfinished stages with their features."""
    instance = state.rec_instances
    node = state.rec_nodes
    features = state.net_layout[NUM_FEATURES]
    width = features + state.net_layout[EMBEDDING]
    first = state.job_first_stage[job]
    for stage in range(first, state.job_first_stage[job + 1]):
        if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
            state.rec_node_row[node] = state.stage_row[stage]
            state.rec_node_local[node] = stage - first
            for k in range(features):
                state.rec_x[node * features + k] = state.net_xe[stage * width + k]
            node += 1
    state.rec_nodes = node
    state.rec_instances = instance + 1
    state.rec_instance_first[instance + 1] = node
    state.net_job_instance[job] = instance


@njit
def _sort(values, count):
    """Sort ascending in place (Shell's method: the order is nearly that of the last time or short)."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for index in range(gap, count):
            value = values[index]
            place = index
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


@njit
def _record_critic(state, row):
    """Summary of the state, see :data:`decima.policy.record.CRITIC_FEATURES`."""
    works = state.net_total
    executors = float(state.num_executors)
    total = paths = roots = longest = 0.0
    near = 0
    for index in range(state.num_active):
        job = state.active[index]
        work = path = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            left = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if left > 0:
                profile = state.stage_row[stage]
                work += left * state.row_nominal_ms[profile] * 0.001
                path = max(path, state.row_path_ms[profile] * 0.001)
        works[index] = work
        total += work
        paths += path
        roots += sqrt(work)
        longest += max(work / executors, path)
        near += state.job_attached[job] + state.job_moving[job]
    count = state.num_active
    _sort(works, count)
    bound = 0.0
    for index in range(count):
        bound += (count - index - 0.5) * works[index]
    out = state.rec_critic
    out[row] = np.float32(count)
    out[row + 1] = np.float32(total)
    out[row + 2] = np.float32(bound / executors)
    out[row + 3] = np.float32(paths)
    out[row + 4] = np.float32(near)
    out[row + 5] = np.float32(state.num_source)
    out[row + 6] = np.float32(roots)
    out[row + 7] = np.float32(longest)


@njit
def record_decision(
    state, count, choice, log_stage, limit, low, high, class_low, class_high, classes, log_limit, log_class
):
    """Append a decision; sets ``rec_full`` and records no more when there is no room for it."""
    if state.rec_full or not _has_room(state, count):
        state.rec_full = 1
        return
    decision = state.rec_decisions
    pair = state.rec_pairs
    for index in range(state.num_active):
        job = state.active[index]
        if state.net_job_instance[job] == NONE:
            _record_instance(state, job)
        state.rec_pair_instance[pair] = state.net_job_instance[job]
        pair += 1
    state.rec_pairs = pair
    state.rec_decision_pairs[decision + 1] = pair
    first = state.rec_candidates
    for index in range(count):
        stage = state.net_candidates[index]
        instance = state.net_job_instance[state.stage_job[stage]]
        state.rec_candidate_instance[first + index] = instance
        state.rec_candidate_node[first + index] = state.rec_instance_first[instance] + state.net_position[stage]
    state.rec_candidates = first + count
    state.rec_decision_candidates[decision + 1] = first + count
    row = NUM_CHOICE * decision
    state.rec_choice[row] = first + choice
    state.rec_choice[row + 1] = limit
    state.rec_choice[row + 2] = low
    state.rec_choice[row + 3] = high
    state.rec_choice[row + 4] = class_low
    state.rec_choice[row + 5] = class_high
    state.rec_choice[row + 6] = classes
    row = NUM_VALUE * decision
    state.rec_values[row] = log_stage
    state.rec_values[row + 1] = log_limit
    state.rec_values[row + 2] = log_class
    state.rec_values[row + 3] = state.now_ms
    state.rec_values[row + 4] = state.area_ms + state.num_active * (state.now_ms - state.area_time_ms)
    _record_critic(state, NUM_CRITIC * decision)
    state.rec_decisions = decision + 1
