"""Checked records of numbers: what budgets, optimisers and algorithms are configured by.

A field is declared by :func:`number`, :func:`whole`, :func:`choice` or :func:`switch`, with its documentation beside
it; :class:`Configuration` checks the values of all fields when a record is made. A field of another kind has its
documentation in ``metadata`` under ``doc``, and the record checks it itself.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import field, fields
from typing import Any

from decima.core.errors import ConfigError


def number(default, doc: str, low: float = 0.0, high: float = math.inf, *, above: bool = False, none: bool = False):
    """Field for a real number.

    Args:
        default: Default value.
        doc: What it means.
        low: Least value.
        high: Largest value.
        above: ``low`` itself is not allowed.
        none: None is allowed too.
    """
    rule = {"low": low, "high": high, "above": above, "none": none, "whole": False, "doc": doc}
    return field(default=default, metadata=rule)


def whole(default, doc: str, low: int, *, none: bool = False):
    """Field for a whole number of at least ``low``; with ``none``, None is allowed too."""
    rule = {"low": low, "high": math.inf, "above": False, "none": none, "whole": True, "doc": doc}
    return field(default=default, metadata=rule)


def choice(doc: str, default: str, *others: str):
    """Field for one of several words."""
    return field(default=default, metadata={"options": (default, *others), "doc": doc})


def switch(default: bool, doc: str):
    """Field for a truth value."""
    return field(default=default, metadata={"switch": True, "doc": doc})


class Configuration:
    """Base of the checked records, which are frozen dataclasses.

    Raises:
        ConfigError: A value is out of range; names the field, the value and what is allowed.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, _checked(item.name, getattr(self, item.name), item.metadata))

    def check_beside(self, recipe: Any) -> None:
        """Raise ConfigError if this part contradicts another one of the ``Recipe`` that holds it."""


def _checked(name: str, value, rule):
    """The value in the type of its field."""
    if "options" in rule and value not in rule["options"]:
        raise ConfigError(f"recipe: {name} must be one of {', '.join(rule['options'])}, got {value!r}")
    if "switch" in rule and not isinstance(value, bool):
        raise ConfigError(f"recipe: {name} must be true or false, got {value!r}")
    if "low" not in rule or (value is None and rule["none"]):
        return value
    valid = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    valid = valid and (value > rule["low"] if rule["above"] else value >= rule["low"]) and value <= rule["high"]
    if not valid or (rule["whole"] and value != int(value)):
        expected = "a whole number" if rule["whole"] else "a number"
        bound = f"above {rule['low']:g}" if rule["above"] else f"of at least {rule['low']:g}"
        top = f" and at most {rule['high']:g}" if rule["high"] < math.inf else ""
        allowed = " (or none)" if rule["none"] else ""
        raise ConfigError(f"recipe: {name} must be {expected} {bound}{top}{allowed}, got {value!r}")
    return int(value) if rule["whole"] else float(value)
