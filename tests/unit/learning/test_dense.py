"""The vectorised layer against NumPy, for widths on and off the vector sizes."""

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from decima.learning.dense import Matrix, Rows, dense
from decima.learning.perceptron import LEAK


@intrinsic
def _floats_at(_typing, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(types.int64), codegen


@njit
def _run(x, w, out, rows, inputs, outputs, bias, rectify):
    first = inputs * outputs if bias else -1
    x, w, out = _floats_at(x), _floats_at(w), _floats_at(out)
    matrix, bias = Matrix(w, 0, inputs, outputs), Rows(w, first, 0)
    dense(Rows(x, 0, inputs), 1, rows, matrix, bias, Rows(out, 0, outputs), rectify)


@pytest.mark.parametrize("outputs", [1, 3, 8, 16, 32, 50])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 33])
@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("rectify", [0, 1])
def test_equals_matrix_product(outputs, rows, bias, rectify):
    rng = np.random.default_rng(outputs + rows)
    inputs = 21
    x = rng.normal(size=(rows, inputs)).astype(np.float32)
    w = rng.normal(size=(inputs + 1) * outputs).astype(np.float32)
    out = np.full((rows + 1, outputs), 7.0, dtype=np.float32)
    _run(x.ctypes.data, w.ctypes.data, out.ctypes.data, rows, inputs, outputs, bias, rectify)
    wanted = x.astype(np.float64) @ w[: inputs * outputs].reshape(inputs, outputs)
    wanted = wanted + (w[inputs * outputs :] if bias else 0.0)
    if rectify:
        wanted = np.where(wanted > 0.0, wanted, LEAK * wanted)
    np.testing.assert_allclose(out[:rows], wanted, atol=2e-5)
    assert np.all(out[rows] == 7.0)


def test_grouping_of_rows_changes_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 16)).astype(np.float32)
    w = rng.normal(size=17 * 32).astype(np.float32)
    together = np.zeros((9, 32), dtype=np.float32)
    _run(x.ctypes.data, w.ctypes.data, together.ctypes.data, 9, 16, 32, 1, 1)
    for row in range(9):
        alone = np.zeros((1, 32), dtype=np.float32)
        one = np.ascontiguousarray(x[row])
        _run(one.ctypes.data, w.ctypes.data, alone.ctypes.data, 1, 16, 32, 1, 1)
        np.testing.assert_array_equal(alone[0], together[row])


@njit
def _add(x, w, out, rows, inputs, outputs):
    x, w, out = _floats_at(x), _floats_at(w), _floats_at(out)
    to = Rows(out, 0, outputs)
    dense(Rows(x, 0, inputs), 1, rows, Matrix(w, 0, inputs, outputs), to, to, 0)


@pytest.mark.parametrize("outputs", [1, 16, 35])
def test_rows_may_have_their_own_bias_even_in_place(outputs):
    rng = np.random.default_rng(outputs)
    x = rng.normal(size=(5, 3)).astype(np.float32)
    w = rng.normal(size=(3, outputs)).astype(np.float32)
    out = rng.normal(size=(5, outputs)).astype(np.float32)
    wanted = out + x @ w
    _add(x.ctypes.data, w.ctypes.data, out.ctypes.data, 5, 3, outputs)
    np.testing.assert_allclose(out, wanted, atol=1e-5)
