"""Features of unfinished stages, as the compiled policy stores them."""

from math import sqrt

import numpy as np

from decima.core.jit import njit
from decima.systems.spark.fields import NONE
from decima.systems.spark.policy.architecture import SHAPE_FEATURES
from decima.systems.spark.policy.features import CODES, FEATURES, OFFER_FEATURES, STILL
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel.layout import EMBEDDING, FIRST_FEATURE, NUM_FEATURES, OFFER_KEPT, SHAPE_SEEN
from decima.systems.spark.rules.choices import job_allocation


def _storing(first_code, end_code):
    """Compiled function that stores any feature with a code in a range, by bisection."""
    middle = (first_code + end_code) // 2
    if middle > first_code:
        store_lower, store_upper = _storing(first_code, middle), _storing(middle, end_code)

        @njit
        def store_either(state, code, first, end, position, stride, still):
            if code < middle:
                return store_lower(state, code, first, end, position, stride, still)
            return store_upper(state, code, first, end, position, stride, still)

        return store_either
    feature = FEATURES[first_code]
    compute, of_job, scale = feature.compute, feature.of_job, feature.scale
    has_job, stays = of_job is not None, feature.name in STILL

    @njit
    def store(state, code, first, end, position, stride, still):
        if stays and still:
            return 0
        policy = policy_of(state)
        stages = policy.net_stages
        x = policy.net_xe
        changed = 0
        if has_job and first < end:
            same = of_job(state, state.stage_job[stages[first]])
        for index in range(first, end):
            stage = stages[index]
            if has_job:
                value = np.float32(compute(state, stage, same) * scale)
            else:
                value = np.float32(compute(state, stage) * scale)
            at = stage * stride + position
            if x[at] != value:
                x[at] = value
                changed = 1
        return changed

    return store


# (state, code of the feature, first and end in ``net_stages``, place among the features, numbers per stage, whether
# features that are still do not change): stores the feature of these stages in ``net_xe``; 1 if a value differs.
_store_feature = _storing(0, len(FEATURES))


# Embeddings of a job that are kept, by the number of executors on offer; all else that it is made of is the same.
KEPT = 8
_OFFERED, _OFFERED_SHARE = (CODES[name] for name in OFFER_FEATURES)

_PATH_SCALE, _WIDTH_SCALE = (FEATURES[CODES[name]].scale for name in SHAPE_FEATURES)


@njit
def _observe_shape(state, job):
    """Update the critical path and average width of a job; 1 if they changed.

    They never change while a job lives, but another job may take its place in a long-lived state.
    """
    policy = policy_of(state)
    path = 0.0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        path = max(path, state.row_path_ms[state.stage_row[stage]])
    width = state.job_work_ms[job] / path if path > 0.0 else 0.0
    at = 2 * job
    changed = 1 if policy.net_shape_ms[at] != path or policy.net_shape_ms[at + 1] != width else 0
    policy.net_shape_ms[at] = path
    policy.net_shape_ms[at + 1] = width
    policy.net_shape[at] = np.float32(path * _PATH_SCALE)
    policy.net_shape[at + 1] = np.float32(width * _WIDTH_SCALE)
    return changed


@njit
def copy_numbers(target, first, source, start, count):
    """Copy neighbouring numbers of one array of a record to another."""
    for k in range(count):
        target[first + k] = source[start + k]


@njit
def keep_embedding(state, job, first, end):
    """Keep e of a job's stages in ``net_stages``, its y and f_cluster(y)."""
    policy = policy_of(state)
    embedding = policy.net_layout[EMBEDDING]
    stride = policy.net_layout[NUM_FEATURES] + embedding
    slot = state.num_source % KEPT
    policy.net_kept_offer[job * KEPT + slot] = state.num_source
    at = (job * KEPT + slot) * 2 * embedding
    copy_numbers(policy.net_kept_y, at, policy.net_y, job * embedding, embedding)
    copy_numbers(policy.net_kept_y, at + embedding, policy.net_cluster_f, job * embedding, embedding)
    for index in range(first, end):
        stage = policy.net_stages[index]
        at = (stage * KEPT + slot) * embedding
        copy_numbers(policy.net_kept_e, at, policy.net_xe, (stage + 1) * stride - embedding, embedding)


@njit
def _recall_embedding(state, job, first, end):
    """Restore what :func:`keep_embedding` kept for the present offer; 0 if it is not there."""
    policy = policy_of(state)
    slot = state.num_source % KEPT
    if not policy.net_layout[OFFER_KEPT] or policy.net_kept_offer[job * KEPT + slot] != state.num_source:
        return 0
    embedding = policy.net_layout[EMBEDDING]
    stride = policy.net_layout[NUM_FEATURES] + embedding
    at = (job * KEPT + slot) * 2 * embedding
    copy_numbers(policy.net_y, job * embedding, policy.net_kept_y, at, embedding)
    copy_numbers(policy.net_cluster_f, job * embedding, policy.net_kept_y, at + embedding, embedding)
    for index in range(first, end):
        stage = policy.net_stages[index]
        at = (stage * KEPT + slot) * embedding
        copy_numbers(policy.net_xe, (stage + 1) * stride - embedding, policy.net_kept_e, at, embedding)
    return 1


