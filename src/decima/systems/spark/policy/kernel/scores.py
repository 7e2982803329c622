"""Scores of stages or pairs (stage, class) and of limits, with choices (§5.2, §7.3)."""

from math import exp, log, log1p

import numpy as np

from decima.core.decision import call_decide
from decima.core.jit import njit
from decima.learning.choosing import best_of
from decima.learning.dense import call_dense, matrix_at, rows_at
from decima.systems.spark.fields import NONE
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LOG_SCALE
from decima.systems.spark.policy.features import of_largest
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel.embedding import run_layers
from decima.systems.spark.policy.kernel.layout import context_parts, entry_of
from decima.systems.spark.policy.kernel.observation import copy_numbers
from decima.systems.spark.rules.choices import job_allocation
from decima.systems.spark.rules.classes import ANY_CLASS, fits_class, fitting_offers
from decima.systems.spark.rules.frontier import stage_room

# What the layout says of a layer.
_KERNEL, _BIAS, _INPUTS, _OUTPUTS = range(4)


@njit
def _first_layer(state, net, part):
    """A number of the entry of a perceptron's first layer."""
    return policy_of(state).net_layout[entry_of(net) + place.NET_HEAD + part]


@njit
def _rectifies_first(state, net):
    return 1 if policy_of(state).net_layout[entry_of(net)] > 1 else 0


@njit
def list_candidates(state):
    """List the candidates in ``net_candidates``, jobs by arrival, stages by index; return their number.

    That is the frontier, or with classes its pairs with the classes that fit and are on offer, the smallest first.
    """
    count = 0
    for index in range(state.num_active):
        job = state.active[index]
        if state.job_frontier[job] > 0:
            for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
                if state.stage_in_frontier[stage]:
                    count = _list_pairs(state, stage, count)
    return count


@njit
def _list_pairs(state, stage, count):
    """Append a stage of the frontier to the candidates, once per class; return their number."""
    policy = policy_of(state)
    if policy.net_layout[place.CLASS_WIDTH] == 0:
        policy.net_candidates[count] = stage
        policy.net_candidate_class[count] = ANY_CLASS
        return count + 1
    smallest = NONE
    for executor_class in range(state.num_classes):
        if not fits_class(state, stage, executor_class):
            continue
        if smallest == NONE:
            smallest = executor_class
        if state.class_offers[executor_class] > 0:
            policy.net_candidates[count] = stage
            policy.net_candidate_class[count] = executor_class
            _see_class(state, executor_class, executor_class - smallest, count * policy.net_layout[place.CLASS_WIDTH])
            count += 1
    return count


@njit
def _see_class(state, executor_class, larger, position):
    """Put what q sees of a class into ``net_class``, in the order of ``CLASS_INPUTS``."""
    policy = policy_of(state)
    memory, cpu = state.class_memory, state.class_cpu
    policy.net_class[position] = np.float32(of_largest(state, memory[executor_class], memory))
    policy.net_class[position + 1] = np.float32(of_largest(state, cpu[executor_class], cpu))
    policy.net_class[position + 2] = np.float32(log1p(float(state.class_offers[executor_class])) * LOG_SCALE)
    policy.net_class[position + 3] = np.float32(larger)


@njit
def ask_python(state, net, count):
    """Let a network in Python put ``count`` scores of q, w or d into ``net_score``."""
    policy = policy_of(state)
    policy.net_asked = net
    policy.net_asked_scores = count
    call_decide(policy.net_ask, state)


