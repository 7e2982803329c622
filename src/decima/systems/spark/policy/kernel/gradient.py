"""Gradient of the loss of recorded decisions, in compiled code: the network forwards and backwards.

It computes what :class:`decima.systems.spark.policy.network.DecimaNetwork` and automatic differentiation compute, to
the precision of float32, several times as fast. Stages and jobs pass through the network level by level, the decisions
through its heads in blocks that stay in the cache.

Source: §5.1 Eq. 1, §5.2; the loss is :class:`decima.learning.loss.Loss`.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from decima.core.cache import cached
from decima.core.jit import njit
from decima.learning.backward import (
    HEAD,
    ROWS,
    add_outer,
    add_rows,
    add_to,
    backward,
    copy_to,
    forward,
    layer,
    leak,
    total_width,
    transpose,
    widest,
)
from decima.learning.loss import SUMS
from decima.learning.perceptron import LEAK
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LIMIT_STEP, LOG_SCALE, MOST_EXECUTORS_OFF
from decima.systems.spark.policy.batch import TENSORS
from decima.systems.spark.policy.features import JOB_FEATURES
from decima.systems.spark.policy.kernel.layout import (
    CLASS_WIDTH,
    CLUSTER_F,
    CLUSTER_G,
    CLUSTER_MEAN,
    CONTEXT,
    CONTEXT_EMBEDDING,
    CONTEXT_JOB,
    DELAY_CONTEXT,
    DELAYS,
    EMBEDDING,
    FIRST_NET,
    GRAPH,
    INPUT,
    JOB_F,
    JOB_G,
    LIMIT,
    LIMIT_GRID,
    LIMIT_NONE,
    LIMIT_OUTPUT,
    NET_SIZE,
    NETS,
    RESIDUAL,
    SHAPE_WIDTH,
    STAGE_F,
    STAGE_G,
    D,
    Q,
    W,
)

# Decisions that pass through the heads together.
_BLOCK = 16
_LOSS, _LOG_PROB, _ENTROPY_STAGE, _ENTROPY_LIMIT, _ENTROPY_DELAY, _KL, _CLIPPED = range(len(SUMS))

#: Tensors of a batch, in the order of :data:`decima.systems.spark.policy.batch.TENSORS`.
Chunk = namedtuple("Chunk", list(TENSORS))
#: Options of the loss, and what a rule's scores are divided by.
Options = namedtuple("Options", ["ratio", "clip", "entropy_weight", "effect_classes", "temperature"])

_Net = namedtuple("_Net", ["code", "layout", "w", "wt", "grad", "acts", "scratch"])
# What the heads see, and the gradients that come back from them.
_Seen = namedtuple("_Seen", ["xe", "y", "z", "de", "dy", "dz"])


@njit
def _at(net):
    return FIRST_NET + NET_SIZE * net


@njit
def _room(layout, net, rows):
    """Array for the activations of so many rows."""
    return np.empty(max(1, rows) * total_width(layout, _at(net)), np.float32)


@njit
def _run(net, which, x, x_first, x_stride, rows, out, out_first, out_stride):
    """Send rows through a perceptron, in blocks whose activations stay in the nearest cache."""
    at = _at(which)
    for first in range(0, rows, ROWS):
        forward(
            net.code, net.layout, at, net.w, 0, net.layout[at], x, x_first + first * x_stride, x_stride,
            min(ROWS, rows - first), net.acts, ROWS, out, out_first + first * out_stride, out_stride,
        )  # fmt: skip


@njit
def _reverse(net, which, x, x_first, x_stride, rows, up, up_first, down, down_first, down_stride):
    """Reverse of :func:`_run`.

    It computes the activations of a block once more, which is faster than to keep them.
    ``up`` has the gradients of the outputs, and loses them where these are rectified; ``down`` receives those of the
    inputs, if ``down_first`` is not below 0.
    """
    at = _at(which)
    width, rectified = net.layout[at + 2], net.layout[at + 1] == 1
    output = ROWS * (total_width(net.layout, at) - width)
    for first in range(0, rows, ROWS):
        count = min(ROWS, rows - first)
        start, above = x_first + first * x_stride, up_first + first * width
        if net.layout[at]:
            end = net.layout[at] if rectified else net.layout[at] - 1
            forward(
                net.code, net.layout, at, net.w, 0, end, x, start, x_stride, count, net.acts, ROWS, net.acts, output,
                width,
            )  # fmt: skip
        if rectified:
            leak(up, above, net.acts, output, count * width)
        position = down_first + first * down_stride if down_first >= 0 else -1
        backward(
            net.code, net.layout, at, net.w, net.wt, net.grad, 0, x, start, x_stride, count, net.acts, ROWS,
            up, above, down, position, down_stride, net.scratch,
        )  # fmt: skip


@njit
def _senders(chunk, nodes):
    """Slot of every node among those with a parent, -1 without one; their number."""
    slot = np.full(nodes, -1, np.int32)
    for edge in range(len(chunk.edge_source)):
        slot[chunk.edge_source[edge]] = 0
    count = 0
    for node in range(nodes):
        if slot[node] == 0:
            slot[node] = count
            count += 1
    return slot, count


# What the reverse needs of the graph's embedding: slots of the senders, embeddings that they send, sums of messages and
# of stages, sums or means of jobs.
_Graph = namedtuple("_Graph", ["slot", "senders", "sent", "sums", "jobs", "cluster"])


@njit
def _embed(net, chunk, seen, instances, decisions):
    """Forward: e into ``xe``, y and z."""
    nodes, features = chunk.x.shape
    width = net.layout[EMBEDDING]
    stride = features + width
    xe, y, z = seen.xe, seen.y, seen.z
    slot, senders = _senders(chunk, nodes)
    graph = _Graph(
        slot, senders, _numbers(senders * width), _numbers(nodes * width), _numbers(instances * width),
        _numbers(decisions * width),
    )  # fmt: skip
    message, part = _numbers(senders * width), _numbers(max(nodes, instances) * width)
    _run(net, INPUT, xe, 0, stride, nodes, xe, features, stride)
    first, edge, sent = 0, 0, 0
    for level in range(len(chunk.level_sizes)):
        count = chunk.level_sizes[level]
        for _ in range(chunk.edge_level_sizes[level]):
            target = (first + chunk.edge_target[edge]) * width
            add_to(graph.sums, target, message, slot[chunk.edge_source[edge]] * width, width)
            edge += 1
        if level > 0:
            _run(net, STAGE_G, graph.sums, first * width, width, count, part, 0, width)
        begun = sent
        for node in range(count):
            position = (first + node) * stride + features
            if level > 0:
                add_to(xe, position, part, node * width, width)
            if slot[first + node] >= 0:
                copy_to(graph.sent, sent * width, xe, position, width)
                sent += 1
        _run(net, STAGE_F, graph.sent, begun * width, width, sent - begun, message, begun * width, width)
        first += count
    _run(net, JOB_F, xe, 0, stride, nodes, part, 0, width)
    for node in range(nodes):
        add_to(graph.jobs, chunk.node_instance[node] * width, part, node * width, width)
    _run(net, JOB_G, graph.jobs, 0, width, instances, y, 0, width)
    _run(net, CLUSTER_F, y, 0, width, instances, part, 0, width)
    for pair in range(len(chunk.pair_instance)):
        add_to(graph.cluster, chunk.pair_decision[pair] * width, part, chunk.pair_instance[pair] * width, width)
    if net.layout[CLUSTER_MEAN]:
        _scale_by_jobs(chunk, graph.cluster, width, decisions)
    _run(net, CLUSTER_G, graph.cluster, 0, width, decisions, z, 0, width)
    return graph


@njit
def _scale_by_jobs(chunk, values, width, decisions):
    """Divide the row of every decision by its number of active jobs."""
    jobs = np.zeros(decisions, np.float32)
    for pair in range(len(chunk.pair_decision)):
        jobs[chunk.pair_decision[pair]] += np.float32(1.0)
    for decision in range(decisions):
        for k in range(width):
            values[decision * width + k] /= max(jobs[decision], np.float32(1.0))


@njit
def _reverse_embed(net, chunk, seen, graph, instances, decisions):
    """Reverse of :func:`_embed`, from the gradients of e, y and z."""
    nodes, features = chunk.x.shape
    width = net.layout[EMBEDDING]
    stride = features + width
    de, dy = seen.de, seen.dy
    slot, senders = graph.slot, graph.senders
    clusters, jobs = _numbers(decisions * width), _numbers(instances * width)
    _reverse(net, CLUSTER_G, graph.cluster, 0, width, decisions, seen.dz, 0, clusters, 0, width)
    if net.layout[CLUSTER_MEAN]:
        _scale_by_jobs(chunk, clusters, width, decisions)
    for pair in range(len(chunk.pair_instance)):
        add_to(jobs, chunk.pair_instance[pair] * width, clusters, chunk.pair_decision[pair] * width, width)
    part, ups = _numbers(max(nodes, instances) * width), _numbers(nodes * width)
    _reverse(net, CLUSTER_F, seen.y, 0, width, instances, jobs, 0, part, 0, width)
    add_to(dy, 0, part, 0, instances * width)
    _reverse(net, JOB_G, graph.jobs, 0, width, instances, dy, 0, jobs, 0, width)
    for node in range(nodes):
        copy_to(ups, node * width, jobs, chunk.node_instance[node] * width, width)
    down = _numbers(nodes * stride)
    _reverse(net, JOB_F, seen.xe, 0, stride, nodes, ups, 0, down, 0, stride)
    for node in range(nodes):
        add_to(de, node * width, down, node * stride + features, width)

    message = _numbers(senders * width)
    edge, first, sent = len(chunk.edge_source), nodes, senders
    for back in range(len(chunk.level_sizes)):
        level = len(chunk.level_sizes) - 1 - back
        count = chunk.level_sizes[level]
        first -= count
        begun = sent
        for node in range(first, first + count):
            begun -= slot[node] >= 0
        position = begun * width
        _reverse(net, STAGE_F, graph.sent, position, width, sent - begun, message, position, part, 0, width)
        for node in range(first, first + count):
            if slot[node] >= 0:
                add_to(de, node * width, part, (slot[node] - begun) * width, width)
        sent = begun
        if level == 0:
            continue
        position = first * width
        copy_to(ups, 0, de, position, count * width)
        _reverse(net, STAGE_G, graph.sums, position, width, count, ups, 0, part, 0, width)
        for _ in range(chunk.edge_level_sizes[level]):
            edge -= 1
            target = slot[chunk.edge_source[edge]] * width
            add_to(message, target, part, chunk.edge_target[edge] * width, width)
    _reverse(net, INPUT, seen.xe, 0, stride, nodes, de, 0, part, -1, width)


# ---- heads ------------------------------------------------------------------------------------------------------


@njit
def _context_parts(layout, features, context):
    """Widths of what w or d sees of x, e, y, s and z."""
    width, shape = layout[EMBEDDING], layout[SHAPE_WIDTH]
    if not layout[GRAPH]:
        return features, 0, 0, shape, 0
    if context == CONTEXT_EMBEDDING:
        return 0, width, width, shape, width
    return (JOB_FEATURES if context == CONTEXT_JOB else 0), 0, width, shape, width


@njit
def _see(seen, chunk, features, width, parts, node, instance, decision, out, position):
    """Write [x, e, y, s, z] of a decision, as far as it is seen."""
    stride = features + width
    copy_to(out, position, seen.xe, node * stride, parts[0])
    position += parts[0]
    copy_to(out, position, seen.xe, node * stride + features, parts[1])
    position += parts[1]
    copy_to(out, position, seen.y, instance * width, parts[2])
    position += parts[2]
    for k in range(parts[3]):
        out[position + k] = chunk.shape[instance, k]
    position += parts[3]
    copy_to(out, position, seen.z, decision * width, parts[4])


@njit
def _return(seen, width, parts, node, instance, decision, d, position):
    """Reverse of :func:`_see`."""
    position += parts[0]
    add_to(seen.de, node * width, d, position, parts[1])
    position += parts[1]
    add_to(seen.dy, instance * width, d, position, parts[2])
    position += parts[2] + parts[3]
    add_to(seen.dz, decision * width, d, position, parts[4])


@njit
def _log_softmax(scores, first, end):
    """Replace scores by log-probabilities; returns their entropy."""
    highest = scores[first]
    for k in range(first + 1, end):
        highest = max(highest, scores[k])
    total = 0.0
    for k in range(first, end):
        total += np.exp(scores[k] - highest)
    shift = highest + np.float32(np.log(total))
    entropy = 0.0
    for k in range(first, end):
        scores[k] -= shift
        entropy -= np.exp(scores[k]) * scores[k]
    return np.float32(entropy)


@njit
def _reverse_softmax(logs, first, end, chosen, entropy, d_log_prob, d_entropy, d):
    """Gradients of scores, from those of the chosen one's log-probability and of the entropy."""
    for k in range(first, end):
        share = np.exp(logs[k])
        d[k] = -share * (d_log_prob + d_entropy * (logs[k] + entropy))
    d[chosen] += d_log_prob


