"""Embeddings of stages, jobs and the cluster (§5.1), for changed jobs only.

Of a job in which only the executors on offer differ, embeddings with some of the last offers are kept.

Jobs that changed are embedded in groups: the stages of a group are sorted children first, by the longest path to a
stage without children, and every level is one matrix product per layer. That order is the same throughout a run. Of a
stage that runs again, because its outputs were lost, children may have finished; one that has not is always left.
"""

import numpy as np

from decima.core.jit import njit
from decima.learning.dense import call_dense, matrix_at, rows_at
from decima.systems.spark.fields import NONE
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel import layout as place
from decima.systems.spark.policy.kernel.layout import entry_of
from decima.systems.spark.policy.kernel.observation import copy_numbers, keep_embedding, observe_job

# Rows that pass through a perceptron together: their activations stay in the nearest cache.
ROWS = 32
# A group is embedded when it has this many stages.
GROUP = 256


@njit
def run_layers(state, net, start, x, rows, out):
    """Send rows through the layers of a perceptron from ``start`` on."""
    policy = policy_of(state)
    layout = policy.net_layout
    at = entry_of(net)
    count = layout[at]
    if start >= count:
        for row in range(rows):
            copy_numbers(out.values, out.first + row * out.stride, x.values, x.first + row * x.stride, layout[at + 2])
        return
    w = policy.net_weights
    hidden, half = policy.net_hidden, ROWS * layout[place.WIDTH]
    for first in range(0, rows, ROWS):
        number = min(ROWS, rows - first)
        source = rows_at(x.values, x.first + first * x.stride, x.stride)
        for layer in range(start, count):
            entry = at + place.NET_HEAD + 4 * layer
            outputs = layout[entry + 3]
            last = layer == count - 1
            to = out.first + first * out.stride
            target = rows_at(out.values, to, out.stride) if last else rows_at(hidden, (layer & 1) * half, outputs)
            matrix = matrix_at(w, layout[entry], layout[entry + 2], outputs)
            bias = rows_at(w, layout[entry + 1], 0)
            call_dense(policy.net_dense, source, number, matrix, bias, target, layout[at + 1] if last else 1)
            source = target


@njit
def _sort_by_level(state, stages, levels):
    """Fill ``net_order``, ``net_slot`` and ``net_level_end``; returns the number of levels.

    Every level is two entries of ``net_level_end``: stages that send a message, then those whose parents are finished.
    """
    policy = policy_of(state)
    end = policy.net_level_end
    for key in range(2 * levels + 1):
        end[key] = 0
    top = 0
    for index in range(stages):
        stage = policy.net_stages[index]
        level = state.row_level[state.stage_row[stage]]
        top = max(top, level + 1)
        end[2 * level + (state.stage_unfinished_parents[stage] == 0) + 1] += 1
    for key in range(2 * top):
        end[key + 1] += end[key]
    for index in range(stages):
        stage = policy.net_stages[index]
        key = 2 * state.row_level[state.stage_row[stage]] + (state.stage_unfinished_parents[stage] == 0)
        slot = end[key]
        end[key] = slot + 1
        policy.net_order[slot] = stage
        policy.net_slot[stage] = slot
    return top


@njit
def _add_messages(state, slot, embedding):
    """Sum of the messages of a stage's unfinished children, into its row of ``net_sum``."""
    policy = policy_of(state)
    stage = policy.net_order[slot]
    row = state.stage_row[stage]
    first_stage = state.job_first_stage[state.stage_job[stage]]
    position = slot * embedding
    for k in range(embedding):
        policy.net_sum[position + k] = np.float32(0.0)
    for index in range(state.child_offset[row], state.child_offset[row + 1]):
        child = first_stage + state.child[index]
        if policy.net_position[child] == NONE:
            continue
        message = policy.net_slot[child] * embedding
        for k in range(embedding):
            policy.net_sum[position + k] += policy.net_message[message + k]


