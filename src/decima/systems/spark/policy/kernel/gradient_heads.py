"""Heads of the network on recorded decisions in compiled code, forwards and backwards.

Decisions pass through them in blocks that stay in the cache. What many rows have in common in the first layer of q
or w is computed once.

Source: §5.2.
"""

from collections import namedtuple

import numpy as np

from decima.core.jit import njit
from decima.learning.backward import HEAD, add_outer, add_rows, add_to, backward, copy_to, forward, layer, total_width
from decima.learning.perceptron import LEAK
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LOG_SCALE
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel.gradient_graph import numbers
from decima.systems.spark.policy.kernel.layout import context_parts, entry_of

#: A block in one head: rows that there is room for, inputs, activations, scores, gradients of the scores and inputs.
Head = namedtuple("Head", ["rows", "inputs", "acts", "scores", "d", "down"])
#: All heads; transposed, the rows for e of q's first kernel and w's first kernel without the limit; limits as w sees
#: them; what all limits of a decision share in w's first layer; outputs of w if it has one per limit. The last two are
#: their gradients later.
Heads = namedtuple("Heads", ["q", "w", "d", "of_e", "of_known", "limits", "base", "outputs"])
#: What all candidates of a job, or of a decision, share in q's first layer: inputs, their width and that of the
#: embedding among them, index of their kernel, its rows for the embedding transposed, products, gradients of these.
Shared = namedtuple("Shared", ["x", "width", "used", "kernel", "turned", "values", "d"])


@njit
def new_heads(net, chunk, candidates, limited, delayed):
    """Room for the candidates and decisions of a block."""
    layout = net.layout
    levels = len(chunk.limits)
    limits, outputs = numbers(levels), 0
    for k in range(levels):
        limit = np.float32(chunk.limits[k])
        limits[k] = (
            np.log(limit) * np.float32(LOG_SCALE) if layout[place.LIMIT_GRID] else limit / np.float32(LIMIT_SCALE)
        )
    rows, known = limited * levels, max(0, layout[entry_of(place.W) + HEAD + 2] - 1)
    if layout[place.LIMIT] == place.LIMIT_OUTPUT:
        rows, outputs = limited, limited * layout[entry_of(place.W) + 2]
    of_e = layout[entry_of(place.Q) + HEAD] + layout[place.NUM_FEATURES] * _first_width(layout, place.Q)
    return Heads(
        _new_head(layout, place.Q, candidates, candidates, candidates),
        _new_head(layout, place.W, limited, rows, limited * levels),
        _new_head(layout, place.D, delayed, delayed, delayed * layout[entry_of(place.D) + 2]),
        _turned(net, place.Q, of_e, _used(layout)),
        _turned(net, place.W, layout[entry_of(place.W) + HEAD], known),
        limits,
        numbers(limited * _first_width(layout, place.W)),
        numbers(outputs),
    )


@njit
def _new_head(layout, which, inputs, rows, scores):
    """Room for rows of inputs, rows in all other layers, and scores."""
    at = entry_of(which)
    width = inputs * layout[at + HEAD + 2]
    acts = np.empty(max(1, rows) * total_width(layout, at), np.float32)
    down = numbers(max(rows * _first_width(layout, which), width))
    return Head(rows, numbers(width), acts, numbers(scores), numbers(scores), down)


@njit
def _first_width(layout, which):
    """Width of the first layer's output, 0 for an absent head."""
    return layout[entry_of(which) + HEAD + 3]


@njit
def _used(layout):
    """Width of an embedding as heads see it."""
    return layout[place.EMBEDDING] * layout[place.GRAPH]


@njit
def _turned(net, which, kernel, count):
    """Rows of the first kernel of a head from an index on, transposed."""
    outputs = _first_width(net.layout, which)
    turned = numbers(count * outputs)
    for i in range(count):
        for j in range(outputs):
            turned[j * count + i] = net.w[kernel + i * outputs + j]
    return turned


