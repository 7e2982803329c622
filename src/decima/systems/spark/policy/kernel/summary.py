"""A few numbers that summarise the state of the cluster at a decision, from which a baseline is fitted."""

from math import sqrt

import numpy as np
from numba import njit

from decima.systems.spark.policy.fields import policy_of

# Meaning of every number by its name, in the order in which they are stored.
SUMMARY = {
    "active_jobs": "jobs that have arrived and are not finished",
    "work_s": "unfinished tasks times nominal duration, of all jobs",
    "srw_bound_s": "sum of completion times if all executors served one job after the other, least work first",
    "path_s": "sum over jobs of the longest path left, one task per stage",
    "executors": "executors attached to active jobs or moving to them",
    "num_source": "executors on offer",
    "sqrt_work": "sum over jobs of the square root of their work in s",
    "bound_s": "sum over jobs of max(work / executors, path)",
}
NUM_SUMMARY = len(SUMMARY)
ACTIVE_JOBS, WORK_S, SRW_BOUND_S, PATH_S, EXECUTORS, OFFERED, SQRT_WORK, BOUND_S = range(NUM_SUMMARY)


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
def summarise(state, row):
    """Store the numbers of :data:`SUMMARY` in ``rec_critic`` from ``row`` on."""
    policy = policy_of(state)
    works = policy.net_total
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
    out = policy.rec_critic
    out[row + ACTIVE_JOBS] = np.float32(count)
    out[row + WORK_S] = np.float32(total)
    out[row + SRW_BOUND_S] = np.float32(bound / executors)
    out[row + PATH_S] = np.float32(paths)
    out[row + EXECUTORS] = np.float32(near)
    out[row + OFFERED] = np.float32(state.num_source)
    out[row + SQRT_WORK] = np.float32(roots)
    out[row + BOUND_S] = np.float32(longest)
