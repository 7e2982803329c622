"""Perceptrons with gradients in compiled code: forward passes that keep activations, and their reverse.

A perceptron is four numbers per layer in an int32 layout (:mod:`decima.systems.spark.policy.kernel.layout` describes
one): index of the kernel, index of the bias or -1, width of the input, width of the output. Weights, transposed weights
and gradients are flat float32 vectors in the same order. Activations of all layers stand one layer after the other.
"""

import ctypes
from collections import namedtuple

import numpy as np
from numba import types

from decima.core.jit import intrinsic, njit
from decima.learning.dense import call_dense, call_outer, dense_layer, matrix_at, outer_product, rows_at
from decima.learning.perceptron import LEAK

# Numbers before those of the layers: number of layers, whether the output is rectified, width of the output.
HEAD = 4
# Rows that pass through all layers together: their activations stay in the nearest cache.
ROWS = 64
_LEAK = np.float32(LEAK)

Code = namedtuple("Code", ["dense", "outer"])
#: :class:`Code`, int32 layout, and float32 arrays: weights, transposed kernels, gradients of the weights that are added
#: to, activations of ROWS rows, and ROWS times 1 with room behind them for ``2 * ROWS`` times the widest layer.
Net = namedtuple("Net", ["code", "layout", "w", "wt", "grad", "acts", "scratch"])


def compiled_code() -> Code:
    """Addresses of the compiled layer and of the compiled product of its gradient."""
    return Code(dense_layer.address, outer_product.address)


