"""Checks of numbers that people give."""

from __future__ import annotations

import numbers
from typing import Any

from decima.exceptions import ConfigError


def is_number(value: Any) -> bool:
    """Whether a value is a real number of Python or NumPy; truth values are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; truth values are none."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a value is an integer of at least ``least``.

    Raises:
        ConfigError: It is not.
    """
    if not is_whole(value) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")