@njit
def score_stages(state, count):
    """Put q of the candidates into ``net_score``, computing z's part of the first layer once."""
    policy = policy_of(state)
    if policy.net_ask:
        ask_python(state, place.Q, count)
        return
    features = policy.net_layout[place.NUM_FEATURES]
    embedding = policy.net_layout[place.EMBEDDING]
    graph = policy.net_layout[place.GRAPH]
    width = features + embedding
    shape = policy.net_layout[place.SHAPE_WIDTH]
    kinds = policy.net_layout[place.CLASS_WIDTH]
    stage_width = width if graph else features
    inputs = stage_width + kinds + (embedding if graph else 0) + shape
    for index in range(count):
        stage = policy.net_candidates[index]
        position = index * inputs
        copy_numbers(policy.net_input, position, policy.net_xe, stage * width, stage_width)
        copy_numbers(policy.net_input, position + stage_width, policy.net_class, index * kinds, kinds)
        job = state.stage_job[stage]
        if graph:
            copy_numbers(policy.net_input, position + stage_width + kinds, policy.net_y, job * embedding, embedding)
        copy_numbers(policy.net_input, position + inputs - shape, policy.net_shape, job * shape, shape)
    kernel = _first_layer(state, place.Q, _KERNEL)
    bias = _first_layer(state, place.Q, _BIAS)
    outputs = _first_layer(state, place.Q, _OUTPUTS)
    rectify = _rectifies_first(state, place.Q)
    w = policy.net_weights
    shared, s_first = w, bias
    if graph:
        matrix = matrix_at(w, kernel + inputs * outputs, embedding, outputs)
        z, base = rows_at(policy.net_z, 0, embedding), rows_at(policy.net_base, 0, outputs)
        call_dense(policy.net_dense, z, 1, matrix, rows_at(w, bias, 0), base, 0)
        shared, s_first = policy.net_base, 0
    first, x = rows_at(policy.net_first, 0, outputs), rows_at(policy.net_input, 0, inputs)
    matrix, bias = matrix_at(w, kernel, inputs, outputs), rows_at(shared, s_first, 0)
    call_dense(policy.net_dense, x, count, matrix, bias, first, rectify)
    run_layers(state, place.Q, 1, first, count, rows_at(policy.net_score, 0, 1))


