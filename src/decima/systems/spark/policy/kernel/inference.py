"""The learned policy as a compiled decision: one function for all architectures, weights and options.

Chance: a decision that samples draws one uniform number for the stage and one for the limit, and one for the idle slot
if the network has that head, whatever is made of them; with a teacher it draws one more before them. A greedy policy
without a teacher draws none.
"""

from collections import namedtuple
from math import log

from decima.core.checks import LARGEST_MS
from decima.core.decision import CompiledDecision, call_decide
from decima.core.jit import njit
from decima.core.random import draw_uniform, next_raw
from decima.learning.choosing import best_of, draw, weigh
from decima.learning.dense import rows_at
from decima.systems.spark.decision import CLASS, DELAY, STAGE
from decima.systems.spark.decision import LIMIT as ACTION_LIMIT
from decima.systems.spark.fields import NONE, state_at
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel import scores
from decima.systems.spark.policy.kernel.embedding import embed, run_layers
from decima.systems.spark.policy.kernel.recording import Limit, record_decision
from decima.systems.spark.policy.kernel.scores import ask_python, scores_finite, stage_context
from decima.systems.spark.rules.choices import choose_class, choose_idle, job_allocation, offers_working
from decima.systems.spark.rules.classes import ANY_CLASS, best_fit
from decima.systems.spark.rules.delays import refuse_delay, slot_length_ms

# A stage that no engine accepts: the way to report that the network has no answer.
IMPOSSIBLE = -2
# What is chosen for a candidate: number ``position`` of the ``limits`` limits from ``base`` executors on. Those from
# number ``effects`` on have one effect, since ``most`` executors can be used. ``total``: sum of the weights of all, 0
# where the stage is delayed. ``delay``: r of the idle slot, chosen where ``free``, with the logarithm of that.
Choice = namedtuple("Choice", ["base", "limits", "effects", "most", "position", "total", "delay", "free", "log_delay"])


@njit
def _uniform(state):
    return draw_uniform(next_raw(state.policy_next, state.policy_rng))


@njit
def prepare(state):
    """First decision of a run: nothing is known of any job."""
    policy = policy_of(state)
    for job in range(state.num_jobs):
        policy.net_job_size[job] = 0
        policy.net_job_instance[job] = NONE
        policy.net_seen_active[job] = 0
    if policy.net_record:
        policy.rec_instance_first[0] = 0
        policy.rec_decision_pairs[0] = 0
        policy.rec_decision_candidates[0] = 0
    policy.net_ready = 1


@njit
def _weigh_limits(state, stage, base, limits):
    """Weigh the limits of the stage; returns the sum of the weights."""
    policy = policy_of(state)
    scores.score_limits(state, stage, base, limits)
    scores.scores_finite(state, limits)
    return weigh(policy.net_score, policy.net_weight, limits)


@njit
def _log_chance(state, candidate, best, total):
    score = policy_of(state).net_score
    return float(score[candidate]) - float(score[best]) - log(total)


@njit
def _choose_limit(state, candidate, limit_chance, delay_chance, weigh):
    """Choose idle slot and limit for a candidate; :data:`Choice`.

    Args:
        state: A cluster state with a policy.
        candidate: Index of the stage, or of its pair with a class.
        limit_chance: Uniform number, for a policy that samples.
        delay_chance: The same for the idle slot.
        weigh: Limits are weighed even if all have one effect and none is drawn.
    """
    policy = policy_of(state)
    policy.net_chosen = candidate
    stage = policy.net_candidates[candidate]
    base, limits, effects, most = scores.limit_range(state, stage, policy.net_candidate_class[candidate])
    total, position = 1.0, 0
    delay, log_delay = 0, 0.0
    free = delay_free(state, stage)
    if free:
        delay, log_delay = choose_delay(state, stage, delay_chance)
    if policy.net_layout[place.LIMIT] != place.LIMIT_NONE:
        if delay > 0:
            effects, total = 1, 0.0  # the limit has no effect
        else:
            if effects > 1 or weigh or not policy.net_greedy:
                total = _weigh_limits(state, stage, base, limits)
            if not policy.net_greedy:
                position = draw(policy.net_weight, limits, limit_chance * total)
            elif effects > 1:
                position = scores.best_class(state, limits, effects) - 1
    return Choice(base, limits, effects, most, position, total, delay, free, log_delay)


