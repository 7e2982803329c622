"""Executors that stay with a job until it ends: while they are offered, only stages of that job can be chosen."""

from numba import njit

from decima.systems.spark.fields import ACTIVE, NONE
from decima.systems.spark.rules.frontier import leave_frontier, update_frontier


@njit
def bar_other_jobs(state):
    """Keep the stages of other jobs out of the frontier of a round over executors of an unfinished job."""
    state.round_bound = 1
    job = state.source_job
    if job == NONE or state.job_state[job] != ACTIVE:
        return
    for index in range(state.num_active):
        other = state.active[index]
        if other == job or state.job_frontier[other] == 0:
            continue
        for stage in range(state.job_first_stage[other], state.job_first_stage[other + 1]):
            if state.stage_in_frontier[stage]:
                leave_frontier(state, stage)
                state.barred[state.num_barred] = stage
                state.num_barred += 1


@njit
def admit_other_jobs(state):
    """Put the stages back that :func:`bar_other_jobs` took out."""
    state.round_bound = 0
    for index in range(state.num_barred):
        update_frontier(state, state.barred[index])
    state.num_barred = 0
