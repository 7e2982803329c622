"""The policy network in TensorFlow: probabilities of recorded decisions, for losses and gradients.

Running a policy does not need this module; :mod:`.inference` computes the same network in compiled code.
``LearnedScheduler.network()`` is this model with a policy's weights; ``gradient=tensorflow`` of a recipe trains it.

Source: §5.1 Eq. 1, §5.2. Notation as in :class:`decima.systems.spark.policy.architecture.Architecture`.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from decima.learning.layers import FlatModel, StageMessages, gather_ascending, softmax_of_segments, sum_by, tensor_specs
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LOG_SCALE, Architecture
from decima.systems.spark.policy.batch import TENSORS, GraphBatch
from decima.systems.spark.policy.features import JOB_FEATURES

# Score of a limit that is not allowed; finite, so that no gradient is NaN.
_NEVER = -1e30


class DecimaNetwork(FlatModel):
    """Probabilities of recorded decisions.

    Called with the tensors of :class:`decima.systems.spark.policy.batch.GraphBatch`, it returns float32 [D] each:

    - ``log_prob_stage``: log-probability of the chosen stage among the candidates.
    - ``log_prob_limit``, ``log_prob_class``: log-probability of the chosen limit among the allowed ones, and of all
      limits with its effect; 0 where every limit has the same effect.
    - ``log_prob_delay``: log-probability of the chosen idle slot or of none; 0 where there was no such choice. Only if
      the architecture has the head d.
    - ``entropy_stage``, ``entropy_limit``, ``entropy_class``, ``entropy_delay``: entropies of these distributions in
      nats.

    Args:
        architecture: Shape of the network.
        num_levels: Levels of the deepest job graph it is traced for; None: of any graphs, for calls without a trace.
        weights: Float32 [parameters]; zeros when omitted.
    """

    def __init__(
        self, architecture: Architecture, num_levels: int | None = None, weights: np.ndarray | None = None
    ) -> None:
        super().__init__(f"decima_{architecture.name}", architecture)
        self.num_levels = num_levels
        if architecture.graph_embedding:
            self.messages = StageMessages(self._by_name["stage_f"], self._by_name.get("stage_g"))
        self.built = True
        if weights is not None:
            self.set_flat(weights)

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """Specification of the tensors that it is called with; to trace it, ``num_levels`` is needed."""
        architecture = self.architecture
        sizes = {"F": architecture.num_features, "S": architecture.shape_width, "E": architecture.class_width}
        return tensor_specs(TENSORS, L=self.num_levels, **sizes)

    def tensors(self, batch: GraphBatch, decisions: np.ndarray) -> dict[str, np.ndarray]:
        """What it is called with for some decisions of a batch, int [D]."""
        return batch.tensors(decisions, self.num_levels)

    def call(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Log-probabilities and entropies; see the class."""
        embeddings = self.embed(batch) if self.architecture.graph_embedding else None
        scores = self.stage_scores(batch, embeddings)
        log_prob, entropy = softmax_of_segments(scores, batch["candidate_decision"], batch["choice"])
        result = {"log_prob_stage": log_prob, "entropy_stage": entropy}
        if self.architecture.delays > 0:
            columns = _softmax_of_rows(self.delay_scores(batch, embeddings), batch["delay_chosen"])
            spread = tf.scatter_nd(batch["delay_decision"][:, None], columns, [tf.size(log_prob), 2])
            result |= {"log_prob_delay": spread[:, 0], "entropy_delay": spread[:, 1]}
        names = ("log_prob_limit", "log_prob_class", "entropy_limit", "entropy_class")
        if self.architecture.limit == "none":
            return result | {name: tf.zeros_like(log_prob) for name in names}
        columns = _softmax_of_limits(self.limit_scores(batch, embeddings), batch)
        spread = tf.scatter_nd(batch["limit_decision"][:, None], columns, [tf.size(log_prob), len(names)])
        return result | dict(zip(names, tf.unstack(spread, axis=1), strict=True))

    def embed(self, batch: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Embeddings e [N, width], y [instances, width] and z [D, width]."""
        net, x = self._by_name, batch["x"]
        e = self.embed_stages(batch)
        y = sum_by(net["job_f"](tf.concat([x, e], axis=1)), batch["node_instance"], batch["num_instances"])
        if "job_g" in net:
            y = net["job_g"](y)
        summary = tf.math.segment_mean if self.architecture.cluster_mean else tf.math.segment_sum
        z = summary(tf.gather(net["cluster_f"](y), batch["pair_instance"]), batch["pair_decision"])
        if "cluster_g" in net:
            z = net["cluster_g"](z)
        return e, y, z

    def embed_stages(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Embeddings e [N, width]; of the batch it needs x, levels and edges."""
        levels = batch["level_sizes"].shape[0]
        sources = tf.split(batch["edge_source"], batch["edge_level_sizes"], num=levels)
        targets = tf.split(batch["edge_target"], batch["edge_level_sizes"], num=levels)
        h = tf.split(self._by_name["input"](batch["x"]), batch["level_sizes"], num=levels)
        below = h[:1]
        for level in range(1, levels):
            e = tf.concat(below, axis=0)
            below.append(self.messages.receive(e, sources[level], targets[level]) + h[level])
        return tf.concat(below, axis=0)

    def stage_scores(self, batch: dict[str, tf.Tensor], embeddings: tuple | None) -> tf.Tensor:
        """Score q of every candidate, float32 [C]."""
        architecture, q = self.architecture, self._by_name["q"]
        if embeddings is None:
            instance = tf.gather(batch["run_instance"], batch["candidate_run"])
            x = self._with_class(tf.gather(batch["x"], batch["candidate_node"]), batch)
            return q(self._with_shape_of(x, batch, instance))[:, 0]
        # Jobs and clusters are shared by many candidates: their part of the first layer is computed once for each.
        e, y, z = embeddings
        width = architecture.embedding
        stage_width = architecture.num_features + width + architecture.class_width
        for_stage, for_y, for_z = q.parts(stage_width, width + architecture.shape_width, width)
        stage = tf.concat([tf.gather(part, batch["candidate_node"]) for part in (batch["x"], e)], axis=1)
        stage = self._with_class(stage, batch)
        job = tf.gather(tf.matmul(self._with_shape(y, batch), for_y), batch["run_instance"])
        cluster = gather_ascending(tf.matmul(z, for_z), batch["run_decision"])
        first = tf.matmul(stage, for_stage) + gather_ascending(job + cluster, batch["candidate_run"])
        return q.after_first(first)[:, 0]

    def limit_scores(self, batch: dict[str, tf.Tensor], embeddings: tuple | None) -> tf.Tensor:
        """Score w of every limit for the chosen stages, float32 [K, l]."""
        architecture, w = self.architecture, self._by_name["w"]
        context = self._context(batch, embeddings, batch["limit_decision"], architecture.limit_context)
        if architecture.limit == "output":
            return tf.gather(w(context), batch["limits"] - 1, axis=1)
        # The first layer is linear: the part of the context and that of the limit are computed apart and added.
        for_context, for_limit = w.parts(len(architecture.inputs["w"]) - 1, 1)
        limits = tf.cast(batch["limits"], tf.float32)
        scaled = tf.math.log(limits) * LOG_SCALE if architecture.limit_grid else limits / LIMIT_SCALE
        first = tf.matmul(context, for_context)[:, None, :] + scaled[:, None] * for_limit
        shape = tf.shape(first)
        scores = w.after_first(tf.reshape(first, [shape[0] * shape[1], first.shape[2]]))
        return tf.reshape(scores, shape[:2])

    def delay_scores(self, batch: dict[str, tf.Tensor], embeddings: tuple | None) -> tf.Tensor:
        """Score d of every r, for decisions with free delay, float32 [B, g + 1]."""
        context = "embedding" if self.architecture.delay_context == "embedding" else "none"
        return self._by_name["d"](self._context(batch, embeddings, batch["delay_decision"], context))

    def _with_class(self, values: tf.Tensor, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """[values, c] of every candidate, the values alone where classes are not chosen."""
        return tf.concat([values, batch["candidate_class"]], axis=1) if self.architecture.class_width else values

    def _with_shape(self, y: tf.Tensor, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """[y, s] of every instance, or y alone without shapes s."""
        return tf.concat([y, batch["shape"]], axis=1) if self.architecture.shape_width else y

    def _context(
        self, batch: dict[str, tf.Tensor], embeddings: tuple | None, decisions: tf.Tensor, context: str
    ) -> tf.Tensor:
        """What w (without limits) or d sees at some decisions, float32 [decisions, width].

        Args:
            batch: Tensors of the batch.
            embeddings: e, y and z, None without a graph embedding.
            decisions: Int32, which decisions.
            context: What it sees of the chosen stage: its ``"embedding"``, features of its ``"job"`` or ``"none"``.
        """
        chosen = tf.gather(batch["choice"], decisions)
        node = tf.gather(batch["candidate_node"], chosen)
        instance = tf.gather(batch["run_instance"], tf.gather(batch["candidate_run"], chosen))
        if embeddings is None:
            return self._with_shape_of(tf.gather(batch["x"], node), batch, instance)
        e, y, z = embeddings
        parts = [tf.gather(self._with_shape(y, batch), instance), tf.gather(z, decisions)]
        if context == "embedding":
            parts.insert(0, tf.gather(e, node))
        elif context == "job":
            parts.insert(0, tf.gather(batch["x"], node)[:, :JOB_FEATURES])
        return tf.concat(parts, axis=1)

    def _with_shape_of(self, x: tf.Tensor, batch: dict[str, tf.Tensor], instance: tf.Tensor) -> tf.Tensor:
        """[x, s] of some instances, or x alone without shapes s."""
        return tf.concat([x, tf.gather(batch["shape"], instance)], axis=1) if self.architecture.shape_width else x


def _softmax_of_rows(scores: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Log-probability of the chosen column of every row, and the row's entropy, float32 [rows, 2]."""
    log_prob = tf.nn.log_softmax(scores, axis=1)
    entropy = -tf.reduce_sum(tf.exp(log_prob) * log_prob, axis=1)
    return tf.stack([tf.gather(log_prob, chosen, batch_dims=1), entropy], axis=1)


def _softmax_of_limits(scores: tf.Tensor, batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Log-probabilities of limit and effect class, entropies over both.

    Args:
        scores: Float32 [K, l].
        batch: Tensors of the batch.

    Returns:
        Float32 [K, 4].
    """
    limits = batch["limits"][None, :]
    low, high, tail, chosen = (batch[f"limit_{part}"][:, None] for part in ("low", "high", "tail", "chosen"))
    allowed = (limits >= low) & (limits <= high)
    log_prob = tf.nn.log_softmax(tf.where(allowed, scores, _NEVER), axis=1)
    in_tail = allowed & (limits >= tail)
    log_tail = tf.reduce_logsumexp(tf.where(in_tail, log_prob, _NEVER), axis=1)
    plain = tf.reduce_sum(tf.where(limits == chosen, log_prob, 0.0), axis=1)
    surprise = -tf.exp(log_prob) * log_prob
    alone = tf.reduce_sum(tf.where(allowed & ~in_tail, surprise, 0.0), axis=1)
    together = tf.reduce_sum(tf.where(in_tail, surprise, 0.0), axis=1)
    return tf.stack(
        [
            plain,
            tf.where(chosen[:, 0] >= tail[:, 0], log_tail, plain),
            alone + together,
            alone - tf.exp(log_tail) * log_tail,
        ],
        axis=1,
    )
