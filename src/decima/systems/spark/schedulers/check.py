"""Check whether a scheduler keeps to the interface, in the manner of Gymnasium's ``check_env``."""

import copy
import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from decima.core.errors import ConfigError, DeadlockError, InvalidDecisionError, SchedulerError
from decima.core.random import without_global_chance
from decima.core.record import BOUND, BUFFER, RUN
from decima.systems.spark.decision import DELAY, PART_COLUMNS
from decima.systems.spark.engine import (
    CLASS_NOT_OFFERED,
    CLASS_TOO_SMALL,
    CLASS_UNKNOWN,
    LIMIT_TOO_LARGE,
    LIMIT_TOO_SMALL,
    NOT_IN_FRONTIER,
)
from decima.systems.spark.fields import ARRAYS, SCALARS
from decima.systems.spark.rules.delays import DELAY_BEGUN, DELAY_NOT_RUNNABLE, DELAY_OF_IDLING, DELAYED_BEFORE
from decima.systems.spark.schedulers.interface import CompiledScheduler, Observation, Scheduler, decision_parts
from decima.systems.spark.schedulers.registry import make_scheduler
from decima.systems.spark.settings import Settings
from decima.systems.spark.state import ClusterState, new_state, offers, spawn_generators
from decima.workload.jobs import Job, Workload
from decima.workload.profile import JobProfile
from decima.workload.synthetic import SyntheticParameters, synthetic_profiles

_HINTS = {
    NOT_IN_FRONTIER: "choose from observation.frontier, anew at every decision",
    LIMIT_TOO_SMALL: "a limit counts all executors of the stage's job and must exceed job.allocation; "
    "observation.grant(stage, executors) adds it",
    LIMIT_TOO_LARGE: "in mode released a limit counts offered executors; observation.grant(stage, executors) is right "
    "in every mode",
    CLASS_UNKNOWN: "a class is an index into observation.classes",
    CLASS_NOT_OFFERED: "observation.offers has the executors on offer of each class",
    CLASS_TOO_SMALL: "stage.fits has the classes that a stage fits",
    DELAY_NOT_RUNNABLE: "delay only where stage.delayable says so",
    DELAY_BEGUN: "delay only where stage.delayable says so",
    DELAYED_BEFORE: "delay only where stage.delayable says so",
    DELAY_OF_IDLING: "Decision.idle() waits for the next event, whenever that is",
}


@dataclass(frozen=True)
class CheckReport:
    """What was tried."""

    name: str  # name of the scheduler
    kind: str  # ``"compiled"`` or ``"Python"``
    cases: int  # combinations of workload, mode and number of executors
    runs: int  # runs of all cases
    decisions: int  # decisions of all runs

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.kind}) keeps to the interface: "
            f"{self.cases} cases, {self.runs} runs, {self.decisions:,} decisions"
        )


@dataclass(frozen=True)
class _Trace:
    decisions: np.ndarray
    completion_ms: np.ndarray


def check_scheduler(
    scheduler: str | Scheduler,
    *,
    parameters: Mapping[str, float] | None = None,
    workloads: Workload | Mapping[str, Workload] | None = None,
    executors: Sequence[int] = (1, 3, 50),
    modes: Sequence[str] = ("paper", "released"),
    seed: int = 0,
) -> CheckReport:
    """Try a scheduler on small workloads and raise on the first thing that is wrong.

    It must have the three parts of the interface, choose only what can be chosen, finish all jobs, decide the same for
    the same seed, forget the last run on ``reset``, draw chance only from the generator given there, and change neither
    the cluster nor the workload. A compiled scheduler must also decide the same inside the core as through ``decide``.

    Example:
        >>> report = check_scheduler("fair", executors=[2], modes=["paper"])
        >>> report.kind
        'compiled'

    Args:
        scheduler: Registered name, or any object with ``name``, ``reset`` and ``decide``.
        parameters: Parameters of a scheduler given by name.
        workloads: What to run instead of the built-in small workloads.
        executors: Cluster sizes.
        modes: Rules; a scheduler that gives its limits itself instead of by ``observation.grant`` suits one mode only.
        seed: Random seed of durations and of the scheduler.

    Raises:
        SchedulerError: The message has the value, what is allowed and the likely mistake.
        UnknownSchedulerError: The name is not registered.
    """
    scheduler = make_scheduler(scheduler, **(parameters or {}))
    if workloads is None:
        workloads = small_workloads()
    elif isinstance(workloads, Workload):
        workloads = {workloads.label: workloads}
    cases = [
        _Case(scheduler, name, workload, settings, seed)
        for name, workload in workloads.items()
        for mode in modes
        for settings in _clusters(workload, mode, executors)
    ]
    if not cases:
        raise ConfigError("nothing to check with; expected at least one workload, one mode and one number of executors")
    compiled = isinstance(scheduler, CompiledScheduler)
    pristine = None if compiled else _copied(scheduler)
    traces: list[_Trace] = []
    for case in cases:
        traces += case.check_compiled() if compiled else case.check_python(pristine)
    decisions = sum(len(trace.decisions) for trace in traces)
    kind = "compiled" if compiled else "Python"
    return CheckReport(scheduler.name, kind, len(cases), len(traces), decisions)


