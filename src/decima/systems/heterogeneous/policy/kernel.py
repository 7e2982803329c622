"""Compiled network that chooses a node among those it can decide, and records its choice.

The same network as :mod:`decima.systems.heterogeneous.policy.network`. A job is embedded again when one of its nodes
was assigned, without those that are; what node and job contribute to the first layer of the score network is kept until
then, so that a decision costs the rest of the score network for every node that can be decided.
"""

from math import log

import numpy as np

from decima.core.decision import CompiledDecision
from decima.core.jit import njit
from decima.core.record import BOUND, F32, F64, I64, FieldGroup, RecordType, fields
from decima.learning.choosing import draw, weigh
from decima.learning.dense import call_dense, matrix_at, rows_at
from decima.learning.perceptron import LEAK
from decima.systems.heterogeneous.fields import plan_at
from decima.systems.heterogeneous.policy.architecture import HEAD, JOBS, NET_SIZE, NETS, NODES
from decima.systems.heterogeneous.schedulers.priorities import SCALE

INPUT, F, G, H, JOB_F, JOB_G, CLUSTER_F, CLUSTER_G, Q = range(len(NETS))
NONE = -1
BLOCK = 64  # rows that go through a perceptron at once
_NODES, _JOBS, _LEAK = np.float32(1.0 / NODES), np.float32(1.0 / JOBS), np.float32(LEAK)


NETWORK = FieldGroup.of(
    "network",
    fields(I64, None, dense="the compiled dense layer", features="width of x", embedding="width of e"),
    fields(I64, None, first_width="width of the first layer of q", widest="widest layer"),
    fields(I64, None, layers="layers of Eq. 7; 0: all the way up", graph="embeddings are used"),
    fields(I64, None, logarithms="features are logarithms"),
    fields(I64, None, message_f="children are transformed"),
    fields(I64, "layout", BOUND, layout="where the layers of each perceptron are"),
    fields(F32, "weights", BOUND, weights="all kernels and biases"),
    fields(I64, "changing", BOUND, columns="columns of the features that change, or -1"),
)
INSTANCE = FieldGroup.of(
    "what is known of the instance",
    fields(F32, "nodes x features", BOUND, x="features; those that change are 0"),
    fields(F32, "nodes", BOUND, outgoing="summed features of outgoing edges"),
    fields(F64, "jobs", BOUND, unit="time unit of a job, s"),
    fields(I64, "jobs + 1", BOUND, first_node="first node of a job"),
    fields(I64, "nodes", BOUND, upwards="nodes of each job, by the longest path down"),
)
CHOICE = FieldGroup.of(
    "how it chooses",
    fields(I64, None, greedy="most probable; else drawn", ready="this run has begun", failed="a score was not finite"),
    fields(I64, None, teaching="there is a teacher"),
    fields(F64, None, share="probability that the teacher's choice is taken"),
    fields(F64, "2 nodes", BOUND, draws="uniform numbers"),
    fields(F64, "nodes", BOUND, teacher="the teacher's priority"),
)
WORK = FieldGroup.of(
    "workspace",
    fields(I64, None, decisions="decisions so far", arrived="nodes that arrived", active="active jobs"),
    fields(I64, None, dirty="job that lost a node, or -1"),
    fields(F64, None, length="length of the schedule so far, s"),
    fields(I64, "jobs", left="nodes left", active_jobs="jobs with nodes left"),
    fields(F64, "jobs", left_time="their mean time, s"),
    fields(I64, "nodes", member="nodes left of each job, those of rows", in_order="the same in their order"),
    fields(I64, "nodes", row_of="row of a node, from its job's first node on"),
    fields(F32, "nodes x embedding", edges="h of the outgoing edges", base="h + x", e="embeddings", sums="of messages"),
    fields(F32, "nodes x embedding", out="of perceptrons"),
    fields(F32, "nodes x (features + embedding)", rows="x and e"),
    fields(F32, "nodes x first", first="part of the first layer of q that node and job have"),
    fields(F32, "jobs x embedding", y="summaries of jobs", cluster_f="what is summed for z"),
    fields(F32, "first", shared="part of the first layer that all have"),
    fields(F32, "input", total="sums", z="summary of all jobs"),
    fields(F32, "2 x block x widest", hidden="activations inside a perceptron"),
    fields(F32, "nodes x first", inside="activations of the first layer"),
    fields(F32, "nodes", score="scores"),
    fields(F64, "nodes", weight="exponentials of scores"),
)
DONE = FieldGroup.of(
    "what was done, by decision or by node",
    fields(I64, "nodes", chosen="node taken", wanted="node that the teacher wants, or the same"),
    fields(I64, "nodes", offered="first decision at which a node can be decided"),
    fields(I64, "jobs", since="first decision at which a job is active"),
    fields(F64, "nodes", log_prob="log-probability of the wanted node", time="time, s", grown="length before, s"),
)
POLICY = RecordType("heterogeneous policy", NETWORK, INSTANCE, CHOICE, WORK, DONE)
policy_at = POLICY.at


