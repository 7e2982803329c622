"""FIFO: jobs in order of arrival, each with as many executors as it can use.

Source: §7.1 (1), Spark's default scheduler.
"""

from decima.compiled.decision import CompiledDecision
from decima.schedulers.interface import CompiledScheduler
from decima.schedulers.registry import register
from decima.schedulers.sharing import STAGE_RULE, STICKY, UNLIMITED, share_executors
from decima.simulator.fields import state_at


@CompiledDecision
def _fifo(address):
    state = state_at(address)
    for index in range(state.num_active):
        job = state.active[index]
        state.job_key[job] = index
        state.job_share[job] = UNLIMITED
    share_executors(state, state.params[0] - 0.5, int(state.params[1]), 0)


@register("fifo")
def fifo(**values) -> CompiledScheduler:
    """Jobs in order of arrival; executors stay with their job until it finishes, as in Spark."""
    return CompiledScheduler("fifo", _fifo, (STICKY, STAGE_RULE), values)
