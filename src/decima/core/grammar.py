"""The grammar of texts that name something and set its options: ``NAME:KEY=VALUE,KEY=VALUE`` and ``KEY=VALUE``.

Jobs (``tpch:n=20,sizes=2g+10g``), schedulers (``weighted_fair:alpha=-1``) and the settings of a command line follow it.
"""

import difflib
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from decima.core.errors import ConfigError

MOST = 10_000_000  # numbers beyond need more memory than machines have
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class Option:
    """One option behind a name."""

    name: str  # its key
    doc: str  # what it means
    value_type: type = str  # type of its value: ``str``, ``int``, ``float`` or ``bool``
    required: bool = False  # whether nothing goes without it
    default: Any = None  # its value if not given; None where whoever reads it has one

    def read(self, text: str, where: str) -> Any:
        """Read a text as a value of this option.

        Args:
            text: What stands behind the equals sign.
            where: What the option belongs to, for the error message.

        Raises:
            ConfigError: The text is not a value of that type, or a number that no machine has memory for.
        """
        value = read_value(text, self.value_type, f"{where}: {self.name}")
        if self.value_type is int and value > MOST and not self.name.endswith("seed"):
            raise ConfigError(f"{where}: {self.name} is {value}; expected at most {MOST:,}")
        return value


def split_options(text: str, first: str | None = None, name: str | None = None) -> tuple[str, dict[str, str]]:
    """Split ``name:key=value,key=value`` into the name and the options, still as texts.

    Args:
        text: The text.
        first: Key of the first option where the text gives a value alone.
        name: The name that the text begins with, for one with a colon in it; what is before the first colon if omitted.

    Raises:
        ConfigError: An option is not of that form, or is given twice.
    """
    name = text.partition(":")[0] if name is None else name
    pairs = text[len(name) + 1 :].split(",") if len(text) > len(name) else []
    if pairs and pairs[0] and first is not None and "=" not in pairs[0]:
        pairs[0] = f"{first}={pairs[0]}"
    return name, key_values(pairs, repr(text))


def key_values(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Split ``key=value`` texts.

    Args:
        pairs: The texts.
        where: What they belong to, for the error message.

    Raises:
        ConfigError: A text is not of that form, or a key is given twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{where}: {pair!r} is not an option; expected KEY=VALUE")
        if key.strip() in values:
            raise ConfigError(f"{where}: {key.strip()} is given twice")
        values[key.strip()] = value.strip()
    return values


def changed_texts(pairs: Iterable[str] | None, *groups: str) -> dict[str, dict[str, str]]:
    """Texts by group and key of what ``--set group.key=value`` gave.

    Args:
        pairs: The texts ``group.key=value``.
        *groups: Names of the groups.

    Raises:
        ConfigError: A text is not of that form, or its group is another one.
    """
    texts: dict[str, dict[str, str]] = {group: {} for group in groups}
    for key, text in key_values(pairs or (), "--set").items():
        group, dot, name = key.partition(".")
        if not dot or group not in texts:
            expected = " or ".join(f"{each}." for each in groups)
            raise ConfigError(f"--set {key}={text}: expected a key that begins with {expected}")
        texts[group][name] = text
    return texts


def read_options(texts: Mapping[str, str], options: Iterable[Option], where: str) -> dict[str, Any]:
    """Read texts by key as values of the types that options have.

    Args:
        texts: Texts by key.
        options: The options that may be given.
        where: What they belong to, for the error message.

    Raises:
        ConfigError: A key is unknown or a value is of another type.
    """
    known = {option.name: option for option in options}
    for key in texts:
        if key not in known:
            raise ConfigError(f"{where} has no option {key!r}{hint(key, known)}; it has: {', '.join(known) or 'none'}")
    return {key: known[key].read(text, where) for key, text in texts.items()}


def read_fields(texts: Mapping[str, str], record: type, where: str) -> dict[str, Any]:
    """Read texts by key as values of the fields of a dataclass.

    Args:
        texts: Texts by key.
        record: The dataclass; the types of its fields are those of the values.
        where: What the keys belong to, for the error message; directly in front of the key.

    Raises:
        ConfigError: There is no such field, or a value is of another type.
    """
    types = get_type_hints(record)
    known = [field.name for field in fields(record)]
    for key in texts:
        if key in getattr(record, "constants", {}):
            raise ConfigError(f"{where}{key} is gone; version 0.2.0 or older has it")
        if key not in known:
            raise ConfigError(f"{where}{key} is unknown{hint(key, known) or '; known: ' + ', '.join(known)}")
    return {key: read_value(text, types[key], f"{where}{key}") for key, text in texts.items()}


def read_value(text: str, value_type: Any, where: str) -> Any:
    """Read a text as a value of a type.

    Args:
        text: The text; ``none`` is None where the type allows that, members of a tuple are joined by ``+`` (no text: it
            is empty), those of a dictionary are ``key=value,key=value``.
        value_type: ``str``, ``int``, ``float``, ``bool``, ``tuple[X, ...]``, ``dict[str, X]``, or one of them or None.
        where: What the value is, for the error message.

    Raises:
        ConfigError: The text is not a value of that type.
    """
    members = [member for member in get_args(value_type) if member not in (NoneType, ...)]
    if NoneType in get_args(value_type):
        return None if text.lower() == "none" else read_value(text, members[0], where)
    if get_origin(value_type) is tuple:
        return tuple(read_value(part, members[0], where) for part in (text.split("+") if text else ()))
    if get_origin(value_type) is dict:
        texts = key_values(text.split(","), where)
        return {key: read_value(value, members[1], f"{where}: {key}") for key, value in texts.items()}
    try:
        value = _TRUTH[text.lower()] if value_type is bool else value_type(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{where} is {text!r}; expected {_EXPECTED[value_type]}") from None
    if value_type is float and math.isnan(value):
        raise ConfigError(f"{where} is {text!r}; expected a number")
    return value


def value_text(value: Any) -> str:
    """Text of a value, for :func:`read_value`."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={value_text(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "+".join(value_text(inner) for inner in value)
    if isinstance(value, str):
        return value
    value = value.item() if hasattr(value, "item") else value  # a number of NumPy
    return str(value).lower() if value is None or isinstance(value, bool) else repr(value)


RENAMED = {"unequal": "heterogeneous"}  # earlier names of systems, which answer until version 0.4


def present_name(system: str) -> str:
    """Present name of a system; an earlier one is said in a warning."""
    if system in RENAMED:
        warnings.warn(f"system {system!r} is called {RENAMED[system]!r} now", FutureWarning, stacklevel=3)
    return RENAMED.get(system, system)


def hint(name: str, known: Iterable[str]) -> str:
    """Text like ``; did you mean 'fair'?`` if a known name is close, else empty."""
    close = difflib.get_close_matches(str(name).lower(), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
