"""Fully connected layers over raw float32 pointers, vectorised, for compiled code without array objects.

The perceptrons of the policy are tiny (8 to 64 inputs, 1 to 32 outputs), so a call of a matrix library would cost more
than the product. Blocks of 32, 16, 8 or 1 outputs of a few rows at a time stay in vector registers. Every output is one
chain of multiply-adds in the order of the inputs, so results do not depend on how rows and columns are grouped.
"""

import ctypes

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

from decima.core.decision import CompiledDecision, decision_at
from decima.core.jit import intrinsic, njit
from decima.learning.perceptron import LEAK

_FLOAT = ir.FloatType()
_POINTER = types.CPointer(types.float32)


def _make_block(width: int, group: int):
    """A kernel for ``width`` outputs of all rows, ``group`` rows at a time."""
    vector = _FLOAT if width == 1 else ir.VectorType(_FLOAT, width)

    def splat(builder, value):
        if width == 1:
            return value
        lane = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
        return builder.shuffle_vector(lane, ir.Constant(vector, ir.Undefined), mask)

    def load(builder, base, index):
        address = builder.gep(base, [index], source_etype=_FLOAT)
        return builder.load(builder.bitcast(address, vector.as_pointer()), align=4, typ=vector)

    @numba_intrinsic
    def block(
        _typing, x, x_first, x_stride, x_step, rows, inputs, w, w_first, w_stride, b, b_first, b_stride, out, first,
        stride, act,
    ):  # fmt: skip
        integer = types.int64
        signature = types.void(
            _POINTER, integer, integer, integer, integer, integer, _POINTER, integer, integer,
            _POINTER, integer, integer, _POINTER, integer, integer, integer,
        )  # fmt: skip

        def codegen(context, builder, _signature, args):
            x, x_first, x_stride, x_step, rows, inputs, w, w_first, w_stride = args[:9]
            b, b_first, b_stride, out, o_first, o_stride, act = args[9:]
            word = ir.IntType(64)
            zero = ir.Constant(vector, 0.0) if width == 1 else ir.Constant(vector, [0.0] * width)
            suffix = "f32" if width == 1 else f"v{width}f32"
            function_type = ir.FunctionType(vector, [vector] * 3)
            fma = cgutils.get_or_insert_function(builder.module, function_type, f"llvm.fmuladd.{suffix}")
            sums = [cgutils.alloca_once(builder, vector) for _ in range(group)]
            biased = builder.icmp_signed(">=", b_first, word(0))

            def few_rows(row, count):
                starts = [builder.add(x_first, builder.mul(builder.add(row, word(k)), x_stride)) for k in range(count)]
                for k in range(count):
                    builder.store(zero, sums[k])
                with builder.if_then(biased):
                    for k in range(count):
                        start = builder.add(b_first, builder.mul(builder.add(row, word(k)), b_stride))
                        builder.store(load(builder, b, start), sums[k])
                with cgutils.for_range(builder, inputs) as loop:
                    weights = load(builder, w, builder.add(w_first, builder.mul(loop.index, w_stride)))
                    step = builder.mul(loop.index, x_step)
                    for k in range(count):
                        address = builder.gep(x, [builder.add(starts[k], step)], source_etype=_FLOAT)
                        value = splat(builder, builder.load(address, typ=_FLOAT))
                        builder.store(builder.call(fma, [value, weights, builder.load(sums[k])]), sums[k])
                with builder.if_then(builder.icmp_signed("!=", act, word(0))):
                    slope = splat(builder, ir.Constant(_FLOAT, LEAK))
                    for k in range(count):
                        total = builder.load(sums[k])
                        leaky = builder.fmul(total, slope)
                        positive = builder.fcmp_ordered(">", total, zero)
                        builder.store(builder.select(positive, total, leaky), sums[k])
                for k in range(count):
                    first = builder.add(o_first, builder.mul(builder.add(row, word(k)), o_stride))
                    address = builder.gep(out, [first], source_etype=_FLOAT)
                    builder.store(builder.load(sums[k]), builder.bitcast(address, vector.as_pointer()), align=4)

            groups = builder.sdiv(rows, word(group))
            with cgutils.for_range(builder, groups) as loop:
                few_rows(builder.mul(loop.index, word(group)), group)
            done = builder.mul(groups, word(group))
            left = builder.sub(rows, done)
            if group > 4:
                with cgutils.for_range(builder, left) as loop:
                    few_rows(builder.add(done, loop.index), 1)
            else:
                # The rest at once too: levels of job graphs are a few rows.
                for count in range(1, group):
                    with builder.if_then(builder.icmp_signed("==", left, word(count))):
                        few_rows(done, count)
            return context.get_dummy_value()

        return signature, codegen

    return block


_block32 = _make_block(32, 2)
_block16 = _make_block(16, 4)
_block8 = _make_block(8, 4)
_block1 = _make_block(1, 8)