_Heads = namedtuple(
    "_Heads",
    [
        "q_inputs", "q_acts", "q_scores", "q_d", "q_down", "w_inputs", "w_base", "w_acts", "w_scores", "w_d", "w_down",
        "w_dbase", "d_inputs", "d_acts", "d_scores", "d_d", "d_down", "scaled",
    ],
)  # fmt: skip


@njit
def _first_width(layout, which):
    """Width of the first layer's output, 0 for an absent head."""
    return layout[_at(which) + HEAD + 3] if layout[_at(which)] else 0


@njit
def _numbers(count):
    return np.zeros(max(1, count), np.float32)


@njit
def _new_heads(layout, chunk, features, candidates, limited, delayed):
    """Room for a block of decisions."""
    stage = features + layout[EMBEDDING] * layout[GRAPH] + layout[CLASS_WIDTH]
    levels = len(chunk.limits)
    rows = limited if layout[LIMIT] == LIMIT_OUTPUT else limited * levels
    scaled = _numbers(levels)
    for k in range(levels):
        limit = np.float32(chunk.limits[k])
        scaled[k] = np.log(limit) * np.float32(LOG_SCALE) if layout[LIMIT_GRID] else limit / np.float32(LIMIT_SCALE)
    w_width = layout[_at(W) + HEAD + 2] if layout[_at(W)] else 0
    d_width = layout[_at(D) + HEAD + 2] if layout[_at(D)] else 0
    outputs = layout[_at(W) + 2] if layout[LIMIT] == LIMIT_OUTPUT else 1
    return _Heads(
        _numbers(candidates * stage), _room(layout, Q, candidates), _numbers(candidates), _numbers(candidates),
        _numbers(candidates * max(_first_width(layout, Q), stage)),
        _numbers(limited * w_width), _numbers(limited * _first_width(layout, W)), _room(layout, W, rows),
        _numbers(limited * levels), _numbers(rows * outputs),
        _numbers(max(rows * _first_width(layout, W), limited * w_width)),
        _numbers(limited * _first_width(layout, W)),
        _numbers(delayed * d_width), _room(layout, D, delayed), _numbers(delayed * (layout[DELAYS] + 1)),
        _numbers(delayed * (layout[DELAYS] + 1)), _numbers(delayed * d_width), scaled,
    )  # fmt: skip


