"""Schedulers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module

from decima.exceptions import ConfigError, UnknownSchedulerError
from decima.schedulers.interface import Scheduler
from decima.schedulers.protocol import require_protocol

_FACTORIES: dict[str, Callable[..., Scheduler]] = {}
_OPTIONS: dict[str, dict[str, str]] = {}
# Modules that register schedulers; imported on first use.
_MODULES = ("capped_srw", "fair", "fifo", "learned", "priority", "random_choice", "released", "sjf_cp", "weighted_fair")


def register(name: str, *, options: Mapping[str, str] | None = None) -> Callable:
    """Decorator: make ``factory(**parameters) -> Scheduler`` known as ``name``; its docstring is the description.

    Args:
        name: For ``make_scheduler``.
        options: Keywords that are more than numbers, with their descriptions; such a scheduler can be listed without
            being made, which may need files.
    """

    def wrap(factory):
        _FACTORIES[name] = factory
        _OPTIONS[name] = dict(options or {})
        return factory

    return wrap


def _load() -> dict[str, Callable[..., Scheduler]]:
    for module in _MODULES:
        import_module(f"decima.schedulers.{module}")
    return _FACTORIES


def list_schedulers() -> list[str]:
    """Names that ``make_scheduler`` knows, sorted."""
    return sorted(_load())


def describe_scheduler(name: str) -> str:
    """First line of the scheduler's documentation."""
    return (_factory(name).__doc__ or "").strip().split("\n")[0]


def scheduler_options(name: str) -> dict[str, str]:
    """Descriptions of the keywords of a scheduler that are more than numbers; empty for most."""
    _factory(name)
    return dict(_OPTIONS.get(name, {}))


def _factory(name: str) -> Callable[..., Scheduler]:
    factories = _load()
    if name not in factories:
        close = difflib.get_close_matches(str(name).lower(), factories, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownSchedulerError(
            f"unknown scheduler {name!r}{hint}; known: {', '.join(sorted(factories))}"
        )
    return factories[name]


def make_scheduler(name: str | Scheduler, **parameters) -> Scheduler:
    """A scheduler by name with its parameters; an object that already is one is returned as it is.

    Raises:
        UnknownSchedulerError: The name is not registered; the message lists those that are.
        SchedulerError: The object lacks a part of the interface; the message says which.
        ConfigError: A parameter is unknown or out of range, or given for an object.
    """
    if isinstance(name, str):
        return _factory(name)(**parameters)
    require_protocol(name)
    if parameters:
        raise ConfigError(
            f"parameters ({', '.join(parameters)}) were given for the scheduler object {name.name!r}; "
            "expected them with a name only, an object is made with its own"
        )
    return name
