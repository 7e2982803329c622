"""Checked records of numbers that configure training, among them its budget.

A field is declared by :func:`number`, :func:`whole`, :func:`choice` or :func:`switch`, with its documentation next to
it; :class:`Configuration` checks the values of all fields when a record is made. A field of another kind has its
documentation in ``metadata`` under ``doc``, and the record checks it itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from decima.core.checks import is_number
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
    if "options" in rule and value not in rule["options"]:
        raise ConfigError(f"recipe: {name} must be one of {', '.join(rule['options'])}, got {value!r}")
    if "switch" in rule and not isinstance(value, bool):
        raise ConfigError(f"recipe: {name} must be true or false, got {value!r}")
    if "low" not in rule or (value is None and rule["none"]):
        return value
    valid = is_number(value) and math.isfinite(value)
    valid = valid and (value > rule["low"] if rule["above"] else value >= rule["low"]) and value <= rule["high"]
    if not valid or (rule["whole"] and value != int(value)):
        expected = "a whole number" if rule["whole"] else "a number"
        bound = f"above {rule['low']:g}" if rule["above"] else f"of at least {rule['low']:g}"
        top = f" and at most {rule['high']:g}" if rule["high"] < math.inf else ""
        allowed = " (or none)" if rule["none"] else ""
        raise ConfigError(f"recipe: {name} must be {expected} {bound}{top}{allowed}, got {value!r}")
    return int(value) if rule["whole"] else float(value)


@dataclass(frozen=True)
class Progress:
    """Progress of training, or of one phase of it."""

    iteration: int  # iterations of the whole run before this one; chance is a function of it and of the run's seed
    since: int  # iterations since the phase began
    share: float  # used part of the budget that was left when the phase began, 0 to 1

    def after(self, first: int, used_before: float) -> Progress:
        """Progress of a phase that began at iteration ``first`` after ``used_before`` of the budget."""
        left = max(1.0 - used_before, 1e-9)
        return Progress(self.iteration, self.iteration - first, min(1.0, (self.share - used_before) / left))


@dataclass(frozen=True)
class Budget(Configuration):
    """Budget: when training stops, and how often it validates and writes checkpoints."""

    iterations: int | None = whole(
        None, "Maximum number of iterations, imitation included; none: no such limit.", 1, none=True
    )
    wall_seconds: float | None = number(None, "Time limit in seconds.", above=True, none=True)
    cpu_seconds: float | None = number(None, "Limit of CPU time in seconds.", above=True, none=True)
    validate_every: int = whole(25, "Iterations between validations.", 1)
    validation_sequences: int = whole(20, "Sequences of a validation; never used for training or tests.", 1)
    validation_seeds: int = whole(1, "Runs of the sampled policy per sequence; 0: only the greedy one.", 0)
    checkpoint_every: int = whole(25, "Iterations between checkpoints.", 1)

    # A resumed run may have other limits than the one it continues.
    LIMITS = ("iterations", "wall_seconds", "cpu_seconds")

    @property
    def has_stop(self) -> bool:
        """Whether training would end by itself."""
        return any(getattr(self, name) is not None for name in self.LIMITS)

    def used(self, iteration: int, wall_s: float, cpu_s: float) -> float:
        """Used share of the budget, 0 to 1, by iterations if limited, else by time."""
        if self.iterations is not None:
            return min(1.0, iteration / self.iterations)
        shares = [used / limit for used, limit in ((wall_s, self.wall_seconds), (cpu_s, self.cpu_seconds)) if limit]
        return min(1.0, max(shares, default=0.0))

    def is_over(self, iteration: int, wall_s: float, cpu_s: float) -> bool:
        """Whether a limit is reached."""
        limits = ((iteration, self.iterations), (wall_s, self.wall_seconds), (cpu_s, self.cpu_seconds))
        return any(limit is not None and used >= limit for used, limit in limits)
