"""Experiments: what belongs to one section of a paper, as one record in one module.

``reproduction/<paper>/sNN_<name>.py`` holds the experiment ``<name>`` as ``EXPERIMENT``; NN is the section, counted as
for the notebooks. The file is all the registration there is: commands, pipeline and tests find it by its name, and an
experiment is imported when it is asked for, not before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from decima.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas

    from decima.plotting.style import Figure
    from decima.systems.spark.settings import Settings


class Input(Protocol):
    """Input of an experiment besides its code and parameters."""

    def paths(self, run: str, params: Mapping) -> list[str]:
        """Files and folders relative to the checkout."""
        ...


@dataclass(frozen=True)
class Profiles:
    """The job profiles of the run's workload."""

    def paths(self, run: str, params: Mapping) -> list[str]:
        """The file that the run names under ``profiles``."""
        return [str(params["profiles"])]


@dataclass(frozen=True)
class TablesOf:
    """The tables of another experiment of the same run."""

    experiment: str

    def paths(self, run: str, params: Mapping) -> list[str]:
        """The folder of the tables."""
        return [f"reports/{run}/tables/{self.experiment}"]


@dataclass(frozen=True)
class Files:
    """Files and folders of the checkout, the same for every run."""

    relative: list[str]

    def paths(self, run: str, params: Mapping) -> list[str]:
        """The files and folders themselves."""
        return self.relative


@dataclass(frozen=True)
class FilesIn:
    """Parts of the folders that parameters of an experiment list."""

    experiment: str
    parameters: tuple[str, ...]
    parts: tuple[str, ...]

    def paths(self, run: str, params: Mapping) -> list[str]:
        """Paths of every part of every folder; not all need be there."""
        folders = [folder for name in self.parameters for folder in params[self.experiment][name]]
        return [f"{folder}/{part}" for folder in folders for part in self.parts]


class PolicyInput:
    """Stored policies that an experiment runs."""

    def policies(self, params: Mapping) -> dict[str, str]:
        """Names of the policies by what the experiment uses them for."""
        raise NotImplementedError


@dataclass(frozen=True)
class Policies(PolicyInput):
    """Stored policies, the same for every run."""

    names: Sequence[str]

    def policies(self, params: Mapping) -> dict[str, str]:
        """The names by themselves."""
        return {name: name for name in self.names}


@dataclass(frozen=True)
class StoredPolicy(PolicyInput):
    """The policy that the run names for a use under ``policies``."""

    use: str

    def policies(self, params: Mapping) -> dict[str, str]:
        """Its name by the use."""
        return {self.use: params["policies"][self.use]}


@dataclass(frozen=True)
class PoliciesIn(PolicyInput):
    """Stored policies named by parameters of an experiment, in nested mappings or lists."""

    experiment: str
    parameters: tuple[str, ...]

    def policies(self, params: Mapping) -> dict[str, str]:
        """The names that the parameters have, by their keys."""

        def names(key: str, value: str | Sequence | Mapping) -> dict[str, str]:
            if isinstance(value, str):
                return {key: value}
            parts = value.items() if isinstance(value, Mapping) else enumerate(value)
            return {inner: name for part, each in parts for inner, name in names(f"{key}.{part}", each).items()}

        parameters = params[self.experiment]
        return {key: name for each in self.parameters for key, name in names(each, parameters[each]).items()}


@dataclass(frozen=True)
class Context:
    """Surroundings that every experiment gets besides its parameters."""

    run: str  # name of the run
    tables: Callable[[str], dict[str, pandas.DataFrame]]  # tables of another experiment of the same run, by its name
    executors: int = 50  # of the cluster
    threads: int | None = None  # worker threads, None for all cores
    progress: bool = False  # show progress bars
    policies: Mapping[str, str] = field(default_factory=dict)  # names of stored policies by what they are for

    def settings(self, mode: str = "paper", **changes) -> Settings:
        """The cluster of this run."""
        from decima.systems.spark.settings import Settings

        return Settings.of_mode(mode, executors=self.executors, **changes)

    def bar(self, label: str) -> str | None:
        """Label for a progress bar, None when bars are off."""
        return label if self.progress else None

    def work(self, label: str) -> dict[str, Any]:
        """Options of what works in threads under a progress bar."""
        return {"workers": self.threads, "progress": self.bar(label)}


@dataclass(frozen=True)
class Experiment:
    """One experiment: how its tables are computed, and the figures drawn from them."""

    name: str
    section: str  # of the paper, with its figures
    compute: Callable[..., dict[str, pandas.DataFrame]]  # of (source, params, context); tables by name
    rooms: Sequence[str]  # of the package that the tables rest on (experiments.rooms)
    figures: tuple[Callable[..., Figure], ...]  # of (tables, run); the function's name is the figure's and the file's
    tiny: Mapping  # parameters of the smallest run that fills every table, for tests
    inputs: tuple[Input | PolicyInput, ...] = ()  # what is read besides code and parameters
    # Table -> columns, or patterns of them, that are not the same on every machine.
    may_differ: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        """Whether it measures times that this machine takes."""
        return any(column.endswith(("_ms", "_us")) for columns in self.may_differ.values() for column in columns)

    @property
    def needs(self) -> list[str]:
        """Names of the experiments whose tables are read."""
        return [entry.experiment for entry in self.inputs if isinstance(entry, TablesOf)]


@cache
def _modules() -> dict[str, str]:
    """Module of every experiment by its name, in the order of the papers' sections."""
    paths = sorted(Path(__file__).parent.glob("*/s[0-9][0-9]_*.py"))
    return {re.sub(r"^s\d\d_", "", path.stem): f"{__package__}.{path.parent.name}.{path.stem}" for path in paths}


def experiment_module(name: str) -> str:
    """Name of the module that holds an experiment.

    Raises:
        ConfigError: There is no such experiment.
    """
    if name not in _modules():
        raise ConfigError(f"unknown experiment {name!r}; known: {', '.join(_modules())}")
    return _modules()[name]


def experiment(name: str) -> Experiment:
    """An experiment by name; imports its module and no other experiment's.

    Raises:
        ConfigError: There is no such experiment.
    """
    return import_module(experiment_module(name)).EXPERIMENT


@cache
def experiment_names() -> tuple[str, ...]:
    """Names of all experiments, those first whose tables others read."""
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        for needed in experiment(name).needs:
            visit(needed)
        ordered.setdefault(name)

    for name in _modules():
        visit(name)
    return tuple(ordered)
