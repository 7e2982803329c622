"""Decision rules as compiled functions that other compiled code calls by their address."""

from __future__ import annotations

import ctypes
import threading
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

from llvmlite import ir
from numba import types

from decima.core.errors import RecordError
from decima.core.jit import INTERPRETED, callback, intrinsic

_WORD = ir.IntType(64)


@dataclass(frozen=True)
class Parameter:
    """Number that shapes a scheduler."""

    name: str  # keyword of ``make_scheduler``
    default: float  # value if not given
    low: float  # least value
    high: float  # greatest value
    doc: str  # meaning
    tunable: bool = False  # whether ``decima tune`` searches it

    @property
    def whole(self) -> bool:
        """Whether it is a switch or a count.

        Those have a default and bounds that are written as whole numbers, and are not tuned.
        """
        return not self.tunable and all(isinstance(value, int) for value in (self.default, self.low, self.high))


def _decide_at(function: int, record: ctypes.Structure) -> None:
    decide = _AT.get(function) or ctypes.CFUNCTYPE(None, ctypes.c_int64)(function)
    decide(ctypes.addressof(record))


@intrinsic(_decide_at)
def call_decide(_typing, function, record):
    """Call the compiled decision rule at address ``function`` with a record."""

    def codegen(context, builder, _signature, args):
        function_type = ir.FunctionType(ir.VoidType(), [_WORD])
        pointer = builder.inttoptr(args[0], function_type.as_pointer())
        builder.call(pointer, [builder.ptrtoint(args[1], _WORD)])
        return context.get_dummy_value()

    return types.none(types.int64, record), codegen


def places(parameters: Sequence[Any]) -> tuple[int, ...]:
    """Number parameters, or names, for compiled code to read ``rule.params[P.alpha]`` by name."""
    names = [getattr(parameter, "name", parameter) for parameter in parameters]
    return namedtuple("Places", names)(*range(len(names)))


def _decision_named(module: str, name: str) -> CompiledDecision:
    return getattr(import_module(module), name)


# Compiled functions by address, so that what holds an address can be taken to another process.
_AT: dict[int, CompiledDecision] = {}


def decision_at(address: int) -> CompiledDecision | None:
    """The compiled function at an address of this process; None at 0.

    Raises:
        RecordError: It is not one of a ``CompiledDecision``.
    """
    if address and address not in _AT:
        raise RecordError(
            f"the compiled function at address {address:#x} is not a CompiledDecision; expected one, which another "
            "process finds by its name: decorate the rule with CompiledDecision, or copy the state with copy.deepcopy"
        )
    return _AT.get(address)


_LIBRARIES = ("numba", "numpy", "scipy", "llvmlite")  # which know no field of a record


def names_read(function: Callable) -> frozenset[str]:
    """Names that a compiled function may read: attributes and texts in its code.

    Those of what it calls are among them. They are in its bytecode, so that nothing has to be compiled. A branch that
    is never taken counts.
    """
    names: set[str] = set()
    known: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            names.add(each)
        elif isinstance(each, (tuple, list, frozenset)):
            waiting += each
        elif isinstance(each, CodeType):
            names.update(each.co_names)
            waiting += each.co_consts
        else:
            # What compiles a function keeps it under one of these names.
            each = next((vars(each)[name] for name in ("py_func", "function", "_defn") if _has(each, name)), each)
            if isinstance(each, FunctionType) and id(each) not in known and _package(each) not in _LIBRARIES:
                known.add(id(each))
                waiting += [each.__code__, *_mentioned(each)]
    return frozenset(names)


def _has(thing: Any, name: str) -> bool:
    return name in getattr(thing, "__dict__", ())


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or thing.__name__).partition(".")[0]


def _mentioned(function: FunctionType) -> list[Any]:
    """Values of the names from outside in a function's code, also of those in modules."""
    code, names = [function.__code__], set()
    while code:
        each = code.pop()
        names.update(each.co_names)
        code += [part for part in each.co_consts if isinstance(part, CodeType)]
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [each for each in values if isinstance(each, ModuleType) and _package(each) not in _LIBRARIES]
    values += [getattr(module, name) for module in modules for name in names if hasattr(module, name)]
    return values + [cell.cell_contents for cell in function.__closure__ or ()]


class CompiledDecision:
    """Decision rule compiled on first use: a function of a record's address (int64).

    Attributes:
        signature: Types of its arguments.
        compiled: Whether it becomes machine code.
        function: The rule in Python.
        parameters: Parameters it reads, in their order.
        arrays: Given arrays it reads that have no meaningful default.
    """

    signature = types.void(types.int64)
    compiled = not INTERPRETED

    def __init__(self, function: Callable, parameters: Sequence[Any] = (), arrays: Sequence[str] = ()) -> None:
        self.function = function
        self.parameters = tuple(parameters)
        self.arrays = tuple(arrays)
        self.__doc__ = function.__doc__
        self._lock = threading.Lock()

    @classmethod
    def reading(cls, parameters: Sequence[Any], arrays: Sequence[str] = ()) -> Callable[[Callable], CompiledDecision]:
        """Decorator for a rule that reads parameters or requires arrays."""
        return lambda function: cls(function, parameters, arrays)

    def __reduce__(self) -> tuple:
        """Pickle as the name in its module, where the decorator has put it."""
        return _decision_named, (self.function.__module__, self.function.__qualname__)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that it may read, see :func:`names_read`."""
        return names_read(self.function)

    def __call__(self, *arguments: Any) -> None:
        """Call it from Python, as :attr:`address` is called from compiled code."""
        _ = self.address
        (self._compiled.ctypes if self.compiled else self.function)(*arguments)

    @cached_property
    def address(self) -> int:
        """Address of the machine code; valid while this object lives.

        In plain Python a number that stands for it.
        """
        with self._lock:
            if not self.compiled:
                _AT[id(self)] = self
                return id(self)
            if "_compiled" not in self.__dict__:
                self._compiled = callback(self.function, self.signature)
                _AT[self._compiled.address] = self
            return self._compiled.address


class PythonDecision(CompiledDecision):
    """Function in Python that compiled code calls by its address; it must not raise."""

    compiled = False

    @cached_property
    def address(self) -> int:
        """Address that compiled code calls; valid while this object lives."""
        self._pointer = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.function)
        _AT[address := ctypes.cast(self._pointer, ctypes.c_void_p).value] = self
        return address
