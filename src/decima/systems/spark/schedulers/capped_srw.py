"""Capped shortest remaining work: the strongest rule known to us; no paper has it.

Jobs are served by remaining work (unfinished tasks times nominal duration), smallest first, those with a runnable stage
before those that could only be given executors ahead of time. A job may hold ``ceil(c0 * E * W^p / sum W^p + c1)``
executors, a share that grows with its remaining work W and is oversubscribed: order decides who goes first, shares only
keep a job from taking more than it uses well. When all jobs have their share, executors are handed out one at a time in
the same order. A job above ``release`` times its share gives the excess back.

The arrays ``job_order_factor`` and ``job_share_factor`` steer single jobs: natural logarithms of factors on the W that
orders the job and on its W^p. They are 0 unless :func:`.search_schedule` sets them.
"""

from math import ceil, exp

from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.jit import njit
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.rules.choices import remaining_work_ms
from decima.systems.spark.schedulers.class_sharing import NEVER_HARD, NEVER_LONG, ORDER_FIRST, share_classes
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import BATCH, STREAM, Preset, register
from decima.systems.spark.schedulers.sharing import LEFTOVER, STAGE_RULE, first_runnable, share_executors

NAME = "capped_srw"
# Above any remaining work in ms.
_LATER = 1e15

PARAMETERS = (
    Parameter("c0", 3.0, 0.1, 30.0, "oversubscription of the proportional share", tunable=True),
    Parameter("c1", 0.5, -2.0, 10.0, "executors added to every share", tunable=True),
    Parameter("power", 0.35, -1.0, 2.0, "exponent of the remaining work", tunable=True),
    Parameter("release", 1.5, 1.0, 10.0, "a job above this multiple of its share releases the excess", tunable=True),
    STAGE_RULE,
    LEFTOVER,
)
P = places(PARAMETERS)
PRESETS = (
    Preset(
        BATCH,
        "tuned on TPC-H batches of 20 jobs; default where all jobs are there at the start",
        {"c0": 2.7119, "c1": -0.1566, "leftover": 1.0, "power": 0.30685, "release": 2.0362},
    ),
    Preset(
        STREAM,
        "tuned on TPC-H jobs, mean interarrival time 25 s; default where jobs arrive over time",
        {"c0": 1.3317, "c1": 0.29937, "leftover": 1.0, "power": 0.14095, "release": 1.0932},
    ),
    Preset(
        "plain",
        "round numbers, chosen by hand on batches",
        {"c0": 3.0, "c1": 0.5, "leftover": 1.0, "power": 0.35, "release": 1.5},
    ),
)


@njit
def order_by_remaining_work(state):
    """Fill in work, keys and shares of the active jobs.

    Powers are kept until the work is another.
    """
    rule = rule_of(state)
    params = rule.params
    power = params[P.power]
    kept = rule.power == power
    rule.power = power
    total = 0.0
    for index in range(state.num_active):
        job = state.active[index]
        work = remaining_work_ms(state, job)
        if work != rule.job_work[job] or not kept:
            rule.job_power[job] = work**power if work > 0.0 else 0.0
        rule.job_work[job] = work
        weight = rule.job_power[job]
        rule.job_key[job] = work
        if rule.job_share_factor[job] != 0.0:
            weight *= exp(rule.job_share_factor[job])
        if rule.job_order_factor[job] != 0.0:
            rule.job_key[job] *= exp(rule.job_order_factor[job])
        if first_runnable(state, job) == NONE:
            rule.job_key[job] += _LATER
        rule.job_share[job] = weight
        total += weight
    for index in range(state.num_active):
        job = state.active[index]
        part = rule.job_share[job] / total if total > 0.0 else 1.0
        rule.job_share[job] = max(1.0, ceil(params[P.c0] * state.num_executors * part + params[P.c1]))


@njit
def share_by_remaining_work(state):
    """Decide by the rule, with the first parameters of the record, ordered as in ``PARAMETERS``."""
    params = rule_of(state).params
    order_by_remaining_work(state)
    share_executors(state, params[P.release], int(params[P.stage_rule]), int(params[P.leftover]))


@CompiledDecision.reading(PARAMETERS)
def _capped_srw(address):
    share_by_remaining_work(state_at(address))


@register(NAME, presets=PRESETS)
def capped_srw(**values) -> CompiledScheduler:
    """Smallest remaining work first; each job's cap is an oversubscribed share that grows with work."""
    return CompiledScheduler(NAME, _capped_srw, values)


# ---- the same over several executor classes, with a price for oversized ones -----------------------------------------


# No paper has this rule; it shows the trade-off of the paper's Figure 12b, large executors for small jobs. A job that
# would get an executor ``n`` classes larger than needed is served as if its remaining work were exp(``price`` x n)
# times as much: a price of 0 leaves the order of jobs, a high one serves exact fits first.
# The first three parameters are in the order of ``capped_srw``.
PRICED = (
    Parameter("c0", 1.33, 0.1, 30.0, "oversubscription of the proportional share", tunable=True),
    Parameter("c1", 0.3, -2.0, 10.0, "executors added to every share", tunable=True),
    Parameter("power", 0.14, -1.0, 2.0, "exponent of the remaining work", tunable=True),
    Parameter("release", 1.09, 1.0, 10.0, "a job above this multiple of its share releases the excess", tunable=True),
    Parameter("price", 0.6, 0.0, 20.0, "logarithm of the price of an executor one class too large", tunable=True),
    STAGE_RULE,
    LEFTOVER,
)
_P = places(PRICED)


@CompiledDecision.reading(PRICED)
def _priced_srw(address):
    state = state_at(address)
    params = rule_of(state).params
    order_by_remaining_work(state)
    stage_rule, leftover, price = int(params[_P.stage_rule]), int(params[_P.leftover]), params[_P.price]
    share_classes(state, params[_P.release], stage_rule, leftover, ORDER_FIRST, price, False, NEVER_LONG, NEVER_HARD)


@register("priced_srw")
def priced_srw(**values) -> CompiledScheduler:
    """Smallest remaining work first over executor classes, with a price for those too large."""
    return CompiledScheduler("priced_srw", _priced_srw, values)