@njit
def _score_stages(net, chunk, seen, heads, shared_y, shared_z, features, c0, c1, capacity):
    """Scores q of the candidates from c0 to c1."""
    layout = net.layout
    at = _at(Q)
    width = layout[EMBEDDING] * layout[GRAPH]
    stride = features + layout[EMBEDDING]
    classes = layout[CLASS_WIDTH]
    seen_width = features + width + classes
    outputs = layout[at + HEAD + 3]
    kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
    base = heads.q_down
    for row in range(c1 - c0):
        candidate = c0 + row
        node = chunk.candidate_node[candidate] * stride
        position = row * seen_width
        copy_to(heads.q_inputs, position, seen.xe, node, features + width)
        for k in range(classes):
            heads.q_inputs[position + features + width + k] = chunk.candidate_class[candidate, k]
        run = chunk.candidate_run[candidate]
        job, cluster = chunk.run_instance[run] * outputs, chunk.run_decision[run] * outputs
        copy_to(base, row * outputs, shared_y, job, outputs)
        add_to(base, row * outputs, shared_z, cluster, outputs)
        if bias >= 0:
            add_to(base, row * outputs, net.w, bias, outputs)
    first = heads.q_acts if layout[at] > 1 else heads.q_scores
    layer(
        net.code, heads.q_inputs, 0, seen_width, c1 - c0, seen_width, net.w, kernel, base, 0, outputs,
        first, 0, outputs, outputs, layout[at] > 1,
    )  # fmt: skip
    forward(
        net.code, layout, at, net.w, 1, layout[at], base, 0, 0, c1 - c0, heads.q_acts, capacity, heads.q_scores, 0, 1
    )
    if layout[RESIDUAL]:
        for row in range(c1 - c0):
            heads.q_scores[row] += chunk.candidate_prior[c0 + row, 0]


