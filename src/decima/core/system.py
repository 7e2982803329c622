"""The protocol of a system that can be simulated, and the registry of all systems.

A system runs workloads under settings with schedulers. Comparison, tuning, search, training and Gantt charts know this
protocol only; which system is meant follows from the type of the settings. The Spark cluster is
:class:`decima.systems.spark.system.SparkCluster`.

A system of one's own is an object with the attributes and methods of :class:`System`, given to
:func:`register_system`. Nothing has to be subclassed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from decima.core.errors import ConfigError
from decima.core.grammar import hint, present_name
from decima.core.objectives import OBJECTIVES, Objective, Outcome, get_objective
from decima.core.registry import Registry

if TYPE_CHECKING:
    import pandas

# Modules that register systems, by name; imported on first use. The first one is meant where nothing says which.
SYSTEM_MODULES = {
    "spark": "decima.systems.spark.system",
    "heterogeneous": "decima.systems.heterogeneous.system",
    "cloud": "decima.systems.cloud.system",
}
DEFAULT = "spark"
TASK_COLUMNS = ("job", "stage", "executor", "start_s", "finish_s", "kind")


class SystemSettings(Protocol):
    """What the system is like; immutable, so that it can be shared and compared.

    An attribute ``draws`` that is False says that the system itself takes no chance.
    """

    @classmethod
    def of_mode(cls, mode: str, **fields: Any) -> SystemSettings:
        """Settings of a mode, of which all systems have ``"paper"``, with some fields replaced.

        Raises:
            ConfigError: Mode or field is unknown, or a value out of range.
        """

    @property
    def label(self) -> str:
        """A few words for titles."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values by name, for cards and result files."""


class SystemWorkload(Protocol):
    """What is to be run."""

    @property
    def label(self) -> str:
        """What the workload is called in titles."""

    @property
    def arrival_ms(self) -> np.ndarray:
        """float64 [jobs]."""

    def signature(self) -> str:
        """All that distinguishes it from other workloads, as text."""


class JobsText(Protocol):
    """Workloads that a text means: those of a file, or a draw from a source."""

    path: Path | None  # the file; None for a draw

    def workload(self, seed: int) -> SystemWorkload:
        """Read the file, or draw the workload of a seed."""

    def workloads(self, seeds: Sequence[int]) -> list[SystemWorkload]:
        """One workload per seed; the same object for all where nothing is drawn."""


class RunResult(Protocol):
    """Outcome of one run in detail."""

    workload: SystemWorkload
    settings: SystemSettings
    scheduler: str
    seed: int

    @property
    def outcome(self) -> Outcome:
        """What objectives score."""

    @property
    def num_executors(self) -> int:
        """Rows of a Gantt chart: executors, machines or whatever runs tasks."""

    def task_frame(self) -> pandas.DataFrame:
        """One row per task, columns :data:`TASK_COLUMNS`, times in seconds.

        Raises:
            ConfigError: The run kept no log.
        """


@dataclass(frozen=True, eq=False, repr=False)
class Best:
    """The best run known of a workload, and a bound that no run can pass."""

    result: RunResult  # the run
    objective: str  # name of what is best
    value: float  # of the run
    bound: float | None  # no run is better; None where no bound holds
    proved: bool  # whether no run is better than this one
    unit: str = "s"  # of both; the empty string for none

    def __repr__(self) -> str:
        unit = f" {self.unit}".rstrip()
        limit = "no bound holds here" if self.bound is None else f"bound {self.bound:.2f}{unit}"
        how = "proved" if self.proved else limit
        return f"best {self.objective} {self.value:.2f}{unit} ({how}) for {self.result.workload.label}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{getattr(self.result, '_repr_html_', str)()}"


class SystemScheduler(Protocol):
    """Scheduler of a system; with a true ``concurrent`` one object may serve several runs.

    An attribute ``draws`` says whether another seed may be another run; of what does not say, the runs tell, and of one
    that is not concurrent it is assumed. A scheduler with ``parameters`` (each with name, low, high and tunable) and
    ``values`` by name can be tuned. A method ``remark(workloads)`` returns lines for people about its runs on these.
    """

    name: str


