"""Capped shortest remaining work over several executor classes, with a price for oversized ones.

As ``capped_srw``: small remaining work first, each job capped at an oversubscribed share. A job that would get an
executor ``n`` classes larger than needed is served as if its remaining work were exp(``price`` x n) times as much: a
price of 0 leaves the order of jobs, a high one serves exact fits first.

``job_order_factor`` and ``job_share_factor`` steer single jobs as they do in ``capped_srw``.

No paper has this rule. It shows the trade-off of the paper's Figure 12b, large executors for small jobs.
"""

from decima.core.decision import CompiledDecision, Parameter, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.capped_srw import order_by_remaining_work
from decima.systems.spark.schedulers.class_sharing import NEVER_HARD, NEVER_LONG, ORDER_FIRST, share_classes
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE

# The first three in the order of ``capped_srw``.
PARAMETERS = (
    Parameter("c0", 1.33, 0.1, 30.0, "oversubscription of the proportional share", tunable=True),
    Parameter("c1", 0.3, -2.0, 10.0, "executors added to every share", tunable=True),
    Parameter("power", 0.14, -1.0, 2.0, "exponent of the remaining work", tunable=True),
    Parameter("release", 1.09, 1.0, 10.0, "a job above this multiple of its share releases the excess", tunable=True),
    Parameter("price", 0.6, 0.0, 20.0, "logarithm of the price of an executor one class too large", tunable=True),
    STAGE_RULE,
    LEFTOVER,
)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _priced_srw(address):
    state = state_at(address)
    params = rule_of(state).params
    order_by_remaining_work(state)
    stage_rule, leftover, price = int(params[P.stage_rule]), int(params[P.leftover]), params[P.price]
    share_classes(state, params[P.release], stage_rule, leftover, ORDER_FIRST, price, False, NEVER_LONG, NEVER_HARD)


@register("priced_srw")
def priced_srw(**values) -> CompiledScheduler:
    """Smallest remaining work first over executor classes, with a price for those too large."""
    return CompiledScheduler("priced_srw", _priced_srw, values)