@njit
def _forward(net, which, head, start, rows, out):
    """Send the rows of a head through its layers from ``start`` on, 0 or 1."""
    at = entry_of(which)
    forward(
        net, at, start, net.layout[at], head.inputs, 0, net.layout[at + HEAD + 2], rows, head.acts, head.rows,
        out, 0, net.layout[at + 2],
    )  # fmt: skip


@njit
def _backward(net, which, head, start, rows, up):
    """Reverse of :func:`_forward`, from the gradients of the outputs into ``down``."""
    at = entry_of(which)
    width = net.layout[at + HEAD + 2 + start]  # of the first layer's input or output
    backward(net, at, start, head.inputs, 0, width, rows, head.acts, head.rows, up, 0, head.down, 0, width)


# ---- q: candidates --------------------------------------------------------------------------------------------------


@njit
def share_first_layer(net, chunk, seen):
    """Products of [y, s] and of z in the first layer of q."""
    layout = net.layout
    instances, used = len(chunk.shape), _used(layout)
    embedding, shape = layout[place.EMBEDDING], layout[place.SHAPE_WIDTH]
    ys = numbers(instances * (used + shape))
    for instance in range(instances):
        position = instance * (used + shape)
        copy_to(ys, position, seen.y, instance * embedding, used)
        for k in range(shape):
            ys[position + used + k] = chunk.shape[instance, k]
    outputs = _first_width(layout, place.Q)
    of_y = layout[entry_of(place.Q) + HEAD] + (layout[place.NUM_FEATURES] + used + layout[place.CLASS_WIDTH]) * outputs
    of_z = of_y + (used + shape) * outputs
    return _share(net, ys, instances, used + shape, of_y), _share(net, seen.z, len(chunk.choice), used, of_z)


@njit
def _share(net, x, rows, width, kernel):
    used, outputs = _used(net.layout), _first_width(net.layout, place.Q)
    values = numbers(rows * outputs)
    layer(net.code, x, 0, width, rows, width, net.w, kernel, net.w, -1, 0, values, 0, outputs, outputs, 0)
    return Shared(x, width, used, kernel, _turned(net, place.Q, kernel, used), values, numbers(rows * outputs))


@njit
def reverse_shared(net, shared, rows, dx):
    """Reverse of a part of :func:`share_first_layer`: gradients of its kernel and, into ``dx``, embeddings."""
    outputs = _first_width(net.layout, place.Q)
    add_outer(net, shared.x, 0, shared.width, rows, shared.width, shared.d, 0, outputs, shared.kernel)
    down = numbers(rows * shared.used)
    layer(
        net.code, shared.d, 0, outputs, rows, outputs, shared.turned, 0, shared.turned, -1, 0,
        down, 0, shared.used, shared.used, 0,
    )  # fmt: skip
    add_to(dx, 0, down, 0, rows * shared.used)


@njit
def score_stages(net, chunk, seen, heads, of_job, of_decision, c0, c1):
    """Scores q of the candidates from c0 to c1."""
    layout, head = net.layout, heads.q
    at = entry_of(place.Q)
    width, classes = layout[place.NUM_FEATURES] + _used(layout), layout[place.CLASS_WIDTH]
    stride = layout[place.NUM_FEATURES] + layout[place.EMBEDDING]
    inputs, outputs = width + classes, _first_width(layout, place.Q)
    kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
    base = head.down
    for row in range(c1 - c0):
        candidate = c0 + row
        position = row * inputs
        copy_to(head.inputs, position, seen.xe, chunk.candidate_node[candidate] * stride, width)
        for k in range(classes):
            head.inputs[position + width + k] = chunk.candidate_class[candidate, k]
        run = chunk.candidate_run[candidate]
        copy_to(base, row * outputs, of_job.values, chunk.run_instance[run] * outputs, outputs)
        add_to(base, row * outputs, of_decision.values, chunk.run_decision[run] * outputs, outputs)
        if bias >= 0:
            add_to(base, row * outputs, net.w, bias, outputs)
    first = head.acts if layout[at] > 1 else head.scores
    layer(
        net.code, head.inputs, 0, inputs, c1 - c0, inputs, net.w, kernel, base, 0, outputs,
        first, 0, outputs, outputs, layout[at] > 1,
    )  # fmt: skip
    _forward(net, place.Q, head, 1, c1 - c0, head.scores)


