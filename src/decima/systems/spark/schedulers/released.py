"""The two heuristics of the published simulator, rule by rule.

Source: ``dynamic_partition`` and ``spark_fifo`` of the released code. Differs from the paper's fair and FIFO: an
offered executor stays with its job whatever the job's share is, and FIFO counts an executor as held for as long as
the job lives.
"""

from decima.core.decision import CompiledDecision
from decima.core.jit import njit
from decima.systems.spark.fields import ACTIVE, NONE, state_at
from decima.systems.spark.rules.choices import choose, choose_idle, job_held
from decima.systems.spark.rules.frontier import stage_room
from decima.systems.spark.schedulers.fields import rule_of
from decima.systems.spark.schedulers.interface import CompiledScheduler
from decima.systems.spark.schedulers.registry import register
from decima.systems.spark.schedulers.sharing import pick_runnable_first


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
