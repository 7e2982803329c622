"""Shortest job first, and inside a job the critical path.

Source: §7.1 (2): jobs by total work, next stage on the critical path; all executors go to the shortest job.
"""

from decima.compiled.decision import CompiledDecision
from decima.schedulers.interface import CompiledScheduler, Parameter
from decima.schedulers.registry import register
from decima.schedulers.sharing import STAGE_RULE, STICKY, UNLIMITED, share_executors
from decima.simulator.fields import state_at

CRITICAL_PATH = Parameter(STAGE_RULE.name, 1, STAGE_RULE.low, STAGE_RULE.high, STAGE_RULE.doc)
EXCLUSIVE = Parameter(
    STICKY.name, 0, STICKY.low, STICKY.high, "1: executors stay with their job while it can use them"
)


@CompiledDecision
def _sjf_cp(address):
    state = state_at(address)
    for index in range(state.num_active):
        job = state.active[index]
        state.job_key[job] = state.job_work_ms[job]
        state.job_share[job] = UNLIMITED
    share_executors(state, state.params[0] - 0.5, int(state.params[1]), 0)


@register("sjf_cp")
def sjf_cp(**values) -> CompiledScheduler:
    """Shortest job (by total work) first, next stage on its critical path."""
    return CompiledScheduler("sjf_cp", _sjf_cp, (EXCLUSIVE, CRITICAL_PATH), values)
