"""What the policy sees of a stage: the only place where features are computed.

Source: §6.1 (``features="paper"``) and the published code (``features="released"``).
"""

from math import log1p

import numpy as np
from numba import njit

from decima.policy.core.fields import policy_of
from decima.policy.core.layout import (
    DURATIONS,
    EMBEDDING,
    FEATURE_LOG,
    FEATURE_SET,
    HINT,
    NUM_FEATURES,
    PAPER_FEATURES,
    RUNNABLE,
)
from decima.simulator.fields import ACTIVE
from decima.simulator.rules.choices import job_held

# Scales that bring the features near 1.
TASKS, DURATION_MS, EXECUTORS, WORK_MS, HINT_MS = 1 / 200, 1 / 10_000, 1 / 20, 1 / 100_000, 1 / 50_000
LOG, LOG_DURATION_MS = 1 / 4, 1 / 10


@njit
def _put(x, place, value):
    """Store a feature; 1 if it was another before."""
    single = np.float32(value)
    if x[place] == single:
        return 0
    x[place] = single
    return 1


@njit
def _put_paper(state, x, place, stage, duration, own):
    """Tasks not finished, nominal duration, executors at it or coming, how many are offered, whether by its job."""
    policy = policy_of(state)
    tasks = float(state.stage_tasks[stage] - state.stage_finished_tasks[stage])
    if policy.net_layout[FEATURE_LOG]:
        changed = _put(x, place, log1p(tasks) * LOG)
        changed |= _put(x, place + 1, log1p(duration * LOG_DURATION_MS) * LOG)
    else:
        changed = _put(x, place, tasks * TASKS)
        changed |= _put(x, place + 1, duration * DURATION_MS)
    coming = state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage]
    changed |= _put(x, place + 2, coming * EXECUTORS)
    changed |= _put(x, place + 3, state.num_source * EXECUTORS)
    return changed | _put(x, place + 4, 1.0 if own else -1.0)


@njit
def _put_released(state, x, place, stage, duration, own):
    """Executors of the job, whether the offered ones are its, how many these are, work and tasks not launched.

    Differs: the published code takes the duration of the stage's last task, this one the nominal duration.
    """
    tasks = float(state.stage_tasks[stage] - state.stage_next[stage])
    changed = _put(x, place, job_held(state, state.stage_job[stage]) * EXECUTORS)
    changed |= _put(x, place + 1, 2.0 if own else -2.0)
    changed |= _put(x, place + 2, state.num_source * EXECUTORS)
    changed |= _put(x, place + 3, tasks * duration * WORK_MS)
    return changed | _put(x, place + 4, tasks * TASKS)


@njit
def put_features(state, stage):
    """Store x of a stage in ``net_xe``; 1 if a feature differs from what was there."""
    policy = policy_of(state)
    layout = policy.net_layout
    count = layout[NUM_FEATURES]
    place = stage * (count + layout[EMBEDDING])
    job = state.stage_job[stage]
    own = job == state.source_job and state.job_state[job] == ACTIVE
    duration = state.row_nominal_ms[state.stage_row[stage]] if layout[DURATIONS] else 0.0
    if layout[FEATURE_SET] == PAPER_FEATURES:
        changed = _put_paper(state, policy.net_xe, place, stage, duration, own)
    else:
        changed = _put_released(state, policy.net_xe, place, stage, duration, own)
    if layout[HINT]:
        changed |= _put(policy.net_xe, place + 5, policy.net_hint_ms * HINT_MS)
    if layout[RUNNABLE]:
        changed |= _put(policy.net_xe, place + count - 1, float(state.stage_runnable[stage]))
    return changed


@njit
def observe_job(state, job):
    """Bring x of the job's unfinished stages up to date and number them; 1 if the job differs from what was known.

    Stages only ever finish, so their number tells whether they are the same ones.
    """
    policy = policy_of(state)
    changed = 0
    count = 0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
            changed |= put_features(state, stage)
            policy.net_position[stage] = count
            count += 1
    if changed or count != policy.net_job_size[job]:
        policy.net_job_size[job] = count
        policy.net_job_instance[job] = -1
        return 1
    return 0
