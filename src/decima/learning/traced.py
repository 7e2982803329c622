"""TensorFlow functions: traced without leaving anything behind, and called without what ``tf.function`` does around it.

On the small networks of this project, ``tf.function`` spends more time on checking and converting arguments than
TensorFlow on computing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry


def trace(function):
    """Trace a ``tf.function`` with a signature, at most once; returns its graph.

    TensorFlow registers gradients of ``tf.custom_gradient`` under a new name in every trace and never lets them go, nor
    with them the graph. Nobody asks for them after the trace.
    """
    before = set(gradient_registry._registry)
    graph = function.get_concrete_function()
    for name in set(gradient_registry._registry) - before:
        del gradient_registry._registry[name]
    return graph


class Traced:
    """A function that is traced at its first call, and from then on called as the graph that it became.

    Args:
        function: Function of tensors that returns a sequence of tensors.
        signature: Types and shapes of its arguments; arguments must be arrays or numbers of exactly these types, as
            nothing converts them.
    """

    def __init__(self, function: Callable, signature: Sequence[tf.TensorSpec]) -> None:
        self._function = tf.function(function, input_signature=list(signature), autograph=False)
        self._graph = None

    def __call__(self, *arguments) -> list:
        """What the function returns, tensors in order."""
        if self._graph is None:
            self._graph = trace(self._function)
            self._types = [output.dtype for output in self._graph.outputs]
        # Variables that the function reads or assigns to are arguments of the graph.
        inputs = [*arguments, *self._graph.captured_inputs]
        return tf.raw_ops.StatefulPartitionedCall(args=inputs, Tout=self._types, f=self._graph)
