"""Fully connected layers over raw float32 pointers, vectorised, for compiled code without array objects.

The perceptrons of the policy are tiny (8 to 64 inputs, 1 to 32 outputs), so a call of a matrix library would cost more
than the product. Blocks of 32, 16, 8 or 1 outputs of a few rows at a time stay in vector registers. Every output is one
chain of multiply-adds in the order of the inputs, so results do not depend on how rows and columns are grouped.
"""

import ctypes
from collections import namedtuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

from decima.core.decision import CompiledDecision, decision_at
from decima.core.jit import intrinsic, njit
from decima.learning.perceptron import LEAK

#: Numbers in rows: row r begins at ``first + r * stride`` of ``values``, a float32 pointer or array.
Rows = namedtuple("Rows", ["values", "first", "stride"])
#: A matrix [inputs, outputs], row by row from ``first`` on.
Matrix = namedtuple("Matrix", ["values", "first", "inputs", "outputs"])
_FLOAT = ir.FloatType()
_POINTER = types.CPointer(types.float32)


@njit
def rows_at(values, first, stride):
    """:class:`Rows` with whole numbers of one type."""
    return Rows(values, first, stride)


@njit
def matrix_at(values, first, inputs, outputs):
    """:class:`Matrix` with whole numbers of one type."""
    return Matrix(values, first, inputs, outputs)


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
    def block(_typing, x, x_step, rows, inputs, w, bias, out, act):
        integer = types.int64
        signature = types.void(x, integer, integer, integer, w, bias, out, integer)

        def codegen(context, builder, _signature, args):
            x, x_step, rows, inputs, w, bias, out, act = args
            (x, x_first, x_stride), (w, w_first, w_stride), (b, b_first, b_stride), (out, o_first, o_stride) = (
                cgutils.unpack_tuple(builder, each, 3) for each in (x, w, bias, out)
            )
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
def dense(x, x_step, count, w, bias, out, rectify):
    """``out = act(x @ W + b)`` for some rows.

    Args:
        x: :class:`Rows`, inputs: value i of a row is ``i * x_step`` behind its first.
        x_step: Values from one input to the next.
        count: Number of rows.
        w: :class:`Matrix` W.
        bias: :class:`Rows`, b: every row has its own, or all share one with stride 0; none if ``first`` is -1.
        out: :class:`Rows`; must not overlap the rows of x that are still to be read.
        rectify: 1 for a leaky rectifier, 0 for none.
    """
    column = 0
    while column < w.outputs:
        left = w.outputs - column
        weights = Rows(w.values, w.first + column, w.outputs)
        b = Rows(bias.values, bias.first + column if bias.first >= 0 else -1, bias.stride)
        to = Rows(out.values, out.first + column, out.stride)
        if left >= 32:
            _block32(x, x_step, count, w.inputs, weights, b, to, rectify)
            column += 32
        elif left >= 16:
            _block16(x, x_step, count, w.inputs, weights, b, to, rectify)
            column += 16
        elif left >= 8:
            _block8(x, x_step, count, w.inputs, weights, b, to, rectify)
            column += 8
        else:
            _block1(x, x_step, count, w.inputs, weights, b, to, rectify)
            column += 1


class _CompiledLayer(CompiledDecision):
    """Separately compiled ``dense``, so that its users neither copy nor recompile its code."""

    compiled, i64 = True, types.int64
    signature = types.void(
        _POINTER, i64, i64, i64, _POINTER, i64, i64, i64, _POINTER, i64, i64, _POINTER, i64, i64, i64
    )


@_CompiledLayer
def dense_layer(
    x, x_first, x_stride, count, w, w_first, inputs, outputs, b, b_first, b_stride, out, o_first, o_stride, rectify
):
    """Layer :func:`dense` by address (``net_dense`` of a policy's record); calls by address take no structs."""
    of_x, bias, to = Rows(x, x_first, x_stride), Rows(b, b_first, b_stride), Rows(out, o_first, o_stride)
    dense(of_x, 1, count, Matrix(w, w_first, inputs, outputs), bias, to, rectify)


class _CompiledProduct(CompiledDecision):
    compiled, i64 = True, types.int64
    signature = types.void(_POINTER, i64, i64, i64, i64, _POINTER, i64, i64, _POINTER, i64)


@_CompiledProduct
def outer_product(x, x_first, x_stride, rows, inputs, d, d_first, outputs, out, o_first):
    """Product ``x.T @ d``, added to a matrix [inputs, outputs]; see :func:`call_outer`."""
    sums = Rows(out, o_first, outputs)
    dense(Rows(x, x_first, 1), x_stride, inputs, Matrix(d, d_first, rows, outputs), sums, sums, 0)


def _call_from_python(function, *arguments):
    """The same in plain Python, where the layers stay compiled: nobody steps through vector instructions."""
    pointer = ctypes.POINTER(ctypes.c_float)
    flat = [each for part in arguments for each in (part if isinstance(part, tuple) else (part,))]
    decision_at(function)(*(each if isinstance(each, pointer) else int(each) for each in flat))


def _call(target, *arguments):
    """Code that calls the function at the first argument; structs become their members."""

    def codegen(context, builder, signature, args):
        known, values = [], []
        for type_, value in zip(signature.args[1:], args[1:], strict=True):
            parts = type_.types if isinstance(type_, types.BaseTuple) else (type_,)
            known += parts
            values += cgutils.unpack_tuple(builder, value, len(parts)) if parts[0] is not type_ else [value]
        values = [context.cast(builder, *each) for each in zip(values, known, target.args, strict=True)]
        kinds = [context.get_value_type(type_) for type_ in target.args]
        function = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), kinds).as_pointer())
        builder.call(function, values)
        return context.get_dummy_value()

    return types.void(types.int64, *arguments), codegen


@intrinsic(_call_from_python)
def call_outer(_typing, product, x, x_first, x_stride, rows, inputs, d, d_first, outputs, out, o_first):
    """Call the product compiled at address ``product``."""
    return _call(_CompiledProduct.signature, *_CompiledProduct.signature.args)


@intrinsic(_call_from_python)
def call_dense(_typing, layer, x, count, w, bias, out, rectify):
    """Call the layer compiled at address ``layer``, see :func:`dense`; neighbouring inputs are side by side."""
    return _call(_CompiledLayer.signature, x, types.int64, w, bias, out, types.int64)
