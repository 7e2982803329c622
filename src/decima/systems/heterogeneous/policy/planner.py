"""Plans of the compiled network, and records of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from decima.core.errors import PolicyError
from decima.core.record import Record
from decima.learning.dense import dense_layer
from decima.systems.heterogeneous.engine import NETWORK, Planner
from decima.systems.heterogeneous.policy.architecture import NodeArchitecture
from decima.systems.heterogeneous.policy.kernel import BLOCK, POLICY, choose
from decima.systems.heterogeneous.schedulers.priorities import CHANGING, outgoing, static_features, units
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance


@dataclass(frozen=True)
class NodeRecord:
    """Actions of a policy in one run that reconstruct its D decisions, one per node."""

    chosen: np.ndarray  # int64 [D], node taken
    wanted: np.ndarray  # int64 [D], node that counts: the teacher's, else the one taken
    offered: np.ndarray  # int64 [nodes], first decision at which a node could be decided
    since: np.ndarray  # int64 [jobs], first decision at which a job was there
    log_prob: np.ndarray  # float64 [D], log-probability of the wanted node
    time_s: np.ndarray  # float64 [D]
    length_s: np.ndarray  # float64 [D + 1], length of the schedule before each decision, and at the end

    def until(self, end: int) -> NodeRecord:
        """The first ``end`` decisions."""
        first = {name: getattr(self, name)[:end] for name in ("chosen", "wanted", "log_prob", "time_s")}
        return replace(self, length_s=self.length_s[: end + 1], **first)

    def candidates(self) -> np.ndarray:
        """Nodes that could be decided at each decision, int64 [D]."""
        count = len(self.chosen)
        offered = self.offered[(self.offered >= 0) & (self.offered < count)]
        return np.cumsum(np.bincount(offered, minlength=count)[:count]) - np.arange(count)


class PolicyPlanner:
    """Memory to plan one instance with a network repeatedly, by one thread at a time.

    Args:
        instance: Jobs and cluster.
        rules: When and where nodes are placed.
        architecture: Shape of the network.
    """

    def __init__(self, instance: Instance, rules: Rules, architecture: NodeArchitecture) -> None:
        self.instance, self.architecture = instance, architecture
        self.planner = Planner(instance, rules, choice=NETWORK)
        nodes, jobs, features = len(instance), len(instance.jobs), len(architecture.node_features)
        embedding = architecture.embedding if architecture.graph else 0
        first = architecture.score_hidden[0]
        widest = max(max(net.widths[1:]) for net in architecture.perceptrons)
        static = static_features(instance, architecture.node_features, architecture.feature_log)
        extents = {
            "layout": len(architecture.layout()),
            "weights": architecture.num_parameters,
            "changing": len(CHANGING),
            "nodes": nodes,
            "2 nodes": 2 * nodes,
            "jobs": jobs,
            "jobs + 1": jobs + 1,
            "nodes x features": static.size,
            "nodes x embedding": nodes * embedding,
            "nodes x (features + embedding)": nodes * (features + embedding),
            "nodes x first": nodes * first,
            "jobs x embedding": jobs * embedding,
            "first": first,
            "input": embedding,
            "2 x block x widest": 2 * BLOCK * widest,
        }
        self.record = record = Record(POLICY, extents)
        record.configure(
            dense=dense_layer.address,
            features=features,
            embedding=embedding,
            first_width=first,
            widest=widest,
            layers=architecture.layers,
            graph=architecture.graph,
            logarithms=architecture.feature_log,
            message_f=architecture.message_f,
        )
        inputs = {
            "layout": architecture.layout(),
            "columns": architecture.changing_columns(),
            "x": static.reshape(-1),
            "outgoing": outgoing(instance, architecture.feature_log),
            "unit": units(instance),
            "first_node": instance.first_node,
            "upwards": np.lexsort((instance.longest_down(np.ones(nodes)), instance.job_of_node)),
        }
        for name, array in inputs.items():
            record.bind(name, np.ascontiguousarray(array), copy=False)
        self.planner.record.configure(chooser=choose.address, policy=record.address)

    def run(
        self,
        weights: np.ndarray,
        *,
        rng: np.random.Generator | None = None,
        teacher: np.ndarray | None = None,
        share: float = 1.0,
    ) -> float:
        """Plan all nodes.

        Args:
            weights: Float32 [parameters].
            rng: Random generator; None: the most probable nodes are taken.
            teacher: Priorities of a rule whose choices are noted, float64 [nodes].
            share: Probability that its choice is carried out.

        Returns:
            The makespan in seconds.

        Raises:
            PolicyError: A score was not finite.
        """
        if teacher is not None:
            self.record.bind("teacher", np.ascontiguousarray(teacher, dtype=np.float64), copy=False)
        self._begin(weights, rng, teaching=teacher is not None, share=share)
        makespan_s = self.planner.run()
        self.require_finite()
        return makespan_s

    def _begin(self, weights: np.ndarray, rng: np.random.Generator | None, **teaching) -> None:
        record, nodes = self.record, len(self.instance)
        record.bind("weights", np.ascontiguousarray(weights, dtype=np.float32), copy=False)
        record.bind("draws", np.ones(2 * nodes) if rng is None else rng.random(2 * nodes), copy=False)
        record.put(**({"greedy": rng is None, "ready": 0, "failed": 0, "teaching": False, "share": 1.0} | teaching))

    def require_finite(self) -> None:
        """Check the scores since the begin.

        Raises:
            PolicyError: One was not finite.
        """
        if self.record.failed:
            raise PolicyError("the policy gave a score that is not a finite number; its weights are of no use")

    def done(self) -> NodeRecord:
        """What was done in the last run."""
        record = self.record
        columns = (record.chosen, record.wanted, record.offered, record.since, record.log_prob, record.time)
        length_s = np.append(record.grown, np.max(self.planner.record.finish))
        return NodeRecord(*(column.copy() for column in columns), length_s)
