"""Scores of a Keras network in Python, for decisions of the compiled policy.

Features, candidates, draws and records stay compiled; the scores of q, w and d come from here.
"""

import threading
from functools import lru_cache, partial
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import numpy as np

from decima.core.decision import PythonDecision
from decima.core.errors import InvalidDecisionError
from decima.learning.automatic import Traced, setter
from decima.learning.quiet import use_single_threaded_operations
from decima.systems.spark.policy.architecture import Architecture
from decima.systems.spark.policy.batch import TENSORS, GraphBatch, ranges
from decima.systems.spark.policy.kernel.layout import D, Q, W
from decima.systems.spark.policy.network import make_network, one_line
from decima.systems.spark.state import ATTACHED, ClusterState

_HEADS = {Q: "stage_scores", W: "limit_scores", D: "delay_scores"}
# Tensors of the decision that a state is about.
_SEEN: WeakKeyDictionary[ClusterState, dict[str, np.ndarray]] = WeakKeyDictionary()


class NetworkScores:
    """Scores by one Keras model, which all policies of its architecture share.

    Args:
        architecture: Shape of the network.
        num_levels: Levels of the deepest job graph.
    """

    def __init__(self, architecture: Architecture, num_levels: int) -> None:
        use_single_threaded_operations()
        self._network = network = make_network(architecture, num_levels)
        self._lock = threading.Lock()
        self._set, self._weights = setter(network), np.zeros(0, np.float32)

        def scores(head: str, *tensors):
            batch = dict(zip(TENSORS, tensors, strict=True))
            embeddings = network.embed(batch) if architecture.graph_embedding else None
            return [getattr(network, head)(batch, embeddings)]

        signature = [network.signature[name] for name in TENSORS]
        self._heads = {net: Traced(partial(scores, head), signature) for net, head in _HEADS.items()}

    def __call__(self, net: int, weights: np.ndarray, tensors: dict[str, np.ndarray]) -> np.ndarray:
        """Scores of q, w or d for one decision, float32 [scores], with weights [parameters]."""
        with self._lock:
            if not np.array_equal(self._weights, weights):
                self._set(weights)
                self._weights = weights
            return self._heads[net](*tensors.values())[0].numpy().reshape(-1)


_scores_of = lru_cache(maxsize=8)(NetworkScores)


@PythonDecision
def compute_scores(address: int) -> None:
    """Put the scores that are asked for into ``net_score``; NaN where the network fails."""
    state = ATTACHED[address]
    policy, net, count = state.policy, state.net_asked, state.net_asked_scores
    try:
        tensors = _tensors(state, policy.architecture)
        compute = _scores_of(policy.architecture, state.net_num_levels)
        state.net_score[:count] = compute(net, policy.weights, tensors)
    except BaseException as error:  # compiled code knows no exceptions; Ctrl-C among them
        if isinstance(error, Exception):
            error = InvalidDecisionError(f"{policy.architecture.network} fails in a decision with {one_line(error)}")
        state.failure = error
        state.net_score[:count] = np.nan


def _tensors(state: ClusterState, architecture: Architecture) -> dict[str, np.ndarray]:
    """Tensors of the decision, with what w or d is asked for."""
    if state.net_asked == Q:
        seen = GraphBatch([_seen(state, architecture)], state.child_offset, state.child)
        _SEEN[state] = seen.tensors(num_levels=state.net_num_levels)
        return _SEEN[state]
    asked = {"choice": [state.net_chosen]}
    if state.net_asked == D:
        asked |= {"delay_decision": [0], "delay_chosen": [0]}
    else:
        limits = state.net_limits[: state.net_asked_scores]
        most = architecture.max_executors if architecture.limit == "output" else limits[-1]
        asked |= {"limits": np.minimum(limits, most), "limit_decision": [0]}
        asked |= {f"limit_{part}": limits[:1] for part in ("low", "high", "tail", "chosen")}
    return _SEEN[state] | {name: np.array(values, np.int32) for name, values in asked.items()}


def _seen(state: ClusterState, architecture: Architecture) -> SimpleNamespace:
    """Fields of an ``EpisodeRecord`` of the decision that are known by now."""
    jobs, count = state.active[: state.num_active], state.net_asked_scores
    first = state.job_first_stage
    stages = ranges(first[jobs], first[jobs + 1] - first[jobs])
    stages = stages[state.stage_finished_tasks[stages] < state.stage_tasks[stages]]
    nodes = np.concatenate([[0], np.cumsum(state.net_job_size[jobs])])
    instances = np.zeros(state.num_jobs, np.int64)
    instances[jobs] = np.arange(len(jobs))
    candidates = state.net_candidates[:count]
    instance = instances[state.stage_job[candidates]]
    features, shape, kinds = architecture.num_features, architecture.shape_width, architecture.class_width
    nothing = np.zeros(1, np.int32)
    return SimpleNamespace(
        instance_first=nodes,
        node_row=state.stage_row[stages],
        node_local=stages - first[state.stage_job[stages]],
        x=state.net_xe.reshape(state.num_stages, -1)[stages, :features],
        instance_shape=state.net_shape.reshape(state.num_jobs, -1)[jobs, :shape],
        decision_pairs=np.array([0, len(jobs)]),
        pair_instance=np.arange(len(jobs)),
        decision_candidates=np.array([0, count]),
        candidate_node=nodes[instance] + state.net_position[candidates],
        candidate_instance=instance,
        class_inputs=state.net_class[: count * kinds].reshape(count, kinds),
        limit_levels=state.net_levels,
        **dict.fromkeys(("choice", "limit", "limit_low", "limit_high", "delay", "delay_free"), nothing),
        classes=nothing + 1,
    )
