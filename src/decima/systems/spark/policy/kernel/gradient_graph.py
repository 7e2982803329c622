"""Embeddings of recorded job graphs in compiled code, forwards and backwards.

Stages and jobs pass through the network level by level.

Source: §5.1 Eq. 1.
"""

from collections import namedtuple

import numpy as np

from decima.core.jit import njit
from decima.learning.backward import ROWS, Net, add_to, backward, copy_to, forward, leak, total_width, transpose, widest
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel.layout import entry_of

#: x and e of all nodes, y of all instances, z of all decisions, and the gradients of e, y and z.
Seen = namedtuple("Seen", ["xe", "y", "z", "de", "dy", "dz"])


@njit
def numbers(count):
    """That number of zeros, at least one: an array of no length has no address."""
    return np.zeros(max(1, count), np.float32)


@njit
def new_net(code, layout, weights):
    """Weights with their transposed kernels, gradients of 0 and workspace."""
    wt = np.zeros_like(weights)
    most, room = 1, 1
    for which in range(len(place.NETS)):
        transpose(layout, entry_of(which), weights, wt)
        most = max(most, widest(layout, entry_of(which)))
        room = max(room, total_width(layout, entry_of(which)))
    scratch = np.empty((1 + 2 * most) * ROWS, np.float32)
    scratch[:ROWS] = 1.0
    return Net(code, layout, weights, wt, np.zeros_like(weights), np.empty(ROWS * room, np.float32), scratch)


@njit
def new_seen(layout, chunk):
    """Room for the embeddings of a chunk, and its x."""
    nodes, features = chunk.x.shape
    width, instances, decisions = layout[place.EMBEDDING], len(chunk.shape), len(chunk.choice)
    xe = numbers(nodes * (features + width))
    for node in range(nodes):
        for k in range(features):
            xe[node * (features + width) + k] = chunk.x[node, k]
    return Seen(
        xe, numbers(instances * width), numbers(decisions * width),
        numbers(nodes * width), numbers(instances * width), numbers(decisions * width),
    )  # fmt: skip


@njit
def _run(net, which, x, x_first, x_stride, rows, out, out_first, out_stride):
    """Send rows through a perceptron, in blocks whose activations stay in the nearest cache."""
    at = entry_of(which)
    for first in range(0, rows, ROWS):
        forward(
            net, at, 0, net.layout[at], x, x_first + first * x_stride, x_stride, min(ROWS, rows - first),
            net.acts, ROWS, out, out_first + first * out_stride, out_stride,
        )  # fmt: skip


@njit
def _reverse(net, which, x, x_first, x_stride, rows, up, up_first, down, down_first, down_stride):
    """Reverse of :func:`_run`.

    It computes the activations of a block once more, which is faster than to keep them.
    ``up`` has the gradients of the outputs, and loses them where these are rectified; ``down`` receives those of the
    inputs, if ``down_first`` is not below 0.
    """
    at = entry_of(which)
    width, rectified = net.layout[at + 2], net.layout[at + 1] == 1
    output = ROWS * (total_width(net.layout, at) - width)
    for first in range(0, rows, ROWS):
        count = min(ROWS, rows - first)
        start, above = x_first + first * x_stride, up_first + first * width
        if net.layout[at]:
            end = net.layout[at] if rectified else net.layout[at] - 1
            forward(net, at, 0, end, x, start, x_stride, count, net.acts, ROWS, net.acts, output, width)
        if rectified:
            leak(up, above, net.acts, output, count * width)
        position = down_first + first * down_stride if down_first >= 0 else -1
        backward(net, at, 0, x, start, x_stride, count, net.acts, ROWS, up, above, down, position, down_stride)


@njit
def _senders(chunk, nodes):
    """Slot of every node among those with a parent, -1 without one; their number."""
    sends = np.zeros(nodes, np.int64)
    sends[chunk.edge_source] = 1
    return np.where(sends == 1, np.cumsum(sends) - 1, -1), sends.sum()


# What the reverse needs of the graph's embedding: slots of the senders, embeddings that they send, sums of messages and
# of stages, sums or means of jobs.
_Graph = namedtuple("_Graph", ["slot", "senders", "sent", "sums", "jobs", "cluster"])


