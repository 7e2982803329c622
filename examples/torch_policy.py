"""Policies of the Spark cluster in PyTorch: networks to train, and observations as graphs.

    module = DecimaModule.stored("embedded-batch")
    records, batch = episodes(module.scheduler(greedy=False, record=True), workloads, settings, seeds)
    log_prob = module(tensors(batch))["log_prob_stage"]

Episodes run in the compiled core with the module's present weights; PyTorch sees what was recorded.

    pip install . torch torch-geometric  # in the clone; the latter for ``graph`` alone
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, log_softmax

from decima.learning.perceptron import LEAK, Perceptron
from decima.learning.store import read_policy, save_policy
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LOG_SCALE, Architecture
from decima.systems.spark.policy.batch import GraphBatch
from decima.systems.spark.policy.features import JOB_FEATURES
from decima.systems.spark.policy.record import EpisodeRecord
from decima.systems.spark.policy.scheduler import LearnedScheduler, record_episode
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import new_state
from decima.workload.jobs import Workload

_NEVER = -1e30


class _Net(nn.Module):
    """A fully connected network: [n, inputs] -> [n, outputs]."""

    def __init__(self, perceptron: Perceptron) -> None:
        super().__init__()
        self._rectified = perceptron.output_activation
        sizes, last = list(pairwise(perceptron.widths)), len(perceptron.widths) - 2
        bias = [perceptron.output_bias or layer < last for layer in range(len(sizes))]
        self.layers = nn.ModuleList(nn.Linear(*size, bias=each) for size, each in zip(sizes, bias, strict=True))

    def forward(self, values: Tensor) -> Tensor:
        """Outputs of the network."""
        return self.after_first(self.layers[0](values))

    def parts(self, *widths: int) -> tuple[Tensor, ...]:
        """Column blocks of the first layer without its bias, for inputs that rows share."""
        return torch.split(self.layers[0].weight.T, widths)

    def after_first(self, values: Tensor) -> Tensor:
        """Outputs from those of the first layer."""
        for layer in self.layers[1:]:
            values = layer(leaky_relu(values, LEAK))
        return leaky_relu(values, LEAK) if self._rectified else values


class DecimaModule(nn.Module):
    """Probabilities of recorded decisions, as the compiled core computes them.

    Called with :func:`tensors`, it returns float32 [D] each: ``log_prob_stage``; ``log_prob_limit`` (0 where all limits
    have one effect) and ``log_prob_class`` (of all limits with the effect of the chosen one); ``log_prob_delay`` of the
    idle slot; and their entropies in nats, ``entropy_stage`` and so on.

    Args:
        architecture: Shape of the network.
        weights: Float32 [parameters] in the order of ``architecture.shapes``; drawn by ``seed`` when omitted.
        seed: Source of the initial weights.

    Raises:
        ConfigError: The weights do not fit.

    Source: §5.1 Eq. 1, §5.2.
    """

    def __init__(self, architecture: Architecture, weights: np.ndarray | None = None, seed: int = 0) -> None:
        super().__init__()
        self.architecture = architecture
        self.nets = nn.ModuleDict({net.name: _Net(net) for net in architecture.perceptrons})
        self.set_flat(architecture.initial_weights(seed) if weights is None else weights)

    @classmethod
    def stored(cls, name_or_path: str | os.PathLike) -> Self:
        """Module of a stored policy.

        Raises:
            PolicyError: There is no such policy, or it is of another system.
        """
        policy = read_policy(name_or_path, Architecture)
        return cls(policy.architecture, policy.weights)

    def _array(self, name: str) -> Tensor:
        """Weights of a name in ``architecture.shapes``; PyTorch has outputs first."""
        net, layer, array = name.split("/")
        linear = self.nets[net].layers[int(layer)]
        return linear.weight.T if array == "kernel" else linear.bias

    def set_flat(self, weights: np.ndarray) -> None:
        """Take over all weights, float32 [parameters]."""
        with torch.no_grad():
            for name, values in self.architecture.split(np.array(weights, dtype=np.float32)).items():
                self._array(name).copy_(torch.from_numpy(values))

    def flat(self) -> np.ndarray:
        """All weights, float32 [parameters] in the order of ``architecture.shapes``."""
        parts = (self._array(name).detach().cpu().numpy() for name, _ in self.architecture.shapes)
        return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float32, copy=False)

    def scheduler(self, **options: Any) -> LearnedScheduler:
        """Scheduler with the present weights, in the compiled core; options are those of ``LearnedScheduler``."""
        return LearnedScheduler(self.architecture, self.flat(), **options)

    def save(self, path: str | os.PathLike, card: dict[str, Any]) -> Path:
        """Store the policy, see :func:`decima.learning.store.save_policy`."""
        return save_policy(path, self.architecture, self.flat(), card)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Log-probabilities and entropies; see the class."""
        architecture, decisions = self.architecture, len(batch["choice"])
        embeddings = self._embed(batch, decisions) if architecture.graph_embedding else None
        scores = self._stage_scores(batch, embeddings)
        log_prob = scores - _log_sum_exp(scores, batch["candidate_decision"], decisions)[batch["candidate_decision"]]
        result = {"log_prob_stage": log_prob[batch["choice"]]}
        result["entropy_stage"] = _sum_by(-log_prob.exp() * log_prob, batch["candidate_decision"], decisions)
        if architecture.delays > 0:
            rows = log_softmax(self.nets["d"](self._context(batch, embeddings, "delay")), dim=1)
            chosen = rows.gather(1, batch["delay_chosen"][:, None])[:, 0]
            columns = torch.stack([chosen, -(rows.exp() * rows).sum(1)], dim=1)
            spread = _sum_by(columns, batch["delay_decision"], decisions)
            result |= {"log_prob_delay": spread[:, 0], "entropy_delay": spread[:, 1]}
        names = ("log_prob_limit", "log_prob_class", "entropy_limit", "entropy_class")
        if architecture.limit == "none":
            return result | {name: scores.new_zeros(decisions) for name in names}
        scores = self._limit_scores(batch, embeddings)
        spread = _sum_by(_softmax_of_limits(scores, batch), batch["limit_decision"], decisions)
        return result | dict(zip(names, spread.unbind(1), strict=True))

    def _embed(self, batch: dict[str, Tensor], decisions: int) -> tuple[Tensor, Tensor, Tensor]:
        """Embeddings of stages, jobs and clusters."""
        net, x = self.nets, batch["x"]
        sizes, counts = batch["level_sizes"].tolist(), batch["edge_level_sizes"].tolist()
        sources, targets = (torch.split(batch[f"edge_{end}"], counts) for end in ("source", "target"))
        h = torch.split(net["input"](x), sizes)
        below = list(h[:1])
        for level in range(1, len(sizes)):
            sent = net["stage_f"](torch.cat(below)[sources[level]])
            received = _sum_by(sent, targets[level], sizes[level])
            below.append(h[level] + (net["stage_g"](received) if "stage_g" in net else received))
        e = torch.cat(below)
        y = _sum_by(net["job_f"](torch.cat([x, e], dim=1)), batch["node_instance"], int(batch["num_instances"]))
        y = net["job_g"](y) if "job_g" in net else y
        pairs = batch["pair_decision"]
        z = _sum_by(net["cluster_f"](y)[batch["pair_instance"]], pairs, decisions)
        if self.architecture.cluster_mean:
            z = z / torch.bincount(pairs, minlength=decisions)[:, None]
        return e, y, net["cluster_g"](z) if "cluster_g" in net else z

    def _stage_scores(self, batch: dict[str, Tensor], embeddings: tuple | None) -> Tensor:
        """Score q of every candidate."""
        node, run = batch["candidate_node"], batch["candidate_run"]
        shape, pair = batch["shape"][batch["run_instance"]], batch["candidate_class"]
        if embeddings is None:
            return self.nets["q"](torch.cat([batch["x"][node], pair, shape[run]], dim=1))[:, 0]
        e, y, z = embeddings
        q = self.nets["q"]
        # Jobs and clusters are shared by many candidates: their part of the first layer is computed once for each.
        job = torch.cat([y[batch["run_instance"]], shape, z[batch["run_decision"]]], dim=1)
        stage = torch.cat([batch["x"], e], dim=1)
        parts = q.parts(stage.shape[1], pair.shape[1], job.shape[1])
        first = (stage @ parts[0])[node] + pair @ parts[1] + (job @ parts[2] + q.layers[0].bias)[run]
        return q.after_first(first)[:, 0]

    def _limit_scores(self, batch: dict[str, Tensor], embeddings: tuple | None) -> Tensor:
        """Score w of every limit for the chosen stages, [K, l]."""
        w, limits = self.nets["w"], batch["limits"]
        context = self._context(batch, embeddings, "limit")
        if self.architecture.limit == "output":
            return w(context)[:, limits - 1]
        scaled = (
            torch.log(limits.to(context.dtype)) * LOG_SCALE if self.architecture.limit_grid else limits / LIMIT_SCALE
        )
        for_context, for_limit = w.parts(context.shape[1], 1)
        first = (context @ for_context + w.layers[0].bias)[:, None, :] + scaled[:, None] * for_limit
        return w.after_first(first)[:, :, 0]

    def _context(self, batch: dict[str, Tensor], embeddings: tuple | None, head: str) -> Tensor:
        """What w (without limits) or d sees."""
        decisions, architecture = batch[f"{head}_decision"], self.architecture
        candidate = batch["choice"][decisions]
        node = batch["candidate_node"][candidate]
        instance = batch["run_instance"][batch["candidate_run"][candidate]]
        shape = batch["shape"][instance]
        if embeddings is None:
            return torch.cat([batch["x"][node], shape], dim=1)
        e, y, z = embeddings
        sees = architecture.limit_context if head == "limit" else "d sees " + architecture.delay_context
        chosen = {"job": batch["x"][:, :JOB_FEATURES], "d sees job": e[:, :0]}.get(sees, e)
        return torch.cat([chosen[node], y[instance], shape, z[decisions]], dim=1)


