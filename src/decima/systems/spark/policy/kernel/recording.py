"""Compiled recording of decisions: observed job graphs, choices, and a state summary for a baseline.

A job graph is recorded once for as long as its features do not change; decisions refer to it.
"""

from collections import namedtuple

from decima.core.decision import places
from decima.core.jit import njit
from decima.systems.spark.decision import LIMIT, PARTS
from decima.systems.spark.fields import NONE
from decima.systems.spark.policy.fields import policy_of
from decima.systems.spark.policy.kernel.layout import CLASS_WIDTH, EMBEDDING, NUM_FEATURES, SHAPE_WIDTH
from decima.systems.spark.policy.kernel.observation import NUM_SUMMARY, copy_numbers, summarise

# Stage and limit: of the limit the record has the choice and its range, of both the logarithm of their probability.
# Of an idle slot it has r, whether the network
# was free to choose it, and the logarithm of its probability.
CHOSEN = PARTS[: LIMIT + 1]
_RANGES = [f"{part.name}{end}" for part in CHOSEN[1:] for end in ("", "_low", "_high")]
CHOICE_COLUMNS = ("choice", *_RANGES, "class_low", "class_high", "classes", "delay", "delay_free")
_LOG_PROBS = (*(f"log_prob_{part.name}" for part in CHOSEN), "log_prob_class", "log_prob_delay")
VALUE_COLUMNS = (*_LOG_PROBS, "time_ms", "area_ms")
NUM_CHOICE, NUM_VALUE = len(CHOICE_COLUMNS), len(VALUE_COLUMNS)
C, V = places(CHOICE_COLUMNS), places(VALUE_COLUMNS)
#: The chosen limit, those allowed, those with its effect, number of effects; logarithms of the chances of both.
Limit = namedtuple("Limit", ["limit", "low", "high", "class_low", "class_high", "classes", "log_limit", "log_class"])


@njit
def _has_room(state, count):
    """Whether one more decision with ``count`` candidates fits; counts its new job graphs."""
    policy = policy_of(state)
    instances = 0
    nodes = 0
    for index in range(state.num_active):
        job = state.active[index]
        if policy.net_job_instance[job] == NONE:
            instances += 1
            nodes += policy.net_job_size[job]
    return (
        policy.rec_decisions < policy.rec_max_decisions
        and policy.rec_instances + instances <= policy.rec_max_instances
        and policy.rec_nodes + nodes <= policy.rec_max_nodes
        and policy.rec_pairs + state.num_active <= policy.rec_max_pairs
        and policy.rec_candidates + count <= policy.rec_max_candidates
    )


@njit
def _record_instance(state, job):
    policy = policy_of(state)
    instance = policy.rec_instances
    node = policy.rec_nodes
    features = policy.net_layout[NUM_FEATURES]
    width = features + policy.net_layout[EMBEDDING]
    first = state.job_first_stage[job]
    for stage in range(first, state.job_first_stage[job + 1]):
        if state.stage_finished_tasks[stage] < state.stage_tasks[stage]:
            policy.rec_node_row[node] = state.stage_row[stage]
            policy.rec_node_local[node] = stage - first
            copy_numbers(policy.rec_x, node * features, policy.net_xe, stage * width, features)
            node += 1
    shape = policy.net_layout[SHAPE_WIDTH]
    copy_numbers(policy.rec_shape, instance * shape, policy.net_shape, job * shape, shape)
    policy.rec_nodes = node
    policy.rec_instances = instance + 1
    policy.rec_instance_first[instance + 1] = node
    policy.net_job_instance[job] = instance


@njit
def record_decision(state, count, candidate, log_stage, limit, choice):
    """Append a decision, or set ``rec_full`` and record no more if there is no room.

    Args:
        state: A cluster state with a policy.
        count: Number of candidates.
        candidate: The chosen one.
        log_stage: Logarithm of its probability.
        limit: :class:`Limit`.
        choice: What was chosen of the idle slot: ``delay``, ``free`` and ``log_delay``.
    """
    policy = policy_of(state)
    if policy.rec_full or not _has_room(state, count):
        policy.rec_full = 1
        return
    decision = policy.rec_decisions
    pair = policy.rec_pairs
    for index in range(state.num_active):
        job = state.active[index]
        if policy.net_job_instance[job] == NONE:
            _record_instance(state, job)
        policy.rec_pair_instance[pair] = policy.net_job_instance[job]
        pair += 1
    policy.rec_pairs = pair
    policy.rec_decision_pairs[decision + 1] = pair
    first = policy.rec_candidates
    for index in range(count):
        stage = policy.net_candidates[index]
        instance = policy.net_job_instance[state.stage_job[stage]]
        policy.rec_candidate_instance[first + index] = instance
        policy.rec_candidate_node[first + index] = policy.rec_instance_first[instance] + policy.net_position[stage]
        policy.rec_candidate_class[first + index] = policy.net_candidate_class[index]
    width = policy.net_layout[CLASS_WIDTH]
    copy_numbers(policy.rec_class, first * width, policy.net_class, 0, count * width)
    policy.rec_candidates = first + count
    policy.rec_decision_candidates[decision + 1] = first + count
    row = NUM_CHOICE * decision
    policy.rec_choice[row + C.choice] = first + candidate
    policy.rec_choice[row + C.limit] = limit.limit
    policy.rec_choice[row + C.limit_low] = limit.low
    policy.rec_choice[row + C.limit_high] = limit.high
    policy.rec_choice[row + C.class_low] = limit.class_low
    policy.rec_choice[row + C.class_high] = limit.class_high
    policy.rec_choice[row + C.classes] = limit.classes
    policy.rec_choice[row + C.delay] = choice.delay
    policy.rec_choice[row + C.delay_free] = choice.free
    row = NUM_VALUE * decision
    policy.rec_values[row + V.log_prob_stage] = log_stage
    policy.rec_values[row + V.log_prob_limit] = limit.log_limit
    policy.rec_values[row + V.log_prob_class] = limit.log_class
    policy.rec_values[row + V.log_prob_delay] = choice.log_delay
    policy.rec_values[row + V.time_ms] = state.now_ms
    policy.rec_values[row + V.area_ms] = state.area_ms + state.num_active * (state.now_ms - state.area_time_ms)
    summarise(state, NUM_SUMMARY * decision)
    policy.rec_decisions = decision + 1
