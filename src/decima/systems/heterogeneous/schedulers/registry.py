"""Schedulers of heterogeneous executors by name, and the texts that name them.

A text is ``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``, as in ``heft`` or ``high_rank_up_deft:decision=idle,slots=append``.
Keys are the settings of :class:`.Rules` that a scheduler leaves open, its parameters and its options.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np

from decima.core.checks import check_whole, is_name
from decima.core.decision import Parameter
from decima.core.errors import ConfigError, DecimaError, SchedulerError, UnknownSchedulerError
from decima.core.grammar import Option, hint, read_fields, read_value, split_options
from decima.core.registry import Registry, SchedulerEntry
from decima.core.system import scheduler_elsewhere
from decima.systems.heterogeneous.checking import InvalidScheduleError
from decima.systems.heterogeneous.engine import ListRule
from decima.systems.heterogeneous.result import Schedule, validate
from decima.systems.heterogeneous.settings import Rules
from decima.systems.heterogeneous.workload import Instance

ALL = tuple(each.name for each in fields(Rules))


@dataclass(frozen=True)
class Entry(SchedulerEntry):
    """Registered scheduler; its factory makes a schedule or a ``ListRule``.

    The factory takes instance, rules, generator, and its parameters and options as keywords.
    """

    rules: Rules = field(default_factory=Rules)  # default settings
    open: tuple[str, ...] = ALL  # settings that may be changed
    parameters: tuple[Parameter, ...] = ()
    draws: bool = False  # whether it takes chance

    @property
    def keys(self) -> list[str]:
        """Names of all permitted settings."""
        return [*super().keys, *self.open]

    def make(self, values: Mapping[str, Any]) -> PlanScheduler:
        """Make the scheduler with settings, parameters and options by name.

        Raises:
            ConfigError: A value is unknown, fixed for this scheduler, or out of range.
        """
        parameters = {each.name: each for each in self.parameters}
        settled: dict[str, Any] = {each.name: each.default for each in (*self.parameters, *self.options)}
        rules: dict[str, Any] = {}
        for key, value in values.items():
            where = f"scheduler {self.name}: {key}"
            if key in parameters:
                low, high = parameters[key].low, parameters[key].high
                if not low <= value <= high:
                    raise ConfigError(f"{where} is {value:g}; expected {low:g} to {high:g}")
                settled[key] = float(value)
            elif key in settled:
                settled[key] = str(value)
            elif key in self.open:
                rules[key] = value
            elif value != getattr(self.rules, key, None):
                raise ConfigError(f"{where} cannot be set to {value!r}; it has: {', '.join(self.keys) or 'none'}")
        self.require(name for name, value in settled.items() if value is not None)
        if rules.get("decision") == "idle" and "slots" not in rules and "slots" in self.open:
            rules["slots"] = "append"  # insertion by default means where it means something
        return PlanScheduler(self, replace(self.rules, **rules), settled)


@dataclass(frozen=True)
class PlanScheduler:
    """A scheduler with its settings."""

    entry: Entry
    rules: Rules
    values: Mapping[str, float | str] = field(default_factory=dict)  # own parameters and options by name
    text: str = ""  # what it was made of
    concurrent = True  # nothing is kept between runs

    @property
    def draws(self) -> bool:
        """Whether another seed may be another schedule."""
        return self.entry.draws

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Numbers that shape it."""
        return self.entry.parameters

    @property
    def name(self) -> str:
        """Text that describes it, for tables."""
        return self.text or self.entry.name

    def schedule(self, instance: Instance, seed: int = 0) -> Schedule:
        """Make a schedule.

        Args:
            instance: Jobs and cluster.
            seed: Random seed, 0 or more; most schedulers take none.

        Raises:
            ConfigError: The seed is out of range.
        """
        plan = self._plan(instance, seed)
        if isinstance(plan, ListRule):
            rule, plan = plan, plan.schedule()
            rule.planner.leave()
        if self.rules.drop_unread:
            plan = drop_unread(plan)
        return plan.signed(self.name, vars(self.rules) | dict(self.values))

    def list_rule(self, instance: Instance, seed: int = 0) -> ListRule:
        """The rule by which it takes one node after the other.

        Args:
            instance: Jobs and cluster.
            seed: Random seed, 0 or more.

        Raises:
            ConfigError: The seed is out of range, or it needs the whole instance before it places anything.
        """
        plan = self._plan(instance, seed)
        if not isinstance(plan, ListRule):
            raise ConfigError(f"scheduler {self.name!r} plans whole instances; expected one that takes node after node")
        if self.rules.drop_unread:
            raise ConfigError(
                f"scheduler {self.name!r} drops copies from whole plans; expected one that takes node after node"
            )
        return plan

    def _plan(self, instance: Instance, seed: int) -> Schedule | ListRule:
        check_whole("seed", seed, least=0)
        return self.entry.factory(instance, self.rules, np.random.default_rng(seed), **self.values)


