"""The policy network in TensorFlow: probabilities of recorded decisions, for losses and gradients.

Running a stored policy does not need this module; :mod:`.inference` computes the same network in compiled code.
``LearnedScheduler.network()`` is this model with a policy's weights; ``gradient=tensorflow`` of a recipe trains it.
A subclass is trained as ``--architecture file.py:NAME`` and decides in Python (:mod:`.python_scores`).

Source: §5.1 Eq. 1, §5.2. Notation as in :class:`decima.systems.spark.policy.architecture.Architecture`.
"""

import random
import re
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from decima.core.errors import ConfigError
from decima.learning.layers import FlatModel, StageMessages, gather_ascending, softmax_of_segments, sum_by, tensor_specs
from decima.systems.spark.policy.architecture import LIMIT_SCALE, LOG_SCALE, Architecture
from decima.systems.spark.policy.batch import TENSORS, GraphBatch
from decima.systems.spark.policy.features import JOB_FEATURES

# Score of a limit that is not allowed; finite, so that no gradient is NaN.
_NEVER = -1e30
# Integer tensors of a batch: the first decision is between two jobs, the second is about the first of them.
_SMALL = {
    "level_sizes": [2, 1],
    "edge_source": [0],
    "edge_target": [0],
    "edge_level_sizes": [0, 1],
    "node_instance": [0, 1, 0],
    "num_instances": 2,
    "pair_instance": [0, 1, 0],
    "pair_decision": [0, 0, 1],
    "candidate_node": [2, 1, 2],
    "candidate_decision": [0, 0, 1],
    "candidate_run": [0, 1, 2],
    "run_instance": [0, 1, 0],
    "run_decision": [0, 0, 1],
    "choice": [0, 2],
    "limits": [1, 1],
    "limit_decision": [1],
    "limit_low": [1],
    "limit_high": [1],
    "limit_tail": [1],
    "limit_chosen": [1],
    "delay_decision": [1],
    "delay_chosen": [0],
}


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

    A subclass makes further layers in ``__init__``, after that of this class. It overrides some of :meth:`embed_stages`
    (messages between stages), :meth:`embed` (of jobs and cluster too), :meth:`stage_scores` and :meth:`limit_scores`.

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

    @classmethod
    def further_weights(cls, architecture: Architecture, seed: int) -> list[np.ndarray]:
        """Initial values of layers besides the perceptrons, float32; see :func:`make_network`."""
        known = random.getstate()
        random.seed(seed)  # from which layers take seeds that they are not given
        try:
            network = make_network(architecture)
        finally:
            random.setstate(known)
        perceptrons = len(architecture.replace(network="").shapes)
        return [variable.numpy() for variable in network.trainable_variables[perceptrons:]]

    @property
    def trainable_variables(self) -> list:
        """Its weights in the order of the flat vector, perceptrons first."""
        first = [variable for layer in self.perceptrons for variable in layer.trainable_variables]
        known = {id(variable) for variable in first}
        return first + [variable for variable in super().trainable_variables if id(variable) not in known]

    def adjacency(self, batch: dict[str, tf.Tensor]) -> tf.SparseTensor:
        """Edges for Spektral's layers, [N, N]: 1 at (child, parent)."""
        first = tf.cumsum(batch["level_sizes"], exclusive=True)
        parent = batch["edge_target"] + tf.repeat(first, batch["edge_level_sizes"])
        edges = tf.cast(tf.stack([batch["edge_source"], parent], axis=1), tf.int64)
        nodes = tf.cast(tf.repeat(tf.shape(batch["x"])[0], 2), tf.int64)
        return tf.SparseTensor(edges, tf.ones(tf.shape(parent)), nodes)

    def embed(self, batch: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Embeddings of stages, jobs and the cluster.

        Args:
            batch: Tensors as :data:`decima.systems.spark.policy.batch.TENSORS` lists them.

        Returns:
            e [N, width], y [instances, width] and z [D, width], float32.
        """
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
        """Embeddings of stages; of the batch it needs x, levels and edges.

        Args:
            batch: Tensors, x [N, features] among them; :meth:`adjacency` has the edges for layers of Spektral.

        Returns:
            e, float32 [N, width], width being ``architecture.embedding``.
        """
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
        """Score q of every candidate, float32 [C].

        Args:
            batch: Tensors; candidate c is stage ``candidate_node[c]`` of job graph ``run_instance[candidate_run[c]]``
                at decision ``candidate_decision[c]``.
            embeddings: What :meth:`embed` returned, None without a graph embedding.
        """
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
        """Score w of every limit for the chosen stages, float32 [K, l].

        Args:
            batch: Tensors; ``limits`` [l], and decisions ``limit_decision`` [K], whose candidates are ``choice`` [D].
            embeddings: What :meth:`embed` returned, None without a graph embedding.
        """
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


def make_network(
    architecture: Architecture, num_levels: int | None = None, weights: np.ndarray | None = None
) -> DecimaNetwork:
    """The model of an architecture, of the class that it names, all layers built.

    Args:
        architecture: Shape of the network.
        num_levels: Levels of the deepest job graph it is traced for; None: of any graphs.
        weights: Float32 [parameters].

    Raises:
        ConfigError: A subclass fails on a small batch, or gives something of another shape or type.
    """
    if not architecture.network:
        return DecimaNetwork(architecture, num_levels, weights)
    subclass = architecture.network_class
    if subclass.call is not DecimaNetwork.call:
        raise ConfigError(f"{architecture.network} overrides call; expected embed, stage_scores or limit_scores")
    embeds = (subclass.embed, subclass.embed_stages) != (DecimaNetwork.embed, DecimaNetwork.embed_stages)
    if embeds and not architecture.graph_embedding:
        raise ConfigError(f"{architecture.network} overrides the embedding, which graph_embedding=false leaves out")
    try:
        network = subclass(architecture, num_levels)
        known = architecture.replace(network="")
        values = known.split(known.initial_weights(0)).values()  # of the perceptrons, which come first
        for variable, value in zip(network.trainable_variables, values, strict=False):
            variable.assign(value)
        for name, value, shape in _small_results(network):
            got = f"{value.dtype.name} {list(value.shape)}" if isinstance(value, tf.Tensor) else f"{value!r:.60}"
            if got != f"float32 {shape}":
                raise ConfigError(f"{architecture.network} gives {got} as {name}; expected float32 {shape}")
            if not np.isfinite(value).all():
                raise ConfigError(f"{architecture.network} gives NaN or infinite numbers as {name}")
    except ConfigError:
        raise
    except Exception as error:  # whatever code from outside raises
        raise ConfigError(f"{architecture.network} fails on a small batch with {one_line(error)}") from error
    if other := [each for each in network.trainable_variables if each.dtype != "float32"]:
        raise ConfigError(f"{architecture.network} has {other[0].path} of type {other[0].dtype}; expected float32")
    if weights is not None:
        network.set_flat(weights)
    return network


def _small_results(network: DecimaNetwork) -> Iterator[tuple[str, tf.Tensor, list[int]]]:
    """Name, value and right shape of what a network gives for two decisions."""
    architecture, embeddings = network.architecture, None
    widths = {"x": (3, architecture.num_features), "shape": (2, architecture.shape_width)}
    widths["candidate_class"] = (3, architecture.class_width)
    batch = {name: tf.fill(shape, 0.5) for name, shape in widths.items()}
    batch |= {name: tf.constant(values, tf.int32) for name, values in _SMALL.items()}
    if architecture.graph_embedding:
        yield "embed_stages", network.embed_stages(batch), [3, architecture.embedding]
        embeddings = network.embed(batch)
        for name, value, rows in zip("eyz", embeddings, (3, 2, 2), strict=True):
            yield f"embedding {name}", value, [rows, architecture.embedding]
    yield "stage_scores", network.stage_scores(batch, embeddings), [3]
    if architecture.limit != "none":
        yield "limit_scores", network.limit_scores(batch, embeddings), [1, 2]
    if architecture.delays > 0:
        yield "delay_scores", network.delay_scores(batch, embeddings), [1, architecture.delays + 1]
    yield "log_prob_stage", network(batch)["log_prob_stage"], [2]


def one_line(error: BaseException) -> str:
    """Type and message of an error in one line, without what Keras adds."""
    text = re.sub(r"\x1b\[\d*m", "", str(error)).partition("Arguments received by")[0]
    return f"{type(error).__name__}: {' '.join(text.split()):.300}"


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