@njit
def _reverse_stages(net, chunk, seen, heads, d_shared_y, d_shared_z, of_e, features, c0, c1, capacity):
    """Reverse of :func:`_score_stages`, from ``q_d``.

    ``of_e`` has the rows for e of the first kernel, transposed.
    """
    layout = net.layout
    at = _at(Q)
    width = layout[EMBEDDING] * layout[GRAPH]
    seen_width = features + width + layout[CLASS_WIDTH]
    outputs = layout[at + HEAD + 3]
    kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
    d = heads.q_down
    if layout[at] > 1:
        backward(
            net.code, layout, at, net.w, net.wt, net.grad, 1, d, 0, 0, c1 - c0, heads.q_acts, capacity,
            heads.q_d, 0, d, 0, outputs, net.scratch,
        )  # fmt: skip
    else:
        for row in range(c1 - c0):
            d[row] = heads.q_d[row]
    add_rows(net.code, net.scratch, d, 0, c1 - c0, outputs, net.grad, bias)
    add_outer(net.code, heads.q_inputs, 0, seen_width, c1 - c0, seen_width, d, 0, outputs, net.grad, kernel)
    if width:
        down = heads.q_inputs
        layer(net.code, d, 0, outputs, c1 - c0, outputs, of_e, 0, of_e, -1, 0, down, 0, width, width, 0)
        for row in range(c1 - c0):
            add_to(seen.de, chunk.candidate_node[c0 + row] * width, down, row * width, width)
    for row in range(c1 - c0):
        run = chunk.candidate_run[c0 + row]
        add_to(d_shared_y, chunk.run_instance[run] * outputs, d, row * outputs, outputs)
        add_to(d_shared_z, chunk.run_decision[run] * outputs, d, row * outputs, outputs)


