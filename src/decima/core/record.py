"""Records: memory of a simulator as a table of fields, for Python and compiled code.

Compiled code sees a record as a bare pointer: ``state.now_ms`` loads a scalar, ``state.stage_next`` loads an address
that is indexed like an array. Numba would count references on every array it touches, which took three quarters of the
time of an event. Kernels check no bounds (except in the build of
:mod:`decima.core.array_checks`); what comes in from outside is checked once, by :meth:`Record.bind`.

Memory of a record: addresses of the arrays, their lengths, scalars that belong to this memory (addresses of other
things), then everything a run changes: scalars and arrays. The last part is what a copy of a running state consists of.
"""

from __future__ import annotations

import copy
import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, lower_setattr_generic, models, register_model
from numba.np.numpy_support import from_dtype

from decima.core.array_checks import CHECKED, CheckedArray, checked_array
from decima.core.decision import decision_at
from decima.core.errors import RecordError
from decima.core.jit import INTERPRETED, intrinsic

I32, I64, F32, F64, U8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f4"), np.dtype("f8"), np.dtype("u1")
# Storage classes of a field.
RUN, ADDRESS, CODE, BOUND, BUFFER = "run", "address", "code", "bound", "buffer"
# What numbers refer to, besides the names of extents: to nothing, or to this memory alone.
PLAIN, LOCAL = "plain", "local"
_ALIGNMENT = 64


@dataclass(frozen=True)
class Field:
    """One scalar or array of a record.

    Attributes:
        name: Name in Python and in compiled code.
        dtype: Type of the scalar or of the array's entries.
        extent: Name of the array's length; None for a scalar.
        doc: Meaning, unit, dimensions.
        storage: ``"run"``: part of what a run changes. ``"address"``: a scalar that belongs to this memory and
            not to a copy; compiled code only reads it. ``"code"``: a scalar that a run has, the address of a compiled
            decision; another process gets the same decision's address there. ``"bound"``: an array bound from outside,
            checked. ``"buffer"``: an array whose length may grow.
        initial: Value of all entries of an array when a run begins; scalars are 0 or what they are configured to be.
        nan: Whether entries of a bound array may be NaN.
        refers: What the numbers are, for copies into memory where things have other numbers
            (:mod:`decima.core.relocation`). An extent: numbers of such things, below 0 for none. ``PLAIN``: they refer
            to nothing, as all that is no integer. ``LOCAL``: sizes, settings and the like, which belong to this memory
            alone. None: nobody said.
    """

    name: str
    dtype: np.dtype
    extent: str | None
    doc: str
    storage: str = RUN
    initial: float = 0
    nan: bool = False
    refers: str | None = None


@dataclass(frozen=True)
class FieldGroup:
    """Fields that belong together.

    Attributes:
        title: What they are.
        fields: The fields.
    """

    title: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, title: str, *parts: list[Field]) -> FieldGroup:
        """Group of lists from :func:`fields`."""
        return cls(title, tuple(field for part in parts for field in part))


def fields(
    dtype: np.dtype,
    extent: str | None,
    storage: str = RUN,
    initial: float = 0,
    *,
    refers: str | None = None,
    **docs: str,
) -> list[Field]:
    """Fields that differ only in name and meaning."""
    refers = PLAIN if refers is None and dtype.kind == "f" else refers
    return [Field(name, dtype, extent, doc, storage, initial, refers=refers) for name, doc in docs.items()]


