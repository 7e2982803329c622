"""Checks of the numbers and arrays that jobs, clusters and schedules are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from decima.exceptions import DecimaError, WorkloadError


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
        WorkloadError: A value is no number, NaN, or out of range, or the array has another number of dimensions.
    """
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
        place = tuple(int(each) for each in np.argwhere(wrong)[0])
        finite = "" if infinite else "finite "
        bound = f"above {least:g}" if strictly else f"of at least {least:g}"
        at = place[0] if ndim == 1 else place
        raise WorkloadError(f"{where}: entry {at} is {array[place]:g}; expected a {finite}number {bound}")
    return frozen(array)


def number(where: str, value: Any, *, least: float = 0.0, strictly: bool = False, infinite: bool = False) -> float:
    """One value as a float after the check of :func:`numbers`.

    Raises:
        WorkloadError: The value is no number, NaN, or out of range.
    """
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise WorkloadError(f"{where} is {value!r:.60}; expected a number")
    try:
        array = np.asarray(float(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise WorkloadError(f"{where} is {value!r:.60}; expected a number") from error
    good = array > least if strictly else array >= least
    if not good or (np.isinf(array) and not infinite):
        bound = f"above {least:g}" if strictly else f"of at least {least:g}"
        raise WorkloadError(f"{where} is {float(array):g}; expected a {'' if infinite else 'finite '}number {bound}")
    return float(array)


def frozen(array: np.ndarray) -> np.ndarray:
    """The same array, no longer writable."""
    array.setflags(write=False)
    return array


def _some(values: Any) -> str:
    return f"{values!r:.60}"
