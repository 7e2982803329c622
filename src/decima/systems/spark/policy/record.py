"""``EpisodeRecord``: the decisions of one episode as plain arrays."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from decima.core.errors import DecimaError
from decima.core.objectives import Progress
from decima.core.record import Record
from decima.systems.spark.policy.architecture import CLASS_INPUTS, SHAPE_FEATURES
from decima.systems.spark.policy.fields import CAPACITIES, POLICY_SLOT
from decima.systems.spark.policy.kernel.layout import CLASS_WIDTH, SHAPE_WIDTH
from decima.systems.spark.policy.kernel.observation import NUM_SUMMARY
from decima.systems.spark.policy.kernel.recording import CHOICE_COLUMNS, NUM_CHOICE, NUM_VALUE, VALUE_COLUMNS
from decima.systems.spark.state import ClusterState


class RecordFullError(DecimaError):
    """An episode had more decisions than its buffers hold."""


@dataclass(frozen=True, eq=False)
class EpisodeRecord:
    """Decisions of one episode: I job graphs, N stages, D decisions, C candidates, J jobs.

    A job graph is (job, version): the unfinished stages of a job with their features, for as long as these last. Every
    decision saw the graphs of the jobs that were active, and could choose among candidates: the stages of the frontier,
    or their pairs with classes of executors.
    """

    instance_first: np.ndarray  #: int32 [I + 1], nodes of graph i are ``first[i]:first[i + 1]``
    node_row: np.ndarray  #: int32 [N], row of the stage in the profile tables; ascending inside a graph
    node_local: np.ndarray  #: int32 [N], index of the stage in its job
    x: np.ndarray  #: float32 [N, F], features
    #: float32 [I, 2], critical path and average width of the job as inputs of the heads; [I, 0] if these do not see
    #: them
    instance_shape: np.ndarray
    decision_pairs: np.ndarray  #: int32 [D + 1], graphs seen by decision d are ``pair_instance[pairs[d]:pairs[d + 1]]``
    pair_instance: np.ndarray  #: int32, jobs in order of arrival
    decision_candidates: np.ndarray  #: int32 [D + 1], candidates of decision d are ``candidates[d]:candidates[d + 1]``
    candidate_node: np.ndarray  #: int32 [C], its node
    candidate_instance: np.ndarray  #: int32 [C], its graph
    #: int32 [C], class of executors of the pair; -1: best fit, the policy does not choose classes
    candidate_class: np.ndarray
    class_inputs: np.ndarray  #: float32 [C, 4], what q saw of the class; [C, 0] if the policy does not choose classes
    limit_levels: np.ndarray  #: int32 [l], limits to choose from, ascending; [0]: every limit
    choice: np.ndarray  #: int32 [D], the chosen candidate, counted over all decisions
    limit: np.ndarray  #: int32 [D], the chosen limit; 0 when the policy has none
    limit_low: np.ndarray  #: int32 [D], first allowed limit
    limit_high: np.ndarray  #: int32 [D], last allowed limit
    class_low: np.ndarray  #: int32 [D], first limit with the effect of the chosen one
    class_high: np.ndarray  #: int32 [D], last limit with the effect of the chosen one
    classes: np.ndarray  #: int32 [D], number of different effects; 1: the limit does not matter
    delay: np.ndarray  #: int32 [D], r of the idle slot; 0: none
    delay_free: np.ndarray  #: int32 [D], 1 if the policy was free to choose r
    log_prob_stage: np.ndarray  #: float32 [D], of the chosen stage
    log_prob_limit: np.ndarray  #: float32 [D], of the chosen limit given the stage
    log_prob_class: np.ndarray  #: float32 [D], of any limit with the same effect, given the stage
    log_prob_delay: np.ndarray  #: float32 [D], of the chosen r given the stage; 0 where it was not free
    time_ms: np.ndarray  #: float64 [D], simulated time
    area_ms: np.ndarray  #: float64 [D], integral of the number of active jobs up to then
    #: float32 [D, 8], state summary, columns :data:`decima.systems.spark.policy.kernel.observation.SUMMARY`
    critic: np.ndarray
    end_ms: float  #: when the episode ended
    end_area_ms: float  #: integral of the number of active jobs over the episode
    completion_ms: np.ndarray  #: float64 [J], NaN for unfinished jobs
    arrival_ms: np.ndarray  #: float64 [J]
    ideal_ms: np.ndarray  #: float64 [J], duration of the job alone on an unlimited cluster
    truncated: bool  #: whether the time limit ended it

    def __len__(self) -> int:
        return len(self.choice)

    @property
    def progress(self) -> Progress:
        """The episode at its decisions and its end, as objectives see it."""
        return Progress(
            arrival_ms=self.arrival_ms,
            completion_ms=self.completion_ms,
            ideal_ms=self.ideal_ms,
            time_ms=np.append(self.time_ms, self.end_ms),
            area_ms=np.append(self.area_ms, self.end_area_ms),
        )


def bind_buffers(state: ClusterState, num_features: int, capacity: dict[str, int] | None = None) -> None:
    """Give a state room for a record, by ``capacity`` or a guess.

    Pages of memory that are never written to cost nothing.
    """
    if capacity is None:
        decisions = 8 * state.tables.num_stages + 64
        pairs = decisions * min(state.tables.num_jobs, 16)
        sizes = (decisions, pairs // 2 + 64, 4 * pairs + 1024, pairs, 2 * pairs)
        capacity = dict(zip(CAPACITIES, sizes, strict=True))
    record = policy_record(state)
    record.resize(**buffer_extents(capacity, num_features))
    record.configure(**{f"rec_max_{name}": capacity[name] for name in CAPACITIES})


def buffer_extents(capacity: Mapping[str, int], num_features: int) -> dict[str, int]:
    """Lengths of the buffers of a record, by extent."""
    return {
        "graph + 1": capacity["instances"] + 1,
        "graph x shape": capacity["instances"] * len(SHAPE_FEATURES),
        "node": capacity["nodes"],
        "node x feature": capacity["nodes"] * num_features,
        "decision + 1": capacity["decisions"] + 1,
        "pair": capacity["pairs"],
        "candidate": capacity["candidates"],
        "candidate x class": capacity["candidates"] * len(CLASS_INPUTS),
        "decision x choice": capacity["decisions"] * NUM_CHOICE,
        "decision x value": capacity["decisions"] * NUM_VALUE,
        "decision x critic": capacity["decisions"] * NUM_SUMMARY,
    }


def policy_record(state: ClusterState) -> Record:
    """Record of the policy that is bound to a state."""
    return state.attached[POLICY_SLOT]


def record_width(state: ClusterState) -> int:
    """Number of features that the buffers of a state hold, 0 without buffers."""
    return len(state.rec_x) // state.rec_max_nodes if state.rec_max_nodes else 0


def enlarge_buffers(state: ClusterState, num_features: int) -> None:
    """Give a state twice the room for a record that it had."""
    bind_buffers(state, num_features, {name: 2 * getattr(state, f"rec_max_{name}") for name in CAPACITIES})


def collect_record(state: ClusterState) -> EpisodeRecord:
    """Copy what the state has recorded; call it after the run.

    Raises:
        RecordFullError: The buffers were too small.
    """
    if state.rec_full:
        raise RecordFullError(f"the buffers hold {state.rec_decisions} decisions of this episode and no more")
    decisions, instances = state.rec_decisions, state.rec_instances
    nodes, pairs, candidates = state.rec_nodes, state.rec_pairs, state.rec_candidates
    features = record_width(state)
    shape, kinds = (int(state.net_layout[index]) for index in (SHAPE_WIDTH, CLASS_WIDTH))
    choice = state.rec_choice[: decisions * NUM_CHOICE].reshape(decisions, NUM_CHOICE)
    values = state.rec_values[: decisions * NUM_VALUE].reshape(decisions, NUM_VALUE)
    columns = {name: choice[:, index].copy() for index, name in enumerate(CHOICE_COLUMNS)}
    for index, name in enumerate(VALUE_COLUMNS):
        dtype = np.float64 if name.endswith("_ms") else np.float32
        columns[name] = values[:, index].astype(dtype)
    return EpisodeRecord(
        instance_first=state.rec_instance_first[: instances + 1].copy(),
        node_row=state.rec_node_row[:nodes].copy(),
        node_local=state.rec_node_local[:nodes].copy(),
        x=state.rec_x[: nodes * features].reshape(nodes, features).copy(),
        instance_shape=state.rec_shape[: instances * shape].reshape(instances, shape).copy(),
        decision_pairs=state.rec_decision_pairs[: decisions + 1].copy(),
        pair_instance=state.rec_pair_instance[:pairs].copy(),
        decision_candidates=state.rec_decision_candidates[: decisions + 1].copy(),
        candidate_node=state.rec_candidate_node[:candidates].copy(),
        candidate_instance=state.rec_candidate_instance[:candidates].copy(),
        candidate_class=state.rec_candidate_class[:candidates].copy(),
        class_inputs=state.rec_class[: candidates * kinds].reshape(candidates, kinds).copy(),
        limit_levels=state.net_levels.copy(),
        critic=state.rec_critic[: decisions * NUM_SUMMARY].reshape(decisions, NUM_SUMMARY).copy(),
        end_ms=state.now_ms,
        end_area_ms=state.area_ms,
        completion_ms=state.job_finish_ms.copy(),
        arrival_ms=state.job_arrival_ms.copy(),
        ideal_ms=state.tables.workload.ideal_ms,
        truncated=bool(state.truncated),
        **columns,
    )
