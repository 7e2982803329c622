"""Gradient of the loss of recorded decisions, in compiled code: the network forwards and backwards.

It computes what :class:`decima.systems.spark.policy.network.DecimaNetwork` and automatic differentiation compute, to
the precision of float32, several times as fast. Stages and jobs pass through the network level by level, the decisions
through its heads in blocks that stay in the cache.

Source: §5.1 Eq. 1, §5.2; the loss is :class:`decima.learning.loss.Loss`.
"""

from collections import namedtuple

import numpy as np

from decima.core.jit import njit
from decima.learning.loss import SUMS
from decima.systems.spark.policy.batch import TENSORS
from decima.systems.spark.policy.kernel.gradient_graph import embed, new_net, new_seen, reverse_embed
from decima.systems.spark.policy.kernel.gradient_heads import (
    new_heads,
    reverse_delays,
    reverse_limits,
    reverse_shared,
    reverse_stages,
    score_delays,
    score_limits,
    score_stages,
    share_first_layer,
)
from decima.systems.spark.policy.kernel.layout import DELAYS, GRAPH, LIMIT, LIMIT_NONE

# Decisions that pass through the heads together.
_BLOCK = 16
_LOSS, _LOG_PROB, _ENTROPY_STAGE, _ENTROPY_LIMIT, _ENTROPY_DELAY, _KL, _CLIPPED = range(len(SUMS))

#: Tensors of a batch, in the order of :data:`decima.systems.spark.policy.batch.TENSORS`.
Chunk = namedtuple("Chunk", list(TENSORS))
#: Options of the loss.
Options = namedtuple("Options", ["ratio", "clip", "entropy_weight", "effect_classes"])
# A choice among the scores from ``first`` to ``end``, of which those from ``tail`` on have one effect: index of the
# chosen one, log-probabilities of the tail and of the chosen effect, entropy of the effects.
_Choice = namedtuple("_Choice", ["first", "tail", "end", "chosen", "log_tail", "log_prob", "entropy"])


@njit
def _log_sum(scores, first, end):
    highest = scores[first]
    for k in range(first + 1, end):
        highest = max(highest, scores[k])
    total = 0.0
    for k in range(first, end):
        total += np.exp(scores[k] - highest)
    return highest + np.float32(np.log(total))


@njit
def _choose(scores, first, tail, end, chosen):
    shift = _log_sum(scores, first, end)
    for k in range(first, end):
        scores[k] -= shift
    entropy = 0.0
    for k in range(first, tail):
        entropy -= np.exp(scores[k]) * scores[k]
    log_tail = np.float32(0.0)
    if tail < end:
        log_tail = _log_sum(scores, tail, end)
        entropy -= np.exp(log_tail) * log_tail
    log_prob = scores[chosen] if chosen < tail else log_tail
    return _Choice(first, tail, end, chosen, log_tail, log_prob, np.float32(entropy))


@njit
def _choose_nothing():
    return _Choice(0, 0, 0, 0, np.float32(0.0), np.float32(0.0), np.float32(0.0))


@njit
def _choose_limit(scores, row, chunk, k, effect_classes):
    """Choice of limit, whose scores begin at ``row``."""
    low = np.searchsorted(chunk.limits, chunk.limit_low[k])
    high = np.searchsorted(chunk.limits, chunk.limit_high[k] + 1)
    tail = max(low, np.searchsorted(chunk.limits, chunk.limit_tail[k])) if effect_classes else high
    chosen = np.searchsorted(chunk.limits, chunk.limit_chosen[k])
    return _choose(scores, row + low, row + tail, row + high, row + chosen)


@njit
def _reverse_choice(logs, choice, d_log_prob, d_entropy, d):
    """Gradients of scores, from those of the chosen effect's log-probability and of the entropy."""
    for k in range(choice.first, choice.end):
        log_effect = logs[k] if k < choice.tail else choice.log_tail
        d[k] = -np.exp(logs[k]) * (d_log_prob + d_entropy * (log_effect + choice.entropy))
    if choice.chosen < choice.tail:
        d[choice.chosen] += d_log_prob
    else:
        for k in range(choice.tail, choice.end):
            d[k] += d_log_prob * np.exp(logs[k] - choice.log_tail)


