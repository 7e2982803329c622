"""Relocation: copies of runs into memory where jobs and stages have other numbers.

Every integer field of a record type names what its numbers refer to (:class:`decima.core.record.Field`). That table
decides which rows go where and which numbers change, so that no caller lists fields.
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import types

from decima.core.errors import RecordError
from decima.core.jit import intrinsic, njit
from decima.core.record import LOCAL, PLAIN, Field, Record, RecordType


@dataclass(frozen=True)
class Numbering:
    """Numbers of things, such as stages, in one memory and in another."""

    rows: np.ndarray  # int32 [rows], numbers of the things that are copied
    numbers: np.ndarray  # int32 [span], by number less ``first``: the number there; several may share one
    first: int = 0
    width: int = 1  # entries of an array that every thing has, one after the other


class Relocation:
    """Copies between records of one type.

    A field is copied, entry by entry, where its extent is renumbered or unchanged; its numbers change where they refer
    to what is renumbered. Fields that are ``LOCAL`` stay behind.

    Args:
        layout: The type.
        renumbered: Extents whose things get other numbers, in the order in which :meth:`copy` takes numberings.
        unchanged: Extents whose things keep their numbers; None: the scalars. The longer array keeps its rest.
        left: Extents whose fields stay behind.

    Raises:
        RecordError: An integer field names nothing that it refers to, or an extent or reference is in no list.
    """

    def __init__(
        self,
        layout: RecordType,
        renumbered: Sequence[str],
        unchanged: Iterable[str | None] = (),
        left: Iterable[str | None] = (),
    ) -> None:
        self._codes = {name: code for code, name in enumerate(renumbered)} | dict.fromkeys(unchanged, -1)
        self._layout, self._left = layout, set(left)
        rows = [self._row(field) for field in layout.fields_of_run.values() if field.refers != LOCAL]
        self._table = np.array([row for row in rows if row is not None], dtype=np.int64)

    def _row(self, field: Field) -> tuple[int, ...] | None:
        """Position, size, extent and reference of a field as numbers; None if it stays behind."""
        where = f"{self._layout.name}: field {field.name}"
        if field.refers is None:
            raise RecordError(f"{where} of integers lacks what they refer to; expected refers=...")
        if field.extent in self._left:
            return None
        if field.extent not in self._codes:
            raise RecordError(f"{where} has the extent {field.extent!r}, whose numbers nobody gave")
        if field.refers != PLAIN and field.refers not in self._codes:
            raise RecordError(f"{where} refers to {field.refers!r}, whose numbers nobody gave")
        array = field.extent is not None
        position = self._layout.index[field.name] if array else self._layout.offsets[field.name]
        refers = -1 if field.refers == PLAIN else self._codes[field.refers]
        return int(array), position, field.dtype.itemsize, self._codes[field.extent], refers

    def copy(self, source: Record, target: Record, numberings: Sequence[Numbering]) -> None:
        """Copy to another record or to other rows, unchecked.

        Args:
            source: A record of the type.
            target: Another one with room for all rows.
            numberings: Of the extents that are renumbered.
        """
        described = np.array(
            [
                (_address(each.rows), len(each.rows), _address(each.numbers), each.first, len(each.numbers), each.width)
                for each in numberings
            ],
            dtype=np.int64,
        )
        _relocate(source.address, target.address, len(self._layout.arrays), self._table, described)


def restart_rows(record: Record, rows: Mapping[str, slice]) -> None:
    """Put some rows of all arrays that a run changes to their initial values.

    Args:
        record: The record.
        rows: By extent; arrays of other extents stay as they are.
    """
    for field in record.layout.fields_of_run.values():
        if field.extent in rows:
            getattr(record, field.name)[rows[field.extent]] = field.initial


def _address(array: np.ndarray) -> int:
    assert array.dtype == np.int32
    return array.__array_interface__["data"][0]


def _pointer_to(dtype: types.Integer):
    of = ctypes.POINTER(np.ctypeslib.as_ctypes_type(dtype.name))

    @intrinsic(lambda address: ctypes.cast(int(address), of))
    def pointer(_typing, address):
        def codegen(_context, builder, _signature, args):
            return builder.inttoptr(args[0], ir.IntType(dtype.bitwidth).as_pointer())

        return types.CPointer(dtype)(types.int64), codegen

    return pointer


_bytes_at, _words_at, _longs_at = _pointer_to(types.uint8), _pointer_to(types.int32), _pointer_to(types.int64)


@njit
def _number_there(numberings, refers, number):
    """Number of a thing in the target; -1 for none."""
    if refers < 0 or number < 0:
        return number
    width = numberings[refers, 5]
    index = number // width - numberings[refers, 3]
    if index < 0 or index >= numberings[refers, 4]:
        return -1
    return _words_at(numberings[refers, 2])[index] * width + number % width


@njit
def _copy_entries(source, target, size, old, new, count, numberings, refers):
    """Copy consecutive entries of an array, from index ``old`` to index ``new``."""
    if size == 8:
        for index in range(count):
            _longs_at(target)[new + index] = _number_there(numberings, refers, _longs_at(source)[old + index])
    elif size == 4:
        for index in range(count):
            number = np.int64(_words_at(source)[old + index])
            _words_at(target)[new + index] = np.int32(_number_there(numberings, refers, number))
    else:
        for index in range(count):
            _bytes_at(target)[new + index] = _bytes_at(source)[old + index]


@njit(cache=True, nogil=True)
def _relocate(source, target, num_arrays, table, numberings):
    """Carry out :meth:`Relocation.copy`.

    Args:
        source: Address of a record: addresses of its arrays, their lengths, scalars.
        target: Address of another one.
        num_arrays: Arrays of the type.
        table: int64 [fields, 5], see ``Relocation._row``.
        numberings: int64 [numberings, 6]: address and number of the rows, address, first and number of the numbers,
            width.
    """
    for field in range(len(table)):
        array, position, size, extent, refers = table[field]
        if not array:
            _copy_entries(source + position, target + position, size, 0, 0, 1, numberings, refers)
            continue
        before, after = _longs_at(source)[position], _longs_at(target)[position]
        length = min(_longs_at(source)[num_arrays + position], _longs_at(target)[num_arrays + position])
        if length == 0:
            continue
        if extent < 0:
            _copy_entries(before, after, size, 0, 0, length, numberings, refers)
            continue
        width, first = numberings[extent, 5], numberings[extent, 3]
        for row in range(numberings[extent, 1]):
            old = _words_at(numberings[extent, 0])[row]
            new = _words_at(numberings[extent, 2])[old - first]
            _copy_entries(before, after, size, old * width, new * width, width, numberings, refers)