@njit
def _score_limits(net, chunk, seen, heads, features, k0, k1, capacity, temperature):
    """Scores w of all limits for the decisions from k0 to k1."""
    layout = net.layout
    at = _at(W)
    levels = len(chunk.limits)
    parts = _context_parts(layout, features, layout[CONTEXT])
    total = layout[at + HEAD + 2]
    outputs = layout[at + HEAD + 3]
    kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
    by_output = layout[LIMIT] == LIMIT_OUTPUT
    known = total if by_output else total - 1
    for row in range(k1 - k0):
        decision = chunk.limit_decision[k0 + row]
        choice = chunk.choice[decision]
        node, instance = chunk.candidate_node[choice], chunk.run_instance[chunk.candidate_run[choice]]
        _see(seen, chunk, features, layout[EMBEDDING], parts, node, instance, decision, heads.w_inputs, row * known)
    if by_output:
        width = layout[at + 2]
        forward(
            net.code, layout, at, net.w, 0, layout[at], heads.w_inputs, 0, known, k1 - k0, heads.w_acts, capacity,
            heads.w_d, 0, width,
        )  # fmt: skip
        for row in range(k1 - k0):
            for k in range(levels):
                heads.w_scores[row * levels + k] = heads.w_d[row * width + chunk.limits[k] - 1]
    else:
        layer(
            net.code, heads.w_inputs, 0, known, k1 - k0, known, net.w, kernel, net.w, bias, 0,
            heads.w_base, 0, outputs, outputs, 0,
        )  # fmt: skip
        slope = np.float32(LEAK if layout[at] > 1 else 1.0)
        first = heads.w_acts if layout[at] > 1 else heads.w_scores
        by_limit = net.w[kernel + known * outputs : kernel + total * outputs]
        for row in range(k1 - k0):
            for k in range(levels):
                position = (row * levels + k) * outputs
                acts, base = first[position : position + outputs], heads.w_base[row * outputs : (row + 1) * outputs]
                for j in range(outputs):
                    value = base[j] + heads.scaled[k] * by_limit[j]
                    acts[j] = value if value > np.float32(0.0) else value * slope
        forward(
            net.code, layout, at, net.w, 1, layout[at], heads.w_base, 0, 0, (k1 - k0) * levels, heads.w_acts, capacity,
            heads.w_scores, 0, 1,
        )  # fmt: skip
    if layout[RESIDUAL]:
        step = np.float32(LIMIT_STEP / temperature)
        for row in range(k1 - k0):
            tail, wanted = chunk.limit_tail[k0 + row], chunk.limit_wanted[k0 + row]
            alike = np.float32(np.log(np.float32(chunk.limit_high[k0 + row] - tail + 1)))
            for k in range(levels):
                off = min(abs(min(chunk.limits[k], tail) - wanted), MOST_EXECUTORS_OFF)
                heads.w_scores[row * levels + k] -= step * off + (alike if chunk.limits[k] >= tail else 0.0)


@njit
def _reverse_limits(net, chunk, seen, heads, of_known, features, k0, k1, capacity):
    """Reverse of :func:`_score_limits`, from ``w_d``; ``of_known`` is the transposed kernel without the limit."""
    layout = net.layout
    at = _at(W)
    levels = len(chunk.limits)
    parts = _context_parts(layout, features, layout[CONTEXT])
    outputs = layout[at + HEAD + 3]
    total = layout[at + HEAD + 2]
    kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
    by_output = layout[LIMIT] == LIMIT_OUTPUT
    known = total if by_output else total - 1
    d = heads.w_down
    if by_output:
        backward(
            net.code, layout, at, net.w, net.wt, net.grad, 0, heads.w_inputs, 0, known, k1 - k0, heads.w_acts, capacity,
            heads.w_d, 0, d, 0, known, net.scratch,
        )  # fmt: skip
    else:
        rows = (k1 - k0) * levels
        if layout[at] > 1:
            backward(
                net.code, layout, at, net.w, net.wt, net.grad, 1, d, 0, 0, rows, heads.w_acts, capacity,
                heads.w_d, 0, d, 0, outputs, net.scratch,
            )  # fmt: skip
        else:
            for row in range(rows):
                d[row] = heads.w_d[row]
        by_limit = net.grad[kernel + known * outputs : kernel + total * outputs]
        for row in range(k1 - k0):
            base = heads.w_dbase[row * outputs : (row + 1) * outputs]
            base[:] = 0.0
            for k in range(levels):
                values = d[(row * levels + k) * outputs : (row * levels + k + 1) * outputs]
                for j in range(outputs):
                    base[j] += values[j]
                    by_limit[j] += heads.scaled[k] * values[j]
        add_rows(net.code, net.scratch, heads.w_dbase, 0, k1 - k0, outputs, net.grad, bias)
        add_outer(net.code, heads.w_inputs, 0, known, k1 - k0, known, heads.w_dbase, 0, outputs, net.grad, kernel)
        layer(
            net.code, heads.w_dbase, 0, outputs, k1 - k0, outputs, of_known, 0, of_known, -1, 0, d, 0, known, known, 0
        )
    for row in range(k1 - k0):
        decision = chunk.limit_decision[k0 + row]
        choice = chunk.choice[decision]
        node, instance = chunk.candidate_node[choice], chunk.run_instance[chunk.candidate_run[choice]]
        _return(seen, layout[EMBEDDING], parts, node, instance, decision, d, row * known)