@njit
def changing_feature(index, left, left_time, size, unit, logarithms):
    """A feature of :data:`decima.systems.heterogeneous.schedulers.priorities.CHANGING` from the state of a job."""
    value = float(left)
    if index == 1:
        value = left_time / unit
    elif index == 2:
        value = float(size - left)
    return np.float32(log(1.0 + value) if logarithms else value * SCALE)


@njit
def _run(policy, net, first_layer, x, x_first, x_stride, rows, out, o_first, o_stride):
    """Send rows through the layers of a perceptron from one layer on.

    Some go at a time, so that activations stay in the cache.
    """
    at = net * NET_SIZE
    count = policy.layout[at]
    w = policy.weights
    for begin in range(0, rows, BLOCK):
        some = min(BLOCK, rows - begin)
        source = rows_at(x, x_first + begin * x_stride, x_stride)
        for layer in range(first_layer, count):
            entry = at + HEAD + 4 * layer
            outputs = policy.layout[entry + 3]
            last = layer == count - 1
            target = rows_at(policy.hidden, (layer & 1) * BLOCK * policy.widest, outputs)
            if last:
                target = rows_at(out, o_first + begin * o_stride, o_stride)
            matrix = matrix_at(w, policy.layout[entry], policy.layout[entry + 2], outputs)
            bias = rows_at(w, policy.layout[entry + 1], 0)
            call_dense(policy.dense, source, some, matrix, bias, target, 0 if last else 1)
            source = target


@njit
def _begin(state, policy):
    """Forget the last run; h of all outgoing edges."""
    policy.ready = 1
    policy.decisions = 0
    policy.arrived = 0
    policy.active = 0
    policy.dirty = NONE
    policy.length = 0.0
    for node in range(state.nodes):
        policy.member[node] = policy.upwards[node]
        policy.in_order[node] = node
        policy.offered[node] = NONE
    for job in range(state.jobs):
        policy.left[job] = policy.first_node[job + 1] - policy.first_node[job]
        policy.since[job] = NONE
        policy.left_time[job] = 0.0
    for node in range(state.nodes):
        policy.left_time[state.job[node]] += state.mean_time[node]
    width = policy.embedding
    if policy.graph:
        if policy.layout[H * NET_SIZE] > 0:
            _run(policy, H, 0, policy.outgoing, 0, 1, state.nodes, policy.edges, 0, width)
        else:
            for offset in range(state.nodes * width):
                policy.edges[offset] = np.float32(0.0)


@njit
def _copy(source, start, to, at, count):
    for k in range(count):
        to[at + k] = source[start + k]


@njit
def _add(source, start, to, at, count):
    for k in range(count):
        to[at + k] += source[start + k]


@njit
def _drop(nodes, first, count, node):
    """Remove a node from a list."""
    while nodes[first] != node:
        first += 1
        count -= 1
    for offset in range(first, first + count - 1):
        nodes[offset] = nodes[offset + 1]


@njit
def _gather(policy, job):
    """Give each node left of a job a row with its features, children first."""
    first, size = policy.first_node[job], policy.first_node[job + 1] - policy.first_node[job]
    nodes, features = policy.left[job], policy.features
    both = features + policy.embedding
    member, row_of, x, rows = policy.member, policy.row_of, policy.x, policy.rows
    for row in range(nodes):
        node = member[first + row]
        row_of[node] = first + row
        _copy(x, node * features, rows, row * both, features)
    for index in range(3):
        column = policy.columns[index]
        if column != NONE:
            value = changing_feature(index, nodes, policy.left_time[job], size, policy.unit[job], policy.logarithms)
            for row in range(nodes):
                rows[row * both + column] = value


@njit
def _messages(state, policy, row, first, source):
    """Sum rows of ``source`` over the children of the node of a row into ``sums``."""
    width = policy.embedding
    sums, row_of, children = policy.sums, policy.row_of, state.child
    node = policy.member[first + row]
    for k in range(row * width, (row + 1) * width):
        sums[k] = np.float32(0.0)
    for edge in range(state.child_start[node], state.child_start[node + 1]):
        _add(source, (row_of[children[edge]] - first) * width, sums, row * width, width)