def _clusters(workload: Workload, mode: str, executors: Sequence[int]) -> list[Settings]:
    """Clusters for a workload: numbers of executors, or the classes of its requests."""
    if (workload.requests[:, 0] > 0.0).any():
        return [Settings.of_mode(mode, classes=CLASSES)]
    return [Settings.of_mode(mode, executors=number) for number in executors]


@dataclass(frozen=True)
class _Case:
    scheduler: Scheduler
    label: str
    workload: Workload
    settings: Settings
    seed: int

    def check_python(self, pristine: Scheduler | None) -> list[_Trace]:
        """Run the same object twice and require the same decisions."""
        traces = [self._run(self.scheduler) for _ in range(2)]
        if difference := _difference(*traces):
            raise self._error(
                f"two runs with the same seed differ {difference}; expected the same decisions; "
                f"{self._why_they_differ(pristine)}"
            )
        return traces

    def check_compiled(self) -> list[_Trace]:
        """Run inside the core and through ``decide`` and require the same decisions."""
        inside = [self._run_inside() for _ in range(2)]
        if difference := _difference(*inside):
            raise self._error(
                f"two runs inside the core with the same seed differ {difference}; expected the same decisions; draw "
                "chance from state.policy_rng only, and set job_key and job_share before reading them"
            )
        outside = self._run(self.scheduler)
        if difference := _difference(inside[0], outside):
            raise self._error(
                f"the run inside the core and the one through decide differ {difference}; expected the same decisions; "
                "decide must do what the compiled function does, and draw nothing when the frontier is empty"
            )
        return [*inside, outside]

    def _why_they_differ(self, pristine: Scheduler | None) -> str:
        """Name the likely mistake by two runs of fresh objects."""
        chance = "draw chance from the generator given to reset(rng)"
        leftover = "reset must forget the last run"
        if pristine is None:
            return f"{chance}, and {leftover}"
        fresh = [self._run(copy.deepcopy(pristine)) for _ in range(2)]
        return chance if _difference(*fresh) else leftover

    def _state(self) -> ClusterState:
        return new_state(self.workload, self.settings, log_decisions=True)

    def _run_inside(self) -> _Trace:
        state = self._state()
        self.scheduler.bind(state)
        state.start(*spawn_generators(self.seed), self.scheduler.decision.address)
        guard = StateGuard(state)
        with self._explaining(state):
            state.advance()
        guard.require_workload(self._error)
        return _trace(state)

    def _run(self, scheduler: Scheduler) -> _Trace:
        state = self._state()
        rng, policy_rng = spawn_generators(self.seed)
        state.start(rng, policy_rng)
        observation = Observation(state)
        with without_global_chance(self._error), self._explaining(state):
            self._call("reset", scheduler.reset, policy_rng)
            guard = StateGuard(state)
            for _ in offers(state):
                guard.remember()
                decision = self._call("decide", scheduler.decide, observation)
                guard.require_untouched(observation, self._error)
                try:
                    parts = decision_parts(decision)
                except SchedulerError as error:
                    raise self._error(str(error)) from error
                state.decide(*parts)
        guard.require_workload(self._error)
        return _trace(state)

    def _call(self, name: str, method, argument):
        try:
            return method(argument)
        except Exception as error:
            raise self._error(f"{name} raised {type(error).__name__}: {error}; expected no exception") from error

    @contextmanager
    def _explaining(self, state: ClusterState) -> Iterator[None]:
        try:
            yield
        except InvalidDecisionError as error:
            hint = _HINTS.get(state.error, "")
            if state.decide_fn and state.num_frontier == 0:
                hint = "inside the core decide is also called with an empty frontier: call choose_idle there"
            raise self._error(f"{error}{'; ' if hint else ''}{hint}") from error
        except DeadlockError as error:
            raise self._error(
                f"{error}; expected all jobs to finish; idle only while tasks are running that will lead to another "
                "decision"
            ) from error

    def _error(self, message: str) -> SchedulerError:
        settings = self.settings
        return SchedulerError(
            f"scheduler {self.scheduler.name!r}, workload {self.label!r}, mode {settings.mode}, executors "
            f"{settings.executors}{' in classes' if settings.classes else ''}, seed {self.seed}: {message}"
        )


def _copied(scheduler: Scheduler) -> Scheduler | None:
    """A copy that has never run, if the object can be copied."""
    try:
        return copy.deepcopy(scheduler)
    except Exception:  # only the diagnosis of a failure gets less precise
        return None


def _trace(state: ClusterState) -> _Trace:
    return _Trace(state.logged_decisions.copy(), state.job_finish_ms.copy())


def _difference(first: _Trace, second: _Trace) -> str:
    for number, rows in enumerate(zip(first.decisions, second.decisions, strict=False)):
        if not np.array_equal(*rows):
            return f"from decision {number} on ({_row(rows[0])} against {_row(rows[1])})"
    if len(first.decisions) != len(second.decisions):
        return f"in the number of decisions ({len(first.decisions)} against {len(second.decisions)})"
    return "" if np.array_equal(first.completion_ms, second.completion_ms) else "in the completion times"


