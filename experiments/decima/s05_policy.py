"""§5.1, §5.2: all parts of one learned decision on three small jobs (Figures 5, 6).

Embeddings and scores come from TensorFlow; what the compiled core computed for the same decision, and the probabilities
of all decisions of the run, are held against them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas

from decima import plotting
from decima.learning.quiet import import_tensorflow
from decima.plotting.words import count
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.schedulers import Observation
from decima.systems.spark.schedulers.interface import decision_parts
from decima.systems.spark.state import ClusterState, new_state, offers, spawn_generators
from decima.workload.jobs import Job, Workload
from decima.workload.sources import WorkloadSource
from experiments.captions import Run, Tables, distinct
from experiments.comparisons import learned_policy
from experiments.experiment import Context, Experiment, Profiles, StoredPolicy
from experiments.rooms import POLICY_ROOMS

if TYPE_CHECKING:
    from decima.plotting.style import Figure
# Size in GB and query of three small jobs whose DAGs have joins.
SMALL = ((10, 17), (5, 3), (20, 22))


def compute(source: WorkloadSource, params: dict, context: Context) -> dict[str, pandas.DataFrame]:
    """Tables of one decision and of the comparison with the compiled core.

    - ``policy_stages``, ``policy_edges``: the jobs; ``finished`` stages are no longer part of the graph.
    - ``policy_nodes``: of every unfinished stage its level, features ``x0``.. and embedding ``e0``..
    - ``policy_summaries``: embeddings ``v0``.. of the jobs, and of the cluster (job -1).
    - ``policy_candidates``: stages that could be chosen, score q and probability.
    - ``policy_limits``: limits for the chosen stage, score w, probability, how many executors they use.
    - ``policy_parity``: largest difference between TensorFlow and the compiled core.
    """
    stored = learned_policy(context, "batch")
    policy = LearnedScheduler(stored.architecture, stored.weights, record=True)
    workload = Workload(tuple(Job(source.profile(*one)) for one in SMALL), source.label)
    settings = context.settings()
    state = new_state(workload, settings)
    record = record_episode(state, policy, params["seed"])
    decision = telling_decision(record)
    _run_to(state, policy, decision, params["seed"])
    batch = GraphBatch([record], state.tables.arrays["child_offset"], state.tables.arrays["child"])
    network = _Network(stored, batch)
    parts = network.parts(decision)
    nodes = _nodes(state, record, decision, parts)
    limits = np.arange(record.limit_low[decision], record.limit_high[decision] + 1)
    return {
        **_jobs(workload, state, nodes),
        "policy_nodes": nodes,
        "policy_summaries": _columns("v", np.vstack([parts["y"], parts["z"]])).assign(
            job=[*_jobs_of(record, decision, nodes), -1]
        ),
        "policy_candidates": _candidates(record, decision, nodes, parts),
        "policy_limits": pandas.DataFrame(
            {
                "limit": limits,
                "w": parts["w"],
                "probability": _softmax(parts["w"]),
                "used": np.minimum(limits - limits[0] + 1, record.classes[decision]),
            }
        ),
        "policy_parity": _parity(state, record, decision, nodes, parts, network.probabilities()),
    }


def telling_decision(record: EpisodeRecord) -> int:
    """Most instructive decision: stages of several jobs, limits that matter, a close call."""
    nodes = np.diff(record.instance_first)

    def shows(decision: int) -> tuple:
        pairs = record.pair_instance[slice(*record.decision_pairs[decision : decision + 2])]
        candidates = slice(*record.decision_candidates[decision : decision + 2])
        jobs = len(np.unique(record.candidate_instance[candidates]))
        under_way = nodes[pairs].sum() < nodes[record.pair_instance[: record.decision_pairs[1]]].sum()
        number = min(candidates.stop - candidates.start, 3)
        close = -max(record.log_prob_stage[decision], record.log_prob_class[decision])
        return jobs > 1, record.classes[decision] > 1, len(pairs), under_way, number, close

    return max(range(len(record)), key=shows)


def _run_to(state: ClusterState, policy: LearnedScheduler, decision: int, seed: int) -> None:
    """Leave the state as it is when the policy has just taken this recorded decision."""
    policy.bind(state)
    durations, chance = spawn_generators(seed)
    state.start(durations, chance)
    observation = Observation(state)
    for taken, _ in enumerate(offers(state)):
        action = policy.decide(observation)
        if taken == decision:
            return
        state.decide(*decision_parts(action))


class _Network:
    """The stored policy in TensorFlow, on the decisions of one record."""

    def __init__(self, policy: LearnedScheduler, batch: GraphBatch) -> None:
        import_tensorflow()
        from decima.systems.spark.policy.network import DecimaNetwork

        self._batch = batch
        self._network = DecimaNetwork(policy.architecture, batch.num_levels, policy.weights)

    def parts(self, decision: int) -> dict[str, np.ndarray]:
        """Parts of one decision: nodes' levels and features, e, y, z, q, w of limits."""
        import tensorflow as tf

        tensors = {name: tf.constant(value) for name, value in self._batch.tensors(np.array([decision])).items()}
        e, y, z = self._network.embed(tensors)
        parts = {"x": tensors["x"], "e": e, "y": y, "z": z, "instance": tensors["node_instance"]}
        parts["candidate"] = tensors["candidate_node"]
        parts["q"] = self._network.stage_scores(tensors, (e, y, z))
        parts["w"] = self._network.limit_scores(tensors, (e, y, z))[0]
        parts["level"] = np.repeat(np.arange(len(tensors["level_sizes"])), tensors["level_sizes"])
        return {name: np.asarray(value) for name, value in parts.items()}

    def probabilities(self) -> dict[str, np.ndarray]:
        """Log-probabilities of all decisions."""
        import tensorflow as tf

        tensors = {name: tf.constant(value) for name, value in self._batch.tensors().items()}
        return {name: value.numpy() for name, value in self._network(tensors).items() if name.startswith("log_prob")}


