"""Weighted fair sharing of executors of several classes: best fit first, shares counted in executors or in memory.

Source: appendix F, first heuristic: as the tuned weighted fair heuristic of section 7.2, the best-fitting class is
exhausted before any other, the executors of all classes together do not exceed the share.
"""

from dataclasses import replace

from decima.core.decision import CompiledDecision, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.class_sharing import (
    BY_MEMORY,
    LARGER,
    NEVER_HARD,
    NEVER_LONG,
    set_weighted_shares,
    share_classes,
)
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, STRICT
from decima.systems.spark.schedulers.weighted_fair import ALPHA, ORDER

PARAMETERS = (ALPHA, ORDER, LARGER, BY_MEMORY, replace(STRICT, default=0), STAGE_RULE, LEFTOVER)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _weighted_best_fit(address):
    state = state_at(address)
    params = rule_of(state).params
    by_memory = params[P.by_memory] > 0.0
    set_weighted_shares(state, params[P.alpha], params[P.order], by_memory)
    share_classes(
        state,
        1e9 * params[P.sticky],
        int(params[P.stage_rule]),
        int(params[P.leftover]),
        int(params[P.larger]),
        0.0,
        by_memory,
        NEVER_LONG,
        NEVER_HARD,
    )


@register("weighted_best_fit")
def weighted_best_fit(**values) -> CompiledScheduler:
    """Shares proportional to (total work)^alpha over several classes of executors, best fit first."""
    return CompiledScheduler("weighted_best_fit", _weighted_best_fit, values)