@njit
def _embed_upwards(state, policy, nodes, first):
    """Embeddings with messages that go all the way up.

    Nodes whose children are all embedded go at once.
    """
    width = policy.embedding
    begin = 0
    while begin < nodes:
        end = begin
        while end < nodes:
            node = policy.member[first + end]
            last = NONE
            for edge in range(state.child_start[node], state.child_start[node + 1]):
                last = max(last, policy.row_of[state.child[edge]])
            if last >= first + begin:
                break
            _messages(state, policy, end, first, policy.out)
            end += 1
        start, some = begin * width, end - begin
        if begin > 0:  # the first ones have no children
            _run(policy, G, 0, policy.sums, start, width, some, policy.e, start, width)
            _add(policy.base, start, policy.e, start, some * width)
        if policy.message_f:
            _run(policy, F, 0, policy.e, start, width, some, policy.out, start, width)
        else:
            _copy(policy.e, start, policy.out, start, some * width)
        begin = end


@njit
def _embed(state, policy, job):
    """Compute features, embeddings, and the part of q's first layer from node and job.

    The number of nodes left is a feature of all of them, so that each decision changes all of their embeddings. Nodes
    that were assigned send no messages, and q is asked only for nodes that can be decided before the next embedding.
    """
    first, nodes = policy.first_node[job], policy.left[job]
    _gather(policy, job)
    features = policy.features
    width = policy.embedding
    both = features + width
    entry = Q * NET_SIZE + HEAD
    kernel, q_width = policy.layout[entry], policy.first_width
    none = rows_at(policy.weights, -1, 0)
    bias = none
    if policy.graph:
        base, e = policy.base, policy.e
        _run(policy, INPUT, 0, policy.rows, 0, both, nodes, base, 0, width)
        for row in range(nodes):
            _add(policy.edges, policy.member[first + row] * width, base, row * width, width)
        _copy(base, 0, e, 0, nodes * width)
        if policy.layers == 0:
            _embed_upwards(state, policy, nodes, first)
        for _ in range(policy.layers):
            source = e
            if policy.message_f:
                _run(policy, F, 0, e, 0, width, nodes, policy.out, 0, width)
                source = policy.out
            for row in range(nodes):
                _messages(state, policy, row, first, source)
            _run(policy, G, 0, policy.sums, 0, width, nodes, e, 0, width)
            _add(base, 0, e, 0, nodes * width)
        for row in range(nodes):
            _copy(e, row * width, policy.rows, row * both + features, width)
        _summarise(policy, job, nodes)
        y, bias = rows_at(policy.y, job * width, width), rows_at(policy.shared, 0, 0)
        call_dense(
            policy.dense, y, 1, matrix_at(policy.weights, kernel + both * q_width, width, q_width), none, bias, 0
        )
    matrix = matrix_at(policy.weights, kernel, both, q_width)
    row = 0
    while row < nodes:
        end = row
        while end < nodes and (state.decision > 0 or state.waiting[policy.member[first + end]] == 0):
            end += 1
        if end > row:
            x, to = rows_at(policy.rows, row * both, both), rows_at(policy.first, (first + row) * q_width, q_width)
            call_dense(policy.dense, x, end - row, matrix, bias, to, 0)
        row = end + 1


@njit
def _summarise(policy, job, nodes):
    """Summary y of a job, and what is summed of it for z."""
    width = policy.embedding
    both = policy.features + width
    first = policy.first_node[job]
    total, source = policy.total, policy.e
    if policy.message_f:
        _run(policy, JOB_F, 0, policy.rows, 0, both, nodes, policy.out, 0, width)
        source = policy.out
    for k in range(width):
        total[k] = np.float32(0.0)
    in_order, row_of = policy.in_order, policy.row_of
    for offset in range(first, first + nodes):
        _add(source, (row_of[in_order[offset]] - first) * width, total, 0, width)
    for k in range(width):
        total[k] *= _NODES
    _run(policy, JOB_G, 0, total, 0, width, 1, policy.y, job * width, width)
    if policy.message_f:
        _run(policy, CLUSTER_F, 0, policy.y, job * width, width, 1, policy.cluster_f, job * width, width)
    else:
        _copy(policy.y, job * width, policy.cluster_f, job * width, width)