class RecordType:
    """Layout of a record: its fields, their places in memory, its type in compiled code.

    Several types may exist in one process, each with fields of its own.

    Args:
        name: What errors call it; unique in the process.
        groups: Its fields.

    Attributes:
        module: Name of the module that made it, where pickles look for it.
        scalars: Scalar fields by name.
        arrays: Array fields by name.
        fields_of_run: Fields of storage ``"run"`` by name.
        filled: What arrays are filled with when a run begins, by name, where that is not 0.
        index: Position of every array among addresses and lengths.
        stored: Positions of the arrays of every storage, int64.
        extents: The first array of every extent, by the extent's name.
        extent_of: int64 [arrays], position of an array's extent among them.
        itemsizes: int64 [arrays], bytes of an entry.
        offsets: Byte of every scalar, and of every array's address.
        run_offset: First byte of what a run changes.
        code: Names of the scalars of storage ``"code"``.
        header_dtype: NumPy type of addresses, lengths and scalars.
        at: Compiled function that takes the address of a record (int64) and returns the record.
    """

    def __init__(self, name: str, *groups: FieldGroup) -> None:
        self.name = name
        self.module = sys._getframe(1).f_globals["__name__"]
        self.groups = groups
        self.fields = tuple(field for group in groups for field in group.fields)
        self.scalars = {field.name: field for field in self.fields if field.extent is None}
        self.arrays = {field.name: field for field in self.fields if field.extent is not None}
        self.fields_of_run = {field.name: field for field in self.fields if field.storage == RUN}
        self.filled = {name: self.arrays[name].initial for name in self.arrays if self.arrays[name].initial != 0}
        self.index = {name: index for index, name in enumerate(self.arrays)}
        self.stored = {
            storage: np.array([i for i, field in enumerate(self.arrays.values()) if field.storage == storage], int)
            for storage in (RUN, BOUND, BUFFER)
        }
        self.extents = {field.extent: field for field in reversed(self.arrays.values())}
        known = list(self.extents)
        self.extent_of = np.array([known.index(field.extent) for field in self.arrays.values()], dtype=np.int64)
        self.itemsizes = np.array([field.dtype.itemsize for field in self.arrays.values()], dtype=np.int64)
        ordered = sorted(self.scalars.values(), key=lambda field: field.storage != ADDRESS)
        header = [(name, I64) for name in self.arrays] + [(f"len({name})", I64) for name in self.arrays]
        header += [(field.name, field.dtype) for field in ordered]
        self.header_dtype = np.dtype(header)
        self.offsets = {name: self.header_dtype.fields[name][1] for name, _ in header}
        self.run_offset = 8 * (len(header) - sum(field.storage != ADDRESS for field in ordered))
        self.code = [field.name for field in ordered if field.storage == CODE]
        self.numba_type = _RecordPointer(self)
        self.at = self._in_python() if INTERPRETED else _record_at(self.numba_type)

    def _in_python(self) -> Callable[[int], ctypes.Structure]:
        """:attr:`at` in plain Python: scalars are numbers and arrays are pointers, as in compiled code."""
        fields = []
        for name, (dtype, _) in self.header_dtype.fields.items():
            pointed = self.arrays.get(name)
            of = np.ctypeslib.as_ctypes_type(dtype if pointed is None else pointed.dtype)
            fields.append((name, of if pointed is None else ctypes.POINTER(of)))
        structure = type(self.name, (ctypes.Structure,), {"_pack_": 1, "_fields_": fields})
        return lambda address: structure.from_address(int(address))

    def __reduce__(self) -> tuple:
        """Pickle, and copy, as the one of this name in its module."""
        return _layout_named, (self.module, self.name)


def _layout_named(module: str, name: str) -> RecordType:
    known = vars(import_module(module)).values()
    return next(layout for layout in known if isinstance(layout, RecordType) and layout.name == name)


