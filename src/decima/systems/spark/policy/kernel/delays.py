"""Idle slots of the learned policy: when allowed, which one, how long.

Source: Duan and Wu, deliberate idle slots.
"""

from math import log

from decima.core.checks import LARGEST_MS
from decima.core.jit import njit
from decima.learning.choosing import best_of, draw, weigh
from decima.learning.dense import rows_at
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel.embedding import run_layers
from decima.systems.spark.policy.kernel.scores import ask_python, scores_finite, stage_context
from decima.systems.spark.rules.choices import offers_working
from decima.systems.spark.rules.delays import refuse_delay, slot_length_ms

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
def _log_chance(state, best, total, chosen):
    score = policy_of(state).net_score
    return float(score[chosen]) - float(score[best]) - log(total)


@njit
def choose_delay(state, stage, uniform):
    """Choose r for a stage; returns it and the logarithm of its probability."""
    policy = policy_of(state)
    best, total = _weigh_delays(state, stage)
    if total == 0.0:
        return 0, 0.0
    count = policy.net_layout[place.DELAYS] + 1
    chosen = best if policy.net_greedy else draw(policy.net_weight, count, uniform * total)
    return chosen, _log_chance(state, best, total, chosen)


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
    return chosen, _log_chance(state, best, total, chosen)


@njit
def delay_ms(state, stage, chosen):
    """Length of the slot in ms.

    Args:
        state: A cluster state with a policy.
        stage: The stage to delay.
        chosen: r, at least 1.
    """
    return min(_slot_length_ms(state, stage), LARGEST_MS) * chosen / policy_of(state).net_layout[place.DELAYS]
