"""``capped_srw`` with a hand on every job and stage: the schedules among which a search chooses.

``state.job_priority`` holds a number per job and, behind them, one per stage of the run; ``state.job_cap`` one per job.
Those of the jobs are what ``capped_srw`` takes them for: natural logarithms of factors on the remaining work that
orders the jobs, and on the weight of a job's share. Of the stages that could be chosen in the chosen job, the one with
the greatest number is taken. With zeros everywhere it is ``capped_srw``.
"""

from numba import njit

from decima.compiled.decision import CompiledDecision
from decima.schedulers.capped_srw import PARAMETERS, _capped_srw
from decima.schedulers.interface import CompiledScheduler
from decima.simulator.fields import NONE, state_at

_rule = njit(_capped_srw.function)


@CompiledDecision
def _steered(address):
    _rule(address)
    state = state_at(address)
    if state.action_stage == NONE:
        return
    best = state.action_stage
    runnable = state.stage_runnable[best]
    job = state.stage_job[best]
    first_number = state.num_jobs
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if (
            state.stage_in_frontier[stage]
            and state.stage_runnable[stage] == runnable
            and state.job_priority[first_number + stage] > state.job_priority[first_number + best]
        ):
            best = stage
    state.action_stage = best


def steered(**values: float) -> CompiledScheduler:
    """The steered rule with parameters of ``capped_srw``; a run needs ``job_priority`` of length jobs + stages."""
    return CompiledScheduler("steered", _steered, PARAMETERS, values)
