"""Records: the memory of a simulator as one table of fields, for Python and compiled code alike.

A record is one block of memory. Its header holds the scalars and, for every array, the array's address. Compiled code
sees a bare pointer to the header: ``state.now_ms`` loads a scalar, ``state.stage_next`` loads an address that is
indexed like an array. Numba would count references on every array it touches, which took three quarters of the time of
an event. Nothing checks bounds: kernels own their indices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)
from numba.np.numpy_support import from_dtype

I32, I64, F32, F64, U8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f4"), np.dtype("f8"), np.dtype("u1")


@dataclass(frozen=True)
class Field:
    """One scalar or array of a record.

    Attributes:
        name: Name in Python and in compiled code.
        dtype: Type of the scalar or of the array's entries.
        extent: Name of the array's length; None for a scalar.
        doc: Meaning, unit, dimensions.
    """

    name: str
    dtype: np.dtype
    extent: str | None
    doc: str


def fields(dtype: np.dtype, extent: str | None, **docs: str) -> list[Field]:
    """Fields of one type and one extent, by name and meaning."""
    return [Field(name, dtype, extent, doc) for name, doc in docs.items()]


class RecordType:
    """Layout of a record: its fields, their places in the header, its type in compiled code.

    Args:
        name: Name of the record, unique in the process.
        fields: Its fields, in order.

    Attributes:
        scalars: Scalar fields by name.
        arrays: Array fields by name.
        offsets: Byte of every field in the header; a scalar or an address takes eight.
        header_dtype: NumPy type of the header.
        numba_type: Type of a pointer to the record.
        at: Compiled function that takes the address of a header (int64) and returns the record.
    """

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        self.name = name
        self.fields = fields
        self.scalars = {field.name: field for field in fields if field.extent is None}
        self.arrays = {field.name: field for field in fields if field.extent is not None}
        self.offsets = {name: 8 * index for index, name in enumerate([*self.scalars, *self.arrays])}
        self.header_dtype = np.dtype(
            [(field.name, field.dtype) for field in self.scalars.values()] + [(name, I64) for name in self.arrays]
        )
        self.numba_type = _RecordPointer(self)
        self.at = _record_at(self.numba_type)


class _RecordPointer(types.Type):
    """Numba type of a pointer to a record."""

    def __init__(self, layout: RecordType) -> None:
        self.layout = layout
        super().__init__(name=f"record {layout.name}")


register_model(_RecordPointer)(models.OpaqueModel)


@infer_getattr
class _RecordAttribute(AttributeTemplate):
    key = _RecordPointer

    def generic_resolve(self, kind, name):
        layout = kind.layout
        if name in layout.scalars:
            return from_dtype(layout.scalars[name].dtype)
        if name in layout.arrays:
            return types.CPointer(from_dtype(layout.arrays[name].dtype))
        return None


def _slot(builder, layout, record, name, llvm_type):
    address = builder.gep(record, [ir.Constant(ir.IntType(32), layout.offsets[name])])
    return builder.bitcast(address, llvm_type.as_pointer())


@lower_getattr_generic(_RecordPointer)
def _load_attribute(context, builder, kind, record, name):
    layout = kind.layout
    if name in layout.scalars:
        llvm_type = context.get_value_type(from_dtype(layout.scalars[name].dtype))
        return builder.load(_slot(builder, layout, record, name, llvm_type))
    llvm_type = context.get_value_type(types.CPointer(from_dtype(layout.arrays[name].dtype)))
    load = builder.load(_slot(builder, layout, record, name, llvm_type))
    # Array addresses never change while compiled code runs, so the load may be hoisted out of loops.
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


@lower_setattr_generic(_RecordPointer)
def _store_attribute(context, builder, signature, args, name):
    layout = signature.args[0].layout
    record, value = args
    kind = from_dtype(layout.scalars[name].dtype)
    value = context.cast(builder, value, signature.args[1], kind)
    builder.store(value, _slot(builder, layout, record, name, context.get_value_type(kind)))


def _record_at(kind: _RecordPointer):
    @intrinsic
    def record_at(_typing, address):
        def codegen(context, builder, _signature, args):
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return kind(types.int64), codegen

    return record_at