def _jobs(workload: Workload, state: ClusterState, nodes: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    profiles = [job.profile for job in workload.jobs]
    left = set(zip(nodes["job"], nodes["stage"], strict=True))
    stages = [
        {
            "job": job,
            "name": profile.name,
            "stage": index,
            "tasks": stage.num_tasks,
            "unfinished": int(stage.num_tasks - state.stage_finished_tasks[state.job_first_stage[job] + index]),
            "duration_s": stage.mean_duration_ms / 1000.0,
            "finished": int((job, index) not in left),
        }
        for job, profile in enumerate(profiles)
        for index, stage in enumerate(profile.stages)
    ]
    edges = [
        {"job": job, "parent": parent, "child": child}
        for job, profile in enumerate(profiles)
        for parent, child in profile.graph.edges
    ]
    return {"policy_stages": pandas.DataFrame(stages), "policy_edges": pandas.DataFrame(edges)}


def _nodes(state: ClusterState, record: EpisodeRecord, decision: int, parts: dict) -> pandas.DataFrame:
    """Job, stage, level, features and embedding of every node, in order of the network's nodes."""
    pairs = record.pair_instance[slice(*record.decision_pairs[decision : decision + 2])]
    order = np.argsort(pairs)
    places = [np.arange(*record.instance_first[graph : graph + 2]) for graph in pairs[order]]
    job = np.repeat(state.active[: len(pairs)][order], [len(each) for each in places])
    node = np.concatenate(places)
    level = state.row_level[record.node_row[node]]
    by_level = np.argsort(level, kind="stable")
    if not np.array_equal(record.x[node[by_level]], parts["x"]):
        raise AssertionError("the network's nodes are not in the expected order")
    table = pandas.DataFrame({"job": job, "stage": record.node_local[node], "level": level, "node": node}).iloc[
        by_level
    ]
    x, e = _columns("x", parts["x"]), _columns("e", parts["e"])
    return pandas.concat([table.reset_index(drop=True), x, e], axis=1)


def _jobs_of(record: EpisodeRecord, decision: int, nodes: pandas.DataFrame) -> list[int]:
    """Jobs of the graphs, in the order of y."""
    graphs = np.sort(record.pair_instance[slice(*record.decision_pairs[decision : decision + 2])])
    first = record.instance_first[graphs]
    job_of = nodes.set_index("node")["job"]
    return [int(job_of[node]) for node in first]


def _candidates(record: EpisodeRecord, decision: int, nodes: pandas.DataFrame, parts: dict) -> pandas.DataFrame:
    chosen = record.choice[decision] - record.decision_candidates[decision]
    table = nodes.loc[parts["candidate"], ["job", "stage"]].reset_index(drop=True)
    picked = (np.arange(len(table)) == chosen).astype(int)
    return table.assign(q=parts["q"], probability=_softmax(parts["q"]), chosen=picked)


def _parity(
    state: ClusterState, record: EpisodeRecord, decision: int, nodes: pandas.DataFrame, parts: dict, probabilities: dict
) -> pandas.DataFrame:
    """Largest difference between TensorFlow and the compiled core's values in state and record."""
    features, width = parts["x"].shape[1], parts["e"].shape[1]
    stage = state.job_first_stage[nodes["job"]] + nodes["stage"]
    compiled = state.net_xe.reshape(-1, features + width)[stage]
    jobs = _jobs_of(record, decision, nodes)
    pairs = {
        "stage embeddings e": (parts["e"], compiled[:, features:]),
        "job embeddings y": (parts["y"], state.net_y.reshape(-1, width)[jobs]),
        "cluster embedding z": (parts["z"][0], state.net_z),
        "limit scores w": (parts["w"], state.net_score[: len(parts["w"])]),
    }
    # Where all limits have the same effect TensorFlow leaves their probabilities out.
    matters = record.classes > 1
    names = {"log_prob_stage": "log P(stage)", "log_prob_limit": "log P(limit)", "log_prob_class": "log P(executors)"}
    for name, label in names.items():
        some = slice(None) if name == "log_prob_stage" else matters
        pairs[f"{label}, whole run"] = (probabilities[name][some], getattr(record, name)[some])
    rows = [(name, one.size, float(np.abs(one - other).max())) for name, (one, other) in pairs.items()]
    return pandas.DataFrame(rows, columns=["quantity", "numbers", "largest_difference"])


def _columns(prefix: str, values: np.ndarray) -> pandas.DataFrame:
    return pandas.DataFrame(values, columns=[f"{prefix}{index}" for index in range(values.shape[1])])


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return weights / weights.sum()


def fig05_embeddings(tables: Tables, run: Run) -> Figure:
    """Figure 5."""
    stages, edges = tables["policy_stages"], tables["policy_edges"]
    figure = plotting.network.embeddings(stages, edges, tables["policy_nodes"], tables["policy_summaries"])
    caption = (
        f"{distinct(stages, 'job', 'job')} under way, 1 run, policy {run.policies['batch']}. Data flow downwards, "
        "messages upwards: a stage is embedded in the step after its last child. Below: features x and embeddings e of "
        "the stages, y of the jobs, z of the cluster."
    )
    return plotting.style.entitle(figure, "Figure 5: from features to embeddings", caption, run.workload)


def fig06_choice(tables: Tables, run: Run) -> Figure:
    """Figure 6."""
    candidates = tables["policy_candidates"]
    figure = plotting.style.new_figure(plotting.style.PAGE, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    plotting.network.stage_probabilities(candidates, left)
    plotting.network.limit_probabilities(tables["policy_limits"], right)
    caption = (
        f"The decision of Figure 5, policy {run.policies['batch']}: {count(len(candidates), 'stage')} can be chosen, "
        f"score q above the bar; {count(len(tables['policy_limits']), 'limit')} for the job of the chosen stage. 1 "
        f"run, {run.cluster}."
    )
    return plotting.style.entitle(figure, "Figure 6: from scores to a decision", caption, run.workload)


EXPERIMENT = Experiment(
    "policy",
    "§5.1, §5.2, Figures 5 and 6",
    compute,
    rooms=(*POLICY_ROOMS, "learning/layers.py", "learning/quiet.py"),
    figures=(fig05_embeddings, fig06_choice),
    inputs=(Profiles(), StoredPolicy("batch")),
    # Sums of TensorFlow depend on the processor in their last digits.
    may_differ={
        "policy_nodes": ("e*",),
        "policy_summaries": ("v*",),
        "policy_candidates": ("q", "probability"),
        "policy_limits": ("w", "probability"),
        "policy_parity": ("largest_difference",),
    },
    tiny={"seed": 0},
)
