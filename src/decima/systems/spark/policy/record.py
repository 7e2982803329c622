"""``EpisodeRecord``: the decisions of one episode as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from decima.core.errors import DecimaError
from decima.core.objectives import Progress
from decima.core.record import Record
from decima.systems.spark.policy.architecture import CLASS_INPUTS, SHAPE_FEATURES
from decima.systems.spark.policy.fields import POLICY_SLOT
from decima.systems.spark.policy.kernel.layout import CLASS_WIDTH, RESIDUAL, SHAPE_WIDTH
from decima.systems.spark.policy.kernel.observation import NUM_SUMMARY
from decima.systems.spark.policy.kernel.recording import CHOICE_COLUMNS, NUM_CHOICE, NUM_VALUE, VALUE_COLUMNS
from decima.systems.spark.state import ClusterState

# What buffers are sized by.
CAPACITIES = ("decisions", "instances", "nodes", "pairs", "candidates")


class RecordFullError(DecimaError):
    """An episode had more decisions than its buffers hold."""


@dataclass(frozen=True, eq=False)
class EpisodeRecord:
    """Decisions of one episode: I job graphs, N stages, D decisions, C candidates, J jobs.

    A job graph is (job, version): the unfinished stages of a job with their features, for as long as these last. Every
    decision saw the graphs of the jobs that were active, and could choose among candidates: the stages of the frontier,
    or their pairs with classes of executors.

    Attributes:
        instance_first: Int32 [I + 1], nodes of graph i are ``first[i]:first[i + 1]``.
        node_row: Int32 [N], row of the stage in the profile tables; ascending inside a graph.
        node_local: Int32 [N], index of the stage in its job.
        x: Float32 [N, F], features.
        instance_shape: Float32 [I, 2], critical path and average width of the job as inputs of the heads; [I, 0] if
            these do not see them.
        decision_pairs: Int32 [D + 1], graphs seen by decision d are ``pair_instance[pairs[d]:pairs[d + 1]]``.
        pair_instance: Int32, jobs in order of arrival.
        decision_candidates: Int32 [D + 1], candidates of decision d are ``candidates[d]:candidates[d + 1]``.
        candidate_node: Int32 [C], its node.
        candidate_instance: Int32 [C], its graph.
        candidate_class: Int32 [C], class of executors of the pair; -1: best fit, the policy does not choose classes.
        class_inputs: Float32 [C, 4], what q saw of the class; [C, 0] if the policy does not choose classes.
        candidate_prior: Float32 [C, 1], what the rule of a residual policy added to the score; [C, 0] without one.
        limit_levels: Int32 [l], limits to choose from, ascending; [0]: every limit.
        choice: Int32 [D], the chosen candidate, counted over all decisions.
        limit: Int32 [D], the chosen limit; 0 when the policy has none.
        limit_low: Int32 [D], first allowed limit.
        limit_high: Int32 [D], last allowed limit.
        class_low: Int32 [D], first limit with the effect of the chosen one.
        class_high: Int32 [D], last limit with the effect of the chosen one.
        classes: Int32 [D], number of different effects; 1: the limit does not matter.
        delay: Int32 [D], r of the idle slot; 0: none.
        delay_free: Int32 [D], 1 if the policy was free to choose r.
        limit_wanted: Int32 [D], limit of the rule of a residual policy; 0 without one, and where limits do not matter.
        log_prob_stage: Float32 [D], of the chosen stage.
        log_prob_limit: Float32 [D], of the chosen limit given the stage.
        log_prob_class: Float32 [D], of any limit with the same effect, given the stage.
        log_prob_delay: Float32 [D], of the chosen r given the stage; 0 where it was not free.
        time_ms: Float64 [D], simulated time.
        area_ms: Float64 [D], integral of the number of active jobs up to then.
        critic: Float32 [D, 8], state summary, columns :data:`decima.systems.spark.policy.kernel.observation.SUMMARY`.
        end_ms: When the episode ended.
        end_area_ms: Integral of the number of active jobs over the episode.
        completion_ms: Float64 [J], NaN for unfinished jobs.
        arrival_ms: Float64 [J].
        ideal_ms: Float64 [J], duration of the job alone on an unlimited cluster.
        truncated: Whether the time limit ended it.
    """

    instance_first: np.ndarray
    node_row: np.ndarray
    node_local: np.ndarray
    x: np.ndarray
    instance_shape: np.ndarray
    decision_pairs: np.ndarray
    pair_instance: np.ndarray
    decision_candidates: np.ndarray
    candidate_node: np.ndarray
    candidate_instance: np.ndarray
    candidate_class: np.ndarray
    class_inputs: np.ndarray
    candidate_prior: np.ndarray
    limit_levels: np.ndarray
    choice: np.ndarray
    limit: np.ndarray
    limit_low: np.ndarray
    limit_high: np.ndarray
    class_low: np.ndarray
    class_high: np.ndarray
    classes: np.ndarray
    delay: np.ndarray
    delay_free: np.ndarray
    limit_wanted: np.ndarray
    log_prob_stage: np.ndarray
    log_prob_limit: np.ndarray
    log_prob_class: np.ndarray
    log_prob_delay: np.ndarray
    time_ms: np.ndarray
    area_ms: np.ndarray
    critic: np.ndarray
    end_ms: float
    end_area_ms: float
    completion_ms: np.ndarray
    arrival_ms: np.ndarray
    ideal_ms: np.ndarray
    truncated: bool

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

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        values = (getattr(self, field.name) for field in fields(self))
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


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
    shape, kinds, residual = (int(state.net_layout[index]) for index in (SHAPE_WIDTH, CLASS_WIDTH, RESIDUAL))
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
        candidate_prior=state.rec_prior[: candidates * residual].reshape(candidates, residual).copy(),
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