@njit
def _score_delays(net, chunk, seen, heads, features, b0, b1, capacity):
    """Scores d of the decisions that are free to idle, from b0 to b1."""
    layout = net.layout
    at = _at(D)
    parts = _context_parts(layout, features, layout[DELAY_CONTEXT])
    known = layout[at + HEAD + 2]
    for row in range(b1 - b0):
        decision = chunk.delay_decision[b0 + row]
        choice = chunk.choice[decision]
        node, instance = chunk.candidate_node[choice], chunk.run_instance[chunk.candidate_run[choice]]
        _see(seen, chunk, features, layout[EMBEDDING], parts, node, instance, decision, heads.d_inputs, row * known)
    forward(
        net.code, layout, at, net.w, 0, layout[at], heads.d_inputs, 0, known, b1 - b0, heads.d_acts, capacity,
        heads.d_scores, 0, layout[at + 2],
    )  # fmt: skip


@njit
def _reverse_delays(net, chunk, seen, heads, features, b0, b1, capacity):
    """Reverse of :func:`_score_delays`, from ``d_d``."""
    layout = net.layout
    at = _at(D)
    parts = _context_parts(layout, features, layout[DELAY_CONTEXT])
    known = layout[at + HEAD + 2]
    backward(
        net.code, layout, at, net.w, net.wt, net.grad, 0, heads.d_inputs, 0, known, b1 - b0, heads.d_acts, capacity,
        heads.d_d, 0, heads.d_down, 0, known, net.scratch,
    )  # fmt: skip
    for row in range(b1 - b0):
        decision = chunk.delay_decision[b0 + row]
        choice = chunk.choice[decision]
        node, instance = chunk.candidate_node[choice], chunk.run_instance[chunk.candidate_run[choice]]
        _return(seen, layout[EMBEDDING], parts, node, instance, decision, heads.d_down, row * known)


@njit
def _allowed(chunk, k):
    """Indices of the first allowed limit and of the tail, and behind the last one."""
    low = np.searchsorted(chunk.limits, chunk.limit_low[k])
    tail = np.searchsorted(chunk.limits, chunk.limit_tail[k])
    high = np.searchsorted(chunk.limits, chunk.limit_high[k] + 1)
    return low, max(low, tail), high


@njit
def _tail(logs, first, end):
    """Logarithm of the sum of probabilities."""
    highest = logs[first]
    for k in range(first + 1, end):
        highest = max(highest, logs[k])
    total = 0.0
    for k in range(first, end):
        total += np.exp(logs[k] - highest)
    return highest + np.float32(np.log(total))


@njit
def _class_entropy(logs, low, tail, high, together):
    """Entropy over effects: every limit below the tail is one, all behind are one."""
    entropy = 0.0
    for k in range(low, tail):
        entropy -= np.exp(logs[k]) * logs[k]
    return np.float32(entropy - np.exp(together) * together)


@njit
def _ends(starts, decisions, of):
    """First index behind every decision; ``of`` ascends."""
    index = 0
    for decision in range(decisions):
        while index < len(of) and of[index] == decision:
            index += 1
        starts[decision + 1] = index


@njit
def _largest(starts, decisions):
    most = 0
    for first in range(0, decisions, _BLOCK):
        most = max(most, starts[min(first + _BLOCK, decisions)] - starts[first])
    return most


