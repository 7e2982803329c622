"""Fixed priorities and caps per job, given from outside: the space that the search for good schedules explores.

Source: appendix H, job orderings with the critical path inside a job; the caps are ours.
"""

from decima.compiled.decision import CompiledDecision
from decima.schedulers.interface import CompiledScheduler
from decima.schedulers.registry import register
from decima.schedulers.sharing import LEFTOVER, STAGE_RULE, STRICT, UNLIMITED, share_executors
from decima.simulator.fields import state_at


@CompiledDecision
def _priority(address):
    state = state_at(address)
    for index in range(state.num_active):
        job = state.active[index]
        state.job_key[job] = state.job_priority[job]
        state.job_share[job] = state.job_cap[job] if state.job_cap[job] > 0.0 else UNLIMITED
    share_executors(state, state.params[0], int(state.params[1]), int(state.params[2]))


STAY = type(STRICT)(
    "stay", 1.0, -1.0, 1e9, "executors stay with a job below this many caps; negative: follow the order"
)
CRITICAL_PATH = type(STRICT)(STAGE_RULE.name, 1, STAGE_RULE.low, STAGE_RULE.high, STAGE_RULE.doc)


@register("priority")
def priority(**values) -> CompiledScheduler:
    """Jobs by given priorities, each up to a given cap (``state.job_priority``, ``state.job_cap``; 0: no cap)."""
    return CompiledScheduler("priority", _priority, (STAY, CRITICAL_PATH, LEFTOVER), values)
