"""Keras layers and segment operations that the networks of all systems consist of."""

from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf
from spektral.layers import MessagePassing

from decima.learning.perceptron import LEAK, NetworkShape, Perceptron


class PerceptronLayer(keras.layers.Layer):
    """A fully connected network: ``[..., inputs] -> [..., outputs]``, float32."""

    def __init__(self, perceptron: Perceptron) -> None:
        super().__init__(name=perceptron.name)
        self.perceptron = perceptron
        self.kernels, self.biases = [], []
        for name, shape in perceptron.shapes:
            _, layer, array = name.split("/")
            weight = self.add_weight(name=f"{array}_{layer}", shape=shape, initializer="zeros", dtype="float32")
            (self.kernels if array == "kernel" else self.biases).append(weight)
        if len(self.biases) < len(self.kernels):
            self.biases.append(None)
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Outputs of the network."""
        return self.after_first(tf.matmul(inputs, self.kernels[0]))

    def parts(self, *widths: int) -> list[tf.Tensor]:
        """Row blocks of the first kernel, for inputs that are partly shared by many rows."""
        return tf.split(tf.convert_to_tensor(self.kernels[0]), widths)

    def after_first(self, values: tf.Tensor) -> tf.Tensor:
        """Outputs from the product of the inputs with the first kernel."""
        last = len(self.kernels) - 1
        for layer, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            if layer > 0:
                values = tf.matmul(values, kernel)
            if bias is not None:
                values = tf.nn.bias_add(values, bias)
            if layer < last or self.perceptron.output_activation:
                values = tf.nn.leaky_relu(values, LEAK)
        return values


class FlatModel(keras.Model):
    """Keras model of an architecture, whose weights come as one flat vector.

    Args:
        name: Name of the model.
        architecture: Shape of the network.

    Attributes:
        perceptrons: Its layers, in the order of the vector.
    """

    def __init__(self, name: str, architecture: NetworkShape) -> None:
        super().__init__(name=name)
        self.architecture = architecture
        self.perceptrons = [PerceptronLayer(perceptron) for perceptron in architecture.perceptrons]
        self._by_name = {layer.name: layer for layer in self.perceptrons}

    def set_flat(self, weights: np.ndarray) -> None:
        """Take over all weights, float32 [parameters] in the order of the architecture's ``shapes``."""
        parts = self.architecture.split(np.asarray(weights, dtype=np.float32))
        for variable, value in zip(self.trainable_variables, parts.values(), strict=True):
            variable.assign(value)


def tensor_specs(tensors: Mapping[str, tuple[type, str]], **fixed: int) -> dict[str, tf.TensorSpec]:
    """Specification of a batch's tensors, for one trace for all batches.

    Args:
        tensors: Name -> (dtype, shape in letters).
        **fixed: Sizes by letter; all others differ from batch to batch.
    """
    return {
        name: tf.TensorSpec([fixed.get(size) for size in shape], tf.as_dtype(dtype), name=name)
        for name, (dtype, shape) in tensors.items()
    }


class StageMessages(MessagePassing):
    """Messages from children to parents: ``g(sum of f(e_u) over the children u)``; g is optional.

    Called with ``[e, a]``, embeddings [N, width] and a sparse matrix [N, N] with a[child, parent] = 1, it gives the
    messages that every stage receives; with ``[e, a, x]``, f sees the features x of an edge after the embedding of the
    child. The network uses :meth:`receive`, which visits the stages of one level only.

    Args:
        f: Transformation of a child's embedding, followed by the features of the edge if there are any.
        g: Transformation of the sum, or None.

    Source: §5.1, Eq. 1.
    """

    def __init__(self, f: PerceptronLayer, g: PerceptronLayer | None) -> None:
        super().__init__(aggregate=_sum_of_sorted, name="stage_messages")
        self.f, self.g = f, g
        self.built = True

    def receive(
        self, e: tf.Tensor, sources: tf.Tensor, targets: tf.Tensor, edges: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Messages to the stages of one level.

        Args:
            e: Float32 [nodes below, width], embeddings of all stages below that level.
            sources: Int32 [edges], children, indices into ``e``.
            targets: Int32 [edges], parents inside the level, ascending; each stage of it has a child.
            edges: Float32 [edges, features] of the edges, None for none.

        Returns:
            Float32 [nodes of the level, width].
        """
        self.index_sources, self.index_targets, self.n_nodes = sources, targets, None
        return self.update(self.aggregate(self.message(e, edges)))

    def propagate(self, x: tf.Tensor, a: tf.SparseTensor, e: tf.Tensor | None = None, **kwargs) -> tf.Tensor:
        """Messages to all stages at once, with features ``e`` in the order of ``a``'s entries."""
        self.index_sources, self.index_targets = a.indices[:, 0], a.indices[:, 1]
        self.n_nodes = tf.shape(x)[0]
        return self.update(self.aggregate(self.message(x, e)))

    def message(self, x: tf.Tensor, e: tf.Tensor | None = None, **kwargs) -> tf.Tensor:
        """Transformed embeddings of the children, one row per edge, with its features ``e`` if any."""
        sent = self.get_sources(x)
        return self.f(sent if e is None else tf.concat([sent, e], axis=1))

    def update(self, embeddings: tf.Tensor, **kwargs) -> tf.Tensor:
        """Transformed sums."""
        return embeddings if self.g is None else self.g(embeddings)


def _sum_of_sorted(values: tf.Tensor, index: tf.Tensor, count: tf.Tensor | None) -> tf.Tensor:
    """Sums of rows with equal indices; without a count, these ascend and miss none."""
    if count is None:
        return tf.math.segment_sum(values, index)
    return sum_by(values, index, count)


@tf.custom_gradient
def sum_by(values: tf.Tensor, index: tf.Tensor, count: tf.Tensor):
    """Sums [count, width] of rows with equal indices, unsorted; the gradient is one gather."""
    return tf.math.unsorted_segment_sum(values, index, count), lambda up: (tf.gather(up, index), None, None)


@tf.custom_gradient
def gather_ascending(values: tf.Tensor, index: tf.Tensor):
    """Rows of ``values`` by ascending indices without gaps; the gradient sums neighbours, no scatter."""
    return tf.gather(values, index), lambda up: (tf.math.segment_sum(up, index), None)


def softmax_of_segments(scores: tf.Tensor, segment: tf.Tensor, choice: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Log-probability of the choices and entropy of softmaxes over consecutive rows.

    Args:
        scores: Float32 [C].
        segment: Int32 [C], ascending without gaps.
        choice: Int32 [D], index of the chosen row of each segment.

    Returns:
        Float32 [D] each.
    """
    highest = tf.stop_gradient(tf.math.segment_max(scores, segment))
    shifted = scores - gather_ascending(highest, segment)
    weights = tf.exp(shifted)
    sums = tf.math.segment_sum(tf.stack([weights, weights * shifted], axis=1), segment)
    log_sum = tf.math.log(sums[:, 0])
    return tf.gather(shifted, choice) - log_sum, log_sum - sums[:, 1] / sums[:, 0]
