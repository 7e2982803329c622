"""What a critic sees of every job in the system."""

from math import log1p, sqrt

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit
from decima.systems.spark.fields import state_at
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel.embedding import embed
from decima.systems.spark.policy.kernel.inference import prepare
from decima.systems.spark.policy.kernel.layout import EMBEDDING

# Meaning of every input by its name. Times are in units in which the horizon of the discount is 1,500 s, divided by
# executors where they are work. No input counts or sorts jobs: that would jump when a job comes.
JOB_INPUTS = {
    "some_work": "work / (work + 1.2), 0 for a job without work",
    "log_work": "logarithm of the work left",
    "work": "work left",
    "root_work": "its square root",
    "ahead": "work of others that is done before it if the least is served first, sum of min(work, work of each)",
    "larger_than": "soft rank: sum over the others of their share in the work of both",
    "path": "longest path left, one task per stage",
    "soft_jobs": "soft number of jobs, sum of work / (work + 3)",
    "all_work": "work left of all jobs",
    "held": "executors that work for it, move to it or are promised to it, as a saturating share",
    "executors": "the same, as a share of all executors",
    "in_flight": "share of its work that running tasks have",
}
NUM_JOB_INPUTS = len(JOB_INPUTS)
NUM_WORK_INPUTS = list(JOB_INPUTS).index("held")  # the first ones: of the work alone, not of who does it


@cached(njit(cache=True, nogil=True))
def observe_jobs(address, scale, jobs, inputs):
    """Store the inputs of all jobs in the system.

    Args:
        address: Of the state.
        scale: Factor of all times, in 1 / ms.
        jobs: int32 [n], for the numbers of the jobs.
        inputs: float32 [n, 12], for :data:`JOB_INPUTS`.
    """
    state = state_at(address)
    count = state.num_active
    executors = float(state.num_executors)
    work = np.zeros(count)
    total = soft = 0.0
    for index in range(count):
        job = state.active[index]
        left = path = flying = held = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            tasks = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if tasks > 0:
                row = state.stage_row[stage]
                left += tasks * state.row_nominal_ms[row]
                path = max(path, state.row_path_ms[row])
                flying += (state.stage_next[stage] - state.stage_finished_tasks[stage]) * state.row_nominal_ms[row]
                held += state.stage_executors[stage] + state.stage_moving[stage] + state.stage_commit[stage]
        left *= scale / executors
        flying *= scale / executors
        jobs[index] = job
        work[index] = left
        total += left
        soft += left / (left + 3.0)
        inputs[index, 0] = left / (left + 1.2)
        inputs[index, 1] = log1p(left) / 3.0
        inputs[index, 2] = left / 30.0
        inputs[index, 3] = sqrt(left) / 4.25
        inputs[index, 6] = path * scale / 60.0
        inputs[index, 9] = held / (held + 0.16 * executors)
        inputs[index, 10] = held / (0.4 * executors)
        inputs[index, 11] = flying / (left + 0.2)
    for index in range(count):
        mine = work[index]
        ahead = 0.5 * mine
        larger = 0.0
        for other in range(count):
            if other != index:
                ahead += min(mine, work[other])
                larger += work[other] / (work[other] + mine + 0.02)
        inputs[index, 4] = ahead / 50.0
        inputs[index, 5] = larger / 4.0
        inputs[index, 7] = soft / 5.0
        inputs[index, 8] = total / 80.0


@cached(njit(cache=True, nogil=True))
def observe_embeddings(address, jobs, inputs):
    """Store the policy's embeddings y of jobs (§5.1) as y / (1 + abs(y)).

    Args:
        address: Of the state, with a policy that has a graph embedding.
        jobs: int32 [n], numbers of jobs in the system.
        inputs: float32 [n, embedding].
    """
    state = state_at(address)
    policy = policy_of(state)
    if not policy.net_ready:
        prepare(state)
    embed(state)
    width = policy.net_layout[EMBEDDING]
    for index in range(len(jobs)):
        for k in range(width):
            y = policy.net_y[jobs[index] * width + k]
            inputs[index, k] = y / (np.float32(1.0) + abs(y))