@njit
def _bring_up_to_date(state, policy):
    """Jobs that arrived or lost a node are embedded; z."""
    if policy.dirty != NONE:
        left, first = policy.left[policy.dirty], policy.first_node[policy.dirty]
        if left > 0:
            node = policy.chosen[policy.decisions - 1]
            _drop(policy.member, first, left + 1, node)
            _drop(policy.in_order, first, left + 1, node)
            _embed(state, policy, policy.dirty)
        else:
            kept = 0
            for index in range(policy.active):
                job = policy.active_jobs[index]
                if job != policy.dirty:
                    policy.active_jobs[kept] = job
                    kept += 1
            policy.active = kept
        policy.dirty = NONE
    while policy.arrived < state.nodes:
        node = state.arriving[policy.arrived]
        if state.arrival[node] > state.now:
            break
        policy.arrived += 1
        job = state.job[node]
        if policy.since[job] == NONE:
            policy.since[job] = policy.decisions
            policy.active_jobs[policy.active] = job
            policy.active += 1
            _embed(state, policy, job)
    width = policy.embedding if policy.graph else 0
    if policy.graph:
        for k in range(width):
            total = np.float32(0.0)
            for index in range(policy.active):
                total += policy.cluster_f[policy.active_jobs[index] * width + k]
            policy.total[k] = total * _JOBS
        _run(policy, CLUSTER_G, 0, policy.total, 0, width, 1, policy.z, 0, width)


@njit
def _score(state, policy):
    """Scores of all nodes that can be decided, in the order of the pool."""
    features = policy.features
    width = policy.embedding if policy.graph else 0
    entry = Q * NET_SIZE + HEAD
    kernel = policy.layout[entry] + (features + 2 * width) * policy.first_width
    q_width = policy.first_width
    if policy.graph:
        z, matrix = rows_at(policy.z, 0, width), matrix_at(policy.weights, kernel, width, q_width)
        bias, shared = rows_at(policy.weights, policy.layout[entry + 1], 0), rows_at(policy.shared, 0, q_width)
        call_dense(policy.dense, z, 1, matrix, bias, shared, 0)
    else:
        for k in range(q_width):
            policy.shared[k] = policy.weights[policy.layout[entry + 1] + k]
    for row in range(state.size):
        offset = policy.row_of[state.pool[row]] * q_width
        for k in range(q_width):
            value = policy.first[offset + k] + policy.shared[k]
            policy.inside[row * q_width + k] = value if value > 0.0 else value * _LEAK
    _run(policy, Q, 1, policy.inside, 0, q_width, state.size, policy.score, 0, 1)


@njit
def _note_assigned(state, policy, node):
    job = state.job[node]
    policy.left[job] -= 1
    policy.left_time[job] = max(0.0, policy.left_time[job] - state.mean_time[node])


@CompiledDecision
def choose(address):
    """Write the pool index of the node to decide next into ``taken``."""
    state = plan_at(address)
    policy = policy_at(state.policy)
    if not policy.ready:
        _begin(state, policy)
    if policy.decisions > 0:
        before = policy.chosen[policy.decisions - 1]
        policy.length = max(policy.length, state.finish[before])
    step = policy.decisions
    _bring_up_to_date(state, policy)
    _score(state, policy)
    largest = -np.inf
    best = 0
    wanted = NONE
    most = -np.inf
    sane = 0.0
    for row in range(state.size):
        node = state.pool[row]
        if policy.offered[node] == NONE:
            policy.offered[node] = step
        score = float(policy.score[row])
        sane += score * 0.0
        if score > largest or (score == largest and node < state.pool[best]):
            largest = score
            best = row
        if policy.teaching and (
            wanted == NONE or policy.teacher[node] > most
            or (policy.teacher[node] == most and node < state.pool[wanted])
        ):  # fmt: skip
            most = policy.teacher[node]
            wanted = row
    if sane != 0.0:
        policy.failed = 1
    total = weigh(policy.score, policy.weight, state.size)
    taken = best
    if not policy.greedy:
        taken = draw(policy.weight, state.size, policy.draws[2 * step] * total)
    if wanted == NONE:
        wanted = taken
    elif policy.draws[2 * step + 1] < policy.share:
        taken = wanted
    policy.wanted[step] = state.pool[wanted]
    policy.log_prob[step] = float(policy.score[wanted]) - largest - log(total)
    node = state.pool[taken]
    policy.chosen[step] = node
    policy.time[step] = state.now
    policy.grown[step] = policy.length
    policy.decisions = step + 1
    _note_assigned(state, policy, node)
    policy.dirty = state.job[node]
    state.taken = taken
