"""Checks of numbers and names that people give."""

import numbers
from collections.abc import Iterable
from typing import Any

from decima.core.errors import ConfigError

#: Largest time of arrival, duration and delay in ms, some 31,700 years: float64 still holds it to an eighth of a ms.
LARGEST_MS = 1e15


def is_number(value: Any) -> bool:
    """Whether a value is a real number of Python or NumPy; truth values are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; truth values are none."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def is_name(value: Any) -> bool:
    """Whether a value is a non-empty text that can be written as UTF-8."""
    if not isinstance(value, str) or not value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a value is an integer of at least ``least``.

    Raises:
        ConfigError: It is not.
    """
    if not is_whole(value) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")


def checked_seeds(seeds: Any) -> list[int]:
    """Seeds as a list of integers.

    Raises:
        ConfigError: They are not a list of whole numbers of at least 0.
    """
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable):
        raise ConfigError(f"seeds must be a list of whole numbers, got {seeds!r:.60}")
    seeds = list(seeds)
    for seed in seeds:
        check_whole("seed", seed, least=0)
    return [int(seed) for seed in seeds]


def different_seeds(seeds: Any) -> list[int]:
    """Seeds as a list of integers, at least one and each once.

    Raises:
        ConfigError: There is none, one is given twice, or as :func:`checked_seeds`.
    """
    seeds = checked_seeds(seeds)
    if not seeds:
        raise ConfigError("no seed given; expected at least one")
    if len(set(seeds)) != len(seeds):
        raise ConfigError("a seed is given twice; expected different ones")
    return seeds
