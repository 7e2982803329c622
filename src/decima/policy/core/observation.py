"""Features of unfinished stages, as the compiled policy stores them."""

import numpy as np
from numba import njit

from decima.policy.core.layout import EMBEDDING, FIRST_FEATURE, NUM_FEATURES
from decima.policy.features import FEATURES
from decima.policy.fields import policy_of


def _storing(first_code, end_code):
    """Compiled function that stores any feature with a code in a range; it finds the one by bisection."""
    middle = (first_code + end_code) // 2
    if middle > first_code:
        store_lower, store_upper = _storing(first_code, middle), _storing(middle, end_code)

        @njit
        def store_either(state, code, first, end, place, stride):
            if code < middle:
                return store_lower(state, code, first, end, place, stride)
            return store_upper(state, code, first, end, place, stride)

        return store_either
    compute, scale = FEATURES[first_code].compute, FEATURES[first_code].scale

    @njit
    def store(state, code, first, end, place, stride):
        x = policy_of(state).net_xe
        changed = 0
        for stage in range(first, end):
            if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
                value = np.float32(compute(state, stage) * scale)
                at = stage * stride + place
                if x[at] != value:
                    x[at] = value
                    changed = 1
        return changed

    return store


# (state, code of the feature, first stage, end of the stages, place among the features, numbers per stage): stores the
# feature of the unfinished ones of these stages in ``net_xe``; 1 if a value differs from what was there.
_store_feature = _storing(0, len(FEATURES))


@njit
def observe_job(state, job):
    """Bring x of the job's unfinished stages up to date and number them; 1 if the job differs from what was known.

    Stages only ever finish, so their number tells whether they are the same ones.
    """
    policy = policy_of(state)
    layout = policy.net_layout
    features = layout[NUM_FEATURES]
    stride = features + layout[EMBEDDING]
    first = state.job_first_stage[job]
    end = state.job_first_stage[job + 1]
    changed = 0
    for place in range(features):
        changed |= _store_feature(state, layout[FIRST_FEATURE + place], first, end, place, stride)
    count = 0
    for stage in range(first, end):
        if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
            policy.net_position[stage] = count
            count += 1
    if changed or count != policy.net_job_size[job]:
        policy.net_job_size[job] = count
        policy.net_job_instance[job] = -1
        return 1
    return 0
