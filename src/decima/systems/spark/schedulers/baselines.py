"""Plain baselines: FIFO, fair sharing, shortest job first, orders from outside, and chance.

Source: §7.1 (1) to (3); appendix H, job orderings with the critical path inside a job, whose caps and delays are ours;
``random`` is ours, the floor of every comparison and the driver of many tests.
"""

from dataclasses import replace
from math import ceil

from decima.core.decision import CompiledDecision, Parameter, places
from decima.core.jit import njit
from decima.core.random import draw_below, next_raw
from decima.systems.spark.fields import ACTIVE, NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle, job_held
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import delay_by_array, rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import (
    LEFTOVER,
    STAGE_RULE,
    STICKY,
    STRICT,
    UNLIMITED,
    pick_runnable_first,
    share_executors,
)

# ---- FIFO: jobs in order of arrival, each with as many executors as it can use, Spark's default ----------------------

FIFO = (STICKY, STAGE_RULE)
_FIFO = places(FIFO)


@CompiledDecision.reading(FIFO)
def _fifo(address):
    state = state_at(address)
    params = rule_of(state).params
    share_executors(state, params[_FIFO.sticky] - 0.5, int(params[_FIFO.stage_rule]), 0, each=UNLIMITED)


@register("fifo")
def fifo(**values) -> CompiledScheduler:
    """Jobs in order of arrival; executors stay with their job until it finishes."""
    return CompiledScheduler("fifo", _fifo, values)


# ---- fair sharing: every job the same number of executors; what nobody's share covers is handed out as well ----------

# Differs from ``released_fair``, which never gives a job more than its share except to executors that are already with
# it, and may leave executors idle.
FAIR = (STRICT, STAGE_RULE)
_FAIR = places(FAIR)


@CompiledDecision.reading(FAIR)
def _fair(address):
    state = state_at(address)
    params = rule_of(state).params
    share = float(ceil(state.num_executors / max(1, state.num_jobs_unsaturated)))
    share_executors(state, 1e9 * params[_FAIR.sticky], int(params[_FAIR.stage_rule]), 1, each=share)


@register("fair")
def fair(**values) -> CompiledScheduler:
    """Equal shares of the executors, work-conserving, draining all branches of a DAG."""
    return CompiledScheduler("fair", _fair, values)


# ---- shortest job first: jobs by total work, next stage on the critical path -----------------------------------------

SJF_CP = (
    replace(STICKY, default=0, doc="1: executors stay with their job while it can use them"),
    replace(STAGE_RULE, default=1),
)
_SJF_CP = places(SJF_CP)


@CompiledDecision.reading(SJF_CP)
def _sjf_cp(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = state.job_work_ms[job]
        rule.job_share[job] = UNLIMITED
    share_executors(state, rule.params[_SJF_CP.sticky] - 0.5, int(rule.params[_SJF_CP.stage_rule]), 0)


@register("sjf_cp")
def sjf_cp(**values) -> CompiledScheduler:
    """Shortest job (by total work) first, next stage on its critical path."""
    return CompiledScheduler("sjf_cp", _sjf_cp, values)


# ---- priorities and caps per job and delays per stage, from arrays; searches explore them ----------------------------

PRIORITY = (
    Parameter("stay", 1.0, -1.0, 1e9, "executors stay with a job below this many caps; negative: follow the order"),
    replace(STAGE_RULE, default=1),
    LEFTOVER,
)
_PRIORITY = places(PRIORITY)


@CompiledDecision.reading(PRIORITY)
def _priority(address):
    state = state_at(address)
    rule = rule_of(state)
    for index in range(state.num_active):
        job = state.active[index]
        rule.job_key[job] = rule.job_rank[job]
        cap = rule.job_limit_cap[job]
        rule.job_share[job] = cap if cap > 0.0 else UNLIMITED
    stage_rule, leftover = int(rule.params[_PRIORITY.stage_rule]), int(rule.params[_PRIORITY.leftover])
    share_executors(state, rule.params[_PRIORITY.stay], stage_rule, leftover)
    delay_by_array(state)


@register("priority")
def priority(**values) -> CompiledScheduler:
    """Jobs by priority, each up to a cap (arrays ``job_rank``, ``job_limit_cap``, ``stage_delay_ms``)."""
    return CompiledScheduler("priority", _priority, values)


# ---- chance: a random stage of the frontier and number of executors --------------------------------------------------


@CompiledDecision
def _random_choice(address):
    state = state_at(address)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    skip = draw_below(next_raw(state.policy_next, state.policy_rng), state.num_frontier)
    executors = 1 + draw_below(next_raw(state.policy_next, state.policy_rng), state.num_source)
    for index in range(state.num_active):
        job = state.active[index]
        if skip >= state.job_frontier[job]:
            skip -= state.job_frontier[job]
            continue
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            if state.stage_in_frontier[stage]:
                if skip == 0:
                    choose(state, stage, executors)
                    return
                skip -= 1


@register("random")
def random_choice(**values) -> CompiledScheduler:
    """A random stage of the frontier with a random number of executors."""
    return CompiledScheduler("random", _random_choice, values)


# ---- the two heuristics of the published simulator, rule by rule -----------------------------------------------------

# Source: ``dynamic_partition`` and ``spark_fifo`` of the released code. Differs from the paper's fair and FIFO: an
# offered executor stays with its job whatever the job's share is, and FIFO counts an executor as held for as long as
# the job lives.


@njit
def _stay_or_partition(state, cap, count_grants):
    """Everything for the job of the offer, else for the first below the cap."""
    rule = rule_of(state)
    job = state.source_job
    if job != NONE and state.job_state[job] == ACTIVE:
        stage = pick_runnable_first(state, job)
        if stage != NONE:
            choose(state, stage, state.num_source)
            return
    for index in range(state.num_active):
        job = state.active[index]
        held = int(rule.job_share[job]) if count_grants else job_held(state, job)
        if held >= cap:
            continue
        stage = pick_runnable_first(state, job)
        if stage != NONE:
            used = min(stage_room(state, stage), cap - held, state.num_source)
            if count_grants:
                rule.job_share[job] += used
            choose(state, stage, used)
            return
    choose_idle(state)


@CompiledDecision
def _released_fair(address):
    """``dynamic_partition``: equal shares, rounded up, of the executors among jobs with an unsaturated stage."""
    state = state_at(address)
    jobs = max(1, state.num_jobs_unsaturated)
    _stay_or_partition(state, (state.num_executors + jobs - 1) // jobs, False)


@CompiledDecision
def _released_fifo(address):
    """``spark_fifo`` with a cap of all executors: jobs in order of arrival."""
    state = state_at(address)
    _stay_or_partition(state, state.num_executors, True)


@register("released_fair")
def released_fair(**values) -> CompiledScheduler:
    """Fair as published: equal shares, but jobs keep offered executors while they can use them."""
    return CompiledScheduler("released_fair", _released_fair, values)


@register("released_fifo")
def released_fifo(**values) -> CompiledScheduler:
    """FIFO as published: executors once granted count against a job until its end."""
    return CompiledScheduler("released_fifo", _released_fifo, values)
