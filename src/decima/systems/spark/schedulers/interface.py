"""Interface of schedulers: ``decide`` turns an :class:`Observation` into a :class:`Decision`."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np

from decima.core.checks import LARGEST_MS, is_number
from decima.core.decision import CompiledDecision, Parameter
from decima.core.errors import ConfigError, SchedulerError
from decima.core.grammar import hint
from decima.systems.spark.decision import DEFAULTS, LIMIT, OPTION_PARTS, Part, parts_of
from decima.systems.spark.fields import ACTIVE, FIELDS, WITHHELD
from decima.systems.spark.rules.choices import kept_executors
from decima.systems.spark.rules.delays import delay_refusal
from decima.systems.spark.schedulers.fields import bind_parameters
from decima.systems.spark.settings import ExecutorClass

if TYPE_CHECKING:
    from decima.systems.spark.state import ClusterState


@dataclass(frozen=True)
class Decision:
    """Decision of a scheduler: a stage and its executors, or its delay."""

    stage: StageView | int | None  # the stage (a :class:`StageView` or its id); None leaves all offered executors idle
    # Upper limit on the executors of the stage's *job* (§5.2); in mode ``released`` the number of offered executors to
    # use. ``Observation.grant`` computes it for either mode.
    parallelism_limit: int = 0
    # Above 0, the stage gets no executor: for this time in ms it is withheld, so that executors stay free for jobs to
    # come, and the scheduler decides about the same executors again. Then the stage can be chosen again. Only
    # ``delayable`` stages can be delayed.
    delay_ms: float = 0.0
    # Class of the executors, an index into ``Observation.classes``; only as many as are on offer of it are used. None:
    # best fit, the offered ones of the smallest class that the stage fits, then those of the next.
    executor_class: int | None = None

    @classmethod
    def idle(cls) -> Decision:
        """Leave all offered executors idle until the next scheduling event."""
        return cls(None)


#: What a scheduler may read besides single fields of the state, in ``reads``: words that a refusal repeats.
DURATIONS = "mean durations of tasks by executors"
RUNNING = "running tasks, past arrivals and every event"
GAP = "the mean interarrival time"
NAMES = "names and numbers of jobs"
_TABLES = {
    *("list_mean_ms", "list_add_ms", "list_offset", "list_length", "values_ms", "row_list"),
    *("row_grid", "grid_left", "grid_right", "grid_weight", "grid_width"),
}


def fields_in(names: Iterable[str]) -> frozenset[str]:
    """Fields of the state among some names; the tables of durations as ``DURATIONS``."""
    fields = FIELDS.intersection(names)
    return fields - _TABLES | {DURATIONS} if fields & _TABLES else fields


@runtime_checkable
class Scheduler(Protocol):
    """Protocol of a scheduler: a name and two methods; nothing has to be subclassed.

    A scheduler may have ``reads``, a set of fields of the state and of the words above. Whoever knows less of a cluster
    than a simulation does refuses it by that.
    """

    name: str

    def reset(self, rng: np.random.Generator) -> None:
        """Begin a run, with a random generator for the scheduler."""

    def decide(self, observation: Observation) -> Decision:
        """Decide about the free executors when a stage can be chosen."""


class _View:
    __slots__ = ("_state", "id")

    def __init__(self, state: ClusterState, number: int) -> None:
        self._state = state
        self.id = int(number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.id == self.id

    def __hash__(self) -> int:
        return self.id


class StageView(_View):
    """Stage as a scheduler sees it: the live state, valid only inside ``decide``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"StageView(job={self.job.id}, stage={self.index})"

    @property
    def job(self) -> JobView:
        """Job that the stage belongs to."""
        return JobView(self._state, self._state.stage_job[self.id])

    @property
    def index(self) -> int:
        """Index of the stage inside its job."""
        return self.id - int(self._state.job_first_stage[self._state.stage_job[self.id]])

    @property
    def num_tasks(self) -> int:
        """Number of tasks of the stage."""
        return int(self._state.stage_tasks[self.id])

    @property
    def tasks_to_launch(self) -> int:
        """Number of tasks that are not yet launched."""
        return self.num_tasks - int(self._state.stage_next[self.id])

    @property
    def tasks_unfinished(self) -> int:
        """Number of tasks that are not yet finished."""
        return self.num_tasks - int(self._state.stage_finished_tasks[self.id])

    @property
    def room(self) -> int:
        """Executors the stage can still use: tasks to launch less executors coming."""
        return self.tasks_to_launch - int(self._state.stage_commit[self.id]) - int(self._state.stage_moving[self.id])

    @property
    def executors(self) -> int:
        """Number of executors that work on the stage."""
        return int(self._state.stage_executors[self.id])

    @property
    def memory(self) -> float:
        """Memory that a task asks for, 0 if it asks for none."""
        return float(self._state.stage_memory[self.id])

    @property
    def cpu(self) -> float:
        """CPUs that a task asks for."""
        return float(self._state.stage_cpu[self.id])

    @property
    def fits(self) -> np.ndarray:
        """Whether a task runs on an executor of each class, bool [classes]."""
        mask = int(self._state.group_fits[self._state.stage_group[self.id]])
        return np.array([mask >> index & 1 == 1 for index in range(self._state.num_classes)])

    @property
    def mean_duration_ms(self) -> float:
        """Nominal task duration in ms: the mean over all recorded durations of the stage."""
        return float(self._state.row_nominal_ms[self._state.stage_row[self.id]])

    @property
    def path_work_ms(self) -> float:
        """Work in ms on the heaviest path from this stage down (§5.1, footnote 5)."""
        return float(self._state.row_path_work_ms[self._state.stage_row[self.id]])

    @property
    def runnable(self) -> bool:
        """Whether all parents have finished, tasks wait and no slot withholds the stage."""
        return bool(self._state.stage_runnable[self.id])

    @property
    def schedulable(self) -> bool:
        """Whether the stage is in the frontier, so that it may be chosen now."""
        return bool(self._state.stage_in_frontier[self.id])

    @property
    def delayed(self) -> bool:
        """Whether the stage was delayed, whether or not its slot has ended."""
        return bool(self._state.stage_slot[self.id])

    @property
    def delayable(self) -> bool:
        """Whether the stage may be delayed: runnable, untouched, never delayed before."""
        return self.schedulable and delay_refusal(self._state, self.id) == 0

    @property
    def slot_left_ms(self) -> float:
        """Time in ms until the slot that withholds the stage ends; 0 if none does."""
        state = self._state
        return float(state.slot_end_ms[self.id]) - state.now_ms if state.stage_slot[self.id] == WITHHELD else 0.0