@cached(njit(cache=True, nogil=True))
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
    decisions, features, instances = len(chunk.choice), chunk.x.shape[1], int(chunk.num_instances[()])
    nodes = chunk.x.shape[0]
    embedding = layout[EMBEDDING]
    graph_seen = layout[GRAPH] == 1
    stride = features + embedding
    wt = np.zeros_like(weights)
    most, room = 1, 1
    for which in range(len(NETS)):
        transpose(layout, _at(which), weights, wt)
        most = max(most, widest(layout, _at(which)))
        room = max(room, total_width(layout, _at(which)))
    net = _Net(
        code,
        layout,
        weights,
        wt,
        np.zeros_like(weights),
        np.empty(ROWS * room, np.float32),
        np.empty((1 + 2 * most) * ROWS, np.float32),
    )
    net.scratch[:ROWS] = 1.0
    sums = np.zeros(len(SUMS))
    seen = _Seen(
        np.zeros(max(1, nodes) * stride, np.float32), _numbers(instances * embedding), _numbers(decisions * embedding),
        _numbers(nodes * embedding), _numbers(instances * embedding), _numbers(decisions * embedding),
    )  # fmt: skip
    for node in range(nodes):
        for k in range(features):
            seen.xe[node * stride + k] = chunk.x[node, k]
    graph = (
        _embed(net, chunk, seen, instances if graph_seen else 0, decisions if graph_seen else 0) if graph_seen else None
    )

    # What candidates of one job, or of one decision, share in the first layer of q.
    q_width, q_at = layout[_at(Q) + HEAD + 3], layout[_at(Q) + HEAD]
    shape = layout[SHAPE_WIDTH]
    used = embedding if graph_seen else 0
    of_stage = features + used + layout[CLASS_WIDTH]
    ys = _numbers(instances * (used + shape))
    for instance in range(instances):
        for k in range(used):
            ys[instance * (used + shape) + k] = seen.y[instance * embedding + k]
        for k in range(shape):
            ys[instance * (used + shape) + used + k] = chunk.shape[instance, k]
    y_kernel = q_at + of_stage * q_width
    z_kernel = y_kernel + (used + shape) * q_width
    shared_y, shared_z = _numbers(instances * q_width), _numbers(decisions * q_width)
    if used + shape:
        layer(
            code, ys, 0, used + shape, instances, used + shape, weights, y_kernel, weights, -1, 0,
            shared_y, 0, q_width, q_width, 0,
        )  # fmt: skip
    if used:
        layer(
            code, seen.z, 0, used, decisions, used, weights, z_kernel, weights, -1, 0, shared_z, 0, q_width, q_width, 0
        )
    d_shared_y, d_shared_z = _numbers(instances * q_width), _numbers(decisions * q_width)
    of_e, of_y, of_z = (
        _turned(weights, q_at, q_width, features, used),
        _turned(weights, y_kernel, q_width, 0, used),
        _turned(weights, z_kernel, q_width, 0, used),
    )

    candidate = np.zeros(decisions + 1, np.int64)
    limited = np.zeros(decisions + 1, np.int64)
    delayed = np.zeros(decisions + 1, np.int64)
    _ends(candidate, decisions, chunk.candidate_decision)
    _ends(limited, decisions, chunk.limit_decision)
    _ends(delayed, decisions, chunk.delay_decision)
    q_capacity, w_capacity = _largest(candidate, decisions), _largest(limited, decisions)
    d_capacity = _largest(delayed, decisions)
    heads = _new_heads(layout, chunk, features, q_capacity, w_capacity, d_capacity)
    levels = len(chunk.limits)
    by_output = layout[LIMIT] == LIMIT_OUTPUT
    w_rows = w_capacity if by_output else w_capacity * levels
    has_limits, has_delays = layout[LIMIT] != LIMIT_NONE, layout[DELAYS] > 0
    slots = layout[DELAYS] + 1
    outputs = layout[_at(W) + 2] if has_limits else 0
    temperature = options.temperature
    known = max(0, layout[_at(W) + HEAD + 2] - 1) if has_limits else 0
    of_known = _turned(weights, layout[_at(W) + HEAD], layout[_at(W) + HEAD + 3], 0, known)
    together = np.zeros(max(1, w_capacity), np.float32)
    entropies = np.zeros(max(1, w_capacity), np.float32)
    d_entropy = np.float32(-options.entropy_weight)

    for d0 in range(0, decisions, _BLOCK):
        d1 = min(d0 + _BLOCK, decisions)
        c0, c1, k0, k1, b0, b1 = candidate[d0], candidate[d1], limited[d0], limited[d1], delayed[d0], delayed[d1]
        _score_stages(net, chunk, seen, heads, shared_y, shared_z, features, c0, c1, q_capacity)
        if has_limits and k1 > k0:
            _score_limits(net, chunk, seen, heads, features, k0, k1, w_rows, temperature)
            heads.w_d[: (k1 - k0) * (outputs if by_output else levels)] = 0.0
        if has_delays and b1 > b0:
            _score_delays(net, chunk, seen, heads, features, b0, b1, d_capacity)
        k, b = k0, b0
        for decision in range(d0, d1):
            first, end = candidate[decision] - c0, candidate[decision + 1] - c0
            chosen = chunk.choice[decision] - c0
            entropy = _log_softmax(heads.q_scores, first, end)
            log_prob = heads.q_scores[chosen]
            entropy_limit, entropy_delay = np.float32(0.0), np.float32(0.0)
            with_limit = has_limits and limited[decision + 1] > limited[decision]
            low, tail, high, row, position = 0, 0, 0, 0, 0
            if with_limit:
                row = (k - k0) * levels
                low, tail, high = _allowed(chunk, k)
                position = row + np.searchsorted(chunk.limits, chunk.limit_chosen[k])
                plain = _log_softmax(heads.w_scores, row + low, row + high)
                if options.effect_classes:
                    together[k - k0] = _tail(heads.w_scores, row + tail, row + high)
                    entropy_limit = _class_entropy(heads.w_scores, row + low, row + tail, row + high, together[k - k0])
                    in_tail = position >= row + tail
                    log_prob += together[k - k0] if in_tail else heads.w_scores[position]
                else:
                    entropy_limit = plain
                    log_prob += heads.w_scores[position]
                entropies[k - k0] = entropy_limit
            with_delay = has_delays and delayed[decision + 1] > delayed[decision]
            slot = 0
            if with_delay:
                slot = (b - b0) * slots
                entropy_delay = _log_softmax(heads.d_scores, slot, slot + slots)
                log_prob += heads.d_scores[slot + chunk.delay_chosen[b]]

            change = log_prob - recorded[decision] if options.ratio else np.float32(0.0)
            quotient = np.exp(change)
            limited_to = min(max(quotient, np.float32(1.0 - options.clip)), np.float32(1.0 + options.clip))
            gain = quotient * advantages[decision]
            d_log_prob = -gain
            if gain > limited_to * advantages[decision]:
                gain, d_log_prob = limited_to * advantages[decision], np.float32(0.0)
            spread = entropy + entropy_limit + entropy_delay
            sums[_LOSS] -= gain + options.entropy_weight * spread
            sums[_LOG_PROB] += log_prob
            sums[_ENTROPY_STAGE] += entropy
            sums[_ENTROPY_LIMIT] += entropy_limit
            sums[_ENTROPY_DELAY] += entropy_delay
            sums[_KL] += quotient - np.float32(1.0) - change
            sums[_CLIPPED] += abs(quotient - np.float32(1.0)) > options.clip

            _reverse_softmax(heads.q_scores, first, end, chosen, entropy, d_log_prob, d_entropy, heads.q_d)
            if with_limit:
                logs, d = heads.w_scores, heads.w_d
                shared = together[k - k0]
                in_tail = options.effect_classes and position >= row + tail
                for index in range(low, high):
                    log = logs[row + index]
                    share = np.exp(log)
                    of_class = shared if options.effect_classes and index >= tail else log
                    value = -share * (d_log_prob + d_entropy * (of_class + entropies[k - k0]))
                    if in_tail and index >= tail:
                        value += d_log_prob * np.exp(log - shared)
                    elif not in_tail and row + index == position:
                        value += d_log_prob
                    if by_output:
                        d[(k - k0) * outputs + chunk.limits[index] - 1] = value
                    else:
                        d[row + index] = value
                k += 1
            if with_delay:
                _reverse_softmax(
                    heads.d_scores, slot, slot + slots, slot + chunk.delay_chosen[b], entropy_delay,
                    d_log_prob, d_entropy, heads.d_d,
                )  # fmt: skip
                b += 1
        _reverse_stages(net, chunk, seen, heads, d_shared_y, d_shared_z, of_e, features, c0, c1, q_capacity)
        if has_limits and k1 > k0:
            _reverse_limits(net, chunk, seen, heads, of_known, features, k0, k1, w_rows)
        if has_delays and b1 > b0:
            _reverse_delays(net, chunk, seen, heads, features, b0, b1, d_capacity)

    _reverse_shared(net, ys, used + shape, instances, d_shared_y, q_width, y_kernel, of_y, seen.dy, used)
    _reverse_shared(net, seen.z, used, decisions, d_shared_z, q_width, z_kernel, of_z, seen.dz, used)
    if graph_seen:
        _reverse_embed(net, chunk, seen, graph, instances, decisions)
    return net.grad, sums


@njit
def _turned(w, kernel, outputs, first, count):
    """Some rows of a kernel, transposed."""
    turned = _numbers(count * outputs)
    for i in range(count):
        for j in range(outputs):
            turned[j * count + i] = w[kernel + (first + i) * outputs + j]
    return turned


@njit
def _reverse_shared(net, x, width, rows, d, outputs, kernel, turned, dx, used):
    """Gradients of some rows of q's first kernel and of their inputs."""
    if width:
        add_outer(net.code, x, 0, width, rows, width, d, 0, outputs, net.grad, kernel)
    if used:
        down = _numbers(rows * used)
        layer(net.code, d, 0, outputs, rows, outputs, turned, 0, turned, -1, 0, down, 0, used, used, 0)
        add_to(dx, 0, down, 0, rows * used)