@njit(compiled=True)
def dense(
    x, x_first, x_stride, x_step, rows, inputs, w, w_first, b, b_first, b_stride, out, o_first, o_stride, outputs,
    rectify,
):  # fmt: skip
    """``out = act(x @ W + b)`` for ``rows`` rows.

    Args:
        x: float32 pointer; value i of row r is at ``x_first + r * x_stride + i * x_step``.
        x_first: Index of the first value.
        x_stride: Values from one row to the next.
        x_step: Values from one input to the next.
        rows: Number of rows.
        inputs: Width of the input.
        w: float32 pointer to weights; W is [inputs, outputs], row by row.
        w_first: Index of W.
        b: float32 pointer to biases; row r has its own from ``b_first + r * b_stride``, or all share one with stride 0.
        b_first: Index of the first bias, -1 for no bias.
        b_stride: Values from one row's biases to the next.
        out: float32 pointer, must not overlap the rows of x that are still to be read.
        o_first: Index of the first output.
        o_stride: Values from one output row to the next.
        outputs: Width of the output.
        rectify: 1 for a leaky rectifier, 0 for none.
    """
    column = 0
    while column < outputs:
        left = outputs - column
        bias = b_first + column if b_first >= 0 else -1
        start = o_first + column
        weight = w_first + column
        if left >= 32:
            _block32(
                x, x_first, x_stride, x_step, rows, inputs, w, weight, outputs, b, bias, b_stride, out, start, o_stride,
                rectify,
            )  # fmt: skip
            column += 32
        elif left >= 16:
            _block16(
                x, x_first, x_stride, x_step, rows, inputs, w, weight, outputs, b, bias, b_stride, out, start, o_stride,
                rectify,
            )  # fmt: skip
            column += 16
        elif left >= 8:
            _block8(
                x, x_first, x_stride, x_step, rows, inputs, w, weight, outputs, b, bias, b_stride, out, start, o_stride,
                rectify,
            )  # fmt: skip
            column += 8
        else:
            _block1(
                x, x_first, x_stride, x_step, rows, inputs, w, weight, outputs, b, bias, b_stride, out, start, o_stride,
                rectify,
            )  # fmt: skip
            column += 1


class _CompiledLayer(CompiledDecision):
    """Separately compiled ``dense``, so that its users neither copy nor recompile its code."""

    compiled, i64 = True, types.int64
    signature = types.void(
        _POINTER, i64, i64, i64, i64, _POINTER, i64, _POINTER, i64, i64, _POINTER, i64, i64, i64, i64
    )


@_CompiledLayer
def dense_layer(
    x, x_first, x_stride, rows, inputs, w, w_first, b, b_first, b_stride, out, o_first, o_stride, outputs, rectify
):
    """Separately compiled layer :func:`dense`; its address is ``net_dense`` of the policy's record."""
    dense(
        x, x_first, x_stride, 1, rows, inputs, w, w_first, b, b_first, b_stride, out, o_first, o_stride, outputs,
        rectify,
    )  # fmt: skip


class _CompiledProduct(CompiledDecision):
    compiled, i64 = True, types.int64
    signature = types.void(_POINTER, i64, i64, i64, i64, _POINTER, i64, i64, _POINTER, i64)


@_CompiledProduct
def outer_product(x, x_first, x_stride, rows, inputs, d, d_first, outputs, out, o_first):
    """Product ``x.T @ d``, added to a matrix [inputs, outputs]; see :func:`call_outer`."""
    dense(x, x_first, 1, x_stride, inputs, rows, d, d_first, out, o_first, outputs, out, o_first, outputs, outputs, 0)


def _call_from_python(function, *arguments):
    """The same in plain Python, where the layers stay compiled: nobody steps through vector instructions."""
    pointer = ctypes.POINTER(ctypes.c_float)
    decision_at(function)(*(each if isinstance(each, pointer) else int(each) for each in arguments))


def _call(function_signature):
    """Code that calls the function at the address that comes first."""

    def codegen(context, builder, signature, args):
        kinds = [context.get_value_type(type_) for type_ in signature.args[1:]]
        function = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), kinds).as_pointer())
        builder.call(function, args[1:])
        return context.get_dummy_value()

    return types.void(types.int64, *function_signature.args), codegen


@intrinsic(_call_from_python)
def call_outer(_typing, product, x, x_first, x_stride, rows, inputs, d, d_first, outputs, out, o_first):
    """Call the product compiled at address ``product``."""
    return _call(_CompiledProduct.signature)


@intrinsic(_call_from_python)
def call_dense(
    _typing, layer, x, x_first, x_stride, rows, inputs, w, w_first, b, b_first, b_stride, out, first, stride, width, act
):  # fmt: skip
    """Call the layer compiled at address ``layer``."""
    return _call(_CompiledLayer.signature)
