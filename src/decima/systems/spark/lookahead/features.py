"""Features of jobs along which the factors of all jobs are changed together."""

from math import log

import numpy as np
from numba import njit

from decima.core.cache import cached
from decima.systems.spark.fields import state_at

#: Length of the longest remaining path relative to the remaining work; tasks that could be launched now. Logarithms.
FEATURES = ("path", "tasks")


@cached(njit(cache=True, nogil=True))
def job_features(address, jobs, features, largest_ms):
    """Compute the features of jobs, each less its mean over them.

    Args:
        address: A state; of its jobs only those given are looked at.
        jobs: Jobs in the system, int32 [jobs].
        features: Receives them, float64 [``FEATURES``, jobs].
        largest_ms: Receives the largest nominal duration of a task that is not finished, float64 [1].

    Returns:
        Remaining work of these jobs, executor time in ms.
    """
    state = state_at(address)
    total = 0.0
    largest_ms[0] = 0.0
    for index in range(len(jobs)):
        job = jobs[index]
        work = 0.0
        path = 0.0
        ready = 0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            unfinished = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if unfinished > 0:
                row = state.stage_row[stage]
                work += unfinished * state.row_nominal_ms[row]
                path = max(path, state.row_path_ms[row])
                largest_ms[0] = max(largest_ms[0], state.row_nominal_ms[row])
            if state.stage_unfinished_parents[stage] == 0:
                ready += state.stage_tasks[stage] - state.stage_next[stage]
        total += work
        features[0, index] = log(max(path, 1.0) / max(work, 1.0))
        features[1, index] = log(1.0 + ready)
    for row in range(len(features)):
        features[row] -= np.mean(features[row])
    return total
