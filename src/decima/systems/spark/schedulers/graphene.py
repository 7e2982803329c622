"""Graphene*: weighted fair shares, best fit, and troublesome stages held back until their whole group can run.

A stage is troublesome if its tasks are long for its job (``long``) or fit few executors (``frag``). While a troublesome
stage of a job is not available, because a parent still needs executors, all of them come last in order.

Source: appendix F; the formulas are in :mod:`.packing`. Differs: thresholds, order of jobs and the use
of larger classes are not given there; ``decima tune graphene --grid`` searches them.
"""

from dataclasses import replace

from decima.core.decision import CompiledDecision, Parameter, places
from decima.systems.spark.fields import state_at
from decima.systems.spark.schedulers.class_sharing import BY_MEMORY, LARGER, set_weighted_shares, share_classes
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, STRICT
from decima.systems.spark.schedulers.weighted_fair import ALPHA, ORDER

PARAMETERS = (
    Parameter(
        "long", 0.8, 0.0, 2.0, "least long score of a troublesome stage; above 1: none is too long", tunable=True
    ),
    Parameter("frag", 0.25, -1.0, 1.0, "most fragmentation score of one; below 0: none is hard to pack", tunable=True),
    ALPHA,
    ORDER,
    LARGER,
    BY_MEMORY,
    replace(STRICT, default=0),
    STAGE_RULE,
    LEFTOVER,
)
P = places(PARAMETERS)


@CompiledDecision.reading(PARAMETERS)
def _graphene(address):
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
        params[P.long],
        params[P.frag],
    )


@register("graphene")
def graphene(**values) -> CompiledScheduler:
    """Graphene*: troublesome stages of a job together, tuned weighted fair shares, best fit."""
    return CompiledScheduler("graphene", _graphene, values)
