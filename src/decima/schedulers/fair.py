"""Fair sharing: every job the same number of executors; what nobody's share covers is handed out as well.

Source: §7.1 (3). Differs from ``released_fair``, which never gives a job more than its share except to executors that
are already with it, and may leave executors idle.
"""

from math import ceil

from decima.compiled.decision import CompiledDecision
from decima.schedulers.interface import CompiledScheduler
from decima.schedulers.registry import register
from decima.schedulers.sharing import STAGE_RULE, STRICT, share_executors
from decima.simulator.fields import state_at


@CompiledDecision
def _fair(address):
    state = state_at(address)
    share = ceil(state.num_executors / max(1, state.num_jobs_unsaturated))
    for index in range(state.num_active):
        job = state.active[index]
        state.job_key[job] = index
        state.job_share[job] = share
    share_executors(state, 1e9 * state.params[0], int(state.params[1]), 1)


@register("fair")
def fair(**values) -> CompiledScheduler:
    """Equal shares of the executors, work-conserving, draining all branches of a DAG."""
    return CompiledScheduler("fair", _fair, (STRICT, STAGE_RULE), values)
