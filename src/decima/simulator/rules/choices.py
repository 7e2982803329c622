"""What a compiled scheduler asks about jobs, and how it says what it has decided."""

from numba import njit

from decima.simulator.fields import ACTIVE, NONE


@njit
def job_held(state, job):
    """Executors of the job: attached, moving to it, or promised to it by others."""
    return state.job_attached[job] + state.job_moving[job] + state.job_commit[job]


@njit
def job_allocation(state, job):
    """Executors the job holds and keeps, apart from those being offered now; a limit must exceed it (§5.2)."""
    held = job_held(state, job) - state.job_outgoing[job]
    if job == state.source_job and state.job_state[job] == ACTIVE:
        held -= state.num_source
    return held


@njit
def choose(state, stage, executors):
    """Decide: use ``executors`` of the offered ones for ``stage``."""
    state.action_stage = stage
    state.action_limit = executors
    if state.job_limit:
        state.action_limit += job_allocation(state, state.stage_job[stage])


@njit
def choose_idle(state):
    """Decide: leave all offered executors idle."""
    state.action_stage = NONE
    state.action_limit = state.num_source