def _sum_by(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Sums of rows with equal indices, [count, ...]."""
    return values.new_zeros((count, *values.shape[1:])).index_add(0, index, values)


def _log_sum_exp(scores: Tensor, segment: Tensor, count: int) -> Tensor:
    """Logarithm of the sum of exponentials by segment, [count]."""
    most = scores.new_full((count,), -torch.inf).scatter_reduce(0, segment, scores.detach(), "amax")
    return most + torch.log(_sum_by(torch.exp(scores - most[segment]), segment, count))


def _softmax_of_limits(scores: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """Log-probabilities of limit and effect class, entropies over both, [K, 4]."""
    limits = batch["limits"][None, :]
    low, high, tail, chosen = (batch[f"limit_{part}"][:, None] for part in ("low", "high", "tail", "chosen"))
    allowed = (limits >= low) & (limits <= high)
    log_prob = log_softmax(torch.where(allowed, scores, _NEVER), dim=1)
    in_tail = allowed & (limits >= tail)
    log_tail = torch.logsumexp(torch.where(in_tail, log_prob, _NEVER), dim=1)
    plain = torch.where(limits == chosen, log_prob, 0.0).sum(1)
    surprise = -torch.exp(log_prob) * log_prob
    alone, together = (torch.where(part, surprise, 0.0).sum(1) for part in (allowed & ~in_tail, in_tail))
    of_class = torch.where(chosen[:, 0] >= tail[:, 0], log_tail, plain)
    return torch.stack([plain, of_class, alone + together, alone - torch.exp(log_tail) * log_tail], dim=1)


def tensors(batch: GraphBatch, decisions: np.ndarray | None = None) -> dict[str, Tensor]:
    """Tensors of some decisions, int [D], of a batch; see :data:`decima.systems.spark.policy.batch.TENSORS`."""
    arrays = batch.tensors(decisions)
    return {
        name: torch.from_numpy(values if values.dtype == np.float32 else values.astype(np.int64))
        for name, values in arrays.items()
    }


def episodes(
    scheduler: LearnedScheduler, workloads: Sequence[Workload], settings: Settings, seeds: Sequence[int]
) -> tuple[list[EpisodeRecord], GraphBatch]:
    """Run one episode of each workload in the compiled core and record it.

    Args:
        scheduler: What :meth:`DecimaModule.scheduler` makes with ``record=True``.
        workloads: Jobs of every episode, all of one source.
        settings: The cluster.
        seeds: Source of durations and choices of every episode.

    Returns:
        The records, and all their decisions as a batch.
    """
    states = [new_state(workload, settings) for workload in workloads]
    records = [record_episode(state, scheduler, seed) for state, seed in zip(states, seeds, strict=True)]
    arrays = states[0].tables.arrays
    return records, GraphBatch(records, arrays["child_offset"], arrays["child"])


def graph(observation: dict[str, np.ndarray]) -> Any:
    """Observation of ``decima/SparkCluster-v0`` as a graph of PyTorch Geometric, without padding.

    Returns:
        ``torch_geometric.data.Data``: ``x`` float32 [n, 8], ``edge_index`` int64 [2, m] from parent to child, ``job``
        int64 [n] (row of ``jobs``), ``mask`` bool [n] (the stage may be chosen), ``jobs`` float32 [j, 3],
        ``allocation`` int64 [j], ``source_job``, ``free_executors`` and ``time_s`` [1].
    """
    from torch_geometric.data import Data

    nodes = int((observation["stage_job"] >= 0).sum())
    edges = observation["edges"][observation["edges"][:, 0] >= 0]
    jobs = int(observation["stage_job"].max()) + 1
    whole = {"edge_index": edges.T, "job": observation["stage_job"][:nodes]}
    whole |= {"allocation": observation["job_allocation"][:jobs]}
    whole |= {name: observation[name] for name in ("source_job", "free_executors")}
    return Data(
        x=torch.from_numpy(observation["stages"][:nodes].copy()),
        mask=torch.from_numpy(observation["stage_mask"][:nodes].astype(bool)),
        jobs=torch.from_numpy(observation["jobs"][:jobs].copy()),
        time_s=torch.from_numpy(observation["time_s"].copy()),
        **{name: torch.from_numpy(values.astype(np.int64)) for name, values in whole.items()},
    )
