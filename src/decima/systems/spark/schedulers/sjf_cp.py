"""Shortest job first, and inside a job the critical path.

Source: §7.1 (2): jobs by total work, next stage on the critical path; all executors go to the shortest job.
"""

from dataclasses import replace

from decima.core.decision import CompiledDecision, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import STAGE_RULE, STICKY, UNLIMITED, share_executors

PARAMETERS = (
    replace(STICKY, default=0, doc="1: executors stay with their job while it can use them"),
    replace(STAGE_RULE, default=1),
)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _sjf_cp(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = state.job_work_ms[job]
        rule.job_share[job] = UNLIMITED
    share_executors(state, rule.params[P.sticky] - 0.5, int(rule.params[P.stage_rule]), 0)


@register("sjf_cp")
def sjf_cp(**values) -> CompiledScheduler:
    """Shortest job (by total work) first, next stage on its critical path."""
    return CompiledScheduler("sjf_cp", _sjf_cp, values)