def _row(row: np.ndarray) -> str:
    job, stage, limit = (int(value) for value in row[4:7])
    delay_ms = row[PART_COLUMNS[DELAY]]
    delay = f", delay {delay_ms:g} ms" if delay_ms else ""
    chosen = "idle" if stage < 0 else f"job {job}, stage {stage}, limit {limit}{delay}"
    return f"{row[0] / 1000:.3f} s: {chosen}"


# ---- small workloads on which ``check_scheduler`` tries a scheduler -------------------------------------------------


# Classes of executors for the workload whose stages ask for memory.
CLASSES = ((0.4, 2), (0.7, 1), (1.0, 2))
_FEW_TASKS = {"median_tasks": 6.0, "task_spread": 0.8, "max_tasks": 20, "max_samples": 6, "levels": (2, 5, 10, 50)}


def _profiles(count: int, stages: int, depth: float) -> tuple[JobProfile, ...]:
    shape = SyntheticParameters(
        min_stages=max(1, stages - 2), max_stages=stages, mean_stages=stages, depth_ratio=depth, **_FEW_TASKS
    )
    return synthetic_profiles(count, 0, shape)


@functools.cache
def small_workloads() -> dict[str, Workload]:
    """Workloads by name; the same in every process."""
    mixed = _profiles(7, 8, 0.6)
    single = _profiles(1, 1, 1.0)[0]
    # The first jobs of the stream come together, the last ones find an empty cluster.
    times_ms = (0.0, 5_000.0, 5_000.0, 12_500.0, 60_000.0, 10_000_000.0, 10_000_000.0)
    rng = np.random.default_rng(0)
    asking = [
        Job(profile, at, initial=False, requests=1.0 - rng.random(len(profile.stages)))
        for profile, at in zip(mixed, times_ms, strict=True)
    ]
    cases = {
        "memory": asking,
        "batch": [Job(profile) for profile in mixed],
        "stream": [Job(profile, at, initial=False) for profile, at in zip(mixed, times_ms, strict=True)],
        "single job": [Job(mixed[3])],
        "one stage": [Job(single)],
        "identical jobs": [Job(mixed[2])] * 5,
        "wide DAG": [Job(profile) for profile in _profiles(2, 24, 0.05)],
        "deep DAG": [Job(profile) for profile in _profiles(2, 18, 1.0)],
    }
    return {name: Workload(tuple(jobs), name) for name, jobs in cases.items()}


# ---- guard that notices when a scheduler changes what it may only look at -------------------------------------------


#: Fields that compiled schedulers write while they decide.
_WRITTEN = {"action", "no_answer"}


class StateGuard:
    """Memory of a state before a decision."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        kinds = {
            name: field.storage for name, field in ARRAYS.items() if field.storage != BUFFER and name not in _WRITTEN
        }
        self._live = {name: getattr(state, name) for name, kind in kinds.items() if kind != BOUND}
        self._static = {name: getattr(state, name) for name, kind in kinds.items() if kind == BOUND}
        self._scalars = [name for name, field in SCALARS.items() if field.storage == RUN and name not in _WRITTEN]
        self._workload = [values.tobytes() for values in self._static.values()]

    def remember(self) -> None:
        """Remember the state as it is before a decision."""
        self._header = self._current_header()
        self._contents = [values.tobytes() for values in self._live.values()]

    def _current_header(self) -> bytes:
        """All numbers of the state at once; one by one takes long."""
        return ctypes.string_at(self._state.address, self._state.layout.header_dtype.itemsize)

    def require_untouched(self, observation: Observation, make_error: Callable[[str], SchedulerError]) -> None:
        """Compare with what ``remember`` kept.

        Raises:
            SchedulerError: A field of the state, or the observation itself, was changed.
        """
        header = self._current_header()
        old, new = (np.frombuffer(part, self._state.layout.header_dtype)[0] for part in (self._header, header))
        changed = [name for name in self._scalars if header != self._header and old[name] != new[name]]
        changed += _changed(self._live, self._contents)
        if changed:
            raise make_error(
                f"decide changed {', '.join(changed[:5])} of the cluster; expected to find it as it was; only look at "
                "observation.state, and return the decision instead of carrying it out"
            )
        extra = [name for name in vars(observation) if name != "state"]
        if extra or observation.state is not self._state:
            raise make_error(
                f"decide changed the attribute {(extra or ['state'])[0]} of the observation; expected it untouched; "
                "keep notes in attributes of the scheduler"
            )

    def require_workload(self, make_error: Callable[[str], SchedulerError]) -> None:
        """Compare the workload with what it was at first.

        Raises:
            SchedulerError: An array of the workload was changed.
        """
        changed = _changed(self._static, self._workload)
        if changed:
            raise make_error(
                f"the run changed {', '.join(changed[:5])} of the workload; expected to find it as it was; copy an "
                "array before changing it"
            )


def _changed(arrays: dict[str, np.ndarray], contents: list[bytes]) -> list[str]:
    pairs = zip(arrays.items(), contents, strict=True)
    return [name for (name, values), old in pairs if values.tobytes() != old]