@njit
def _add_loss(sums, stage, limit, delay, advantage, recorded, options):
    """Add the loss of a decision to the sums; returns its slope by the log-probability."""
    log_prob = stage.log_prob + limit.log_prob + delay.log_prob
    change = log_prob - recorded if options.ratio else np.float32(0.0)
    quotient = np.exp(change)
    limited_to = min(max(quotient, np.float32(1.0 - options.clip)), np.float32(1.0 + options.clip))
    gain = quotient * advantage
    d_log_prob = -gain
    if gain > limited_to * advantage:
        gain, d_log_prob = limited_to * advantage, np.float32(0.0)
    sums[_LOSS] -= gain + options.entropy_weight * (stage.entropy + limit.entropy + delay.entropy)
    sums[_LOG_PROB] += log_prob
    sums[_ENTROPY_STAGE] += stage.entropy
    sums[_ENTROPY_LIMIT] += limit.entropy
    sums[_ENTROPY_DELAY] += delay.entropy
    sums[_KL] += quotient - np.float32(1.0) - change
    sums[_CLIPPED] += abs(quotient - np.float32(1.0)) > options.clip
    return d_log_prob


@njit
def _largest(starts):
    """Most entries of a block of decisions."""
    most, decisions = 0, len(starts) - 1
    for first in range(0, decisions, _BLOCK):
        most = max(most, starts[min(first + _BLOCK, decisions)] - starts[first])
    return most


@njit(cache=True, nogil=True)
def chunk_gradient(code, layout, weights, chunk, advantages, recorded, options):
    """Gradient of the summed loss of some decisions.

    Args:
        code: :class:`decima.learning.backward.Code`.
        layout: Int32, the architecture as :func:`.layout.pack_layout` writes it.
        weights: Float32 [parameters].
        chunk: :class:`Chunk` of the tensors of D decisions.
        advantages: Float32 [D], A of each.
        recorded: Float32 [D], recorded log-probability of each.
        options: :class:`Options`.

    Returns:
        Float32 [parameters] and float64 [len(SUMS)], the sums of :data:`decima.learning.loss.SUMS`.
    """
    decisions, levels, slots = len(chunk.choice), len(chunk.limits), layout[DELAYS] + 1
    net, seen = new_net(code, layout, weights), new_seen(layout, chunk)
    graph = embed(net, chunk, seen) if layout[GRAPH] else None
    of_job, of_decision = share_first_layer(net, chunk, seen)
    # First entry of every decision, and behind the last.
    bounds = np.arange(decisions + 1)
    candidate = np.searchsorted(chunk.candidate_decision, bounds)
    limited = np.searchsorted(chunk.limit_decision, bounds) if layout[LIMIT] != LIMIT_NONE else np.zeros_like(bounds)
    delayed = np.searchsorted(chunk.delay_decision, bounds) if layout[DELAYS] else np.zeros_like(bounds)
    heads = new_heads(net, chunk, _largest(candidate), _largest(limited), _largest(delayed))
    sums = np.zeros(len(SUMS))
    d_entropy = np.float32(-options.entropy_weight)
    for d0 in range(0, decisions, _BLOCK):
        d1 = min(d0 + _BLOCK, decisions)
        c0, c1, k0, k1, b0, b1 = candidate[d0], candidate[d1], limited[d0], limited[d1], delayed[d0], delayed[d1]
        score_stages(net, chunk, seen, heads, of_job, of_decision, c0, c1)
        if k1 > k0:
            score_limits(net, chunk, seen, heads, k0, k1)
        if b1 > b0:
            score_delays(net, chunk, seen, heads, b0, b1)
        for decision in range(d0, d1):
            first, end = candidate[decision] - c0, candidate[decision + 1] - c0
            k, b = limited[decision], delayed[decision]
            stage = _choose(heads.q.scores, first, end, end, chunk.choice[decision] - c0)
            limit = delay = _choose_nothing()
            if limited[decision + 1] > k:
                limit = _choose_limit(heads.w.scores, (k - k0) * levels, chunk, k, options.effect_classes)
            if delayed[decision + 1] > b:
                row = (b - b0) * slots
                delay = _choose(heads.d.scores, row, row + slots, row + slots, row + chunk.delay_chosen[b])
            d_log_prob = _add_loss(sums, stage, limit, delay, advantages[decision], recorded[decision], options)
            _reverse_choice(heads.q.scores, stage, d_log_prob, d_entropy, heads.q.d)
            _reverse_choice(heads.w.scores, limit, d_log_prob, d_entropy, heads.w.d)
            _reverse_choice(heads.d.scores, delay, d_log_prob, d_entropy, heads.d.d)
        reverse_stages(net, chunk, seen, heads, of_job, of_decision, c0, c1)
        if k1 > k0:
            reverse_limits(net, chunk, seen, heads, k0, k1)
        if b1 > b0:
            reverse_delays(net, chunk, seen, heads, b0, b1)
    reverse_shared(net, of_job, len(chunk.shape), seen.dy)
    reverse_shared(net, of_decision, decisions, seen.dz)
    if graph is not None:
        reverse_embed(net, chunk, seen, graph)
    return net.grad, sums
