"""A fence around every array of every record: beside it lies a page that may not be touched.

Compiled code that reads or writes one entry past the end kills the process, as does a write to an array that was given.
"""

import ctypes
import mmap

import numpy as np

from decima.core.record import BOUND, BUFFER, RUN, Record

PAGE = mmap.PAGESIZE
NO_ACCESS = 0  # mmap has no name for PROT_NONE
_LIBC = ctypes.CDLL(None, use_errno=True)
_METHODS = ("__init__", "_bind", "release", "restart", "copy_into")


def fenced(array, at_end, read_only):
    """Copy of an array whose last byte, or else its first, borders an inaccessible page."""
    pages = max(1, -(-array.nbytes // PAGE))
    memory = np.frombuffer(mmap.mmap(-1, (pages + 2) * PAGE), np.uint8)
    # an empty array lies on the border, too: it has no entry that may be read
    start = PAGE * (pages + 1) - array.nbytes if at_end or not array.nbytes else PAGE
    twin = memory[start : start + array.nbytes].view(array.dtype)
    twin[:] = array
    _protect(memory, 0, 1, NO_ACCESS)
    _protect(memory, pages + 1, 1, NO_ACCESS)
    if read_only:
        _protect(memory, 1, pages, mmap.PROT_READ)
        twin.setflags(write=False)
    return twin


def _protect(memory, page, count, access):
    if _LIBC.mprotect(ctypes.c_void_p(memory.ctypes.data + page * PAGE), ctypes.c_size_t(count * PAGE), access):
        raise OSError(ctypes.get_errno(), "mprotect")


class Fence:
    """Puts every array of the records that are made from now on between fences.

    Attributes:
        at_end: Arrays end at a fence; else they begin at one.
        short: Name of an array that compiled code sees one entry too far, so that it is one too short; None for none.
        placed: How many arrays were placed, by storage.
    """

    def __init__(self):
        self.at_end, self.short = True, None
        self.placed = dict.fromkeys((RUN, BOUND, BUFFER), 0)
        self._plain = {name: getattr(Record, name) for name in _METHODS}
        for name in _METHODS:
            setattr(Record, name, self._method(name))

    def _method(self, name):
        def method(record, *args, **options):
            return getattr(self, name.strip("_"))(record, *args, **options)

        return method

    def init(self, record, layout, extents):
        self._plain["__init__"](record, layout, extents)
        for name in layout.arrays:
            self.bind(record, name, record._array(name))

    def bind(self, record, name, array):
        field, index = record.layout.arrays[name], record.layout.index[name]
        self._plain["_bind"](record, name, fenced(array, self.at_end, field.storage == BOUND))
        self.placed[field.storage] += 1
        if name == self.short:
            record._addresses[index] += field.dtype.itemsize * (1 if self.at_end else -1)

    def release(self, record, *names):
        self._plain["release"](record, *names)
        for name in names:
            self.bind(record, name, record._array(name))

    def restart(self, record):
        for name, field in record.layout.arrays.items():
            if field.storage == RUN:
                record._array(name).fill(0)
        self._plain["restart"](record)

    def copy_into(self, record, other):
        self._plain["copy_into"](record, other)
        for name, field in record.layout.arrays.items():
            if field.storage == RUN:
                other._array(name)[:] = record._array(name)
