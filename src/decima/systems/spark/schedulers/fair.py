"""Fair sharing: every job the same number of executors; what nobody's share covers is handed out as well.

Source: §7.1 (3). Differs from ``released_fair``, which never gives a job more than its share except to executors that
are already with it, and may leave executors idle.
"""

from math import ceil

from decima.core.decision import CompiledDecision, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import STAGE_RULE, STRICT, share_executors

PARAMETERS = (STRICT, STAGE_RULE)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _fair(address):
    state = state_at(address)
    rule = rule_of(state)
    share = ceil(state.num_executors / max(1, state.num_jobs_unsaturated))
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = index
        rule.job_share[job] = share
    share_executors(state, 1e9 * rule.params[P.sticky], int(rule.params[P.stage_rule]), 1)


@register("fair")
def fair(**values) -> CompiledScheduler:
    """Equal shares of the executors, work-conserving, draining all branches of a DAG."""
    return CompiledScheduler("fair", _fair, values)
