"""The learned policy as a compiled decision: one function for all architectures, weights and options.

Chance: a decision that samples draws one uniform number for the stage and one for the limit, and one for the idle slot
if the network has that head, whatever is made of them; with a teacher it draws one more before them. A greedy policy
without a teacher draws none.
"""

from math import log

from decima.core.decision import CompiledDecision, call_decide
from decima.core.jit import njit
from decima.core.random import draw_uniform, next_raw
from decima.systems.spark.decision import CLASS, DELAY, STAGE
from decima.systems.spark.decision import LIMIT as ACTION_LIMIT
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel.delays import (
    choose_delay,
    delay_free,
    delay_ms,
    delay_of_teacher,
)
from decima.systems.spark.policy.kernel.embedding import embed
from decima.systems.spark.policy.kernel.layout import (
    CLASS_WIDTH,
    DELAYS,
    HOLD,
    LIMIT,
    LIMIT_INPUT,
    LIMIT_NONE,
    LIMIT_OUTPUT,
)
from decima.systems.spark.policy.kernel.recording import record_decision
from decima.systems.spark.policy.kernel.scores import (
    best_class,
    best_index,
    draw_index,
    limit_at,
    limit_range,
    list_candidates,
    log_class_weight,
    nearest_limit,
    score_limits,
    score_stages,
    scores_finite,
    weigh_scores,
)
from decima.systems.spark.rules.choices import choose_class, choose_idle, job_allocation
from decima.systems.spark.rules.classes import ANY_CLASS, best_fit

# A stage that no engine accepts: the way to report that the network has no answer.
IMPOSSIBLE = -2


@njit
def _uniform(state):
    return draw_uniform(next_raw(state.policy_next, state.policy_rng))


@njit
def _prepare(state):
    """First decision of a run: nothing is known of any job."""
    policy = policy_of(state)
    for job in range(state.num_jobs):
        policy.net_job_size[job] = 0
        policy.net_job_instance[job] = NONE
    if policy.net_record:
        policy.rec_instance_first[0] = 0
        policy.rec_decision_pairs[0] = 0
        policy.rec_decision_candidates[0] = 0
    policy.net_ready = 1


@njit
def _weigh_limits(state, stage, base, limits):
    """Weigh the limits of the stage; returns the sum of the weights."""
    score_limits(state, stage, base, limits)
    scores_finite(state, limits)
    return weigh_scores(state, limits)


@njit
def _choose_limit(state, limits, classes, total, uniform):
    """Choose among weighed limits; returns the index of the limit."""
    if policy_of(state).net_greedy:
        return best_class(state, limits, classes) - 1 if classes > 1 else 0
    return draw_index(state, limits, total, uniform)


@njit
def _act(state, stage, executor_class, limit, used):
    """Decide for the stage and class with the limit, as the mode has it."""
    policy = policy_of(state)
    encoding = policy.net_layout[LIMIT]
    choose_class(state, stage, used, executor_class)
    if state.job_limit and encoding in (LIMIT_INPUT, LIMIT_OUTPUT):
        state.action[ACTION_LIMIT] = limit


@njit
def _act_idle(state, stage, limit, used, delay):
    """Decide to idle: with the offered executors, or by delaying the stage."""
    policy = policy_of(state)
    if policy.net_layout[HOLD]:
        choose_idle(state)
        return
    _act(state, stage, ANY_CLASS, limit, used)
    state.action[DELAY] = delay_ms(state, stage, delay)


@njit
def _record(state, count, choice, log_stage, base, limits, classes, position, total, delay, free, log_delay):
    """Record a decision with the probabilities of its limit and effect.

    With a sum of weights of 0 they were not, since the stage is delayed and no limit has an effect.
    """
    limit = first = last = low = high = 0
    log_limit = log_class = 0.0
    if policy_of(state).net_layout[LIMIT] != LIMIT_NONE:
        first = limit_at(state, base, 0)
        last = limit_at(state, base, limits - 1)
        limit, low, high = first, first, last
        if total != 0.0:
            effect = min(position + 1, classes)
            limit = limit_at(state, base, position)
            low = limit_at(state, base, effect - 1)
            high = last if effect == classes else low
            score = policy_of(state).net_score
            log_limit = float(score[position]) - float(score[best_index(state, limits)]) - log(total)
            if classes > 1:
                log_class = log_class_weight(state, limits, classes, effect) - log(total)
    record_decision(
        state, count, choice, log_stage, limit, first, last, low, high, classes, log_limit, log_class,
        delay, free, log_delay,
    )  # fmt: skip


@njit
def _find_candidate(state, count, stage, executor_class):
    """Index among the candidates of a stage or its pair with a class, else NONE."""
    policy = policy_of(state)
    if policy.net_layout[CLASS_WIDTH] == 0:
        executor_class = ANY_CLASS
    elif executor_class == ANY_CLASS:
        executor_class = best_fit(state, stage)
    for index in range(count):
        if policy.net_candidates[index] == stage and policy.net_candidate_class[index] == executor_class:
            return index
    return NONE


@njit
def _learns_to_idle(state):
    """Whether it is recorded too that the teacher idles or does not."""
    policy = policy_of(state)
    return policy.net_teacher_idles != 0 and policy.net_layout[DELAYS] > 0