@intrinsic(lambda array: array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
def _pointer(_typing, array):
    """Where the numbers of a contiguous float32 array begin; the caller keeps the array alive."""

    def codegen(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(types.float32)(array), codegen


@njit
def layer(
    code, x, x_first, x_stride, rows, inputs, w, w_first, b, b_first, b_stride, out, o_first, o_stride, outputs, rectify
):
    """:func:`decima.learning.dense.dense` on flat float32 arrays, neighbouring inputs side by side."""
    matrix, bias = matrix_at(_pointer(w), w_first, inputs, outputs), rows_at(_pointer(b), b_first, b_stride)
    to = rows_at(_pointer(out), o_first, o_stride)
    call_dense(code.dense, rows_at(_pointer(x), x_first, x_stride), rows, matrix, bias, to, rectify)


@njit
def total_width(net, at):
    """Numbers that the activations of one row take, output included."""
    total = net[at + 2] if net[at] == 0 else 0
    for index in range(net[at]):
        total += net[at + HEAD + 4 * index + 3]
    return total


@njit
def widest(net, at):
    """The greatest width of an input or output."""
    most = net[at + 2]
    for index in range(net[at]):
        entry = at + HEAD + 4 * index
        most = max(most, net[entry + 2], net[entry + 3])
    return most


@njit
def transpose(net, at, w, wt):
    """Write the transposed kernels of a perceptron into ``wt``, at the places of the kernels."""
    for index in range(net[at]):
        entry = at + HEAD + 4 * index
        kernel, inputs, outputs = net[entry], net[entry + 2], net[entry + 3]
        for i in range(inputs):
            for j in range(outputs):
                wt[kernel + j * inputs + i] = w[kernel + i * outputs + j]


@njit
def forward(net, at, start, end, x, x_first, x_stride, count, acts, capacity, out, out_first, out_stride):
    """Send rows through the layers from ``start`` to ``end``.

    Args:
        net: :class:`Net`.
        at: Where the perceptron begins in the layout; one without layers passes its input on.
        start: First layer; above 0, the layer before it has its activations in ``acts`` already.
        end: Behind the last layer.
        x: Float32, input of layer 0: row r begins at ``x_first + r * x_stride``.
        x_first: Index of the first input.
        x_stride: Numbers from one row to the next.
        count: Number of rows.
        acts: Float32, activations of the hidden layers.
        capacity: Rows that ``acts`` has room for.
        out: Float32, output of the last layer, row by row.
        out_first: Index of the first.
        out_stride: Numbers from one row to the next.
    """
    layout, w = net.layout, net.w
    layers = layout[at]
    if layers == 0:
        for row in range(count):
            copy_to(out, out_first + row * out_stride, x, x_first + row * x_stride, layout[at + 2])
        return
    for block in range(0, count, ROWS):
        rows = min(ROWS, count - block)
        source, s_first, s_stride = x, x_first + block * x_stride, x_stride
        before = 0
        for index in range(start):
            width = layout[at + HEAD + 4 * index + 3]
            source, s_first, s_stride = acts, capacity * before + block * width, width
            before += width
        for index in range(start, end):
            entry = at + HEAD + 4 * index
            outputs = layout[entry + 3]
            if index < layers - 1:
                target, t_first, t_stride = acts, capacity * before + block * outputs, outputs
            else:
                target, t_first, t_stride = out, out_first + block * out_stride, out_stride
            layer(
                net.code, source, s_first, s_stride, rows, layout[entry + 2], w, layout[entry], w, layout[entry + 1], 0,
                target, t_first, t_stride, outputs, layout[at + 1] if index == layers - 1 else 1,
            )  # fmt: skip
            source, s_first, s_stride = target, t_first, t_stride
            before += outputs


@njit
def add_to(target, first, source, start, count):
    """Add neighbouring numbers to others. Slices, so that the loop is vectorised."""
    into, values = target[first : first + count], source[start : start + count]
    for k in range(count):
        into[k] += values[k]


@njit
def copy_to(target, first, source, start, count):
    """Copy neighbouring numbers."""
    into, values = target[first : first + count], source[start : start + count]
    for k in range(count):
        into[k] = values[k]


@njit
def leak(d, first, acts, start, count):
    """Reverse of the leaky rectifier: scale the gradients where the activation is not above 0."""
    gradients, values = d[first : first + count], acts[start : start + count]
    for k in range(count):
        gradients[k] = gradients[k] if values[k] > np.float32(0.0) else gradients[k] * _LEAK


@njit
def add_outer(net, x, x_first, x_stride, rows, inputs, d, d_first, outputs, kernel):
    """Add ``x.T @ d`` over some rows to the gradient of a kernel.

    Args:
        net: :class:`Net`.
        x: Float32, inputs.
        x_first: Index of the first input.
        x_stride: Numbers from one row to the next.
        rows: Number of rows.
        inputs: Width of the input.
        d: Float32, gradients of the outputs, row by row.
        d_first: Index of the first.
        outputs: Width of the output.
        kernel: Index of the kernel.
    """
    call_outer(
        net.code.outer, _pointer(x), x_first, x_stride, rows, inputs, _pointer(d), d_first, outputs,
        _pointer(net.grad), kernel,
    )  # fmt: skip


@njit
def add_rows(net, d, d_first, rows, outputs, bias):
    """Sum over rows, added to the gradient of a bias if there is one."""
    if bias >= 0:
        for first in range(0, rows, ROWS):
            count = min(ROWS, rows - first)
            add_outer(net, net.scratch, 0, 1, count, 1, d, d_first + first * outputs, outputs, bias)


@njit
def backward(net, at, start, x, x_first, x_stride, count, acts, capacity, up, up_first, down, down_first, down_stride):
    """Reverse of the layers from ``start`` on, with the gradients of their weights.

    Args:
        net: :class:`Net`.
        at: Where the perceptron begins in the layout.
        start: First layer that is reversed.
        x: Float32, input of layer 0, as in :func:`forward`.
        x_first: Index of the first input.
        x_stride: Numbers from one row to the next.
        count: Number of rows.
        acts: Float32, activations of the hidden layers, as :func:`forward` leaves them.
        capacity: Rows that ``acts`` has room for.
        up: Float32, gradient of the outputs, row by row from ``up_first``; before the rectifier, if the output has one.
        up_first: Index of the first.
        down: Float32, receives the gradient of what layer ``start`` takes: of x, or above 0 of the layer before it,
            before its rectifier.
        down_first: Index of the first; -1 if nobody asks.
        down_stride: Numbers from one row to the next; above layer 0 they must be neighbours.
    """
    layout, wt = net.layout, net.wt
    layers, width = layout[at], layout[at + 2]
    if layers == start:
        for row in range(count):
            copy_to(down, down_first + row * down_stride, up, up_first + row * width, width)
        return
    half = ROWS * widest(layout, at)
    hidden = total_width(layout, at) - width
    for block in range(0, count, ROWS):
        rows = min(ROWS, count - block)
        before = hidden
        d, d_first = up, up_first + block * width
        for back in range(layers - start):
            index = layers - 1 - back
            entry = at + HEAD + 4 * index
            kernel, bias, inputs, outputs = layout[entry], layout[entry + 1], layout[entry + 2], layout[entry + 3]
            add_rows(net, d, d_first, rows, outputs, bias)
            source = capacity * (before - inputs) + block * inputs
            if index == 0:
                add_outer(net, x, x_first + block * x_stride, x_stride, rows, inputs, d, d_first, outputs, kernel)
            else:
                add_outer(net, acts, source, inputs, rows, inputs, d, d_first, outputs, kernel)
            if index == start and down_first < 0:
                break
            if index == start:
                target, t_first, t_stride = down, down_first + block * down_stride, down_stride
            else:
                target, t_first, t_stride = net.scratch, ROWS + (back & 1) * half, inputs
            layer(
                net.code, d, d_first, outputs, rows, outputs, wt, kernel, wt, -1, 0,
                target, t_first, t_stride, inputs, 0,
            )  # fmt: skip
            if index > 0:
                leak(target, t_first, acts, source, rows * inputs)
            d, d_first = target, t_first
            before -= inputs
