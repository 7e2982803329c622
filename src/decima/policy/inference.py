"""The learned policy as a compiled decision: one function for all architectures, weights and options.

Chance: a decision that samples draws one uniform number for the stage and one for the limit, whatever is made of them;
with a teacher it draws one more before them. A greedy policy without a teacher draws none.
"""

from math import log

from numba import njit

from decima.policy.embedding import embed
from decima.policy.layout import LIMIT, LIMIT_INPUT, LIMIT_NONE, LIMIT_OUTPUT
from decima.policy.recording import record_decision
from decima.policy.scores import (
    best_class,
    best_index,
    class_weight,
    draw_index,
    limit_range,
    list_candidates,
    score_limits,
    score_stages,
    weigh_scores,
)
from decima.simulator.kernels import NONE, choose, choose_idle, draw_uniform, job_allocation
from decima.simulator.state_type import CompiledDecision, call_decide, next_raw, state_at


@njit
def _uniform(state):
    return draw_uniform(next_raw(state.policy_next, state.policy_rng))


@njit
def _prepare(state):
    """First decision of a run: nothing is known of any job."""
    for job in range(state.num_jobs):
        state.net_job_size[job] = 0
        state.net_job_instance[job] = NONE
    if state.net_record:
        state.rec_instance_first[0] = 0
        state.rec_decision_pairs[0] = 0
        state.rec_decision_candidates[0] = 0
    state.net_ready = 1


@njit
def _choose_limit(state, stage, uniform):
    """Choose a limit for the stage; returns it and the number of executors it uses."""
    base, last, classes = limit_range(state, stage)
    if state.net_layout[LIMIT] == LIMIT_NONE:
        return last, last - base
    if state.net_greedy:
        if classes == 1:
            return base + 1, 1
        score_limits(state, stage, base, last)
        weigh_scores(state, last - base)
        used = best_class(state, last - base, classes)
        return base + used, used
    score_limits(state, stage, base, last)
    total = weigh_scores(state, last - base)
    limit = base + 1 + draw_index(state, last - base, total, uniform)
    return limit, min(limit - base, classes)


@njit
def _act(state, stage, limit, used):
    """Decide for the stage with the limit, in the words of the mode."""
    kind = state.net_layout[LIMIT]
    choose(state, stage, used)
    if state.job_limit and kind in (LIMIT_INPUT, LIMIT_OUTPUT):
        state.action_limit = limit


@njit
def _record(state, count, choice, log_stage, limit, used):
    """Record a decision with the probabilities of its limit and of its effect."""
    stage = state.net_candidates[choice]
    base, last, classes = limit_range(state, stage)
    if state.net_layout[LIMIT] == LIMIT_NONE:
        record_decision(state, count, choice, log_stage, 0, 0, 0, 0, 0, 1, 0.0, 0.0)
        return
    score_limits(state, stage, base, last)
    total = weigh_scores(state, last - base)
    low = base + used
    high = last if used == classes else low
    log_limit = float(state.net_score[limit - base - 1]) - float(state.net_score[best_index(state, last - base)])
    log_limit -= log(total)
    log_class = log(class_weight(state, last - base, classes, used) / total) if classes > 1 else 0.0
    record_decision(state, count, choice, log_stage, limit, base + 1, last, low, high, classes, log_limit, log_class)


@njit
def _find_candidate(state, count, stage):
    """Index of a stage among the candidates, NONE if it is not one."""
    for index in range(count):
        if state.net_candidates[index] == stage:
            return index
    return NONE


@CompiledDecision
def decide_learned(address):
    """Choose a stage and a limit with the network bound to the state; record it if asked."""
    state = state_at(address)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    if not state.net_ready:
        _prepare(state)
    teacher_stage = NONE
    teacher_limit = 0
    follow = False
    if state.net_teacher != 0:
        call_decide(state.net_teacher, state)
        teacher_stage = state.action_stage
        teacher_limit = state.action_limit
        follow = _uniform(state) < state.net_teacher_share
    stage_chance = 0.0
    limit_chance = 0.0
    if not state.net_greedy:
        stage_chance = _uniform(state)
        limit_chance = _uniform(state)
    if follow and teacher_stage == NONE:
        return
    embed(state)
    count = list_candidates(state)
    score_stages(state, count)
    best = best_index(state, count)
    best_score = float(state.net_score[best])
    choice = best
    target = NONE
    log_stage = 0.0
    if not state.net_greedy or state.net_record:
        total = weigh_scores(state, count)
        if not state.net_greedy:
            choice = draw_index(state, count, total, stage_chance)
        target = choice
        if state.net_teacher != 0:
            target = _find_candidate(state, count, teacher_stage)
        if target != NONE:
            log_stage = float(state.net_score[target]) - best_score - log(total)
    stage = state.net_candidates[choice]
    limit = 0
    used = 0
    if not follow:
        limit, used = _choose_limit(state, stage, limit_chance)
        if state.net_teacher == 0 and state.net_record:
            _record(state, count, choice, log_stage, limit, used)
    if state.net_teacher != 0 and state.net_record and target != NONE:
        base, _, classes = limit_range(state, teacher_stage)
        wanted = teacher_limit
        if state.job_limit:
            wanted -= job_allocation(state, state.stage_job[teacher_stage])
        wanted = max(1, min(wanted, classes))
        _record(state, count, target, log_stage, base + wanted, wanted)
    if follow:
        state.action_stage = teacher_stage
        state.action_limit = teacher_limit
        return
    _act(state, stage, limit, used)
