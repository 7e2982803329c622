"""TensorFlow functions of arrays without what ``tf.function`` does around every call.

On the small networks of this project, ``tf.function`` spends more time on checking and converting arguments than
TensorFlow on computing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf


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
            self._graph = self._function.get_concrete_function()
            self._types = [output.dtype for output in self._graph.outputs]
        # Variables that the function reads or assigns to are arguments of the graph.
        inputs = [*arguments, *self._graph.captured_inputs]
        return tf.raw_ops.StatefulPartitionedCall(args=inputs, Tout=self._types, f=self._graph)