@njit
def _teacher_target(state, count, choice, stage, executor_class, length_ms):
    """Candidate recorded as the teacher's choice, NONE if the network cannot learn from its decision.

    A teacher that holds names no stage: the network's own stands for it, and the head d learns.

    Args:
        state: A cluster state with a policy and a teacher.
        count: Number of candidates.
        choice: The network's own.
        stage: What the teacher chose, NONE if it holds.
        executor_class: The class it chose, ``ANY_CLASS`` for best fit.
        length_ms: Length of its slot, 0 for none.
    """
    holds = policy_of(state).net_layout[HOLD]
    if length_ms > 0.0:
        return NONE if holds or not _learns_to_idle(state) else _find_candidate(state, count, stage, executor_class)
    if stage != NONE:
        return _find_candidate(state, count, stage, executor_class)
    if not holds or not _learns_to_idle(state):
        return NONE
    return choice if delay_free(state, policy_of(state).net_candidates[choice]) else NONE


@njit
def _record_teacher(state, count, target, log_stage, stage, wanted, length_ms):
    """Record the teacher's decision.

    Args:
        state: A cluster state with a policy and a teacher.
        count: Number of candidates.
        target: The candidate that is recorded.
        log_stage: Logarithm of its probability.
        stage: What the teacher chose, NONE if it holds.
        wanted: Its limit.
        length_ms: Length of its slot, 0 for none.
    """
    policy = policy_of(state)
    seen = policy.net_candidates[target]
    base, limits, classes, most = limit_range(state, seen, policy.net_candidate_class[target])
    if state.job_limit:
        wanted -= job_allocation(state, state.stage_job[seen])
    unlimited = policy.net_layout[LIMIT] == LIMIT_NONE
    wanted = max(1, min(wanted, 1 if unlimited else most))
    free = delay_free(state, seen) if _learns_to_idle(state) else 0
    delay = 0
    log_delay = 0.0
    if free:
        delay, log_delay = delay_of_teacher(state, seen, 1.0 if stage == NONE else length_ms)
    total = 1.0
    position = 0
    if not unlimited:
        position = nearest_limit(state, base, classes, most, wanted)
        if delay > 0:
            classes = 1  # the limit has no effect
        total = 0.0 if delay > 0 else _weigh_limits(state, seen, base, limits)
    _record(state, count, target, log_stage, base, limits, classes, position, total, delay, free, log_delay)


@CompiledDecision
def decide_learned(address):
    """Choose stage, class, limit and idle slot by the state's network; record if asked."""
    state = state_at(address)
    policy = policy_of(state)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    if not policy.net_ready:
        _prepare(state)
    teacher_stage = NONE
    teacher_limit = 0
    teacher_class = ANY_CLASS
    teacher_delay_ms = 0.0
    follow = False
    if policy.net_teacher != 0:
        call_decide(policy.net_teacher, state)
        teacher_stage = int(state.action[STAGE])
        teacher_limit = int(state.action[ACTION_LIMIT])
        teacher_class = int(state.action[CLASS])
        teacher_delay_ms = float(state.action[DELAY])
        follow = _uniform(state) < policy.net_teacher_share
    stage_chance = 0.0
    limit_chance = 0.0
    delay_chance = 0.0
    if not policy.net_greedy:
        stage_chance = _uniform(state)
        limit_chance = _uniform(state)
        if policy.net_layout[DELAYS] > 0:
            delay_chance = _uniform(state)
    if follow and teacher_stage == NONE and not _learns_to_idle(state):
        return
    embed(state)
    count = list_candidates(state)
    score_stages(state, count)
    if not scores_finite(state, count):
        state.action[STAGE] = IMPOSSIBLE
        return
    best = best_index(state, count)
    best_score = float(policy.net_score[best])
    choice = best
    target = NONE
    log_stage = 0.0
    if not policy.net_greedy or policy.net_record:
        total = weigh_scores(state, count)
        if not policy.net_greedy:
            choice = draw_index(state, count, total, stage_chance)
        target = choice
        if policy.net_teacher != 0:
            target = _teacher_target(state, count, choice, teacher_stage, teacher_class, teacher_delay_ms)
        if target != NONE:
            log_stage = float(policy.net_score[target]) - best_score - log(total)
    unlimited = policy.net_layout[LIMIT] == LIMIT_NONE
    stage = policy.net_candidates[choice]
    executor_class = policy.net_candidate_class[choice]
    limit = 0
    used = 0
    delay = 0
    if not follow:
        base, limits, classes, most = limit_range(state, stage, executor_class)
        record = policy.net_record and policy.net_teacher == 0
        total = 1.0
        position = 0
        free = delay_free(state, stage)
        log_delay = 0.0
        if free:
            delay, log_delay = choose_delay(state, stage, delay_chance)
            if delay > 0 and not unlimited:
                classes = 1  # the limit has no effect
        if unlimited:
            used = most
        else:
            if delay > 0:
                total = 0.0
            else:
                # One effect and nothing to draw or to record: the scores do not matter.
                if classes > 1 or record or not policy.net_greedy:
                    total = _weigh_limits(state, stage, base, limits)
                position = _choose_limit(state, limits, classes, total, limit_chance)
            limit = limit_at(state, base, position)
            used = min(limit - base, most)
        if record:
            _record(state, count, choice, log_stage, base, limits, classes, position, total, delay, free, log_delay)
    if policy.net_teacher != 0 and policy.net_record and target != NONE:
        _record_teacher(state, count, target, log_stage, teacher_stage, teacher_limit, teacher_delay_ms)
    if state.no_answer:
        state.action[STAGE] = IMPOSSIBLE
    elif follow:
        state.action[STAGE] = teacher_stage
        state.action[ACTION_LIMIT] = teacher_limit
        state.action[CLASS] = teacher_class
    elif delay > 0:
        _act_idle(state, stage, limit, used, delay)
    else:
        _act(state, stage, executor_class, limit, used)


@CompiledDecision
def decide_outside(address):
    """Keep the decision that was passed in by a teacher outside of the core."""
