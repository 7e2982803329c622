"""Schedulers by name, and the texts that say who decides.

A text is ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``; a scheduler with options may be given the first of them without its
key, as in ``decima:tpch-stream`` or ``replay:run.json``. The path of a card that ``decima tune`` wrote (``.json``), or
of a stored policy (``.weights.h5``), stands for the scheduler it describes.
"""

from __future__ import annotations

import pkgutil
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from decima.exceptions import ConfigError, UnknownSchedulerError
from decima.files import read_json
from decima.grammar import Option, hint, read_options, read_value, split_options
from decima.schedulers.interface import Scheduler
from decima.schedulers.protocol import require_protocol

CARD = ".json"
WEIGHTS = ".weights.h5"
LEARNED = "decima"
# Schedulers of packages above this one, and the modules that register them; imported when they are asked for.
_ELSEWHERE = {LEARNED: "decima.policy.learned", "remote": "decima.service.simulator_client"}


@dataclass(frozen=True)
class _Entry:
    factory: Callable[..., Scheduler]
    options: tuple[Option, ...]


_ENTRIES: dict[str, _Entry] = {}


def register(name: str, *, options: Iterable[Option] = ()) -> Callable:
    """Decorator: make ``factory(**parameters) -> Scheduler`` known as ``name``; its docstring is the description.

    Args:
        name: For ``make_scheduler``.
        options: Keywords that are more than numbers; the first may be given without its key in a text. A scheduler
            with options can be listed without being made, which may need files.
    """

    def wrap(factory):
        _ENTRIES[name] = _Entry(factory, tuple(options))
        return factory

    return wrap


def _load() -> None:
    """Import the modules of this package, each of which may register schedulers."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        if not module.ispkg:
            import_module(module.name)


def list_schedulers(*, bare: bool = False) -> list[str]:
    """Names that ``make_scheduler`` knows, sorted.

    Args:
        bare: Only those that can be made from their name alone.
    """
    _load()
    names = sorted({*_ENTRIES, *_ELSEWHERE})
    return [name for name in names if not any(option.required for option in scheduler_options(name))] if bare else names


def describe_scheduler(name: str) -> str:
    """First line of the documentation of a scheduler."""
    return (_entry(name).factory.__doc__ or "").strip().split("\n")[0]


def scheduler_options(name: str) -> tuple[Option, ...]:
    """Options of a scheduler that are more than the numbers in its ``parameters``; none for most."""
    return _entry(name).options


def _entry(name: str) -> _Entry:
    if name not in _ENTRIES:
        _load()
        if name in _ELSEWHERE:
            import_module(_ELSEWHERE[name])
    if name not in _ENTRIES:
        known = list_schedulers()
        raise UnknownSchedulerError(f"unknown scheduler {name!r}{hint(name, known)}; known: {', '.join(known)}")
    return _ENTRIES[name]


def make_scheduler(scheduler: str | Scheduler, **parameters) -> Scheduler:
    """Make a scheduler of a text; an object that already is one is returned as it is.

    Args:
        scheduler: ``"fair"``, ``"weighted_fair:alpha=-1"``, ``"decima:tpch-stream,greedy=false"``,
            ``"remote:127.0.0.1:50051"``, ``"replay:run.json"``, the path of a tuned card or of a policy, or an object.
        **parameters: Parameters by name; they go before those of the text.

    Raises:
        UnknownSchedulerError: The name is not registered; the message lists those that are.
        SchedulerError: The object lacks a part of the interface; the message says which.
        ConfigError: A parameter is unknown or out of range, or given for an object.
    """
    if isinstance(scheduler, str):
        name, values = read_scheduler(scheduler)
        return _entry(name).factory(**(values | parameters))
    require_protocol(scheduler)
    if parameters:
        raise ConfigError(
            f"parameters ({', '.join(parameters)}) were given for the scheduler object {scheduler.name!r}; "
            "expected them with a name only, an object is made with its own"
        )
    return scheduler


def read_scheduler(text: str) -> tuple[str, dict[str, Any]]:
    """Name and typed parameters of the scheduler that a text means.

    Raises:
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A parameter is not of the form ``KEY=VALUE``, or the file is no card.
    """
    name, colon, rest = text.partition(":")
    values: dict[str, Any] = {}
    if name.endswith(WEIGHTS):
        name, colon, rest = LEARNED, ":", f"{name},{rest}".rstrip(",")
    elif name.endswith(CARD):
        name, values = _read_card(Path(name))
    options = scheduler_options(name)
    _, texts = split_options(f"{name}{colon}{rest}", options[0].name if options else None)
    where = f"scheduler {text!r}"
    if options:
        return name, values | read_options(texts, options, where)
    return name, values | {key: read_value(value, float, f"{where}: {key}") for key, value in texts.items()}


def scheduler_text(scheduler: Scheduler) -> str:
    """Text from which :func:`make_scheduler` makes a scheduler like the given one."""
    values = ",".join(f"{key}={value}" for key, value in getattr(scheduler, "values", {}).items())
    return f"{scheduler.name}:{values}" if values else scheduler.name


def _read_card(path: Path) -> tuple[str, dict[str, float]]:
    """Name and parameters of a scheduler from the card that its tuning wrote."""
    try:
        card = read_json(path)
        name, parameters = card["scheduler"], dict(card["parameters"])
    except OSError as error:
        raise ConfigError(f"cannot read the card {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a card of tuned parameters: {error!r:.200}") from error
    if not isinstance(name, str):
        raise ConfigError(f"{path} is not a card of tuned parameters: its scheduler is {reprlib.repr(name)}")
    return name, parameters
