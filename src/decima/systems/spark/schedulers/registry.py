"""Schedulers by name, and the texts that say who decides.

A text is ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``; a preset, or the first of a scheduler's options, may be given first
without its key, as in ``weighted_fair:paper``, ``decima:tpch-stream`` or ``replay:run.json``. The path of a card that
``decima tune`` wrote (``.json``), or of a stored policy (``.weights.h5`` or its training's folder), stands for the
scheduler it describes.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from decima.core.errors import ConfigError, UnknownSchedulerError
from decima.core.files import read_json
from decima.core.grammar import Option, hint, read_options, read_value, split_options
from decima.core.registry import Registry, SchedulerEntry
from decima.core.system import scheduler_elsewhere
from decima.systems.spark.schedulers.interface import (
    CompiledScheduler,
    Decision,
    Observation,
    Scheduler,
    require_protocol,
)
from decima.workload.jobs import Workload

if TYPE_CHECKING:
    # Rules of heuristics must not be compiled anew whenever the simulator is edited.
    from decima.systems.spark.state import ClusterState

CARD = ".json"
WEIGHTS = ".weights.h5"
LEARNED = "decima"
PRESET = "preset"


@dataclass(frozen=True)
class Preset:
    """Named values of parameters; explicit values take precedence over them."""

    name: str  # behind the name of the scheduler: ``weighted_fair:paper``
    doc: str  # what it is for
    values: Mapping[str, Any]  # by name; other parameters have their declared defaults


@dataclass(frozen=True)
class Entry(SchedulerEntry):
    """A registered scheduler with named values of its parameters."""

    presets: Mapping[str, Preset] = field(default_factory=dict)
    forms: type[ByArrivals] | None = None  # what chooses among the presets; None: :class:`ByArrivals`

    def make(self, values: Mapping[str, Any]) -> Scheduler:
        """Make the scheduler; without a preset, its form follows from the jobs of a run."""
        if not self.presets:
            return self.factory(**values)
        changed = dict(values)
        preset = changed.pop(PRESET, None)
        if preset is not None:
            if preset not in self.presets:
                known = f"{hint(preset, self.presets)}; it has: {', '.join(self.presets)}"
                raise ConfigError(f"scheduler {self.name} has no preset {preset!r}{known}")
            return self.factory(**(self.presets[preset].values | changed))
        batch, stream = (self.presets[arrivals].values | changed for arrivals in (BATCH, STREAM))
        if batch == stream:
            return self.factory(**batch)
        return (self.forms or ByArrivals)(self.name, self.factory(**batch), self.factory(**stream), changed)


# Schedulers of other packages are imported when they are asked for. Results of heuristics do not depend on these
# modules, so that stamps leave a table with a name out: who wants one of these schedulers imports its module, too.
_ELSEWHERE = {LEARNED: "decima.systems.spark.policy.scheduler", "remote": "decima.connect.service.simulator_client"}
SCHEDULERS: Registry[SchedulerEntry] = Registry(
    "scheduler",
    package="decima.systems.spark.schedulers",
    modules=_ELSEWHERE,
    error=UnknownSchedulerError,
    group="decima.schedulers",
    adopt=lambda name, item: SchedulerEntry.adopted(name, item, "decide"),
    elsewhere=scheduler_elsewhere,
    gone={"lookahead": "version 0.2.0 is the last one that has it; entry_srw has most of its gain on streams"},
)


def register(
    name: str, *, options: Iterable[Option] = (), presets: Iterable[Preset] = (), forms: type[ByArrivals] | None = None
) -> Callable:
    """Decorator: make ``factory(**parameters) -> Scheduler`` known as ``name``; its docstring is the description.

    Args:
        name: For ``make_scheduler``.
        options: Keywords that are more than numbers; the first may be given without its key in a text. A scheduler
            with options can be listed without being made, which may need files.
        presets: Named values of the parameters. Those called ``batch`` and ``stream`` have to be among them: they are
            the default for such jobs, and the factory makes compiled schedulers with one decision of both.
        forms: What chooses between these two, when it is not the arrivals alone.

    Raises:
        ConfigError: One of these two is missing.
    """
    by_name = {preset.name: preset for preset in presets}
    if by_name and not {BATCH, STREAM} <= by_name.keys():
        known = ", ".join(by_name)
        raise ConfigError(f"scheduler {name} has presets {known}; expected {BATCH} and {STREAM} among them")

    def wrap(factory):
        SCHEDULERS.add(name, Entry(name, factory, tuple(options), presets=by_name, forms=forms))
        return factory

    return wrap


def list_schedulers(*, bare: bool = False) -> list[str]:
    """Names that ``make_scheduler`` knows, sorted.

    Example:
        >>> list_schedulers(bare=True)[:4]
        ['capped_srw', 'decima', 'entry_srw', 'fair']

    Args:
        bare: Only those that can be made from their name alone.
    """
    names = SCHEDULERS.names()
    return [name for name in names if not any(option.required for option in scheduler_options(name))] if bare else names


def describe_scheduler(name: str) -> str:
    """First line of the documentation of a scheduler."""
    return SCHEDULERS.find(name).doc


def scheduler_options(name: str) -> tuple[Option, ...]:
    """Options of a scheduler beyond the numbers in its ``parameters``; most have none."""
    return SCHEDULERS.find(name).options


def scheduler_presets(name: str) -> tuple[Preset, ...]:
    """Presets of a scheduler; none for most."""
    return tuple(SCHEDULERS.find(name).presets.values())


def make_scheduler(scheduler: str | Scheduler, **parameters) -> Scheduler:
    """Make a scheduler from a text; return an object that is one unchanged.

    Example:
        >>> make_scheduler("weighted_fair:alpha=-1").values["alpha"]
        -1.0

    Args:
        scheduler: ``"fair"``, ``"weighted_fair:alpha=-1"``, ``"weighted_fair:paper"``,
            ``"decima:tpch-stream,greedy=false"``, ``"remote:127.0.0.1:50051"``, ``"replay:run.json"``, the path of a
            tuned card or of a policy, or an object.
        **parameters: Parameters by name; they go before those of the text. ``preset`` names one of its presets, whose
            values hold for the others. Without one, a scheduler that has presets is its ``batch`` or its ``stream``,
            whichever the jobs of a run are.

    Raises:
        UnknownSchedulerError: The name is not registered; the message lists those that are.
        SchedulerError: The object lacks a part of the interface; the message names it.
        ConfigError: A parameter or a preset is unknown, a parameter out of range, or one is given for an object.
    """
    if isinstance(scheduler, str):
        name, values = read_scheduler(scheduler)
        entry = SCHEDULERS.find(name)
        scheduler = entry.make(values | parameters)
        if not isinstance(entry, Entry):  # code from outside
            require_protocol(scheduler)
        return scheduler
    require_protocol(scheduler)
    if parameters:
        raise ConfigError(
            f"parameters ({', '.join(parameters)}) were given for the scheduler object {scheduler.name!r}; "
            "expected them with a name only, an object is made with its own"
        )
    return scheduler


def read_scheduler(text: str) -> tuple[str, dict[str, Any]]:
    """Name and typed parameters of the scheduler that a text means, with its preset's name.

    Raises:
        UnknownSchedulerError: No scheduler has that name.
        ConfigError: A parameter is not of the form ``KEY=VALUE``, or the file is not a card.
    """
    name, rest = SCHEDULERS.split(text)
    colon = text[len(name) : len(name) + 1]
    values: dict[str, Any] = {}
    stored = os.path.join(name, f"policy{WEIGHTS}")
    if name not in SCHEDULERS and os.path.isfile(stored):  # the folder of a training; a name may be too long for one
        name = stored
    if name.endswith(WEIGHTS):
        name, colon, rest = LEARNED, ":", f"{name},{rest}".rstrip(",")
    elif name.endswith(CARD):
        name, values = _read_card(Path(name))
    entry = SCHEDULERS.find(name)
    options, presets = entry.options, entry.presets
    first = options[0].name if options else None
    if presets and (first is None or rest.partition(",")[0] in presets):
        first = PRESET
    _, texts = split_options(f"{name}{colon}{rest}", first, name)
    if presets and PRESET in texts:
        values[PRESET] = texts.pop(PRESET)
    where = f"scheduler {text!r}"
    if options:
        return name, values | read_options(texts, options, where)
    return name, values | {key: read_value(value, float, f"{where}: {key}") for key, value in texts.items()}


def scheduler_text(scheduler: Scheduler) -> str:
    """Text from which :func:`make_scheduler` makes a scheduler like this one."""
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


# ---- schedulers whose default is one form for batches and another for jobs that arrive over time --------------------


BATCH, STREAM = "batch", "stream"


class ByArrivals(CompiledScheduler):
    """Two forms of a compiled scheduler; the arrivals of a run decide between them.

    Args:
        name: Name in the registry.
        batch: The form for jobs that are all there at the start.
        stream: The form for jobs of which some arrive later. Its compiled function is that of the other form.
        values: What was chosen for both, by name.
    """

    def __init__(
        self, name: str, batch: CompiledScheduler, stream: CompiledScheduler, values: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.decision = batch.decision
        self.values = dict(values)
        self.forms = {BATCH: batch, STREAM: stream}
        self._bound = None

    def __repr__(self) -> str:
        return f"ByArrivals({self.forms[BATCH]!r}, {self.forms[STREAM]!r})"

    def form_for(self, jobs: Workload | Iterable[Workload] | bool) -> CompiledScheduler:
        """The form on some jobs, see :func:`decima.core.system.form_for`."""
        if isinstance(jobs, bool):
            return self._form(STREAM if jobs else BATCH, set())
        workloads = [jobs] if isinstance(jobs, Workload) else list(jobs)
        return self._form(self._arrivals(workloads), {each.label for each in workloads})

    def _arrivals(self, workloads: Iterable[Workload]) -> str:
        return STREAM if any((each.arrival_ms[~each.initial] > 0.0).any() for each in workloads) else BATCH

    def _form(self, arrivals: str, labels: set[str]) -> CompiledScheduler:
        """The form for such arrivals; no labels: the workload is not known."""
        return self.forms[arrivals]

    def _of(self, state: ClusterState) -> CompiledScheduler:
        return self._form(STREAM if np.any(state.job_arrival_ms > 0.0) else BATCH, {state.tables.workload.label})

    def bind(self, state: ClusterState) -> None:
        """Hand what the form for the state's jobs needs to the state; see the form."""
        self._of(state).bind(state)

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run."""
        for form in list(self.forms.values()):
            form.reset(rng)

    def decide(self, observation: Observation) -> Decision:
        """Make the decision of the form for the observed jobs."""
        return self._of(observation.state).decide(observation)