@njit
def _embed_stages(state, stages):
    """Embed all stages of the group: e, in ``net_rows``."""
    policy = policy_of(state)
    features = policy.net_layout[place.NUM_FEATURES]
    embedding = policy.net_layout[place.EMBEDDING]
    width = features + embedding
    rows = policy.net_rows
    top = _sort_by_level(state, stages, policy.net_num_levels)
    for slot in range(stages):
        position = policy.net_order[slot] * width
        copy_numbers(rows, slot * width, policy.net_xe, position, features)
    run_layers(state, place.INPUT, 0, rows_at(rows, 0, width), stages, rows_at(policy.net_h, 0, embedding))
    start = 0
    for level in range(top):
        sending = policy.net_level_end[2 * level]
        end = policy.net_level_end[2 * level + 1]
        if level > 0:
            for slot in range(start, end):
                _add_messages(state, slot, embedding)
            sums = rows_at(policy.net_sum, start * embedding, embedding)
            run_layers(state, place.STAGE_G, 0, sums, end - start, rows_at(rows, start * width + features, width))
            for slot in range(start, end):
                for k in range(embedding):
                    rows[slot * width + features + k] += policy.net_h[slot * embedding + k]
        else:
            for slot in range(start, end):
                copy_numbers(rows, slot * width + features, policy.net_h, slot * embedding, embedding)
        messages = rows_at(policy.net_message, start * embedding, embedding)
        run_layers(state, place.STAGE_F, 0, rows_at(rows, start * width + features, width), sending - start, messages)
        start = end
    for slot in range(stages):
        position = policy.net_order[slot] * width
        copy_numbers(policy.net_xe, position + features, rows, slot * width + features, embedding)


@njit
def _embed_group(state, stages, jobs):
    """Embed a group: e of its stages, y and f_cluster(y) of its jobs."""
    policy = policy_of(state)
    _embed_stages(state, stages)
    embedding = policy.net_layout[place.EMBEDDING]
    width = policy.net_layout[place.NUM_FEATURES] + embedding
    run_layers(
        state, place.JOB_F, 0, rows_at(policy.net_rows, 0, width), stages, rows_at(policy.net_message, 0, embedding)
    )
    first = 0
    for index in range(jobs):
        end = first + policy.net_job_size[policy.net_jobs[index]]
        for k in range(embedding):
            total = 0.0
            for position in range(first, end):
                total += policy.net_message[policy.net_slot[policy.net_stages[position]] * embedding + k]
            policy.net_sum[index * embedding + k] = np.float32(total)
        first = end
    run_layers(state, place.JOB_G, 0, rows_at(policy.net_sum, 0, embedding), jobs, rows_at(policy.net_h, 0, embedding))
    run_layers(
        state, place.CLUSTER_F, 0, rows_at(policy.net_h, 0, embedding), jobs, rows_at(policy.net_message, 0, embedding)
    )
    first = 0
    for index in range(jobs):
        job = policy.net_jobs[index]
        copy_numbers(policy.net_y, job * embedding, policy.net_h, index * embedding, embedding)
        copy_numbers(policy.net_cluster_f, job * embedding, policy.net_message, index * embedding, embedding)
        end = first + policy.net_job_size[job]
        if policy.net_layout[place.OFFER_KEPT]:
            keep_embedding(state, job, first, end)
        first = end


@njit
def _embed_cluster(state):
    """Embed the cluster: z, from the sum or the mean over all active jobs."""
    policy = policy_of(state)
    embedding = policy.net_layout[place.EMBEDDING]
    for k in range(embedding):
        policy.net_total[k] = 0.0
    for index in range(state.num_active):
        position = state.active[index] * embedding
        for k in range(embedding):
            policy.net_total[k] += policy.net_cluster_f[position + k]
    jobs = float(state.num_active) if policy.net_layout[place.CLUSTER_MEAN] else 1.0
    for k in range(embedding):
        policy.net_sum[k] = np.float32(policy.net_total[k] / jobs)
    run_layers(state, place.CLUSTER_G, 0, rows_at(policy.net_sum, 0, embedding), 1, rows_at(policy.net_z, 0, embedding))


@njit
def embed(state):
    """Bring features and embeddings of all active jobs and of the cluster up to date."""
    policy = policy_of(state)
    graph = policy.net_layout[place.GRAPH]
    stages = 0
    jobs = 0
    for index in range(state.num_active):
        job = state.active[index]
        end = observe_job(state, job, stages)
        if end == NONE or not graph:
            continue
        policy.net_jobs[jobs] = job
        jobs += 1
        stages = end
        if stages >= GROUP:
            _embed_group(state, stages, jobs)
            stages = 0
            jobs = 0
    if jobs > 0:
        _embed_group(state, stages, jobs)
    if graph:
        _embed_cluster(state)