class JobView(_View):
    """Job as a scheduler sees it: the live state, valid only inside ``decide``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JobView({self.id})"

    @property
    def stages(self) -> list[StageView]:
        """Stages of the job, by index."""
        first, end = self._state.job_first_stage[self.id : self.id + 2]
        return [StageView(self._state, stage) for stage in range(first, end)]

    @property
    def arrival_ms(self) -> float:
        """Time of arrival in ms."""
        return float(self._state.job_arrival_ms[self.id])

    @property
    def work_ms(self) -> float:
        """Work of the job in ms: tasks times nominal duration, over all stages."""
        return float(self._state.job_work_ms[self.id])

    @property
    def remaining_work_ms(self) -> float:
        """Work left in ms: unfinished tasks times nominal duration, over all stages."""
        state = self._state
        stages = slice(*state.job_first_stage[self.id : self.id + 2])
        unfinished = state.stage_tasks[stages] - state.stage_finished_tasks[stages]
        return float(unfinished @ state.row_nominal_ms[state.stage_row[stages]])

    @property
    def allocation(self) -> int:
        """Executors the job keeps, without those on offer; limits must exceed it."""
        state, job = self._state, self.id
        return int(kept_executors(state, job)) - (state.num_source if job == state.source_job else 0)

    @property
    def class_allocation(self) -> np.ndarray:
        """The same by class of executors, int64 [classes]."""
        state, job = self._state, self.id
        if state.num_classes == 1:
            return np.array([self.allocation])
        kept = state.job_class_kept[job * state.num_classes : (job + 1) * state.num_classes].astype(np.int64)
        return kept - state.class_offers if job == state.source_job else kept


class Observation:
    """Cluster at a decision; its views read the live state and expire after ``decide``."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    @property
    def time_ms(self) -> float:
        """Simulated time in ms."""
        return self.state.now_ms

    @property
    def num_executors(self) -> int:
        """Number of executors of the cluster."""
        return self.state.num_executors

    @property
    def num_free_executors(self) -> int:
        """Executors on offer; with ``commit_ahead`` some still finish a task."""
        return self.state.num_source

    @property
    def classes(self) -> tuple[ExecutorClass, ...]:
        """Executor classes by ascending size; without classes, one of memory 1 and 1 CPU."""
        return self.state.settings.classes or (ExecutorClass(1.0, self.num_executors),)

    @property
    def offers(self) -> np.ndarray:
        """Number of executors of each class offered now, int64 [classes]; in all `num_free_executors`."""
        state = self.state
        return state.class_offers.astype(np.int64) if state.num_classes > 1 else np.array([state.num_source])

    @property
    def source_job(self) -> JobView | None:
        """Job that the offered executors belong to; moving them elsewhere costs the moving delay."""
        job = self.state.source_job
        return JobView(self.state, job) if job >= 0 and self.state.job_state[job] == ACTIVE else None

    @property
    def jobs(self) -> list[JobView]:
        """Jobs in the system, in order of arrival."""
        return [JobView(self.state, job) for job in self.state.active[: self.state.num_active]]

    @property
    def frontier(self) -> list[StageView]:
        """Stages that may be chosen now: not saturated, and every parent finished or saturated."""
        return [StageView(self.state, stage) for stage in self.state.frontier()]

    def grant(self, stage: StageView, executors: int, executor_class: int | None = None) -> Decision:
        """Decision that assigns a number of offered executors to the stage, in either mode."""
        limit = executors + stage.job.allocation if self.state.job_limit else executors
        return Decision(stage, limit, executor_class=executor_class)

    def admit(self, scheduler: CompiledScheduler) -> None:
        """Called before a compiled scheduler reads the state; a service may refuse it."""


