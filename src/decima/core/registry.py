"""One registry for everything that has a name: schedulers, systems, objectives, sources, networks, recipes."""

from __future__ import annotations

import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from decima.core.errors import ConfigError, DecimaError
from decima.core.grammar import Option, hint

Member = TypeVar("Member")
_TYPES = {each.__name__: each for each in (str, int, float, bool)}


class Registry(Generic[Member]):
    """Members by name; those of listed modules are imported when they are asked for.

    Code outside of the package has two ways in. An entry point of the group gives a member its own name. A text
    ``file.py:NAME`` or ``package.module:NAME`` is also a name; files and modules of the current folder are found.

    Args:
        what: Word for one member in messages (``"scheduler"``).
        modules: Module that registers, or has as the attribute behind a colon, the member of each name.
        package: Package whose modules register members; all of them are imported for a name that is not known yet.
        error: Type of the error for an unknown name.
        others: What a text may be instead of a name, for the message (``"or the path of a .csv file"``).
        group: Group of entry points that hold members.
        adopt: Function of a name and an object from outside that makes a member of it.
        gone: Of names that are gone, the last version that has them and what to use instead.
        elsewhere: What the message says about an unknown name that others have; an empty text for one that none has.
    """

    def __init__(
        self,
        what: str,
        *,
        modules: Mapping[str, str] | None = None,
        package: str | None = None,
        error: type[DecimaError] = ConfigError,
        others: str = "",
        group: str = "",
        adopt: Callable[[str, Any], Member] | None = None,
        gone: Mapping[str, str] | None = None,
        elsewhere: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._what, self._error, self._others = what, error, others
        self._group, self._adopt, self._gone, self._elsewhere = group, adopt, gone or {}, elsewhere
        self._modules, self._package = dict(modules or {}), package
        self._members: dict[str, Member] = {}
        self._texts: dict[str, Member] = {}  # what texts such as file.py:NAME were found to mean

    def add(self, name: str, member: Member) -> Member:
        """Register a member; one of the same name is replaced."""
        self._members[name] = member
        return member

    def remove(self, name: str) -> None:
        """Forget a member that was added."""
        del self._members[name]

    def names(self) -> list[str]:
        """Names of all members, sorted."""
        self._import_package()
        return sorted({*self._modules, *self._members, *self._plugins})

    def members(self) -> list[Member]:
        """All members whose packages are installed, sorted by name; failing entry points are left out."""
        members = []
        for name in self.names():
            try:
                members.append(self.find(name))
            except ModuleNotFoundError as error:
                from decima.core.extras import advice

                if advice(error.name or "") is None:
                    raise
            except DecimaError as error:
                if name not in self._plugins:
                    raise
                warnings.warn(f"{self._what} {name} is left out: {error}", stacklevel=2)
        return members

    def spelling(self, member: Member) -> str:
        """The last name that a member was added under."""
        return [name for name, each in (self._members | self._texts).items() if each is member][-1]

    def loaded(self) -> list[str]:
        """Names of the members whose modules are imported."""
        return list(self._members)

    def find(self, name: str) -> Member:
        """Return the member of a name.

        Raises:
            DecimaError: There is none of that name; the message lists those that are.
        """
        if name not in self._members and name not in self._modules:
            self._import_package()
        if name not in self._members and name in self._modules:
            module, _, attribute = self._modules[name].partition(":")
            loaded = import_module(module)
            if attribute:
                self.add(name, getattr(loaded, attribute))
        if name not in self._members and self._adopt is not None and self.outside(name):
            return self._texts[name] if name in self._texts else self._find_outside(name)
        if name not in self._members:
            if name in self._gone:
                raise self._error(f"{self._what} {name!r} is gone: {self._gone[name]}")
            names = self.names()
            known = ", ".join(filter(None, (*names, self._others)))
            unknown = f"unknown {self._what} {name!r:.60}{hint(name, names)}; known: {known}"
            raise self._error(self._elsewhere(name) or unknown)
        return self._members[name]

    def split(self, text: str) -> tuple[str, str]:
        """Split a text into the name that it begins with and its options.

        The name ``file.py:NAME`` or ``package.module:NAME`` has a colon of its own.
        """
        head, _, rest = text.partition(":")
        attribute = rest.partition(":")[0]
        if self._adopt is not None and attribute.isidentifier() and (head.endswith(".py") or self._is_module(head)):
            return f"{head}:{attribute}", rest[len(attribute) + 1 :]
        return head, rest

    def _is_module(self, name: str) -> bool:
        """Whether a name that no member has is that of a module."""
        if name in self or not all(part.isidentifier() for part in name.split(".")):
            return False
        _find_here(Path.cwd())
        try:
            return find_spec(name) is not None
        except (ImportError, ValueError):
            return False

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        return {each.name: each for each in entry_points(group=self._group)} if self._group else {}

    def outside(self, name: str) -> bool:
        """Whether a name means code outside of the package."""
        return name in self._plugins or (":" in name and self.split(name)[0] == name)

    def _find_outside(self, name: str) -> Member:
        """Keep the member that an entry point, a file or a module holds."""
        loaded = load_object(self._plugins[name].value if name in self._plugins else name)
        members = self._members.values()
        registered = [each for each in members if loaded is each or loaded is getattr(each, "factory", None)]
        member = registered[0] if registered else self._adopt(name, loaded)
        (self._members if name in self._plugins else self._texts)[name] = member
        return member

    def __contains__(self, name: object) -> bool:
        return name in self._members or name in self._modules or name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _import_package(self) -> None:
        if self._package is None:
            return
        for module in pkgutil.iter_modules(import_module(self._package).__path__, f"{self._package}."):
            if not module.ispkg:
                import_module(module.name)


def load_object(text: str) -> Any:
    """Import the object of a text ``file.py:NAME`` or ``package.module:NAME``.

    Raises:
        ConfigError: There is no such file, module or name, or its code fails.
    """
    module, _, name = text.partition(":")
    path = Path(module).resolve() if module.endswith(".py") else None
    if path is not None and not path.is_file():
        raise ConfigError(f"{text}: there is no file {module}")
    _find_here(Path.cwd() if path is None else path.parent)
    try:
        loaded = import_module(module if path is None else path.stem)
    except Exception as error:  # whatever code from outside raises
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename}, line {last.lineno}"
        raise ConfigError(f"{text}: importing fails with {type(error).__name__}: {error} ({where})") from error
    if path is not None and Path(loaded.__file__ or "").resolve() != path:
        raise ConfigError(f"{text}: the module {path.stem} is {loaded.__file__} already; expected another file name")
    if not hasattr(loaded, name):
        names = [key for key, value in vars(loaded).items() if getattr(value, "__module__", "") == loaded.__name__]
        raise ConfigError(f"{text}: {module} has no {name!r}{hint(name, names)}; it has: {', '.join(names) or 'none'}")
    return getattr(loaded, name)


