"""Arrays of compiled records that check every index, for tests (``DECIMA_BOUNDS_CHECKS=1``).

An array then carries its length and its name. An index outside of it ends the process with a message that names the
array: compiled code that other compiled code calls by its address has no way to raise an exception.
"""

import operator
import os

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, lower_cast, models, register_model

CHECKED = os.environ.get("DECIMA_BOUNDS_CHECKS") == "1"
if CHECKED:
    numba.config.BOUNDSCHECK = 1  # NumPy arrays in compiled code


class CheckedArray(types.Type):
    """Numba type of an array of a record that knows its length and its name."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"checked array of {dtype}")

    def can_convert_to(self, _context, other):
        """Convert an array to its address where compiled code wants one."""
        return Conversion.safe if other == types.CPointer(self.dtype) else None


@register_model(CheckedArray)
class _CheckedModel(models.StructModel):
    def __init__(self, manager, array_type):
        members = [("data", types.CPointer(array_type.dtype)), ("length", types.int64), ("name", types.voidptr)]
        super().__init__(manager, array_type, members)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        array, index = args
        if isinstance(array, CheckedArray) and isinstance(index, types.Integer):
            return signature(array.dtype, array, types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        array, index, _value = args
        if isinstance(array, CheckedArray) and isinstance(index, types.Integer):
            return signature(types.none, array, types.int64, array.dtype)
        return None


def _element(context, builder, array_type, array, index):
    """Address of an entry; ends the process if there is none."""
    view = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    outside = builder.icmp_unsigned(">=", index, view.length)
    with builder.if_then(outside, likely=False):
        text, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        message = "decima: index %lld is outside of array %s, which has %lld entries\n"
        write = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(number, [number, text], var_arg=True), "dprintf"
        )
        shown = context.insert_const_string(builder.module, message)
        builder.call(write, [number(2), shown, index, view.name, view.length])
        builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), "abort"), [])
    return builder.gep(view.data, [index])


@lower_builtin(operator.getitem, CheckedArray, types.Integer)
def _get(context, builder, signature, args):
    return builder.load(_element(context, builder, signature.args[0], *args))


@lower_builtin(operator.setitem, CheckedArray, types.Integer, types.Any)
def _set(context, builder, signature, args):
    array, index, value = args
    builder.store(value, _element(context, builder, signature.args[0], array, index))


@lower_cast(CheckedArray, types.CPointer)
def _to_address(context, builder, array_type, _other, value):
    return cgutils.create_struct_proxy(array_type)(context, builder, value=value).data


def checked_array(context, builder, array_type, data, length, name):
    """Value of a checked array from its address, its length and its name."""
    view = cgutils.create_struct_proxy(array_type)(context, builder)
    view.data = data
    view.length = length
    view.name = context.insert_const_string(builder.module, name)
    return view._getvalue()
