"""The network that chooses nodes, and the critic of Algorithm 1, in TensorFlow.

Source: section IV-A, Eqs. 7 and 8; section V-A for the sizes. Choosing nodes does not need this module;
:mod:`decima.systems.heterogeneous.policy.kernel` computes the same in compiled code.
"""

import numpy as np
import tensorflow as tf

from decima.core.errors import TrainingError
from decima.learning.automatic import setter, trace
from decima.learning.gradient import AdamWeights
from decima.learning.layers import FlatModel, StageMessages, softmax_of_segments, sum_by, tensor_specs
from decima.learning.loss import Gradient
from decima.systems.heterogeneous.policy.architecture import JOBS, NODES, NodeArchitecture
from decima.systems.heterogeneous.policy.batch import TENSORS, NodeBatch


class NodeMessages(StageMessages):
    """Messages from children to parents, all nodes at once: ``g(sum of children's e)`` (Eq. 7)."""

    def to_all(self, e: tf.Tensor, children: tf.Tensor, parents: tf.Tensor) -> tf.Tensor:
        """Messages that every node receives.

        Args:
            e: Float32 [nodes, width].
            children: Int32 [edges].
            parents: Int32 [edges].
        """
        self.index_sources, self.index_targets, self.n_nodes = children, parents, tf.shape(e)[0]
        return self.update(self.aggregate(self.message(e)))