@njit
def observe_job(state, job, first):
    """Update x of a job's unfinished stages and list them in ``net_stages`` from ``first``.

    They are numbered in that order; finished stages are not, so the numbers tell whether they are the same ones.

    Returns:
        End of the list if the job has to be embedded anew, else NONE.
    """
    policy = policy_of(state)
    layout = policy.net_layout
    features = layout[NUM_FEATURES]
    stride = features + layout[EMBEDDING]
    end = first
    changed = _observe_shape(state, job) if layout[SHAPE_SEEN] else 0
    tasks = 0
    for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
        tasks += state.stage_next[stage] + state.stage_finished_tasks[stage]
        position = NONE
        if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
            policy.net_stages[end] = stage
            position = end - first
            end += 1
        if policy.net_position[stage] != position:
            policy.net_position[stage] = position
            changed = 1
    held = job_allocation(state, job)
    still = policy.net_seen_tasks[job] == tasks and policy.net_seen_held[job] == held
    # Where executors come and go, tasks run again, and their number may fall.
    still = still and policy.net_seen_active[job] == state.num_active and not state.elastic
    policy.net_seen_tasks[job] = tasks
    policy.net_seen_held[job] = held
    policy.net_seen_active[job] = state.num_active
    offer_changed = 0
    for position in range(features):
        code = layout[FIRST_FEATURE + position]
        differs = _store_feature(state, code, first, end, position, stride, still)
        if code in (_OFFERED, _OFFERED_SHARE):
            offer_changed |= differs
        else:
            changed |= differs
    count = end - first
    if changed or count != policy.net_job_size[job]:
        policy.net_job_size[job] = count
        if layout[OFFER_KEPT]:
            for slot in range(KEPT):
                policy.net_kept_offer[job * KEPT + slot] = NONE
    elif not offer_changed:
        return NONE
    elif _recall_embedding(state, job, first, end):
        policy.net_job_instance[job] = NONE
        return NONE
    policy.net_job_instance[job] = NONE
    return end


# ---- a few numbers that summarise the state of the cluster at a decision, from which a baseline is fitted -----------


# Meaning of every number by its name, in the order in which they are stored.
SUMMARY = {
    "active_jobs": "jobs that have arrived and are not finished",
    "work_s": "unfinished tasks times nominal duration, of all jobs",
    "srw_bound_s": "sum of completion times if all executors served one job after the other, least work first",
    "path_s": "sum over jobs of the longest path left, one task per stage",
    "executors": "executors attached to active jobs or moving to them",
    "num_source": "executors on offer",
    "sqrt_work": "sum over jobs of the square root of their work in s",
    "bound_s": "sum over jobs of max(work / executors, path)",
}
NUM_SUMMARY = len(SUMMARY)
ACTIVE_JOBS, WORK_S, SRW_BOUND_S, PATH_S, EXECUTORS, OFFERED, SQRT_WORK, BOUND_S = range(NUM_SUMMARY)


@njit
def _sort(values, count):
    """Sort ascending (Shell's method: short, or nearly sorted)."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for index in range(gap, count):
            value = values[index]
            hole = index
            while hole >= gap and values[hole - gap] > value:
                values[hole] = values[hole - gap]
                hole -= gap
            values[hole] = value
        gap //= 3


@njit
def summarise(state, row):
    """Store the numbers of :data:`SUMMARY` in ``rec_critic`` from ``row`` on."""
    policy = policy_of(state)
    works = policy.net_total
    executors = float(state.num_executors)
    total = paths = roots = longest = 0.0
    near = 0
    for index in range(state.num_active):
        job = state.active[index]
        work = path = 0.0
        for stage in range(state.job_first_stage[job], state.job_first_stage[job + 1]):
            left = state.stage_tasks[stage] - state.stage_finished_tasks[stage]
            if left > 0:
                profile = state.stage_row[stage]
                work += left * state.row_nominal_ms[profile] * 0.001
                path = max(path, state.row_path_ms[profile] * 0.001)
        works[index] = work
        total += work
        paths += path
        roots += sqrt(work)
        longest += max(work / executors, path)
        near += state.job_attached[job] + state.job_moving[job]
    count = state.num_active
    _sort(works, count)
    bound = 0.0
    for index in range(count):
        bound += (count - index - 0.5) * works[index]
    out = policy.rec_critic
    out[row + ACTIVE_JOBS] = np.float32(count)
    out[row + WORK_S] = np.float32(total)
    out[row + SRW_BOUND_S] = np.float32(bound / executors)
    out[row + PATH_S] = np.float32(paths)
    out[row + EXECUTORS] = np.float32(near)
    out[row + OFFERED] = np.float32(state.num_source)
    out[row + SQRT_WORK] = np.float32(roots)
    out[row + BOUND_S] = np.float32(longest)