@njit
def _act(state, candidate, choice):
    policy = policy_of(state)
    encoding = policy.net_layout[place.LIMIT]
    if choice.delay > 0 and policy.net_layout[place.HOLD]:
        choose_idle(state)
        return
    stage = policy.net_candidates[candidate]
    executor_class = ANY_CLASS if choice.delay > 0 else policy.net_candidate_class[candidate]
    limit, used = 0, choice.most
    if encoding != place.LIMIT_NONE:
        limit = scores.limit_at(state, choice.base, choice.position)
        used = min(limit - choice.base, choice.most)
    choose_class(state, stage, used, executor_class)
    if state.job_limit and encoding in (place.LIMIT_INPUT, place.LIMIT_OUTPUT):
        state.action[ACTION_LIMIT] = limit
    if choice.delay > 0:
        state.action[DELAY] = delay_ms(state, stage, choice.delay)


@njit
def _record(state, count, candidate, log_stage, choice):
    """Record a decision with the probabilities of its limit and effect.

    With a sum of weights of 0 they were not weighed, since the stage is delayed and no limit has an effect.
    """
    limit = first = last = low = high = 0
    log_limit = log_class = 0.0
    policy = policy_of(state)
    base, limits, effects, position = choice.base, choice.limits, choice.effects, choice.position
    if policy.net_layout[place.LIMIT] != place.LIMIT_NONE:
        first = scores.limit_at(state, base, 0)
        last = scores.limit_at(state, base, limits - 1)
        limit, low, high = first, first, last
        if choice.total != 0.0:
            effect = min(position + 1, effects)
            limit = scores.limit_at(state, base, position)
            low = scores.limit_at(state, base, effect - 1)
            high = last if effect == effects else low
            log_limit = _log_chance(state, position, best_of(policy.net_score, limits), choice.total)
            if effects > 1:
                log_class = scores.log_class_weight(state, limits, effects, effect) - log(choice.total)
    chosen = Limit(limit, first, last, low, high, effects, log_limit, log_class)
    record_decision(state, count, candidate, log_stage, chosen, choice)


@njit
def _find_candidate(state, count, stage, executor_class):
    """Index among the candidates of a stage or its pair with a class, else NONE."""
    policy = policy_of(state)
    if policy.net_layout[place.CLASS_WIDTH] == 0:
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
    return policy.net_teacher_idles != 0 and policy.net_layout[place.DELAYS] > 0


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
    holds = policy_of(state).net_layout[place.HOLD]
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
    policy.net_chosen = target
    seen = policy.net_candidates[target]
    base, limits, effects, most = scores.limit_range(state, seen, policy.net_candidate_class[target])
    if state.job_limit:
        wanted -= job_allocation(state, state.stage_job[seen])
    unlimited = policy.net_layout[place.LIMIT] == place.LIMIT_NONE
    wanted = max(1, min(wanted, 1 if unlimited else most))
    free = delay_free(state, seen) if _learns_to_idle(state) else 0
    delay, log_delay = 0, 0.0
    if free:
        delay, log_delay = delay_of_teacher(state, seen, 1.0 if stage == NONE else length_ms)
    total, position = 1.0, 0
    if not unlimited:
        position = scores.nearest_limit(state, base, effects, most, wanted)
        if delay > 0:
            effects, total = 1, 0.0  # the limit has no effect
        else:
            total = _weigh_limits(state, seen, base, limits)
    choice = Choice(base, limits, effects, most, position, total, delay, free, log_delay)
    _record(state, count, target, log_stage, choice)


@njit
def _score_candidates(state):
    """Number of candidates, scored; 0 if a score is not a finite number."""
    embed(state)
    count = scores.list_candidates(state)
    scores.score_stages(state, count)
    return count if scores.scores_finite(state, count) else 0


@njit
def _draw_chances(state):
    """Uniform numbers for stage, limit and idle slot; a greedy policy draws none."""
    policy = policy_of(state)
    stage_chance = limit_chance = delay_chance = 0.0
    if not policy.net_greedy:
        stage_chance = _uniform(state)
        limit_chance = _uniform(state)
        if policy.net_layout[place.DELAYS] > 0:
            delay_chance = _uniform(state)
    return stage_chance, limit_chance, delay_chance


@njit
def _choose_candidate(state, count, chance):
    """The best candidate, the chosen one, and the sum of weights or 0."""
    policy = policy_of(state)
    best = best_of(policy.net_score, count)
    if policy.net_greedy and not policy.net_record:
        return best, best, 0.0
    total = weigh(policy.net_score, policy.net_weight, count)
    return best, best if policy.net_greedy else draw(policy.net_weight, count, chance * total), total


@njit
def _decide_alone(state):
    policy = policy_of(state)
    stage_chance, limit_chance, delay_chance = _draw_chances(state)
    count = _score_candidates(state)
    if count == 0:
        return
    best, candidate, total = _choose_candidate(state, count, stage_chance)
    log_stage = _log_chance(state, candidate, best, total) if total > 0.0 else 0.0
    choice = _choose_limit(state, candidate, limit_chance, delay_chance, policy.net_record != 0)
    if policy.net_record:
        _record(state, count, candidate, log_stage, choice)
    _act(state, candidate, choice)