_LARGEST = 2**31 - 1


@dataclass
class CompiledScheduler:
    """A heuristic as a compiled function, run inside the core or by ``decide``."""

    concurrent: ClassVar[bool] = True  # one object may serve several runs at the same time

    name: str  # name in the registry
    decision: CompiledDecision  # the compiled function, which declares the parameters and arrays that it reads
    # Chosen values of its parameters by name, their defaults where not given.
    values: dict[str, float] = field(default_factory=dict)
    _bound: ClusterState | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.decision, CompiledDecision):
            raise ConfigError(
                f"scheduler {self.name}: its decision is {self.decision!r:.60}; expected a function compiled by the "
                "decorator CompiledDecision"
            )
        self._check(self.values)
        self.values = {item.name: float(self.values.get(item.name, item.default)) for item in self.parameters}

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters that may be set, in the order in which the compiled function knows them."""
        return self.decision.parameters

    @property
    def reads(self) -> frozenset[str]:
        """What it may read of the state, as its code says."""
        return fields_in(self.decision.names)

    def _check(self, values: Mapping[str, float]) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"scheduler {self.name}: the parameters are {values!r:.60}; expected values by name; which parameters "
                "there are is declared with the compiled function"
            )
        known = {parameter.name: parameter for parameter in self.parameters}
        for name, value in values.items():
            if name not in known:
                allowed = f"{hint(name, known)}; it has: {', '.join(known) or 'none'}"
                raise ConfigError(f"scheduler {self.name} has no parameter {name!r}{allowed}")
            low, high = known[name].low, known[name].high
            whole = known[name].whole
            try:
                valid = low <= float(value) <= high and (not whole or float(value).is_integer())
            except (TypeError, ValueError, OverflowError):
                valid = False
            if not valid:
                expected = "a whole number from" if whole else "from"
                raise ConfigError(
                    f"scheduler {self.name}: {name} must be {expected} {low:g} to {high:g}, got {value!r}"
                )

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_bound": None}

    def bind(self, state: ClusterState) -> None:
        """Hand the parameters to a state before its run starts.

        Raises:
            ConfigError: A value is missing, unknown or out of range.
            RecordError: The rule reads an array that was not given to the state.
        """
        self._check(self.values)
        missing = [item.name for item in self.parameters if item.name not in self.values]
        if missing:
            raise ConfigError(
                f"scheduler {self.name} has no value for {', '.join(missing)}; its rule reads {len(self.parameters)} "
                "parameters"
            )
        record = bind_parameters(state, [self.values[item.name] for item in self.parameters])
        record.require(self.decision.arrays, f"scheduler {self.name}")
        self._bound = state

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the last run; the state holds the random generator."""
        self._bound = None

    def decide(self, observation: Observation) -> Decision:
        """Make the same decision as inside the core."""
        state = observation.state
        if self._bound is not state:
            observation.admit(self)
            self.bind(state)
        return run_decision(self.decision, state)


def run_decision(decision: CompiledDecision, state: ClusterState) -> Decision:
    """Run a compiled decision rule on a state that has everything it needs."""
    decision(state.address)
    stage, *options = parts_of(state.action)
    return Decision(None if stage < 0 else stage, *options)