SCHEDULERS: Registry[SchedulerEntry] = Registry(
    "scheduler",
    package="decima.systems.heterogeneous.schedulers",
    modules={
        "lachesis": "decima.systems.heterogeneous.policy.scheduler",
        "decima_deft": "decima.systems.heterogeneous.policy.scheduler",
        "best_plan": "decima.systems.heterogeneous.policy.scheduler",
        "best_sample": "decima.systems.heterogeneous.policy.scheduler",
    },
    elsewhere=scheduler_elsewhere,
    error=UnknownSchedulerError,
    group="decima.heterogeneous.schedulers",
    gone={
        "dfrn": "expected 'tds' or 'tdca', which also duplicate nodes",
        "remote": "version 0.2.0 was the last with a service for heterogeneous executors",
    },
    adopt=lambda name, item: SchedulerEntry.adopted(name, item, "schedule"),
)


def register(
    name: str,
    label: str,
    source: str,
    rules: Rules,
    *,
    open: tuple[str, ...] = ALL,
    parameters: tuple[Parameter, ...] = (),
    options: tuple[Option, ...] = (),
    draws: bool = False,
) -> Callable:
    """Decorator: make a function of instance, rules and generator known as a scheduler.

    Args:
        name: For :func:`make_scheduler`.
        label: What people call it.
        source: Where it was published.
        rules: Its settings unless others are given.
        open: Names of the settings that may be given.
        parameters: Its own numbers, which are keywords of the function.
        options: Its own texts, which are keywords of the function.
        draws: Whether it takes chance, so that another seed may be another schedule.
    """

    def wrap(function):
        SCHEDULERS.add(name, Entry(name, function, options, label, source, "", rules, open, parameters, draws))
        return function

    return wrap


def list_schedulers(*, bare: bool = False) -> list[str]:
    """Names of all schedulers, sorted; with ``bare`` those without required options."""
    entries = SCHEDULERS.members()
    return [each.name for each in entries if not bare or not any(option.required for option in each.options)]


def make_scheduler(scheduler: str | PlanScheduler, **settings: Any) -> PlanScheduler:
    """Make a scheduler from a text; return a scheduler unchanged.

    Args:
        scheduler: ``"heft"``, ``"high_rank_up_deft:decision=idle"``, ``"discounted_rank:discount=0.5"``; or an object
            with ``name`` and ``schedule(instance, seed)``.
        **settings: Settings, parameters and options by name, which go before those of the text.

    Raises:
        UnknownSchedulerError: There is none of that name.
        ConfigError: A setting is unknown, fixed for that scheduler, or out of range.
    """
    if callable(getattr(scheduler, "schedule", None)):
        if settings:
            raise ConfigError(
                f"settings ({', '.join(settings)}) were given for a scheduler that is made; expected none"
            )
        if not is_name(name := getattr(scheduler, "name", None)):
            raise ConfigError(f"the name of scheduler {type(scheduler).__name__} is {name!r:.60}; expected a text")
        return scheduler
    if not isinstance(scheduler, str):
        raise ConfigError(f"a scheduler is a name or has a method schedule(instance, seed), got {scheduler!r:.60}")
    name, values = read_scheduler(scheduler)
    entry = SCHEDULERS.find(name)
    if unknown := [key for key in settings if key not in entry.keys and key not in ALL]:
        _refuse(entry, unknown[0], f"scheduler {scheduler!r}")
    values |= settings
    text = scheduler if not settings else f"{name}:" + ",".join(f"{key}={value}" for key, value in values.items())
    scheduler = entry.make(values)
    return replace(scheduler, text=text) if isinstance(scheduler, PlanScheduler) else make_scheduler(scheduler)