@njit
def _decide_taught(state):
    """Decide as the teacher or by the network; record what the teacher decides."""
    policy = policy_of(state)
    call_decide(policy.net_teacher, state)
    stage, limit = int(state.action[STAGE]), int(state.action[ACTION_LIMIT])
    executor_class, length_ms = int(state.action[CLASS]), float(state.action[DELAY])
    follow = _uniform(state) < policy.net_teacher_share
    stage_chance, limit_chance, delay_chance = _draw_chances(state)
    if follow and stage == NONE and not _learns_to_idle(state):
        return
    count = _score_candidates(state)
    if count == 0:
        return
    best, candidate, total = _choose_candidate(state, count, stage_chance)
    target, log_stage = NONE, 0.0
    if total > 0.0:
        target = _teacher_target(state, count, candidate, stage, executor_class, length_ms)
        if target != NONE:
            log_stage = _log_chance(state, target, best, total)
    if not follow:
        _act(state, candidate, _choose_limit(state, candidate, limit_chance, delay_chance, False))
    if policy.net_record and target != NONE:
        _record_teacher(state, count, target, log_stage, stage, limit, length_ms)


@CompiledDecision
def decide_learned(address):
    """Choose stage, class, limit and idle slot by the state's network; record if asked."""
    state = state_at(address)
    policy = policy_of(state)
    if state.num_frontier == 0:
        choose_idle(state)
        return
    if not policy.net_ready:
        prepare(state)
    if policy.net_teacher == 0:
        _decide_alone(state)
    else:
        _decide_taught(state)
    if state.no_answer:
        state.action[STAGE] = IMPOSSIBLE


@CompiledDecision
def decide_outside(address):
    """Keep the decision that was passed in by a teacher outside of the core."""


_slot_length_ms = njit(slot_length_ms)


@njit
def _may_hold(state):
    """Whether offered executors may be left idle without bringing the cluster to a halt.

    Some executor is at work, and none that is at work is among those offered: the last one that works cannot hold.
    """
    return state.heap_size > 0 and not offers_working(state)


@njit
def delay_free(state, stage):
    """1 if the head d chooses for a stage, since it may be delayed."""
    policy = policy_of(state)
    if policy.net_layout[place.DELAYS] == 0 or refuse_delay(state, stage) != 0:
        return 0
    if policy.net_layout[place.HOLD]:
        return 1 if _may_hold(state) else 0
    return 1 if _slot_length_ms(state, stage) > 0.0 else 0


@njit
def _weigh_delays(state, stage):
    """Score and weigh all r; returns the best r and the sum of the weights."""
    policy = policy_of(state)
    count = policy.net_layout[place.DELAYS] + 1
    if policy.net_ask:
        ask_python(state, place.D, count)
    else:
        width = stage_context(state, stage, policy.net_layout[place.DELAY_CONTEXT])
        run_layers(state, place.D, 0, rows_at(policy.net_input, 0, width), 1, rows_at(policy.net_score, 0, count))
    if not scores_finite(state, count):
        return 0, 0.0
    return best_of(policy.net_score, count), weigh(policy.net_score, policy.net_weight, count)


@njit
def choose_delay(state, stage, uniform):
    """Choose r for a stage; returns it and the logarithm of its probability."""
    policy = policy_of(state)
    best, total = _weigh_delays(state, stage)
    if total == 0.0:
        return 0, 0.0
    count = policy.net_layout[place.DELAYS] + 1
    chosen = best if policy.net_greedy else draw(policy.net_weight, count, uniform * total)
    return chosen, _log_chance(state, chosen, best, total)


@njit
def delay_of_teacher(state, stage, length_ms):
    """The r nearest to a teacher's choice, and the logarithm of its probability.

    Args:
        state: A cluster state with a policy.
        stage: The stage.
        length_ms: Length of the teacher's slot in ms; 0 for none, and anything above where the policy holds instead.
    """
    most = policy_of(state).net_layout[place.DELAYS]
    chosen = 0
    if length_ms > 0.0:
        chosen = int(min(max(round(length_ms / delay_ms(state, stage, 1)), 1.0), float(most)))
    best, total = _weigh_delays(state, stage)
    if total == 0.0:
        return 0, 0.0
    return chosen, _log_chance(state, chosen, best, total)


@njit
def delay_ms(state, stage, chosen):
    """Length of the slot in ms.

    Args:
        state: A cluster state with a policy.
        stage: The stage to delay.
        chosen: r, at least 1.
    """
    return min(_slot_length_ms(state, stage), LARGEST_MS) * chosen / policy_of(state).net_layout[place.DELAYS]