@njit
def embed(net, chunk, seen):
    """Write e, y and z of a chunk; returns what the reverse needs."""
    nodes, features = chunk.x.shape
    instances, decisions = len(chunk.shape), len(chunk.choice)
    width = net.layout[place.EMBEDDING]
    stride = features + width
    xe, y, z = seen.xe, seen.y, seen.z
    slot, senders = _senders(chunk, nodes)
    graph = _Graph(
        slot, senders, numbers(senders * width), numbers(nodes * width), numbers(instances * width),
        numbers(decisions * width),
    )  # fmt: skip
    message, part = numbers(senders * width), numbers(max(nodes, instances) * width)
    _run(net, place.INPUT, xe, 0, stride, nodes, xe, features, stride)
    first, edge, sent = 0, 0, 0
    for level in range(len(chunk.level_sizes)):
        count = chunk.level_sizes[level]
        for _ in range(chunk.edge_level_sizes[level]):
            target = (first + chunk.edge_target[edge]) * width
            add_to(graph.sums, target, message, slot[chunk.edge_source[edge]] * width, width)
            edge += 1
        if level > 0:
            _run(net, place.STAGE_G, graph.sums, first * width, width, count, part, 0, width)
        begun = sent
        for node in range(count):
            position = (first + node) * stride + features
            if level > 0:
                add_to(xe, position, part, node * width, width)
            if slot[first + node] >= 0:
                copy_to(graph.sent, sent * width, xe, position, width)
                sent += 1
        _run(net, place.STAGE_F, graph.sent, begun * width, width, sent - begun, message, begun * width, width)
        first += count
    _run(net, place.JOB_F, xe, 0, stride, nodes, part, 0, width)
    for node in range(nodes):
        add_to(graph.jobs, chunk.node_instance[node] * width, part, node * width, width)
    _run(net, place.JOB_G, graph.jobs, 0, width, instances, y, 0, width)
    _run(net, place.CLUSTER_F, y, 0, width, instances, part, 0, width)
    for pair in range(len(chunk.pair_instance)):
        add_to(graph.cluster, chunk.pair_decision[pair] * width, part, chunk.pair_instance[pair] * width, width)
    if net.layout[place.CLUSTER_MEAN]:
        _scale_by_jobs(chunk, graph.cluster, width)
    _run(net, place.CLUSTER_G, graph.cluster, 0, width, decisions, z, 0, width)
    return graph


@njit
def _scale_by_jobs(chunk, values, width):
    """Divide the row of every decision by its number of active jobs."""
    jobs = np.bincount(chunk.pair_decision, minlength=len(chunk.choice))
    for decision in range(len(jobs)):
        values[decision * width : (decision + 1) * width] /= np.float32(max(jobs[decision], 1))


@njit
def reverse_embed(net, chunk, seen, graph):
    """Reverse of :func:`embed`, from the gradients of e, y and z."""
    nodes, features = chunk.x.shape
    instances, decisions = len(chunk.shape), len(chunk.choice)
    width = net.layout[place.EMBEDDING]
    stride = features + width
    de, dy = seen.de, seen.dy
    slot, senders = graph.slot, graph.senders
    clusters, jobs = numbers(decisions * width), numbers(instances * width)
    _reverse(net, place.CLUSTER_G, graph.cluster, 0, width, decisions, seen.dz, 0, clusters, 0, width)
    if net.layout[place.CLUSTER_MEAN]:
        _scale_by_jobs(chunk, clusters, width)
    for pair in range(len(chunk.pair_instance)):
        add_to(jobs, chunk.pair_instance[pair] * width, clusters, chunk.pair_decision[pair] * width, width)
    part, ups = numbers(max(nodes, instances) * width), numbers(nodes * width)
    _reverse(net, place.CLUSTER_F, seen.y, 0, width, instances, jobs, 0, part, 0, width)
    add_to(dy, 0, part, 0, instances * width)
    _reverse(net, place.JOB_G, graph.jobs, 0, width, instances, dy, 0, jobs, 0, width)
    for node in range(nodes):
        copy_to(ups, node * width, jobs, chunk.node_instance[node] * width, width)
    down = numbers(nodes * stride)
    _reverse(net, place.JOB_F, seen.xe, 0, stride, nodes, ups, 0, down, 0, stride)
    for node in range(nodes):
        add_to(de, node * width, down, node * stride + features, width)

    message = numbers(senders * width)
    edge, first, sent = len(chunk.edge_source), nodes, senders
    for back in range(len(chunk.level_sizes)):
        level = len(chunk.level_sizes) - 1 - back
        count = chunk.level_sizes[level]
        first -= count
        begun = sent
        for node in range(first, first + count):
            begun -= slot[node] >= 0
        position = begun * width
        _reverse(net, place.STAGE_F, graph.sent, position, width, sent - begun, message, position, part, 0, width)
        for node in range(first, first + count):
            if slot[node] >= 0:
                add_to(de, node * width, part, (slot[node] - begun) * width, width)
        sent = begun
        if level == 0:
            continue
        position = first * width
        copy_to(ups, 0, de, position, count * width)
        _reverse(net, place.STAGE_G, graph.sums, position, width, count, ups, 0, part, 0, width)
        for _ in range(chunk.edge_level_sizes[level]):
            edge -= 1
            target = slot[chunk.edge_source[edge]] * width
            add_to(message, target, part, chunk.edge_target[edge] * width, width)
    _reverse(net, place.INPUT, seen.xe, 0, stride, nodes, de, 0, part, -1, width)
