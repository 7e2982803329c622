"""Checks of the numbers and arrays of jobs, clusters and schedules."""

from typing import Any

import numpy as np

from decima.core.errors import DecimaError, WorkloadError

#: Largest number of anything, and the smallest one above 0 where 0 is none: sums and quotients stay finite.
LARGEST, SMALLEST = 1e15, 1e-15


class InvalidScheduleError(DecimaError, ValueError):
    """A schedule breaks a rule of the model, or does not belong to the instance."""


def numbers(
    where: str, values: Any, *, least: float = 0.0, strictly: bool = False, infinite: bool = False, ndim: int = 1
) -> np.ndarray:
    """Values as a read-only float64 array after a check of every number.

    Args:
        where: What the values are, for the error message.
        values: A list, a list of lists or an array.
        least: Smallest number allowed.
        strictly: Whether ``least`` itself is too small.
        infinite: Whether infinity is allowed.
        ndim: Dimensions that are expected.

    Raises:
        WorkloadError: A value is not a number, NaN, or out of range, or the array has another number of dimensions.
    """
    if not isinstance(values, np.ndarray) and _has_truth_values(values):
        raise WorkloadError(f"{where}: expected numbers only, got {_some(values)}")
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise WorkloadError(f"{where}: the rows have different lengths") from error
    if array.size and array.dtype.kind not in "iuf":
        raise WorkloadError(f"{where}: expected numbers only, got {_some(values)}")
    if array.ndim != ndim:
        raise WorkloadError(f"{where}: expected {ndim} dimension{'s' if ndim > 1 else ''}, got {array.ndim}")
    array = array.astype(np.float64)
    wrong = ~(array > least) if strictly else ~(array >= least)
    if not infinite:
        wrong |= np.isinf(array)
    if wrong.any():
        position = tuple(int(each) for each in np.argwhere(wrong)[0])
        at = position[0] if ndim == 1 else position
        raise WorkloadError(f"{where}: entry {at} is {array[position]:g}; {_expected(least, strictly, infinite)}")
    if strictly:
        _check_size(where, array, array < least + SMALLEST)
    _check_size(where, array, (array > LARGEST) & ~np.isinf(array))
    return frozen(array)


def _has_truth_values(values: Any) -> bool:
    """Whether a list holds true or false, which NumPy takes for 1 or 0."""
    if isinstance(values, (list, tuple)):
        return any(map(_has_truth_values, values))
    return isinstance(values, (bool, np.bool_))


def _check_size(where: str, array: np.ndarray, wrong: np.ndarray) -> None:
    if wrong.any():
        raise WorkloadError(f"{where}: {array[wrong][0]:g} is out of range; expected {SMALLEST:g} to {LARGEST:g}")


def number(where: str, value: Any, *, least: float = 0.0, strictly: bool = False, infinite: bool = False) -> float:
    """One value as a float after the check of :func:`numbers`.

    Raises:
        WorkloadError: The value is not a number, NaN, or out of range.
    """
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise WorkloadError(f"{where} is {value!r:.60}; expected a number")
    try:
        real = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise WorkloadError(f"{where} is {value!r:.60}; expected a number") from error
    good = real > least if strictly else real >= least
    if not good or (real == np.inf and not infinite):
        raise WorkloadError(f"{where} is {real:g}; {_expected(least, strictly, infinite)}")
    if LARGEST < real < np.inf or (strictly and real < least + SMALLEST):
        raise WorkloadError(f"{where} is {real:g}; expected {SMALLEST:g} to {LARGEST:g}")
    return real


def _expected(least: float, strictly: bool, infinite: bool) -> str:
    bound = f"above {least:g}" if strictly else f"of at least {least:g}"
    return f"expected a {'' if infinite else 'finite '}number {bound}"


def frozen(array: np.ndarray) -> np.ndarray:
    """The same array, no longer writable."""
    array.setflags(write=False)
    return array


def _some(values: Any) -> str:
    return f"{values!r:.60}"