class Record:
    """A record in memory, seen from Python as numbers and NumPy arrays without copies.

    Args:
        layout: Its type.
        extents: Length behind the name of every extent.

    Attributes:
        layout: Its type.
        extents: Length behind the name of every extent.
        bound: Names of the arrays that were bound from outside.
        address: Address that compiled code takes; valid while this object lives.
    """

    def __init__(self, layout: RecordType, extents: Mapping[str, int]) -> None:
        self.layout = layout
        self.extents = dict(extents)
        self.bound: set[str] = set()
        # Arrays and scalars by name as far as they were asked for: most runs look at few of them from Python.
        self._arrays: dict[str, np.ndarray] = {}
        self._numbers: dict[str, memoryview] = {}
        for name in layout.extents.keys() - self.extents.keys():
            self._length(layout.extents[name])
        lengths = np.array([self.extents[name] for name in layout.extents], dtype=np.int64)[layout.extent_of]
        sizes = lengths * layout.itemsizes
        header, stored = layout.header_dtype.itemsize, layout.stored[RUN]
        places = np.cumsum(-(-np.array([header, *sizes[stored]]) // _ALIGNMENT) * _ALIGNMENT)
        memory = np.zeros(int(places[-1]) + _ALIGNMENT, dtype=np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        self._memory = memory[start : start + int(places[-1])]
        self.address = self._memory.ctypes.data
        self._scalars = self._memory[:header].view(layout.header_dtype)[0]
        self._addresses, self._lengths = self._memory[: 16 * len(lengths)].view(np.int64).reshape(2, -1)
        self._lengths[:] = lengths
        # Scalars as they are when a run begins, in bytes: NumPy copies a structure field by field.
        self._template = np.zeros(header, dtype=np.uint8)
        self._initial = self._template.view(layout.header_dtype)[0]
        self._running = self._memory[layout.run_offset :]
        self._zeros = _zeros(int(sizes[layout.stored[BOUND]].max(initial=0)))
        self._addresses[:] = self._zeros.ctypes.data
        self._addresses[stored] = self.address + places[:-1]
        for field in layout.arrays.values():
            if field.storage == BUFFER and self._length(field):
                self._bind(field.name, np.empty(self._length(field), dtype=field.dtype))

    def _length(self, field: Field) -> int:
        try:
            return int(self.extents[field.extent])
        except KeyError:
            raise RecordError(
                f"array {field.name} of {self.layout.name}: the extent {field.extent!r} has no length"
            ) from None

    def _bind(self, name: str, array: np.ndarray) -> None:
        """Let a name stand for an array of the right type and length."""
        self._arrays[name] = array
        index = self.layout.index[name]
        self._addresses[index] = array.__array_interface__["data"][0]
        self._lengths[index] = len(array)

    def _array(self, name: str) -> np.ndarray:
        """Array of a name; an unbound input array holds zeros and is read-only."""
        array = self._arrays.get(name)
        if array is None:
            field = self.layout.arrays[name]
            memory, start = self._zeros, 0
            if field.storage == RUN:
                memory, start = self._memory, int(self._addresses[self.layout.index[name]]) - self.address
            array = memory[start : start + self._length(field) * field.dtype.itemsize].view(field.dtype)
            self._arrays[name] = array
        return array

    def __getattr__(self, name: str):
        if (numbers := self.__dict__.get("_numbers")) is None:  # on the way out of a pickle
            raise AttributeError(name)
        if name in numbers:
            return numbers[name][0]
        if name in self.layout.arrays:
            return self._array(name)
        if name not in self.layout.scalars:
            return self._elsewhere(name)
        dtype, start = self.layout.scalars[name].dtype, self.layout.offsets[name]
        return numbers.setdefault(name, memoryview(self._memory)[start : start + dtype.itemsize].cast(dtype.char))[0]

    def _elsewhere(self, name: str) -> Any:
        raise AttributeError(f"{self.layout.name} has no field {name!r}")

    def __copy__(self) -> Record:
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict) -> Record:
        duplicate = memo[id(self)] = Record(self.layout, self.extents)
        self.copy_into(duplicate)
        return duplicate

    def __getstate__(self) -> dict[str, Any]:
        """All that another process needs to rebuild this record, without addresses."""
        layout = self.layout
        parts = (self._memory.copy(), self._template.copy())
        code = {}
        for memory in parts:
            scalars = memory[: len(self._template)].view(layout.header_dtype)[0]
            for name in layout.code:
                code.setdefault(name, []).append(decision_at(scalars[name].item()))
                scalars[name] = 0
        return {
            "layout": layout,
            "extents": self.extents,
            "run": [memory[layout.run_offset :] for memory in parts],
            "code": code,
            "bound": {name: self._arrays[name] for name in layout.arrays if name in self.bound},
            "buffers": {name: self._array(name) for name, field in layout.arrays.items() if field.storage == BUFFER},
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        Record.__init__(self, kept["layout"], kept["extents"])
        self._running[:], self._template[self.layout.run_offset :] = kept["run"]
        for name, decisions in kept["code"].items():
            addresses = [0 if decision is None else decision.address for decision in decisions]
            self._scalars[name], self._initial[name] = addresses
        for name, array in kept["bound"].items():
            array.setflags(write=False)
            self.bind(name, array, copy=False)
        for name, array in kept["buffers"].items():
            if len(array):
                self._array(name)[:] = array

    def bind(self, name: str, values, *, copy: bool = True) -> None:
        """Set an input array to ``values``, one-dimensional, as long as its extent.

        Args:
            name: A field of storage ``"bound"``.
            values: Its entries; numbers that the field's type holds without loss.
            copy: Keep a copy. Else the array itself, which must be of the field's type and is trusted to hold no NaN.

        Raises:
            RecordError: There is no such array, or it is of another type, shape or length, or holds a NaN.
        """
        field = self.layout.arrays.get(name)
        if field is None or field.storage != BOUND:
            known = ", ".join(field.name for field in self.layout.arrays.values() if field.storage == BOUND)
            raise RecordError(f"{self.layout.name} has no input array {name!r}; it has: {known}")
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise self._wrong(field, f"rows of different lengths ({error})") from None
        if array.ndim != 1:
            raise self._wrong(field, f"{array.ndim} dimensions, shape {array.shape}")
        if len(array) != self._length(field):
            raise self._wrong(field, f"{len(array)} numbers")
        fits = array.dtype == field.dtype if not copy else np.can_cast(array.dtype, field.dtype, "safe")
        if not (fits or (copy and not len(array))):
            raise self._wrong(field, f"type {array.dtype}")
        if copy:
            array = np.array(array, dtype=field.dtype)
            if not field.nan and field.dtype.kind == "f" and np.isnan(array).any():
                raise self._wrong(field, f"NaN at place {int(np.flatnonzero(np.isnan(array))[0])}")
        elif not array.flags.c_contiguous:
            raise self._wrong(field, "an array that is not contiguous")
        self._bind(name, array)
        self.bound.add(name)

    def release(self, *names: str) -> None:
        """Reset input arrays to zeros, as if they had never been set."""
        for name in names:
            self._arrays.pop(name, None)
            self._addresses[self.layout.index[name]] = self._zeros.ctypes.data
            self.bound.discard(name)

    def _wrong(self, field: Field, got: str) -> RecordError:
        expected = f"{self._length(field)} of {field.dtype}, one per {field.extent}"
        return RecordError(f"array {field.name} of {self.layout.name}: got {got}; expected {expected} ({field.doc})")

    def require(self, names: tuple[str, ...], reader: str) -> None:
        """Check that arrays were bound from outside.

        Raises:
            RecordError: One was not; names it and who reads it.
        """
        for name in names:
            if name not in self.bound:
                field = self.layout.arrays[name]
                raise RecordError(
                    f"{reader} reads the array {name}, which is not set; expected {self._length(field)} of "
                    f"{field.dtype}, one per {field.extent} ({field.doc})"
                )

    def put(self, **numbers: float) -> None:
        """Overwrite scalars of the run under way."""
        for name, value in numbers.items():
            self._scalars[name] = value

    def configure(self, **numbers: float) -> None:
        """Set scalars, for a run under way and for all that start later."""
        for name, value in numbers.items():
            self._initial[name] = value
            self._scalars[name] = value

    def restart(self) -> None:
        """Reset what a run changes to its initial values, scalars to their configuration."""
        self._running.fill(0)
        scalars = slice(self.layout.run_offset, len(self._template))
        self._memory[scalars] = self._template[scalars]
        for name, value in self.layout.filled.items():
            self._array(name).fill(value)

    def resize(self, **extents: int) -> None:
        """Change the lengths of buffers by extent; content is kept as far as it fits."""
        self.extents |= extents
        for field in self.layout.arrays.values():
            if field.storage == BUFFER and field.extent in extents:
                old, new = self._array(field.name), np.empty(self._length(field), dtype=field.dtype)
                kept = min(len(old), len(new))
                new[:kept] = old[:kept]
                self._bind(field.name, new)

    def copy_into(self, other: Record) -> None:
        """Copy this record into another of the same type and extents; input arrays are shared.

        Raises:
            RecordError: The other record is of another type, or has other extents.
        """
        if other.layout is not self.layout or len(other._running) != len(self._running):
            raise RecordError(f"a copy of {self.layout.name} needs a record of the same type and extents")
        other._running[:] = self._running
        other._template[:] = self._template
        for name, field in self.layout.arrays.items():
            if field.storage == BOUND and name in self.bound and other._arrays.get(name) is not self._arrays[name]:
                other._bind(name, self._arrays[name])
            elif field.storage == BUFFER and len(self._array(name)):
                if len(other._array(name)) != len(self._array(name)):
                    other._bind(name, np.empty_like(self._array(name)))
                other._array(name)[:] = self._array(name)
        other.release(*other.bound - self.bound)
        other.bound = set(self.bound)


def _zeros(size: int) -> np.ndarray:
    """At least ``size`` aligned read-only zero bytes, shared by records for unbound arrays."""
    return _power_of_zeros(max(size, 1).bit_length())


@cache
def _power_of_zeros(power: int) -> np.ndarray:
    memory = np.zeros((1 << power) + _ALIGNMENT, dtype=np.uint8)
    memory.setflags(write=False)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + (1 << power)]


# ---- records in compiled code ---------------------------------------------------------------------------------------


class _RecordPointer(types.Type):
    def __init__(self, layout: RecordType) -> None:
        self.layout = layout
        super().__init__(name=f"record {layout.name}")


register_model(_RecordPointer)(models.OpaqueModel)


@infer_getattr
class _RecordAttribute(AttributeTemplate):
    key = _RecordPointer

    def generic_resolve(self, record_type, name):
        layout = record_type.layout
        if name in layout.scalars:
            return from_dtype(layout.scalars[name].dtype)
        if name in layout.arrays:
            dtype = from_dtype(layout.arrays[name].dtype)
            return CheckedArray(dtype) if CHECKED else types.CPointer(dtype)
        return None


def _slot(builder, layout, record, name, llvm_type):
    address = builder.gep(record, [ir.Constant(ir.IntType(32), layout.offsets[name])])
    return builder.bitcast(address, llvm_type.as_pointer())


@lower_getattr_generic(_RecordPointer)
def _load_attribute(context, builder, record_type, record, name):
    layout = record_type.layout
    if name in layout.scalars:
        scalar = _slot(builder, layout, record, name, context.get_value_type(from_dtype(layout.scalars[name].dtype)))
        fixed = layout.scalars[name].storage in (ADDRESS, CODE)
        return _load_fixed(builder, scalar) if fixed else builder.load(scalar)
    dtype = from_dtype(layout.arrays[name].dtype)
    pointer = context.get_value_type(types.CPointer(dtype))
    address = _load_fixed(builder, _slot(builder, layout, record, name, pointer))
    if not CHECKED:
        return address
    length = _load_fixed(builder, _slot(builder, layout, record, f"len({name})", ir.IntType(64)))
    return checked_array(context, builder, CheckedArray(dtype), address, length, name)


def _load_fixed(builder, pointer):
    """Load a constant of compiled code, so that loops may hoist the load."""
    load = builder.load(pointer)
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


@lower_setattr_generic(_RecordPointer)
def _store_attribute(context, builder, signature, args, name):
    layout = signature.args[0].layout
    record, value = args
    scalar_type = from_dtype(layout.scalars[name].dtype)
    value = context.cast(builder, value, signature.args[1], scalar_type)
    builder.store(value, _slot(builder, layout, record, name, context.get_value_type(scalar_type)))


def _record_at(record_type: _RecordPointer):
    @intrinsic(None)
    def record_at(_typing, address):
        def codegen(context, builder, _signature, args):
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return record_type(types.int64), codegen

    return record_at
