"""``capped_srw`` with a hand on every job and stage: the schedules among which a search chooses.

The arrays ``job_order_factor`` and ``job_share_factor`` are what ``capped_srw`` takes them for. Of the stages that
could be chosen in the chosen job, the one that comes first by ``stage_rank`` is taken, and delayed by its number of ms
in ``stage_delay_ms`` if that is above 0. With zeros everywhere it is ``capped_srw``.
"""

from numba import njit

from decima.core.decision import CompiledDecision
from decima.systems.spark.decision import STAGE
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.schedulers.capped_srw import PARAMETERS, _capped_srw
from decima.systems.spark.schedulers.delays import delay_as_given
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler

# Arrays to be given; the search chooses them.
STEERED_BY = ("job_order_factor", "job_share_factor", "stage_rank", "stage_delay_ms")
_rule = njit(_capped_srw.function)


@CompiledDecision.reading(PARAMETERS, STEERED_BY)
def _steered(address):
    _rule(address)
    state = state_at(address)
    best = int(state.action[STAGE])
    if best == NONE:
        return
    rank = rule_of(state).stage_rank
    runnable = state.stage_runnable[best]
    job = state.stage_job[best]
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        if state.stage_in_frontier[stage] and state.stage_runnable[stage] == runnable and rank[stage] < rank[best]:
            best = stage
    state.action[STAGE] = best
    delay_as_given(state)


def steered(**values: float) -> CompiledScheduler:
    """The steered rule with parameters of ``capped_srw``; a run needs the arrays ``STEERED_BY``."""
    return CompiledScheduler("steered", _steered, values)