def schedule_with(scheduler: PlanScheduler, instance: Instance, seed: int = 0) -> Schedule:
    """Schedule an instance and validate a schedule from outside.

    A schedule of code outside of the package counts only if it keeps the rules of the model.

    Args:
        scheduler: A scheduler, or an object with ``name`` and ``schedule(instance, seed)``.
        instance: Jobs and cluster.
        seed: Random seed, 0 or more.

    Raises:
        SchedulerError: The code from outside fails, or does not return a schedule.
        InvalidScheduleError: Its schedule breaks a rule of the model; the message names the first breach.
    """
    origin = scheduler.entry.factory if type(scheduler) is PlanScheduler else type(scheduler)
    if getattr(origin, "__module__", "").startswith("decima.systems."):
        return scheduler.schedule(instance, seed)  # tests validate the schedules of these
    where = f"scheduler {getattr(scheduler, 'name', type(scheduler).__name__)!r}"
    try:
        schedule = scheduler.schedule(instance, seed)
        if not isinstance(schedule, Schedule):
            raise SchedulerError(f"{where} returns {schedule!r:.60}; expected a Schedule of the instance")
        # Made anew: neither another instance nor a method of its own says how long it is.
        columns = (schedule.node, schedule.executor, schedule.start_s, schedule.finish_s)
        schedule = Schedule(instance, *columns, scheduler=schedule.scheduler, settings=schedule.settings)
        validate(instance, schedule)
    except InvalidScheduleError as error:
        raise InvalidScheduleError(f"{where}: {error}") from error
    except DecimaError:
        raise
    except Exception as error:  # whatever code from outside raises
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{last.filename}, line {last.lineno}"
        raise SchedulerError(f"{where} fails with {type(error).__name__}: {error} ({line})") from error
    return schedule


def read_scheduler(text: str) -> tuple[str, dict[str, Any]]:
    """Name and typed settings, parameters and options of the scheduler that a text means.

    Raises:
        UnknownSchedulerError: There is none of that name.
        ConfigError: A setting is unknown, or its value of another type.
    """
    name, _ = SCHEDULERS.split(text)
    entry = SCHEDULERS.find(name)
    _, texts = split_options(text, entry.options[0].name if entry.options else None, name)
    where = f"scheduler {text!r}"
    kinds: dict[str, Any] = {each.name: float for each in entry.parameters}
    kinds |= {each.name: each.value_type for each in entry.options}
    values: dict[str, Any] = {}
    for key, value in texts.items():
        if key in kinds:
            values[key] = read_value(value, kinds[key], f"{where}: {key}")
        elif key in ALL and isinstance(entry, Entry):
            values |= read_fields({key: value}, Rules, f"{where}: ")
        else:
            _refuse(entry, key, where)
    return name, values


def _refuse(entry: Entry, key: str, where: str) -> NoReturn:
    known = entry.keys
    raise ConfigError(f"{where} has no setting {key!r}{hint(key, known)}; it has: {', '.join(known) or 'none'}")


def drop_unread(schedule: Schedule) -> Schedule:
    """The same schedule without copies that nothing reads; no copy starts later than before.

    Needed are the first copy to finish of every node without children, and every copy that a needed one reads. Each
    executor keeps the order of what is left and starts everything as early as it can. Where times change, what is read
    may change; so this is repeated until nothing is left to drop.

    Args:
        schedule: A valid schedule of which nothing has been executed yet.
    """
    while True:
        needed = _needed(schedule)
        if needed.all():
            return schedule
        schedule = _moved_up(schedule, needed)


def _needed(schedule: Schedule) -> np.ndarray:
    """Whether each copy is needed, bool [copies]."""
    children = np.diff(schedule.instance.children[0])
    needed = np.zeros(len(schedule), dtype=bool)
    by_finish = np.argsort(schedule.finish_s, kind="stable")
    nodes, firsts = np.unique(schedule.node[by_finish], return_index=True)
    read_by: dict[int, list[int]] = {}
    for read, reader in schedule.sources().tolist():
        read_by.setdefault(reader, []).append(read)
    stack = by_finish[firsts[children[nodes] == 0]].tolist()
    needed[stack] = True
    while stack:
        for read in read_by.get(stack.pop(), ()):
            if not needed[read]:
                needed[read] = True
                stack.append(read)
    return needed


def _moved_up(schedule: Schedule, kept: np.ndarray) -> Schedule:
    """Kept copies, each as early as the order on its executor and its inputs allow."""
    position = np.argsort(schedule.instance.order)
    # What takes no time goes before what begins at the same time; so do parents.
    order = np.lexsort((position[schedule.node], schedule.finish_s, schedule.start_s))
    order = order[kept[order]]
    copies = zip(schedule.node[order].tolist(), schedule.executor[order].tolist(), strict=True)
    timed = Schedule.in_order(schedule.instance, copies)
    start_s, finish_s = schedule.start_s.copy(), schedule.finish_s.copy()
    start_s[order], finish_s[order] = timed.start_s, timed.finish_s
    return replace(
        schedule,
        node=schedule.node[kept],
        executor=schedule.executor[kept],
        start_s=start_s[kept],
        finish_s=finish_s[kept],
        duplicate=None,
    )
