"""Fixed priorities and caps per job and delays per stage, from arrays; searches explore them.

Source: appendix H, job orderings with the critical path inside a job; caps and delays are ours.
"""

from dataclasses import replace

from decima.core.decision import CompiledDecision, Parameter, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.fields import delay_by_array, rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, UNLIMITED, share_executors

PARAMETERS = (
    Parameter("stay", 1.0, -1.0, 1e9, "executors stay with a job below this many caps; negative: follow the order"),
    replace(STAGE_RULE, default=1),
    LEFTOVER,
)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _priority(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = rule.job_rank[job]
        cap = rule.job_limit_cap[job]
        rule.job_share[job] = cap if cap > 0.0 else UNLIMITED
    share_executors(state, rule.params[P.stay], int(rule.params[P.stage_rule]), int(rule.params[P.leftover]))
    delay_by_array(state)


@register("priority")
def priority(**values) -> CompiledScheduler:
    """Jobs by priority, each up to a cap (arrays ``job_rank``, ``job_limit_cap``, ``stage_delay_ms``)."""
    return CompiledScheduler("priority", _priority, values)