def _find_here(folder: Path) -> None:
    """Let modules of a folder be imported, here and in worker processes."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def options_of(function: Callable, *without: str) -> tuple[Option, ...]:
    """Options of the keywords of a function or class; numbers where nothing is annotated.

    Args:
        function: The function or class.
        without: Parameters that are no options.
    """
    options = []
    for each in signature(function).parameters.values():
        if each.name in without or each.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL):
            continue
        default = None if each.default is Parameter.empty else each.default
        typed = _TYPES.get(getattr(each.annotation, "__name__", str(each.annotation)), type(default))
        value_type = typed if typed in _TYPES.values() else float
        options.append(Option(each.name, "", value_type, each.default is Parameter.empty, default))
    return tuple(options)


@dataclass(frozen=True)
class SchedulerEntry:
    """A registered scheduler."""

    # Of entries that have none. No fields: subclasses place theirs.
    parameters, presets = (), MappingProxyType({})

    name: str  # for texts and ``make_scheduler``
    factory: Callable[..., Any]  # makes it; its docstring is the description
    options: tuple[Option, ...] = ()  # what may be set besides the numbers in its ``parameters``
    label: str = ""  # what people call it
    source: str = ""  # where it was published
    description: str = ""  # instead of the factory's docstring

    @classmethod
    def adopted(cls, name: str, item: Any, *methods: str) -> SchedulerEntry:
        """Entry of an object from outside: a scheduler, or a function that makes one.

        Args:
            name: What texts call it.
            item: The object.
            methods: Names of methods; an object with one of them is a scheduler.

        Raises:
            ConfigError: It is neither.
        """
        if not isinstance(item, type) and any(hasattr(item, method) for method in methods):
            return SchedulerEntry(name, lambda: item, description=(type(item).__doc__ or "").strip().split("\n")[0])
        if not callable(item):
            expected = " or ".join(f"{method}(...)" for method in methods)
            raise ConfigError(
                f"{name} is {item!r:.60}; expected a scheduler with {expected}, or a function that makes one"
            )
        return SchedulerEntry(name, item, options_of(item))

    @property
    def doc(self) -> str:
        """What it does, in a few words."""
        return self.description or (self.factory.__doc__ or "").strip().split("\n")[0]

    @property
    def keys(self) -> list[str]:
        """Everything that may be set."""
        return [each.name for each in (*self.parameters, *self.options)]

    def require(self, names: Iterable[str]) -> None:
        """Check that required options are among those with a value.

        Raises:
            ConfigError: One is missing.
        """
        if missing := [each.name for each in self.options if each.required and each.name not in names]:
            raise ConfigError(f"scheduler {self.name} needs {missing[0]}; expected {self.name}:{missing[0]}=...")

    def make(self, values: Mapping[str, Any]) -> Any:
        """Make the scheduler with values of its options and parameters.

        Raises:
            ConfigError: A required option is missing.
        """
        self.require(values)
        return self.factory(**values)