class NodeNetwork(FlatModel):
    """Probabilities of recorded choices of nodes, and scores of all nodes that could be chosen.

    Called with the tensors of :class:`decima.systems.heterogeneous.policy.batch.NodeBatch` it returns what
    :class:`decima.learning.automatic.KerasLearner` says, float32 [D] each; limits do not exist and have 0.

    Args:
        architecture: Shape of the network.
        depth: Nodes on the longest path of any job; messages that go all the way up take that number of rounds.
        weights: Float32 [parameters]; zeros when omitted.
    """

    def __init__(self, architecture: NodeArchitecture, depth: int, weights: np.ndarray | None = None) -> None:
        super().__init__(f"nodes_{architecture.name}", architecture)
        self.depth = depth
        if architecture.graph:
            self.messages = NodeMessages(self._by_name.get("f", tf.identity), self._by_name["g"])
        self.built = True
        if weights is not None:
            self.set_flat(weights)

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """Specification of the tensors that it is called with."""
        return tensor_specs(TENSORS, F=len(self.architecture.node_features))

    def tensors(self, batch: NodeBatch, decisions: np.ndarray) -> dict[str, np.ndarray]:
        """What it is called with for some decisions of a batch, int [D]."""
        return batch.tensors(decisions)

    def call(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Log-probabilities and entropies; see the class."""
        log_prob, entropy = softmax_of_segments(self.scores(batch), batch["candidate_decision"], batch["choice"])
        none = tf.zeros_like(log_prob)
        return {
            "log_prob_stage": log_prob,
            "entropy_stage": entropy,
            **dict.fromkeys(("log_prob_limit", "log_prob_class", "entropy_limit", "entropy_class"), none),
        }

    def embed(self, batch: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Embeddings e [N, width], y [graphs, width] and z [D, width]."""
        net, architecture, x = self._by_name, self.architecture, batch["x"]
        base = net["input"](x)
        if architecture.edge_features:
            base += net["h"](batch["outgoing"][:, None])
        children, parents = batch["edge_child"], batch["edge_parent"]
        e = base
        if architecture.layers:
            for _ in range(architecture.layers):
                e = self.messages.to_all(e, children, parents) + base
        else:
            inner = sum_by(tf.ones_like(parents, tf.float32)[:, None], parents, tf.shape(x)[0]) > 0.0
            for _ in range(self.depth - 1):
                e = tf.where(inner, self.messages.to_all(e, children, parents), 0.0) + base
        sent = net["job_f"](tf.concat([x, e], axis=1)) if architecture.message_f else e
        y = net["job_g"](sum_by(sent, batch["node_graph"], batch["graphs"]) / NODES)
        of_jobs = net["cluster_f"](y) if architecture.message_f else y
        together = tf.math.segment_sum(tf.gather(of_jobs, batch["pair_graph"]), batch["pair_decision"])
        return e, y, net["cluster_g"](together / JOBS)

    def scores(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Score q of every node that could be decided, float32 [C]."""
        architecture, q = self.architecture, self._by_name["q"]
        features, width = len(architecture.node_features), architecture.embedding
        if not architecture.graph:
            (for_node,) = q.parts(features)
            return q.after_first(tf.gather(tf.matmul(batch["x"], for_node), batch["candidate_node"]))[:, 0]
        # Nodes, jobs and decisions are shared by many candidates: their parts of the first layer are computed once.
        e, y, z = self.embed(batch)
        for_node, for_job, for_all = q.parts(features + width, width, width)
        first = tf.gather(tf.matmul(tf.concat([batch["x"], e], axis=1), for_node), batch["candidate_node"])
        first += tf.gather(tf.matmul(y, for_job), batch["candidate_graph"])
        first += tf.gather(tf.matmul(z, for_all), batch["candidate_decision"])
        return q.after_first(first)[:, 0]


_CHUNK = 256


class NodeCritic(AdamWeights):
    """Values of nodes, a slower copy, and Adam.

    Args:
        actor: The network that chooses; its probabilities weigh mean values.
        seed: Source of the first weights.
    """

    def __init__(self, actor: NodeNetwork, seed: int) -> None:
        weights = actor.architecture.initial_weights(seed)
        super().__init__(weights)
        self._actor = actor
        self._network, self._slow = (NodeNetwork(actor.architecture, actor.depth, weights) for _ in range(2))
        self._slow_flat = weights
        self._set = setter(self._network)
        self._values = tf.function(self._values_of, input_signature=[actor.signature], autograph=False)
        inputs = [actor.signature, tf.TensorSpec([None])]
        self._slope = tf.function(self._gradient_of, input_signature=inputs, autograph=False)

    def _show(self) -> None:
        self._set(self._flat)

    def values(self, batch: NodeBatch, decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of recorded choices, mean values, and the slower copy's; see the protocol ``Critic``."""
        trace(self._values)
        parts = [self._values(batch.tensors(part)).numpy() for part in _chunks(decisions)]
        sums = np.concatenate(parts, axis=1).astype(np.float64)
        if not np.isfinite(sums).all():
            raise TrainingError(f"the values of {len(decisions)} decisions are not finite")
        return sums[0], sums[1], sums[2]

    def gradient(self, batch: NodeBatch, decisions: np.ndarray, targets: np.ndarray) -> Gradient:
        """Gradient of the summed squared distance from targets."""
        trace(self._slope)
        total, loss = np.zeros(len(self._flat), np.float32), 0.0
        for part, target in zip(_chunks(decisions), _chunks(targets), strict=True):
            values, sum_of_squares = self._slope(batch.tensors(part), target.astype(np.float32))
            total += values.numpy()
            loss += float(sum_of_squares)
        if not (np.isfinite(total).all() and np.isfinite(loss)):
            raise TrainingError(f"the critic's gradient of {len(decisions)} decisions is not finite")
        return Gradient(total, {"loss": loss}, len(decisions))

    def follow(self, share: float) -> None:
        """Move the slower copy by a share of its distance."""
        self._slow_flat = (self._slow_flat + np.float32(share) * (self.weights - self._slow_flat)).astype(np.float32)
        self._slow.set_flat(self._slow_flat)

    def state(self) -> dict[str, np.ndarray]:
        """Weights, the slower copy's and Adam's state."""
        return super().state() | {"slow": self._slow_flat}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`state` returned."""
        super().restore(arrays)
        self._slow_flat = arrays["slow"]
        self._slow.set_flat(self._slow_flat)

    def _values_of(self, tensors):
        """Float32 [3, D]; traced once."""
        values, segment = self._network.scores(tensors), tensors["candidate_decision"]
        scores = self._actor.scores(tensors)
        shifted = tf.exp(scores - tf.gather(tf.math.segment_max(scores, segment), segment))
        average = tf.math.segment_sum(shifted * values, segment) / tf.math.segment_sum(shifted, segment)
        slow = tf.gather(self._slow.scores(tensors), tensors["choice"])
        return tf.stack([tf.gather(values, tensors["choice"]), average, slow])

    def _gradient_of(self, tensors, targets):
        """Flat gradient [parameters] and the sum of squares; traced once."""
        variables = [variable.value for variable in self._network.trainable_variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            values = tf.gather(self._network.scores(tensors), tensors["choice"])
            loss = tf.reduce_sum(tf.square(targets - values))
        gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(part, [-1]) for part in gradients], axis=0), loss


def _chunks(values: np.ndarray) -> list[np.ndarray]:
    return np.array_split(values, max(1, -(-len(values) // _CHUNK)))
