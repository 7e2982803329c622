"""Schedulers of heterogeneous clusters by name, and the texts that say which one is meant.

A text is ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``, as in ``heft`` or ``high_rank_up_deft:decision=idle,slots=append``.
Keys are the settings of :class:`.Rules` that a scheduler leaves open, and its own numbers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from typing import Any

import numpy as np

from decima.core.checks import check_whole
from decima.core.errors import ConfigError, UnknownSchedulerError
from decima.core.grammar import hint, read_value, split_options
from decima.systems.unequal.engine import ListRule
from decima.systems.unequal.pruning import drop_unread
from decima.systems.unequal.result import Schedule
from decima.systems.unequal.settings import Rules
from decima.systems.unequal.workload import Instance

ALL = tuple(each.name for each in fields(Rules))
_KINDS = {"decision": str, "slots": str, "duplicate": bool, "transfers": str, "drop_unread": bool}


@dataclass(frozen=True)
class Number:
    """A number that a scheduler can be given."""

    name: str  # its key
    doc: str  # what it means
    default: float
    low: float  # smallest value allowed
    high: float  # largest value allowed


@dataclass(frozen=True)
class Text:
    """A text that a scheduler can be given."""

    name: str  # its key
    doc: str  # what it means
    default: str


@dataclass(frozen=True)
class Entry:
    """What the registry knows of a scheduler."""

    name: str
    label: str  # what people call it
    source: str  # where it was published
    # Of instance, rules, generator and own numbers; a ``ListRule`` where nodes are taken one after the other.
    function: Callable[..., Schedule | ListRule]
    rules: Rules  # default settings
    open: tuple[str, ...]  # settings that may be changed
    numbers: tuple[Number, ...] = ()
    texts: tuple[Text, ...] = ()

    @property
    def keys(self) -> list[str]:
        """Everything that may be given."""
        return [*(own.name for own in (*self.numbers, *self.texts)), *self.open]

    @property
    def doc(self) -> str:
        """First line of its documentation."""
        return (self.function.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True)
class PlanScheduler:
    """A scheduler with its settings."""

    entry: Entry
    rules: Rules
    values: Mapping[str, float | str] = field(default_factory=dict)  # own numbers and texts by name
    text: str = ""  # what it was made of

    @property
    def name(self) -> str:
        """The text it was made of, for tables."""
        return self.text or self.entry.name

    def schedule(self, instance: Instance, seed: int = 0) -> Schedule:
        """Make a schedule.

        Args:
            instance: Jobs and cluster.
            seed: Source of all chance, 0 or more; most schedulers take none.

        Raises:
            ConfigError: The seed is out of range.
        """
        made = self._made(instance, seed)
        if isinstance(made, ListRule):
            made = made.schedule()
        if self.rules.drop_unread:
            made = drop_unread(made)
        settings = asdict(self.rules) | dict(self.values)
        return replace(made, scheduler=self.name, settings=settings)

    def list_rule(self, instance: Instance, seed: int = 0) -> ListRule:
        """The rule by which it takes one node after the other.

        Args:
            instance: Jobs and cluster.
            seed: Source of all chance, 0 or more.

        Raises:
            ConfigError: The seed is out of range, or it needs the whole instance before it places anything.
        """
        made = self._made(instance, seed)
        if not isinstance(made, ListRule):
            raise ConfigError(f"scheduler {self.name!r} plans whole instances; expected one that takes node after node")
        if self.rules.drop_unread:
            raise ConfigError(
                f"scheduler {self.name!r} drops copies from whole plans; expected one that takes node after node"
            )
        return made

    def _made(self, instance: Instance, seed: int) -> Schedule | ListRule:
        check_whole("seed", seed, least=0)
        return self.entry.function(instance, self.rules, np.random.default_rng(seed), **self.values)


_ENTRIES: dict[str, Entry] = {}


def register(
    name: str,
    label: str,
    source: str,
    rules: Rules,
    *,
    open: tuple[str, ...] = ALL,
    numbers: tuple[Number, ...] = (),
    texts: tuple[Text, ...] = (),
) -> Callable:
    """Decorator: make a function of instance, rules and generator known as a scheduler.

    Args:
        name: For :func:`make_scheduler`.
        label: What people call it.
        source: Where it was published.
        rules: Its settings unless others are given.
        open: Names of the settings that may be given.
        numbers: Its own numbers, which are keywords of the function.
        texts: Its own texts, which are keywords of the function.
    """

    def wrap(function):
        _ENTRIES[name] = Entry(name, label, source, function, rules, open, numbers, texts)
        return function

    return wrap


def list_schedulers() -> list[str]:
    """Names that :func:`make_scheduler` knows, sorted."""
    for module in pkgutil.iter_modules(import_module(f"{__package__}.schedulers").__path__):
        import_module(f"{__package__}.schedulers.{module.name}")
    return sorted(_ENTRIES)


def find(name: str) -> Entry:
    """What is known of a scheduler.

    Raises:
        UnknownSchedulerError: There is none of that name; the message lists those that are.
    """
    known = list_schedulers()
    if name not in known:
        raise UnknownSchedulerError(f"unknown scheduler {name!r}{hint(name, known)}; known: {', '.join(known)}")
    return _ENTRIES[name]


def make_scheduler(scheduler: str | PlanScheduler, **settings: Any) -> PlanScheduler:
    """Make a scheduler of a text; one that already is one is returned as it is.

    Args:
        scheduler: ``"heft"``, ``"high_rank_up_deft:decision=idle"``, ``"discounted_rank:discount=0.5"``.
        **settings: Settings and numbers by name, which go before those of the text.

    Raises:
        UnknownSchedulerError: There is none of that name.
        ConfigError: A setting is unknown, fixed for that scheduler, or out of range.
    """
    if isinstance(scheduler, PlanScheduler):
        if settings:
            raise ConfigError(
                f"settings ({', '.join(settings)}) were given for a scheduler that is made; expected none"
            )
        return scheduler
    if not isinstance(scheduler, str):
        raise ConfigError(f"a scheduler is given by its name, got {scheduler!r:.60}")
    name, texts = split_options(scheduler)
    entry = find(name)
    where = f"scheduler {scheduler!r}"
    own = {number.name: number for number in entry.numbers}
    own_texts = {each.name: each for each in entry.texts}
    known = entry.keys
    values: dict[str, Any] = {}
    for key, text in texts.items():
        if key not in own and key not in own_texts and key not in _KINDS:
            raise ConfigError(f"{where} has no setting {key!r}{hint(key, known)}; it has: {', '.join(known) or 'none'}")
        kind = float if key in own else str if key in own_texts else _KINDS[key]
        values[key] = read_value(text, kind, f"{where}: {key}")
    values |= settings
    numbers: dict[str, float | str] = {key: each.default for key, each in (own | own_texts).items()}
    rules: dict[str, Any] = {}
    for key, value in values.items():
        if key in own:
            if not own[key].low <= value <= own[key].high:
                raise ConfigError(f"{where}: {key} is {value:g}; expected {own[key].low:g} to {own[key].high:g}")
            numbers[key] = float(value)
        elif key in own_texts:
            numbers[key] = str(value)
        elif key in entry.open:
            rules[key] = value
        elif key not in _KINDS or value != getattr(entry.rules, key):
            raise ConfigError(f"{where}: {key} cannot be set to {value!r}; it has: {', '.join(known) or 'none'}")
    if rules.get("decision") == "idle" and "slots" not in rules and "slots" in entry.open:
        rules["slots"] = "append"  # insertion by default means where it means something
    text = scheduler if not settings else f"{name}:" + ",".join(f"{key}={value}" for key, value in values.items())
    return PlanScheduler(entry, replace(entry.rules, **rules), numbers, text)
