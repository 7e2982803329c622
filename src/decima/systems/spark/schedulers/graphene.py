"""Weighted fair sharing of executors of several classes, and Graphene*, which holds troublesome stages back.

Both take the best fit first: the best-fitting class is exhausted before any other, and the executors of all classes
together do not exceed a job's share, which is counted in executors or in memory. For Graphene* a stage is troublesome
if its tasks are long for its job (``long``) or fit few executors (``frag``). While a troublesome stage of a job is not
available, because a parent still needs executors, all of them come last in order.

Source: appendix F, first heuristic, as the tuned weighted fair heuristic of section 7.2, and Graphene*, whose formulas
are in :mod:`.packing`. Differs: thresholds, order of jobs and the use of larger classes are not given there;
``decima tune graphene --grid`` searches them.
"""

from dataclasses import replace

from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.jit import njit
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

SHARES = (ALPHA, ORDER, LARGER, BY_MEMORY, replace(STRICT, default=0), STAGE_RULE, LEFTOVER)
PARAMETERS = (
    Parameter(
        "long", 0.8, 0.0, 2.0, "least long score of a troublesome stage; above 1: none is too long", tunable=True
    ),
    Parameter("frag", 0.25, -1.0, 1.0, "most fragmentation score of one; below 0: none is hard to pack", tunable=True),
    *SHARES,
)
P = places(PARAMETERS)
_SHARE = places(SHARES)
_FIRST_SHARE = len(PARAMETERS) - len(SHARES)


@njit
def _share(state, first, long, frag):
    """Give executors by weighted shares, whose parameters begin at ``first``."""
    params = rule_of(state).params
    by_memory = params[first + _SHARE.by_memory] > 0.0
    set_weighted_shares(state, params[first + _SHARE.alpha], params[first + _SHARE.order], by_memory)
    stage_rule, leftover = int(params[first + _SHARE.stage_rule]), int(params[first + _SHARE.leftover])
    larger, stay = int(params[first + _SHARE.larger]), 1e9 * params[first + _SHARE.sticky]
    share_classes(state, stay, stage_rule, leftover, larger, 0.0, by_memory, long, frag)


@CompiledDecision.reading(SHARES)
def _weighted_best_fit(address):
    _share(state_at(address), 0, NEVER_LONG, NEVER_HARD)


@CompiledDecision.reading(PARAMETERS)
def _graphene(address):
    state = state_at(address)
    params = rule_of(state).params
    _share(state, _FIRST_SHARE, params[P.long], params[P.frag])


@register("weighted_best_fit")
def weighted_best_fit(**values) -> CompiledScheduler:
    """Shares proportional to (total work)^alpha over several classes of executors, best fit first."""
    return CompiledScheduler("weighted_best_fit", _weighted_best_fit, values)


@register("graphene")
def graphene(**values) -> CompiledScheduler:
    """Graphene*: troublesome stages of a job together, tuned weighted fair shares, best fit."""
    return CompiledScheduler("graphene", _graphene, values)