@njit
def reverse_stages(net, chunk, seen, heads, of_job, of_decision, c0, c1):
    """Reverse of :func:`score_stages`, from the gradients of the scores."""
    layout, head = net.layout, heads.q
    at = entry_of(place.Q)
    width, outputs = _used(layout), _first_width(layout, place.Q)
    inputs = layout[place.NUM_FEATURES] + width + layout[place.CLASS_WIDTH]
    d, rows = head.down, c1 - c0
    _backward(net, place.Q, head, 1, rows, head.d)
    add_rows(net, d, 0, rows, outputs, layout[at + HEAD + 1])
    add_outer(net, head.inputs, 0, inputs, rows, inputs, d, 0, outputs, layout[at + HEAD])
    down = head.inputs
    layer(net.code, d, 0, outputs, rows, outputs, heads.of_e, 0, heads.of_e, -1, 0, down, 0, width, width, 0)
    for row in range(rows):
        add_to(seen.de, chunk.candidate_node[c0 + row] * width, down, row * width, width)
        run = chunk.candidate_run[c0 + row]
        add_to(of_job.d, chunk.run_instance[run] * outputs, d, row * outputs, outputs)
        add_to(of_decision.d, chunk.run_decision[run] * outputs, d, row * outputs, outputs)


# ---- w and d: limits and idle slots for the chosen stage -------------------------------------------------------------


@njit
def _chosen(chunk, decision):
    """Node and instance of the stage that a decision chose."""
    choice = chunk.choice[decision]
    return chunk.candidate_node[choice], chunk.run_instance[chunk.candidate_run[choice]]


@njit
def _see(layout, chunk, seen, context, decisions, out):
    """Write what w or d sees of the stages that some decisions chose."""
    features, width = layout[place.NUM_FEATURES], layout[place.EMBEDDING]
    x, e, y, s, z = context_parts(layout, context)
    position = 0
    for decision in decisions:
        node, instance = _chosen(chunk, decision)
        node *= features + width
        copy_to(out, position, seen.xe, node, x)
        copy_to(out, position + x, seen.xe, node + features, e)
        copy_to(out, position + x + e, seen.y, instance * width, y)
        position += x + e + y
        for k in range(s):
            out[position + k] = chunk.shape[instance, k]
        copy_to(out, position + s, seen.z, decision * width, z)
        position += s + z


@njit
def _return(layout, chunk, seen, context, decisions, d):
    """Reverse of :func:`_see`."""
    width = layout[place.EMBEDDING]
    x, e, y, s, z = context_parts(layout, context)
    position = 0
    for decision in decisions:
        node, instance = _chosen(chunk, decision)
        add_to(seen.de, node * width, d, position + x, e)
        add_to(seen.dy, instance * width, d, position + x + e, y)
        add_to(seen.dz, decision * width, d, position + x + e + y + s, z)
        position += x + e + y + s + z