@njit
def _levels_up_to(state, limit):
    """How many levels of the grid are at most ``limit``."""
    levels = policy_of(state).net_levels
    low = 0
    high = min(policy_of(state).net_layout[place.LIMIT_GRID], state.num_executors)
    while low < high:
        middle = (low + high) // 2
        if levels[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def limit_at(state, base, index):
    """Allowed limit of an index: ``base + 1 + index``, or a grid level."""
    policy = policy_of(state)
    if policy.net_layout[place.LIMIT_GRID] == 0 or base >= state.num_executors:
        return base + 1 + index
    return policy.net_levels[_levels_up_to(state, base) + index]


@njit
def limit_range(state, stage, executor_class):
    """Limits of a stage, or of a stage with executors of one class.

    Limit ``l`` uses ``min(l - base, most)`` of the offered executors.

    Args:
        state: A cluster state with a policy.
        stage: The stage.
        executor_class: The class, ``ANY_CLASS`` for best fit.

    Returns:
        (base, the executors that limits count from; number of limits, see :func:`limit_at`; how many of them differ in
        effect, all from the last of these on being alike; most).
    """
    policy = policy_of(state)
    encoding = policy.net_layout[place.LIMIT]
    if encoding == place.LIMIT_STAGE:
        base = state.stage_executors[stage] + state.stage_commit[stage] + state.stage_moving[stage]
    else:
        base = job_allocation(state, state.stage_job[stage])
    offered = state.num_source if executor_class == ANY_CLASS else fitting_offers(state, stage, executor_class)
    usable = min(offered, stage_room(state, stage))
    if encoding == place.LIMIT_NONE:
        return base, usable, 1, usable
    last = max(state.num_executors, base + 1)
    most = min(usable, last - base)
    if policy.net_layout[place.LIMIT_GRID] == 0 or base >= state.num_executors:
        return base, last - base, most, most
    below = _levels_up_to(state, base)
    limits = _levels_up_to(state, last) - below
    return base, limits, _levels_up_to(state, base + most - 1) - below + 1, most


@njit
def nearest_limit(state, base, classes, most, wanted):
    """Index of the limit whose effect is nearest to ``wanted`` executors.

    Args:
        state: A cluster state with a policy.
        base: Executors that limits count from.
        classes: Number of limits that differ in effect.
        most: Executors that the last of them uses.
        wanted: Executors to use.
    """
    best = 0
    nearest = most + wanted
    for index in range(classes):
        used = most if index == classes - 1 else limit_at(state, base, index) - base
        if abs(used - wanted) < nearest:
            best = index
            nearest = abs(used - wanted)
    return best


@njit
def stage_context(state, stage, context):
    """What w sees besides the limit, or d, into ``net_input``; returns its width.

    Args:
        state: A cluster state with a policy.
        stage: The chosen stage.
        context: What is seen of the stage itself, one of the contexts of the layout.
    """
    policy = policy_of(state)
    features = policy.net_layout[place.NUM_FEATURES]
    embedding = policy.net_layout[place.EMBEDDING]
    x, e, y, s, z = context_parts(policy.net_layout, context)
    position = stage * (features + embedding)
    job = state.stage_job[stage]
    copy_numbers(policy.net_input, 0, policy.net_xe, position, x)
    copy_numbers(policy.net_input, x, policy.net_xe, position + features, e)
    copy_numbers(policy.net_input, x + e, policy.net_y, job * embedding, y)
    copy_numbers(policy.net_input, x + e + y, policy.net_shape, job * s, s)
    copy_numbers(policy.net_input, x + e + y + s, policy.net_z, 0, z)
    return x + e + y + s + z


@njit
def score_limits(state, stage, base, count):
    """Put w of the ``count`` limits above ``base`` into ``net_score``."""
    policy = policy_of(state)
    if policy.net_ask:
        for index in range(count):
            policy.net_limits[index] = np.float32(limit_at(state, base, index))
        ask_python(state, place.W, count)
        return
    width = stage_context(state, stage, policy.net_layout[place.CONTEXT])
    if policy.net_layout[place.LIMIT] == place.LIMIT_OUTPUT:
        run_layers(state, place.W, 0, rows_at(policy.net_input, 0, width), 1, rows_at(policy.net_first, 0, 0))
        outputs = policy.net_layout[entry_of(place.W) + 2]
        for index in range(count):
            policy.net_score[index] = policy.net_first[min(base + index, outputs - 1)]
        return
    w = policy.net_weights
    kernel = _first_layer(state, place.W, _KERNEL)
    outputs = _first_layer(state, place.W, _OUTPUTS)
    bias, shared = rows_at(w, _first_layer(state, place.W, _BIAS), 0), rows_at(policy.net_base, 0, 0)
    x, matrix = rows_at(policy.net_input, 0, width), matrix_at(w, kernel, width, outputs)
    call_dense(policy.net_dense, x, 1, matrix, bias, shared, 0)
    for index in range(count):
        if policy.net_layout[place.LIMIT_GRID]:
            policy.net_limits[index] = np.float32(log(float(limit_at(state, base, index))) * LOG_SCALE)
        else:
            policy.net_limits[index] = np.float32((base + 1 + index) * (1.0 / LIMIT_SCALE))
    matrix, first = matrix_at(w, kernel + width * outputs, 1, outputs), rows_at(policy.net_first, 0, outputs)
    limits = rows_at(policy.net_limits, 0, 1)
    call_dense(policy.net_dense, limits, count, matrix, shared, first, _rectifies_first(state, place.W))
    run_layers(state, place.W, 1, first, count, rows_at(policy.net_score, 0, 1))


@njit
def scores_finite(state, count):
    """Whether all scores are finite numbers; notes it in ``no_answer`` if not."""
    policy = policy_of(state)
    total = 0.0
    for index in range(count):
        total += float(policy.net_score[index]) * 0.0
    if total == 0.0:
        return True
    state.no_answer = 1
    return False


@njit
def best_class(state, count, classes):
    """Effect, 1 to ``classes``, whose limits are most probable together."""
    policy = policy_of(state)
    best = 0
    most = -1.0
    for used in range(classes):
        weight = policy.net_weight[used]
        if used == classes - 1:
            for index in range(classes, count):
                weight += policy.net_weight[index]
        if weight > most:
            best = used
            most = weight
    return best + 1


@njit
def log_class_weight(state, count, classes, used):
    """Logarithm of the summed weights of all limits with the effect ``used``."""
    policy = policy_of(state)
    end = count if used == classes else used
    largest = policy.net_score[used - 1]
    for index in range(used, end):
        largest = max(largest, policy.net_score[index])
    total = 0.0
    for index in range(used - 1, end):
        total += exp(float(policy.net_score[index]) - float(largest))
    return log(total) + float(largest) - float(policy.net_score[best_of(policy.net_score, count)])