class System(Protocol):
    """Something that runs workloads with schedulers.

    Attributes:
        name: What the registry calls it.
        label: What people call it.
        settings_type: Type of its settings, which tells it from other systems.
        workload_type: Type of its workloads.
        scored: Names of the objectives that every comparison scores; the first one is its default.
    """

    name: str
    label: str
    settings_type: type
    workload_type: type
    scored: tuple[str, ...]

    def read_jobs(self, text: str) -> JobsText:
        """Workloads that a text means.

        Raises:
            ConfigError: There is no such source, file or option.
        """

    def tables(self, workload: SystemWorkload, settings: SystemSettings) -> Any:
        """What all runs of a workload share; nothing changes it."""

    def state(self, tables: Any, settings: SystemSettings, *, log: bool = False) -> Any:
        """Memory for one run after the other; with ``log`` it keeps every task and decision."""

    def give(self, state: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Bind input arrays of schedulers to a state, by name; earlier ones are forgotten."""

    def run(self, state: Any, scheduler: SystemScheduler, seed: int) -> None:
        """Run to the end; a seed means the same random draws for every scheduler."""

    def outcome(self, state: Any) -> Outcome:
        """What objectives score, copied out of a state that has run."""

    def result(self, state: Any, scheduler: str, seed: int) -> RunResult:
        """Outcome in detail, copied out of a state that has run."""

    def make_scheduler(self, scheduler: str | SystemScheduler, **parameters: float) -> SystemScheduler:
        """A scheduler by name with its parameters; a scheduler as it is."""

    def list_schedulers(self) -> list[str]:
        """Names of its schedulers, sorted."""

    def objectives(self) -> list[str | Objective]:
        """Objectives of its outcomes: names of shared ones, and objects of specific ones."""


SYSTEMS: Registry[System] = Registry("system", modules=SYSTEM_MODULES)
# Functions of workload, settings, number of schedules to try and seed, by system.
OPTIMA: Registry[Callable[[Any, Any, int, int], Best]] = Registry(
    "system with an optimum",
    modules={
        "spark": "decima.systems.spark.optimum.schedule_search:best_run",
        "heterogeneous": "decima.systems.heterogeneous.system:best_run",
        "cloud": "decima.systems.cloud.optimum.best:best_run",
    },
)


def register_system(system: System) -> System:
    """Make a system known; one of the same name is replaced."""
    return SYSTEMS.add(system.name, system)


def list_systems() -> list[str]:
    """Names of all systems."""
    return SYSTEMS.names()


def get_system(name: str) -> System:
    """System of a name.

    Raises:
        ConfigError: There is none of that name.
    """
    return SYSTEMS.find(present_name(name))


def scheduler_elsewhere(name: str) -> str:
    """Sentence about a scheduler of another system; empty where none has it."""
    systems = [each for each in SYSTEM_MODULES if name in get_system(each).list_schedulers()]
    return f"scheduler {name!r} is of system {systems[0]!r} (--system {systems[0]}), not of this one" if systems else ""


def system_of(settings: SystemSettings) -> System:
    """System that settings belong to; loaded systems are tried first.

    Raises:
        ConfigError: They belong to none.
    """
    for name in dict.fromkeys([*SYSTEMS.loaded(), *SYSTEMS.names()]):
        system = get_system(name)
        if isinstance(settings, system.settings_type):
            return system
    kinds = ", ".join(system.settings_type.__name__ for system in SYSTEMS.members())
    raise ConfigError(f"expected the settings of a system ({kinds}), got {settings!r:.60} ({type(settings).__name__})")


def system_for(jobs: object, name: str | None = None) -> System:
    """System of a name, else of the workloads, else the default one.

    Raises:
        ConfigError: There is no system of that name.
    """
    if name is not None:
        return get_system(name)
    first = jobs[0] if isinstance(jobs, (list, tuple)) and jobs else jobs
    for known, module in SYSTEM_MODULES.items():  # a workload may be there before its system is imported
        if type(first).__module__.startswith(f"{module.rpartition('.')[0]}."):
            return get_system(known)
    for name in SYSTEMS.loaded():
        if isinstance(first, get_system(name).workload_type):
            return get_system(name)
    return get_system(DEFAULT)


def chosen_settings(
    jobs: object, cluster: SystemSettings | None, mode: str | None, system: str | None = None, **fields: Any
) -> SystemSettings:
    """Complete settings, else those of a mode of the jobs' system with fields replaced.

    Args:
        jobs: Workload, or workloads in a list; anything else belongs to the default system.
        cluster: Settings of any system.
        mode: Name of a mode; ``"paper"`` when omitted.
        system: Name of a system; that of the jobs when omitted.
        **fields: Fields by name; None where nothing is given.

    Raises:
        ConfigError: Both were given, or a field is unknown or out of range.
    """
    replaced = {name: value for name, value in fields.items() if value is not None}
    if cluster is None:
        chosen = system_for(jobs, system)
        return chosen.settings_type.of_mode(mode or "paper", **with_defaults(settings_of(jobs, chosen), replaced))
    if named := [*replaced, *(["mode"] * (mode is not None)), *(["system"] * (system is not None))]:
        raise ConfigError(f"{', '.join(named)} cannot be given together with cluster; use cluster.replace(...)")
    return cluster


def settings_of(jobs: object, system: System) -> Mapping[str, Any]:
    """Settings of the cluster that jobs bring; of a list, those that all workloads share."""
    if isinstance(jobs, (str, Path)):
        jobs = system.read_jobs(str(jobs))
    if isinstance(jobs, (list, tuple)) and jobs:
        first, *others = (settings_of(each, system) for each in jobs)
        return first if all(each == first for each in others) else {}
    return getattr(jobs, "settings", {})


def with_defaults(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values, and of the settings that jobs bring those that do not contradict them.

    A delay of executors that start or move has an effect only where they do.
    """
    delays = any(values.get(name) for name in ("moving_delay_ms", "warmup_delay_ms"))
    kept = {name: value for name, value in defaults.items() if not (delays and name == "startup")}
    return kept | dict(values)


def form_for(scheduler: SystemScheduler, jobs: SystemWorkload | Iterable[SystemWorkload] | bool) -> SystemScheduler:
    """Form of a scheduler on jobs; most have one and are returned unchanged.

    Args:
        scheduler: Any scheduler; one with several forms has a method ``form_for``.
        jobs: One or several workloads, or whether jobs arrive over time.
    """
    return scheduler.form_for(jobs) if hasattr(scheduler, "form_for") else scheduler


def require_workload(system: System, workload: object) -> None:
    """Raise ConfigError unless the workload is one of the system's."""
    if not isinstance(workload, system.workload_type):
        raise ConfigError(f"expected a {system.workload_type.__name__}, got {type(workload).__name__}")


def objective_of(system: System, objective: str | Objective) -> Objective:
    """The objective of a name.

    Raises:
        ConfigError: There is none of that name, or the system's outcomes cannot be scored by it.
    """
    if isinstance(objective, Objective):
        return objective
    known = [each if isinstance(each, Objective) else get_objective(each) for each in system.objectives()]
    for each in known:
        if objective in each.names:
            return each
    if OBJECTIVES.outside(objective):
        return OBJECTIVES.find(objective)
    names = sorted(each.name for each in known)
    if any(objective in other.names for other in OBJECTIVES.members()):
        raise ConfigError(f"objective {objective} does not apply to the {system.label}; known: {', '.join(names)}")
    raise ConfigError(f"unknown objective {objective!r}{hint(objective, names)}; known: {', '.join(names)}")