@njit
def score_limits(net, chunk, seen, heads, k0, k1):
    """Scores w of all limits for the decisions from k0 to k1; clears the gradients."""
    layout, head = net.layout, heads.w
    at = entry_of(place.W)
    levels, rows = len(chunk.limits), k1 - k0
    _see(layout, chunk, seen, layout[place.CONTEXT], chunk.limit_decision[k0:k1], head.inputs)
    if layout[place.LIMIT] == place.LIMIT_OUTPUT:
        _forward(net, place.W, head, 0, rows, heads.outputs)
        for row in range(rows):
            for k in range(levels):
                head.scores[row * levels + k] = heads.outputs[row * layout[at + 2] + chunk.limits[k] - 1]
    else:
        known, outputs = layout[at + HEAD + 2] - 1, _first_width(layout, place.W)
        kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
        layer(
            net.code, head.inputs, 0, known, rows, known, net.w, kernel, net.w, bias, 0,
            heads.base, 0, outputs, outputs, 0,
        )  # fmt: skip
        slope = np.float32(LEAK if layout[at] > 1 else 1.0)
        first = head.acts if layout[at] > 1 else head.scores
        by_limit = net.w[kernel + known * outputs : kernel + (known + 1) * outputs]
        for row in range(rows):
            base = heads.base[row * outputs : (row + 1) * outputs]
            for k in range(levels):
                position = (row * levels + k) * outputs
                acts = first[position : position + outputs]
                for j in range(outputs):
                    value = base[j] + heads.limits[k] * by_limit[j]
                    acts[j] = value if value > np.float32(0.0) else value * slope
        _forward(net, place.W, head, 1, rows * levels, head.scores)
    head.d[: rows * levels] = 0.0


@njit
def reverse_limits(net, chunk, seen, heads, k0, k1):
    """Reverse of :func:`score_limits`, from the gradients of the scores."""
    layout, head = net.layout, heads.w
    at = entry_of(place.W)
    levels, rows = len(chunk.limits), k1 - k0
    d = head.down
    if layout[place.LIMIT] == place.LIMIT_OUTPUT:
        width = layout[at + 2]
        heads.outputs[: rows * width] = 0.0
        for row in range(rows):
            for k in range(levels):
                heads.outputs[row * width + chunk.limits[k] - 1] = head.d[row * levels + k]
        _backward(net, place.W, head, 0, rows, heads.outputs)
    else:
        known, outputs = layout[at + HEAD + 2] - 1, _first_width(layout, place.W)
        kernel, bias = layout[at + HEAD], layout[at + HEAD + 1]
        _backward(net, place.W, head, 1, rows * levels, head.d)
        by_limit = net.grad[kernel + known * outputs : kernel + (known + 1) * outputs]
        for row in range(rows):
            base = heads.base[row * outputs : (row + 1) * outputs]
            base[:] = 0.0
            for k in range(levels):
                values = d[(row * levels + k) * outputs : (row * levels + k + 1) * outputs]
                for j in range(outputs):
                    base[j] += values[j]
                    by_limit[j] += heads.limits[k] * values[j]
        add_rows(net, heads.base, 0, rows, outputs, bias)
        add_outer(net, head.inputs, 0, known, rows, known, heads.base, 0, outputs, kernel)
        layer(
            net.code, heads.base, 0, outputs, rows, outputs, heads.of_known, 0, heads.of_known, -1, 0,
            d, 0, known, known, 0,
        )  # fmt: skip
    _return(layout, chunk, seen, layout[place.CONTEXT], chunk.limit_decision[k0:k1], d)


@njit
def score_delays(net, chunk, seen, heads, b0, b1):
    """Scores d of the decisions that are free to idle, from b0 to b1."""
    _see(net.layout, chunk, seen, net.layout[place.DELAY_CONTEXT], chunk.delay_decision[b0:b1], heads.d.inputs)
    _forward(net, place.D, heads.d, 0, b1 - b0, heads.d.scores)


@njit
def reverse_delays(net, chunk, seen, heads, b0, b1):
    """Reverse of :func:`score_delays`, from the gradients of the scores."""
    _backward(net, place.D, heads.d, 0, b1 - b0, heads.d.d)
    _return(net.layout, chunk, seen, net.layout[place.DELAY_CONTEXT], chunk.delay_decision[b0:b1], heads.d.down)
