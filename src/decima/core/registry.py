"""One registry for everything that has a name: schedulers, systems, objectives, sources, networks, recipes."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from decima.core.errors import ConfigError, DecimaError
from decima.core.extras import advice
from decima.core.grammar import Option, hint

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """Members by name; those of listed modules are imported when they are asked for.

    Args:
        what: Word for one member in messages (``"scheduler"``).
        modules: Module that registers, or has as the attribute behind a colon, the member of each name.
        package: Package whose modules register members; all of them are imported for a name that is not known yet.
        error: Type of the error for an unknown name.
        others: What a text may be instead of a name, for the message (``"or the path of a .csv file"``).
    """

    def __init__(
        self,
        what: str,
        *,
        modules: Mapping[str, str] | None = None,
        package: str | None = None,
        error: type[DecimaError] = ConfigError,
        others: str = "",
    ) -> None:
        self._what, self._error, self._others = what, error, others
        self._modules, self._package = dict(modules or {}), package
        self._members: dict[str, Member] = {}

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
        return sorted({*self._modules, *self._members})

    def members(self) -> list[Member]:
        """All members whose packages are installed, sorted by name."""
        members = []
        for name in self.names():
            try:
                members.append(self.find(name))
            except ModuleNotFoundError as error:
                if advice(error.name or "") is None:
                    raise
        return members

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
        if name not in self._members:
            names = self.names()
            known = ", ".join(filter(None, (*names, self._others)))
            raise self._error(f"unknown {self._what} {name!r:.60}{hint(name, names)}; known: {known}")
        return self._members[name]

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


@dataclass(frozen=True)
class SchedulerEntry:
    """A registered scheduler."""

    name: str  # for texts and ``make_scheduler``
    factory: Callable[..., Any]  # makes it; its docstring is the description
    options: tuple[Option, ...] = ()  # what may be set besides the numbers in its ``parameters``
    label: str = ""  # what people call it
    source: str = ""  # where it was published
    description: str = ""  # instead of the factory's docstring

    @property
    def doc(self) -> str:
        """What it does, in a few words."""
        return self.description or (self.factory.__doc__ or "").strip().split("\n")[0]

    def make(self, values: Mapping[str, Any]) -> Any:
        """Make the scheduler with values of its options and parameters."""
        return self.factory(**values)
