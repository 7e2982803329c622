"""FIFO: jobs in order of arrival, each with as many executors as it can use.

Source: §7.1 (1), Spark's default scheduler.
"""

from decima.core.decision import CompiledDecision, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import STAGE_RULE, STICKY, UNLIMITED, share_executors

PARAMETERS = (STICKY, STAGE_RULE)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _fifo(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = index
        rule.job_share[job] = UNLIMITED
    share_executors(state, rule.params[P.sticky] - 0.5, int(rule.params[P.stage_rule]), 0)


@register("fifo")
def fifo(**values) -> CompiledScheduler:
    """Jobs in order of arrival; executors stay with their job until it finishes, as in Spark."""
    return CompiledScheduler("fifo", _fifo, values)