def decision_parts(decision: Decision) -> tuple[float | None, ...]:
    """Parts of what a scheduler returned, as ``ClusterState.decide`` takes them; (-1, None) to idle.

    Raises:
        SchedulerError: It is not a decision, or a part of it is of the wrong kind; names the likely mistake.
    """
    if not isinstance(decision, Decision):
        hint = "; is a return missing?" if decision is None else ""
        hint = "; wrap it: observation.grant(stage, executors)" if isinstance(decision, StageView) else hint
        hint = "; wrap it: Decision(stage, parallelism_limit)" if isinstance(decision, tuple) else hint
        raise SchedulerError(f"decide returned {_shown(decision)}; expected a Decision{hint}")
    stage = decision.stage
    if stage is None:
        # What idling has no use for is left out, but for a delay, which the core refuses.
        options = [_option(decision, part) for part in OPTION_PARTS[LIMIT:]]
        default = tuple(options) == DEFAULTS[LIMIT + 1 :]
        return (-1, None) if default else (-1, None, *options)
    if isinstance(stage, StageView):
        stage = stage.id
    else:
        hint = "; choose one of the job's stages in observation.frontier" if isinstance(stage, JobView) else ""
        try:
            stage = _whole(stage)
        except TypeError:
            raise SchedulerError(
                f"the stage of a Decision is {_shown(stage)}; expected a StageView, a stage id or None to idle{hint}"
            ) from None
        if stage < 0:
            raise SchedulerError(f"the stage of a Decision is {stage}; expected an id of at least 0, or None to idle")
    # The core counts in machine integers; a larger number means the same there.
    return min(stage, _LARGEST), *(_option(decision, part) for part in OPTION_PARTS)


def _option(decision: Decision, part: Part) -> float:
    """A part of a decision but its stage."""
    name, value = part.attribute, getattr(decision, part.attribute)
    if value is None and part.default < 0:
        return part.default
    if not part.whole:
        if not is_number(value) or not 0.0 <= value <= LARGEST_MS:
            raise SchedulerError(
                f"the {name} of a Decision is {_shown(value)}; expected a number from 0 to {LARGEST_MS:g}"
            )
        return float(value)
    try:
        return max(-_LARGEST, min(_whole(value), _LARGEST))
    except TypeError:
        raise SchedulerError(
            f"the {name} of a Decision is {_shown(value)}; expected a whole number; round it with int() or math.ceil()"
        ) from None


def _whole(value) -> int:
    """An integer of Python or NumPy as int; TypeError for anything else, truth values included."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return operator.index(value)


def _shown(value: object) -> str:
    return "None" if value is None else f"{value!r:.60} ({type(value).__name__})"


__all__ = ["CompiledScheduler", "Decision", "JobView", "Observation", "Scheduler", "StageView", "decision_parts"]


# ---- whether an object is a scheduler: a name, ``reset(rng)`` and ``decide(observation)`` ---------------------------


#: method -> its one argument
_METHODS = {"reset": "rng", "decide": "observation"}


def require_protocol(scheduler: object) -> None:
    """Return if the object has all that :class:`decima.systems.spark.schedulers.Scheduler` asks for.

    Raises:
        SchedulerError: A part is missing or of another kind; the message names it and the likely mistake.
    """
    class_name = type(scheduler).__name__
    if isinstance(scheduler, type):
        raise SchedulerError(
            f"got the class {scheduler.__name__}; expected an object of it: {scheduler.__name__}() with parentheses"
        )
    for method, argument in _METHODS.items():
        function = getattr(scheduler, method, None)
        if not callable(function):
            alone = "; a plain function is not enough, give it a class with name, reset and decide"
            meant = alone if inspect.isfunction(scheduler) else ""
            raise SchedulerError(f"{class_name} has no method {method}; expected {method}({argument}){meant}")
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            raise SchedulerError(
                f"{class_name}.{method}{inspect.signature(function)} cannot be called with one argument; "
                f"expected {method}(self, {argument})"
            ) from None
        except ValueError:  # builtin callables may have no signature to look at
            continue
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise SchedulerError(f"{class_name}.{method} is a generator or a coroutine; expected a plain function")
    name = getattr(scheduler, "name", None)
    if not isinstance(name, str) or not name:
        raise SchedulerError(
            f'{class_name}.name is {name!r}; expected a non-empty string, for titles and tables: name = "my_scheduler"'
        )
